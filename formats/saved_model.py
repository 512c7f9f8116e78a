"""An exported SavedModel: TensorFlow's own files, the names of its signatures, and facts about the model."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from ..errors import InputError
from .files import read_json
from .vocabulary import VOCABULARY_FILE, VocabularyFile

DEFAULT_SIGNATURE: Final = "serving_default"  # (title, body: string [b]) -> {OUTPUT: float32 [b, D]}
TEXT_SIGNATURE: Final = "text"  # (text: string [b]) -> {OUTPUT: float32 [b, D]}
QUERY_SIGNATURE: Final = "query"  # as TEXT_SIGNATURE, with the prompt of queries; only of models with prompts
# An export of tokens has DEFAULT_SIGNATURE only: (tokens: int32 [b, s]) -> {OUTPUT: float32 [b, D]}
TITLE, BODY = "title", "body"
TOKENS: Final = "tokens"
TEXT_INPUTS, TOKEN_INPUTS = "text", "tokens"  # what the signatures take, the fact "inputs"
OUTPUT: Final = "embedding"

FORMAT_VERSION: Final = 2  # of the facts
_NEEDED_FACTS: Final = frozenset(
    ("format_version", "digest", "dimensions", "max_length", "length_buckets", "long_documents", "prompts", "inputs")
)
_GRAPH_FILE: Final = "saved_model.pb"
_FACTS_FILE: Final = "newsembed.json"
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


def write_vocabulary(folder: str, vocabulary: VocabularyFile) -> None:
    """Writes the files of a vocabulary into an export, for readers that make tokens of texts."""
    path = os.path.join(folder, _TOKENIZER_FOLDER)
    os.makedirs(path, exist_ok=True)
    for name, content in vocabulary.files.items():
        with open(os.path.join(path, name), "wb") as file:
            file.write(content)


def write_facts(folder: str, facts: Mapping[str, Any]) -> None:
    """Writes the facts next to TensorFlow's files.

    Args:
      folder: of the SavedModel.
      facts: JSON values: digest, dimensions, max_length, length_buckets, step, platforms, signatures, encoder (the
        architecture) and its kind, None for the news encoder; prompts: added by the graph, or by the readers of an
        export that takes tokens; inputs, long_documents, precision, tokenizer and versions.
    """
    with open(os.path.join(folder, _FACTS_FILE), "w", encoding="utf-8") as file:
        json.dump({"format_version": FORMAT_VERSION, **facts}, file, indent=2)


def read_facts(folder: str) -> dict[str, Any]:
    """What `write_facts` wrote.

    Raises:
      InputError: if the folder is not a SavedModel of newsembed, or the file is broken or of a later version.
    """
    if not is_saved_model(folder):
        raise InputError(f"no {_GRAPH_FILE}", path=folder, remedy=_REMEDY)
    path = os.path.join(folder, _FACTS_FILE)
    facts: dict[str, Any] = read_json(path, _REMEDY, dict)
    if missing := _NEEDED_FACTS - set(facts):
        raise InputError(f"lacks {', '.join(sorted(missing))}", path=path, remedy="Export the model again.")
    if facts["format_version"] != FORMAT_VERSION:
        problem = f"got an export of version {facts['format_version']}, expected {FORMAT_VERSION}"
        raise InputError(problem, path=path, field="format_version", remedy="Use a newer newsembed.")
    return facts
