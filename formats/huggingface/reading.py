"""Reads a folder of Hugging Face."""

import os

from ...errors import InputError
from ..digests import check_sums
from ..model_folder import ModelFolder
from ..vocabulary import VOCABULARY_FILE
from ..weights import Array
from .files import read_arrays, read_json
from .modules import read_modules
from .parts import (
    CONFIG_FILE,
    SHARDS_FILE,
    TOKENIZER_CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    HuggingFaceFolder,
    Tokenizer,
)


def is_huggingface(folder: str) -> bool:
    """Whether a folder holds a model of Hugging Face and not one of ours."""
    return os.path.isfile(os.path.join(folder, CONFIG_FILE)) and not ModelFolder(folder).is_described


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
    path, settings_path = os.path.join(folder, VOCABULARY_FILE), os.path.join(folder, TOKENIZER_CONFIG_FILE)
    settings = read_json(settings_path) if os.path.exists(settings_path) else {}
    if os.path.exists(path):
        with open(path, "rb") as file:
            pieces = file.read().removesuffix(b"\n").replace(b"\r\n", b"\n").split(b"\n")
        return Tokenizer(tuple(pieces), settings=settings)
    added = read_json(os.path.join(folder, TOKENIZER_FILE)).get("added_tokens") or []
    return Tokenizer(None, {token["content"]: token["id"] for token in added}, settings)
