"""An exported SavedModel: TensorFlow's own files, the names of its signatures, and facts about the model."""

import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .vocabulary import VOCABULARY_FILE, VocabularyFile
from .weights import Array

DEFAULT_SIGNATURE: Final = "serving_default"  # (title, body: string [b]) -> {OUTPUT: float32 [b, D]}
TEXT_SIGNATURE: Final = "text"  # (text: string [b]) -> {OUTPUT: float32 [b, D]}
QUERY_SIGNATURE: Final = "query"  # as TEXT_SIGNATURE, with the prompt of queries; only of models with prompts
# An export of tokens has DEFAULT_SIGNATURE only: (tokens: int32 [b, s]) -> {OUTPUT: float32 [b, D]}
TITLE, BODY = "title", "body"
TOKENS: Final = "tokens"
TEXT_INPUTS, TOKEN_INPUTS = "text", "tokens"  # what the signatures take, the fact "inputs"
OUTPUT: Final = "embedding"

FORMAT_VERSION: Final = 2  # of the facts; files without one have version 1, whose signatures take texts
_GRAPH_FILE: Final = "saved_model.pb"
_VARIABLES_FILE: Final = os.path.join("variables", "variables.data-00000-of-00001")
_PLACES_FILE: Final = os.path.join("assets.extra", "arrays.json")  # where the parameters are in this file
_BEGINNING: Final = 4096  # bytes of an array that are looked for first
_FACTS_FILE: Final = "newsembed.json"
_WEIGHTS_FOLDER: Final = os.path.join("assets.extra", "weights")
_TOKENIZER_FOLDER: Final = os.path.join("assets.extra", "tokenizer")  # TensorFlow's place for files of others
_REMEDY: Final = "Give a folder that newsembed export wrote."


def graph_file(folder: str) -> str:
    """TensorFlow's file; a folder without it is not a SavedModel."""
    return os.path.join(folder, _GRAPH_FILE)


def vocabulary_file(folder: str) -> str:
    """The ``vocab.txt`` of an export; the files of its tokenizer are next to it."""
    return os.path.join(folder, _TOKENIZER_FOLDER, VOCABULARY_FILE)


def is_saved_model(folder: str) -> bool:
    """Whether a folder holds a SavedModel."""
    return os.path.exists(graph_file(folder))


def weights_folder(folder: str) -> str:
    """The safetensors export inside the SavedModel of a static model, for readers without TensorFlow."""
    return os.path.join(folder, _WEIGHTS_FOLDER)


def write_vocabulary(folder: str, vocabulary: VocabularyFile) -> None:
    """Writes the files of a vocabulary into an export, for readers that make tokens of texts."""
    path = os.path.join(folder, _TOKENIZER_FOLDER)
    os.makedirs(path, exist_ok=True)
    for name, content in vocabulary.files.items():
        with open(os.path.join(path, name), "wb") as file:
            file.write(content)


def write_places(folder: str, arrays: Mapping[str, Array]) -> None:
    """Writes where in TensorFlow's file of variables the parameters are, for `read_arrays`.

    The file has the bytes of one variable after the other. Ours is JSON: {name: [first byte, number type, shape]}.

    Args:
      folder: with TensorFlow's files.
      arrays: the parameters by name, as they are in the SavedModel.

    Raises:
      RuntimeError: if the bytes of an array are not there.
    """
    path = os.path.join(folder, _VARIABLES_FILE)
    places = {}
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for name, array in arrays.items():
            place = _place(content, np.ascontiguousarray(array).tobytes())
            if place < 0:
                raise RuntimeError(f"{path} lacks the parameter {name}")
            places[name] = [place, array.dtype.name, list(array.shape)]
    os.makedirs(os.path.join(folder, os.path.dirname(_PLACES_FILE)), exist_ok=True)
    with open(os.path.join(folder, _PLACES_FILE), "w", encoding="utf-8") as output:
        json.dump(places, output)


def _place(content: mmap.mmap, wanted: bytes) -> int:
    """The first place of some bytes, -1 where there is none."""
    place = content.find(wanted[:_BEGINNING])
    while place >= 0 and content[place : place + len(wanted)] != wanted:
        place = content.find(wanted[:_BEGINNING], place + 1)
    return place


def read_arrays(folder: str) -> dict[str, Array] | None:
    """The parameters of a SavedModel by name, read without TensorFlow; None where `write_places` was not called.

    Args:
      folder: of the SavedModel, whose digests have been compared.
    """
    if not os.path.exists(os.path.join(folder, _PLACES_FILE)):
        return None
    with open(os.path.join(folder, _PLACES_FILE), encoding="utf-8") as file:
        places = json.load(file)
    content = np.memmap(os.path.join(folder, _VARIABLES_FILE), np.uint8, "r")
    return {
        name: np.frombuffer(content, np.dtype(dtype), math.prod(shape), place).reshape(shape)
        for name, (place, dtype, shape) in places.items()
    }


def write_facts(folder: str, facts: Mapping[str, Any]) -> None:
    """Writes the facts next to TensorFlow's files.

    Args:
      folder: of the SavedModel.
      facts: JSON values: digest, dimensions, max_length, length_buckets, step, platforms, signatures, encoder, the
        architecture's kind where it is not the news encoder, the prompts that the graph adds where it adds some, and
        versions. An export that takes tokens has "inputs" and the format version 2, and its readers add the prompts.
    """
    if facts.get("inputs", TEXT_INPUTS) != TEXT_INPUTS:
        facts = {"format_version": FORMAT_VERSION, **facts}
    with open(os.path.join(folder, _FACTS_FILE), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=2)


def read_facts(folder: str) -> dict[str, Any]:
    """What `write_facts` wrote.

    Raises:
      InputError: if the folder is not a SavedModel of newsembed, or the file is broken or of a later version.
    """
    if not os.path.exists(graph_file(folder)):
        raise InputError(f"no {_GRAPH_FILE}", path=folder, remedy=_REMEDY)
    path = os.path.join(folder, _FACTS_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            facts: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", path=path, remedy=_REMEDY) from error
    missing = {"digest", "dimensions"} - set(facts)
    if missing:
        raise InputError(f"lacks {', '.join(sorted(missing))}", path=path, remedy="Export the model again.")
    version = facts.get("format_version", FORMAT_VERSION)
    if version not in (1, FORMAT_VERSION):
        problem = f"got an export of version {version}, expected at most {FORMAT_VERSION}"
        raise InputError(problem, path=path, field="format_version", remedy="Use a newer newsembed.")
    return facts
