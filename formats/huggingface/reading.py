"""Reads a folder of Hugging Face."""

import dataclasses
import json
import os
from typing import Any

import numpy as np

from ...errors import InputError
from ..model_folder import ModelFolder
from ..vocabulary import VOCABULARY_FILE
from ..weights import Array, read_safetensors
from .parts import (
    CONFIG_FILE,
    IDENTITY,
    MODULES_FILE,
    SENTENCE_FILE,
    SHARDS_FILE,
    TEXT_WEIGHTS,
    TEXT_WEIGHTS_ARRAY,
    TOKENIZER_CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    WORD_WEIGHTS,
    WORD_WEIGHTS_ARRAY,
    HuggingFaceFolder,
    SentenceModules,
    Tokenizer,
)


def is_huggingface(folder: str) -> bool:
    """Whether a folder holds a model of Hugging Face and not one of ours."""
    return os.path.isfile(os.path.join(folder, CONFIG_FILE)) and not ModelFolder(folder).is_described


def read_huggingface(folder: str) -> HuggingFaceFolder:
    """Reads a folder that `transformers` or `sentence_transformers` saved.

    Raises:
      InputError: for a file that is missing or broken, or a module of sentence-transformers that has no counterpart
        here.
    """
    config = _read_json(os.path.join(folder, CONFIG_FILE))
    modules = _read_modules(folder)
    return HuggingFaceFolder(folder, config, _read_weights(folder), _read_tokenizer(folder), modules)


def _read_json(path: str) -> dict[str, Any]:
    values = _read_any_json(path)
    if not isinstance(values, dict):
        raise _broken(path, f"got a JSON {type(values).__name__}, expected an object")
    return values


