"""An exported SavedModel: TensorFlow's own files, the names of its signatures, and facts about the model."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from ..errors import InputError

DEFAULT_SIGNATURE: Final = "serving_default"  # (title, body: string [b]) -> {OUTPUT: float32 [b, D]}
TEXT_SIGNATURE: Final = "text"  # (text: string [b]) -> {OUTPUT: float32 [b, D]}
QUERY_SIGNATURE: Final = "query"  # as TEXT_SIGNATURE, with the prompt of queries; only of models with prompts
TITLE, BODY = "title", "body"
OUTPUT: Final = "embedding"

FORMAT_VERSION: Final = 1  # of the facts; files without one are of version 1
_GRAPH_FILE: Final = "saved_model.pb"
_FACTS_FILE: Final = "newsembed.json"
_REMEDY: Final = "Give a folder that newsembed export wrote."


def graph_file(folder: str) -> str:
    """TensorFlow's file; a folder without it is no SavedModel."""
    return os.path.join(folder, _GRAPH_FILE)


def write_facts(folder: str, facts: Mapping[str, Any]) -> None:
    """Writes the facts next to TensorFlow's files.

    Args:
      folder: of the SavedModel.
      facts: JSON values: digest, dimensions, max_length, length_buckets, step, platforms, signatures, encoder, the
        architecture's kind where it is not the news encoder, the prompts that the graph adds where it adds some, and
        versions.
    """
    with open(os.path.join(folder, _FACTS_FILE), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=2)


def read_facts(folder: str) -> dict[str, Any]:
    """What `write_facts` wrote.

    Raises:
      InputError: if the folder is no SavedModel of newsembed, or the file is broken or of a later version.
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
    if version != FORMAT_VERSION:
        problem = f"got an export of version {version}, expected {FORMAT_VERSION}"
        raise InputError(problem, path=path, field="format_version", remedy="Use a newer newsembed.")
    return facts
