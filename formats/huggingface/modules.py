"""The modules of sentence-transformers in a folder: read, and refused by name where nothing here computes them."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..prompts import Prompts
from ..weights import Array
from .files import read_any_json, read_arrays, read_json
from .parts import (
    ACTIVATIONS,
    CONFIG_FILE,
    MODULES_FILE,
    SENTENCE_FILE,
    SENTENCE_TRANSFORMERS_FILE,
    TEXT_WEIGHTS,
    TEXT_WEIGHTS_ARRAY,
    WEIGHTS_FILE,
    WORD_WEIGHTS,
    WORD_WEIGHTS_ARRAY,
    SentenceModules,
)

_ORDER: Final = (("Transformer",), (WORD_WEIGHTS, TEXT_WEIGHTS), ("Pooling",), ("Dense",), ("Normalize",))
_KINDS: Final = tuple(kind for kinds in _ORDER for kind in kinds)
_POOLINGS: Final = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "max": "max",
    "max_tokens": "max",
    "lasttoken": "last",
}
_POOLING_KEYS: Final = ("word_embedding_dimension", "embedding_dimension", "pooling_mode", "include_prompt")
_VECTOR: Final = "sentence_embedding"
_DENSE_KEYS: Final[Mapping[str, Any]] = {"module_input_name": _VECTOR, "module_output_name": _VECTOR}
_DENSE_SHAPE: Final = ("in_features", "out_features", "bias", "activation_function")
# What the library writes for a text model; another value means that the vectors are made in another way.
_SENTENCE_KEYS: Final[Mapping[str, Any]] = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
_SAVE_AGAIN: Final = "Save the model again."


def read_modules(folder: str, tokenizer_settings: Mapping[str, Any]) -> SentenceModules:
    """The modules of a folder; the defaults where it has none.

    Args:
      folder: of the model.
      tokenizer_settings: of tokenizer_config.json.

    Raises:
      InputError: for a file that is broken, a module, a pooling, an activation or an option that has no counterpart
        here, or modules in another order.
    """
    path = os.path.join(folder, MODULES_FILE)
    if not os.path.exists(path):
        return SentenceModules()
    places = _places(path)
    found = SentenceModules(
        text_length=_text_length(folder, tokenizer_settings),
        is_normalized="Normalize" in places,
        prompts=_prompts(folder),
    )
    for kind, place in places.items():
        where = os.path.join(folder, place)
        if kind in (WORD_WEIGHTS, TEXT_WEIGHTS):
            found = _with_token_weights(found, where)
        elif kind == "Pooling":
            found = _with_pooling(found, where)
        elif kind == "Dense":
            found = _with_dense(found, where)
    if found.token_weights is not None and found.pooling != "mean":
        problem = f"got weights of tokens with {found.pooling} pooling, expected mean"
        raise InputError(problem, path=path, remedy="Tokens have weights in the mean only.")
    return found


def _places(path: str) -> dict[str, str]:
    """The folder of each module, in order.

    Raises:
      InputError: for a module that is unknown, occurs twice, or is in another place than here.
    """
    listed = read_any_json(path)
    try:
        modules = [(module["type"].rpartition(".")[2], module["path"]) for module in listed]
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError("got no list of modules with type and path", path=path, remedy=_SAVE_AGAIN) from error
    kinds = [kind for kind, _ in modules]
    unknown = [kind for kind in kinds if kind not in _KINDS]
    if unknown:
        problem = f"got the module {unknown[0]}, which newsembed lacks"
        raise InputError(problem, path=path, remedy=f"newsembed has {', '.join(_KINDS)}.")
    steps = [next(step for step, names in enumerate(_ORDER) if kind in names) for kind in kinds]
    if steps != sorted(set(steps)) or not {"Transformer", "Pooling"} <= set(kinds):
        problem = f"got the modules {', '.join(kinds)}"
        order = "expected Transformer, WordWeights or TextWeights, Pooling, Dense, Normalize, in this order, each once"
        remedy = "Only Transformer and Pooling must be there."
        raise InputError(f"{problem}; {order}", path=path, remedy=remedy)
    return dict(modules)


def _text_length(folder: str, tokenizer_settings: Mapping[str, Any]) -> int | None:
    """Tokens of a text that are read: of the module Transformer or, as newer libraries keep it, of the tokenizer.

    Raises:
      InputError: for options that change the vectors in a way that nothing here computes.
    """
    path = os.path.join(folder, SENTENCE_FILE)
    values = read_json(path) if os.path.exists(path) else {}
    _check_values(path, values, ("max_seq_length", "do_lower_case"), _SENTENCE_KEYS)
    # do_lower_case is compared with what the tokenizer does, in `tasks.huggingface_tokenizer`.
    length = values.get("max_seq_length")
    length = tokenizer_settings.get("model_max_length") if length is None else length
    return int(length) if isinstance(length, int) and not isinstance(length, bool) else None


def _prompts(folder: str) -> Prompts:
    path = os.path.join(folder, SENTENCE_TRANSFORMERS_FILE)
    return Prompts.from_dict(read_json(path), path) if os.path.exists(path) else Prompts()


def _check_values(path: str, values: Mapping[str, Any], known: tuple[str, ...], fixed: Mapping[str, Any]) -> None:
    """Refuses options that are not known, or have another value than the one that is computed here.

    Raises:
      InputError: naming the first one.
    """
    for name, value in sorted(values.items()):
        if name in known or value is None:
            continue
        if name not in fixed:
            problem = f"got {value!r}; newsembed does not know this option and ignores none"
            raise InputError(problem, path=path, field=name, remedy="Bring a model without it.")
        if value != fixed[name]:
            problem = f"got {value!r}, expected {fixed[name]!r}"
            raise InputError(problem, path=path, field=name, remedy="newsembed computes nothing else.")


def _with_pooling(modules: SentenceModules, folder: str) -> SentenceModules:
    path = os.path.join(folder, CONFIG_FILE)
    values = read_json(path)
    modes = values.get("pooling_mode")
    flags = {name: on for name, on in values.items() if name.startswith("pooling_mode_")}
    _check_values(path, values, (*_POOLING_KEYS, *flags), {})
    if modes is None:
        modes = [name.removeprefix("pooling_mode_") for name, on in flags.items() if on] or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        problem = f"got the pooling {', '.join(map(str, modes))}, expected one of cls, mean, max, lasttoken"
        raise InputError(problem, path=path, field="pooling_mode", remedy="newsembed has no other pooling.")
    if values.get("include_prompt") is False and any(modules.prompts.texts.values()):
        problem = "got false: the prompt's tokens are not pooled; newsembed pools all tokens"
        raise InputError(problem, path=path, field="include_prompt", remedy="Bring a model that pools its prompt.")
    return dataclasses.replace(modules, pooling=_POOLINGS[modes[0]])


def _with_token_weights(modules: SentenceModules, folder: str) -> SentenceModules:
    path = os.path.join(folder, WEIGHTS_FILE)
    arrays = read_arrays(path)
    name = TEXT_WEIGHTS_ARRAY if TEXT_WEIGHTS_ARRAY in arrays else WORD_WEIGHTS_ARRAY
    weights = np.asarray(_array(arrays, name, path), np.float32)
    shape = (weights.size,) if name == TEXT_WEIGHTS_ARRAY else (weights.size, 1)
    if weights.shape != shape or not np.all(weights > 0):
        problem = f"got shape {list(weights.shape)}, the smallest {weights.min()}; expected {list(shape)}, all positive"
        raise InputError(problem, path=path, field=name)
    lead_length, sublinear = 0, False
    if name == TEXT_WEIGHTS_ARRAY:
        config = os.path.join(folder, CONFIG_FILE)
        values = read_json(config)
        lead_length, sublinear = values.get("lead_length", 0), values.get("sublinear", False)
        if not (isinstance(lead_length, int) and lead_length >= 0 and isinstance(sublinear, bool)):
            problem = (
                f"got lead_length = {lead_length!r} and sublinear = {sublinear!r}, expected 0 or more, and a boolean"
            )
            raise InputError(problem, path=config, remedy="Export the folder again.")
    return dataclasses.replace(modules, token_weights=weights.reshape(-1), lead_length=lead_length, sublinear=sublinear)


def _with_dense(modules: SentenceModules, folder: str) -> SentenceModules:
    path = os.path.join(folder, CONFIG_FILE)
    values = read_json(path)
    _check_values(path, values, _DENSE_SHAPE, _DENSE_KEYS)
    activation = values.get("activation_function", ACTIVATIONS["tanh"])  # the library's default
    names = {theirs.rpartition(".")[2]: ours for ours, theirs in ACTIVATIONS.items()}
    if not isinstance(activation, str) or activation.rpartition(".")[2] not in names:
        problem = f"got {activation}, expected {' or '.join(names)}"
        raise InputError(problem, path=path, field="activation_function", remedy="newsembed has no other activation.")
    weights = os.path.join(folder, WEIGHTS_FILE)
    arrays = read_arrays(weights)
    kernel = np.ascontiguousarray(np.asarray(_array(arrays, "linear.weight", weights), np.float32).T)
    bias = np.asarray(arrays.get("linear.bias", np.zeros(kernel.shape[1])), np.float32)
    return dataclasses.replace(modules, kernel=kernel, bias=bias, activation=names[activation.rpartition(".")[2]])


def _array(arrays: dict[str, Array], name: str, path: str) -> Array:
    if name not in arrays:
        raise InputError("there is no such array", path=path, field=name, remedy=_SAVE_AGAIN)
    return arrays[name]