def _read_any_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise _broken(path, f"cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise _broken(path, "got no JSON") from error


def _broken(path: str, problem: str) -> InputError:
    return InputError(problem, path=path, remedy="Give a folder that transformers' save_pretrained wrote.")


def _read_weights(folder: str) -> dict[str, Array]:
    """All arrays by name.

    Raises:
      InputError: if a file or an array is missing or broken.
    """
    whole, index = os.path.join(folder, WEIGHTS_FILE), os.path.join(folder, SHARDS_FILE)
    if os.path.exists(whole) or not os.path.exists(index):
        return _read_arrays(whole)
    names = _read_json(index).get("weight_map")
    if not isinstance(names, dict):
        raise InputError("got no weight_map", path=index, remedy="Save the model again.")
    arrays: dict[str, Array] = {}
    for shard in sorted(set(names.values())):
        arrays |= _read_arrays(os.path.join(folder, shard))
    missing = sorted(set(names) - set(arrays))
    if missing:
        problem = f"{len(missing)} arrays are in no shard"
        raise InputError(problem, path=index, field=missing[0], remedy="Fetch all shards again.")
    return arrays


def _read_arrays(path: str) -> dict[str, Array]:
    remedy = "Save the model with safe_serialization=True; pytorch_model.bin is not read, because it can run code."
    return read_safetensors(path, missing_remedy=remedy)


def _read_tokenizer(folder: str) -> Tokenizer:
    path, settings_path = os.path.join(folder, VOCABULARY_FILE), os.path.join(folder, TOKENIZER_CONFIG_FILE)
    settings = _read_json(settings_path) if os.path.exists(settings_path) else {}
    if os.path.exists(path):
        with open(path, "rb") as file:
            pieces = file.read().removesuffix(b"\n").replace(b"\r\n", b"\n").split(b"\n")
        return Tokenizer(tuple(pieces), settings=settings)
    added = _read_json(os.path.join(folder, TOKENIZER_FILE)).get("added_tokens") or []
    return Tokenizer(None, {token["content"]: token["id"] for token in added}, settings)


def _read_modules(folder: str) -> SentenceModules:
    path = os.path.join(folder, MODULES_FILE)
    if not os.path.exists(path):
        return SentenceModules()
    found = SentenceModules(text_length=_text_length(folder))
    for module in _read_any_json(path):
        kind, place = module["type"].rpartition(".")[2], os.path.join(folder, module["path"])
        if kind in (WORD_WEIGHTS, TEXT_WEIGHTS):
            found = _with_token_weights(found, place)
        elif kind == "Pooling":
            found = dataclasses.replace(found, pooling=_pooling(os.path.join(place, CONFIG_FILE)))
        elif kind == "Dense" and found.kernel is None:
            found = _with_dense(found, place)
        elif kind not in ("Transformer", "Normalize"):
            remedy = "newsembed has Transformer, WordWeights, TextWeights, Pooling, Dense and Normalize."
            raise InputError(f"got the module {kind}, which newsembed lacks", path=path, remedy=remedy)
    if found.token_weights is not None and found.pooling != "mean":
        problem = f"got weights of tokens with {found.pooling} pooling, expected mean"
        raise InputError(problem, path=path, remedy="Tokens have weights in the mean only.")
    return found


def _text_length(folder: str) -> int | None:
    path = os.path.join(folder, SENTENCE_FILE)
    length = _read_json(path).get("max_seq_length") if os.path.exists(path) else None
    return length if isinstance(length, int) else None


def _pooling(path: str) -> str:
    values = _read_json(path)
    mode = values.get("pooling_mode")
    modes = (
        {mode}
        if isinstance(mode, str)
        else {name.removeprefix("pooling_mode_") for name, on in values.items() if on is True}
    )
    names = {"cls": "cls", "cls_token": "cls", "mean": "mean", "mean_tokens": "mean"}
    modes -= {"include_prompt"}
    if len(modes) != 1 or not modes <= set(names):
        raise InputError(f"got the pooling {', '.join(sorted(modes))}, expected cls or mean", path=path)
    return names[modes.pop()]


def _with_token_weights(modules: SentenceModules, folder: str) -> SentenceModules:
    path = os.path.join(folder, WEIGHTS_FILE)
    arrays = _read_arrays(path)
    name = TEXT_WEIGHTS_ARRAY if TEXT_WEIGHTS_ARRAY in arrays else WORD_WEIGHTS_ARRAY
    weights = np.asarray(_array(arrays, name, path), np.float32)
    shape = (weights.size,) if name == TEXT_WEIGHTS_ARRAY else (weights.size, 1)
    if weights.shape != shape or not np.all(weights > 0):
        problem = f"got shape {list(weights.shape)}, the smallest {weights.min()}; expected {list(shape)}, all positive"
        raise InputError(problem, path=path, field=name)
    lead_length, sublinear = 0, False
    if name == TEXT_WEIGHTS_ARRAY:
        config = os.path.join(folder, CONFIG_FILE)
        values = _read_json(config)
        lead_length, sublinear = values.get("lead_length", 0), values.get("sublinear", False)
        if not (isinstance(lead_length, int) and lead_length >= 0 and isinstance(sublinear, bool)):
            problem = (
                f"got lead_length = {lead_length!r} and sublinear = {sublinear!r}, expected 0 or more, and a boolean"
            )
            raise InputError(problem, path=config, remedy="Export the folder again.")
    return dataclasses.replace(modules, token_weights=weights.reshape(-1), lead_length=lead_length, sublinear=sublinear)


def _with_dense(modules: SentenceModules, folder: str) -> SentenceModules:
    path = os.path.join(folder, CONFIG_FILE)
    activation = _read_json(path).get("activation_function", IDENTITY)
    if not activation.endswith("Identity"):
        raise InputError(f"got {activation}, expected the identity", path=path, field="activation_function")
    weights = os.path.join(folder, WEIGHTS_FILE)
    arrays = _read_arrays(weights)
    kernel = np.ascontiguousarray(np.asarray(_array(arrays, "linear.weight", weights), np.float32).T)
    bias = np.asarray(arrays.get("linear.bias", np.zeros(kernel.shape[1])), np.float32)
    return dataclasses.replace(modules, kernel=kernel, bias=bias)


def _array(arrays: dict[str, Array], name: str, path: str) -> Array:
    if name not in arrays:
        raise InputError("there is no such array", path=path, field=name, remedy="Save the model again.")
    return arrays[name]
