"""Reads a folder of Hugging Face."""

import os
from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from ..digests import check_sums
from ..tokenizer_files import TOKENIZER_FILE
from ..vocabulary import VOCABULARY_FILE
from ..weights import Array
from .files import read_arrays, read_json
from .modules import read_modules
from .parts import (
    CONFIG_FILE,
    SENTENCE_FILE,
    SHARDS_FILE,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_CONFIG_FILE,
    WEIGHTS_FILE,
    HuggingFaceFolder,
    Tokenizer,
)


def read_huggingface(folder: str) -> HuggingFaceFolder:
    """Reads a folder that `transformers` or `sentence_transformers` saved.

    Raises:
      InputError: for a file that is missing, broken or not as `SHA256SUMS` lists it, or a module of
        sentence-transformers that has no counterpart here.
    """
    check_sums(folder, "Export or fetch the folder again; if you changed it, delete SHA256SUMS.")
    config = read_json(os.path.join(folder, CONFIG_FILE))
    tokenizer = _read_tokenizer(folder)
    modules = read_modules(folder, tokenizer.settings)
    return HuggingFaceFolder(folder, config, _read_weights(folder), tokenizer, modules)


def _read_weights(folder: str) -> dict[str, Array]:
    """All arrays by name.

    Raises:
      InputError: if a file or an array is missing or broken.
    """
    whole, index = os.path.join(folder, WEIGHTS_FILE), os.path.join(folder, SHARDS_FILE)
    if os.path.exists(whole) or not os.path.exists(index):
        return read_arrays(whole)
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict):
        raise InputError("got no weight_map", path=index, remedy="Save the model again.")
    arrays: dict[str, Array] = {}
    for shard in sorted(set(names.values())):
        arrays |= read_arrays(os.path.join(folder, shard))
    missing = sorted(set(names) - set(arrays))
    if missing:
        problem = f"{len(missing)} arrays are in no shard"
        raise InputError(problem, path=index, field=missing[0], remedy="Fetch all shards again.")
    return arrays


def _read_tokenizer(folder: str) -> Tokenizer:
    def optional(name: str) -> dict[str, Any]:
        path = os.path.join(folder, name)
        return read_json(path) if os.path.exists(path) else {}

    settings = optional(TOKENIZER_CONFIG_FILE)
    pieces, content = (_read_optional_bytes(os.path.join(folder, name)) for name in (VOCABULARY_FILE, TOKENIZER_FILE))
    if pieces is None and content is None:
        problem, remedy = (
            "cannot be read: there is no such file, and no vocab.txt",
            "Save the tokenizer with the model.",
        )
        raise InputError(problem, path=os.path.join(folder, TOKENIZER_FILE), remedy=remedy)
    return Tokenizer(
        None if pieces is None else tuple(pieces.removesuffix(b"\n").replace(b"\r\n", b"\n").split(b"\n")),
        content,
        _special_tokens({**settings, **optional(SPECIAL_TOKENS_FILE)}),
        settings,
        lowers_first=optional(SENTENCE_FILE).get("do_lower_case") is True,
    )


def _read_optional_bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _special_tokens(values: Mapping[str, Any]) -> dict[str, str]:
    """The names of special tokens, which are texts or objects with a text."""
    names = ((key, value.get("content") if isinstance(value, dict) else value) for key, value in values.items())
    return {key: name for key, name in names if key.endswith("_token") and isinstance(name, str)}
