"""Writes a folder of Hugging Face."""

import json
import os
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import numpy as np

from ..prompts import DEFAULT_PROMPT_NAME, PROMPTS
from ..tokenizer_files import TOKENIZER_FILE
from ..vocabulary import VOCABULARY_FILE
from ..weights import Array, write_safetensors
from .parts import (
    ACTIVATIONS,
    CONFIG_FILE,
    MODULES_FILE,
    SENTENCE_FILE,
    SENTENCE_TRANSFORMERS_FILE,
    SPECIAL_TOKENS_FILE,
    TEXT_WEIGHTS,
    TEXT_WEIGHTS_ARRAY,
    TEXT_WEIGHTS_MODULE,
    TOKENIZER_CONFIG_FILE,
    WEIGHTS_FILE,
    WORD_WEIGHTS,
    WORD_WEIGHTS_ARRAY,
    HuggingFaceFolder,
    SentenceModules,
    Tokenizer,
)

_SENTENCE_MODULES: Final = "sentence_transformers.models"
_POOLING_MODES: Final = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
# Older libraries know these only; they ignore the others.
_LISTED_POOLING_MODES: Final = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")


def write_huggingface(folder: HuggingFaceFolder, *, hidden_size: int) -> None:
    """Writes the files of a folder.

    Args:
      folder: with tokenizer and modules; its path is an existing, empty folder.
      hidden_size: H.
    """
    _write_arrays(folder.path, folder.arrays)
    _write_json(folder.path, CONFIG_FILE, folder.config)
    _write_tokenizer(folder.path, folder.tokenizer)
    _write_modules(folder.path, folder.modules, folder.tokenizer.pieces, hidden_size)


def _write_tokenizer(folder: str, tokenizer: Tokenizer) -> None:
    if tokenizer.content is not None:
        with open(os.path.join(folder, TOKENIZER_FILE), "wb") as file:
            file.write(tokenizer.content)
    if tokenizer.pieces is not None:
        with open(os.path.join(folder, VOCABULARY_FILE), "wb") as file:
            file.writelines(piece + b"\n" for piece in tokenizer.pieces)
    _write_json(folder, SPECIAL_TOKENS_FILE, tokenizer.special_tokens)
    _write_json(folder, TOKENIZER_CONFIG_FILE, tokenizer.settings)


def _write_modules(folder: str, modules: SentenceModules, pieces: tuple[bytes, ...] | None, hidden_size: int) -> None:
    weighing = _weighing_module(modules)
    dense = ["Dense"] if modules.kernel is not None else []
    kinds = ["Transformer", *([weighing] if weighing else []), "Pooling", *dense, "Normalize"]
    places = {kind: f"{number}_{kind}" if number else "" for number, kind in enumerate(kinds)}
    listed = [
        {
            "idx": number,
            "name": str(number),
            "path": place,
            "type": f"{TEXT_WEIGHTS_MODULE if kind == TEXT_WEIGHTS else _SENTENCE_MODULES}.{kind}",
        }
        for number, (kind, place) in enumerate(places.items())
    ]
    _write_json(folder, MODULES_FILE, listed)
    _write_json(folder, SENTENCE_FILE, {"max_seq_length": modules.text_length, "do_lower_case": False})
    settings: dict[str, Any] = {PROMPTS: {}, DEFAULT_PROMPT_NAME: None, "similarity_fn_name": "cosine"}
    _write_json(folder, SENTENCE_TRANSFORMERS_FILE, settings | modules.prompts.to_dict())
    if weighing == WORD_WEIGHTS:
        _write_word_weights(os.path.join(folder, places[weighing]), modules, pieces)
    elif weighing:
        _write_text_weights(folder, os.path.join(folder, places[weighing]), modules)
    chosen = _POOLING_MODES[modules.pooling]
    known = dict.fromkeys((*_LISTED_POOLING_MODES, chosen))
    modes = {f"pooling_mode_{mode}": mode == chosen for mode in known}
    pooling = {"word_embedding_dimension": hidden_size} | modes
    _write_json(os.path.join(folder, places["Pooling"]), CONFIG_FILE, pooling)
    if modules.kernel is not None:
        _write_dense(os.path.join(folder, places["Dense"]), modules.kernel, modules.bias, modules.activation)
    os.makedirs(os.path.join(folder, places["Normalize"]))


def _weighing_module(modules: SentenceModules) -> str | None:
    """The module that multiplies tokens by their weights, None if they have none."""
    if modules.token_weights is None:
        return None
    return TEXT_WEIGHTS if modules.lead_length or modules.sublinear else WORD_WEIGHTS


def _write_word_weights(folder: str, modules: SentenceModules, pieces: tuple[bytes, ...] | None) -> None:
    weights = np.asarray(modules.token_weights, np.float32)
    # Weights are looked up by id; the names need only differ.
    names = [str(token) for token in range(weights.size)] if pieces is None else [piece.decode() for piece in pieces]
    by_piece = dict(zip(names, weights.tolist(), strict=True))
    _write_json(folder, CONFIG_FILE, {"vocab": names, "word_weights": by_piece, "unknown_word_weight": 1.0})
    _write_arrays(folder, {WORD_WEIGHTS_ARRAY: weights[:, None]})


def _write_text_weights(root: str, folder: str, modules: SentenceModules) -> None:
    source = resources.files(__package__).joinpath(f"{TEXT_WEIGHTS_MODULE}.py.txt").read_text(encoding="utf-8")
    with open(os.path.join(root, f"{TEXT_WEIGHTS_MODULE}.py"), "w", encoding="utf-8") as file:
        file.write(source)
    _write_json(folder, CONFIG_FILE, {"lead_length": modules.lead_length, "sublinear": modules.sublinear})
    _write_arrays(folder, {TEXT_WEIGHTS_ARRAY: np.asarray(modules.token_weights, np.float32)})


def _write_dense(folder: str, kernel: Array, bias: Array | None, activation: str) -> None:
    size = kernel.shape[1]
    values = {"in_features": kernel.shape[0], "out_features": size, "bias": True}
    _write_json(folder, CONFIG_FILE, values | {"activation_function": ACTIVATIONS[activation]})
    own_bias = np.zeros(size, np.float32) if bias is None else bias
    _write_arrays(folder, {"linear.weight": kernel.T, "linear.bias": own_bias})


def _write_arrays(folder: str, arrays: Mapping[str, Array]) -> None:
    write_safetensors(os.path.join(folder, WEIGHTS_FILE), arrays, {"format": "pt"})


def _write_json(folder: str, name: str, values: Any) -> None:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(values, file, indent=2, ensure_ascii=False)
        file.write("\n")
