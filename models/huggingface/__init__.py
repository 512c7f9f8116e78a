"""Encoders of Hugging Face's `transformers` as `EncoderConfig` and parameters, and back; no input or output.

| model_type | ours |
|---|---|
| bert | ``norm="post"`` |
| roberta, xlm-roberta | the same, with positions counted from 0 |
| distilbert | the same, without token types |
| mpnet | the same, without token types, and with a relative position bias |
| megatron-bert | ``norm="pre"`` |
| modernbert | ``norm="modern"``, rotary positions, gated, local layers |

A model is written as the family that it was read from (`TransformerConfig.family`).

Arrays without a counterpart here are folded at reading, which changes no output: row 0 of the token types is added to
every position (texts of one type only), and the position table loses the rows before the first token's. A linear
layer's weight is [out, in] there and [in, out] here.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from flax.traverse_util import flatten_dict, unflatten_dict

from ..encoders.news import EncoderConfig
from ..transformer import TransformerConfig
from .families import Family, SpecialIds, family_by_shape, family_of, find_family
from .interface import Array, ExportedModel, UnsupportedArrayError, UnsupportedModelError, check_keys, integer

Arrays = Mapping[str, Array]

_NO_WEIGHTS: Final = ("embeddings.position_ids", "embeddings.token_type_ids", "rotary_emb.inv_freq")


def encoder_config(
    values: Mapping[str, Any], *, embedding_size: int | None = None, num_topics: int = 600, pooling: str = "cls"
) -> EncoderConfig:
    """The architecture that a config.json describes.

    Args:
      values: of config.json.
      embedding_size: D; None takes H.
      num_topics: T.
      pooling: of `TransformerConfig`; config.json does not say.

    Raises:
      UnsupportedModelError: for an unknown `model_type`, a missing or unknown key, or an option that `NewsEncoder`
        lacks.
    """
    family = find_family(values.get("model_type"))
    check_keys(values, family.keys)
    sizes: dict[str, Any] = {ours: integer(values, theirs) for ours, theirs in family.sizes.items()}
    try:
        config = EncoderConfig(
            **sizes,
            embedding_size=embedding_size or sizes["hidden_size"],
            num_topics=num_topics,
            pooling=pooling,  # type: ignore[arg-type] # checked there
            **family.read_options(values),
        )
    except UnsupportedModelError:
        raise
    except ValueError as error:
        raise UnsupportedModelError("config.json", str(error)) from error
    if family_by_shape(config) is family:
        return config
    return dataclasses.replace(config, family=family.model_type)


def huggingface_config(config: TransformerConfig, ids: SpecialIds | None = None) -> dict[str, Any]:
    """The config.json of an encoder without its heads.

    Args:
      config: the encoder's.
      ids: of the special tokens; None: those of `formats.vocabulary` or, where the family's code has its padding token
        elsewhere, with that token and [UNK] swapped.

    Raises:
      UnsupportedModelError: if no class of `transformers` computes this encoder, or its code has another padding token.
    """
    family = family_of(config)
    ids = default_ids(family) if ids is None else ids
    if family.pad_id not in (None, ids.pad):
        problem = f"got {ids.pad}, expected {family.pad_id}, as the code of {family.architecture} has it"
        raise UnsupportedModelError("pad_token_id", problem)
    return {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "initializer_range": 0.02,
        "pad_token_id": ids.pad,
        **family.values(config, ids),
    }


def default_ids(family: Family) -> SpecialIds:
    """The ids of the special tokens in a family's exports: ours, or with [UNK] and the padding token swapped."""
    ids = SpecialIds()
    return ids._replace(pad=ids.unknown, unknown=ids.pad) if family.pad_id == ids.unknown else ids


def read_params(
    values: Mapping[str, Any], config: TransformerConfig, arrays: Arrays
) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a `NewsEncoder`, without embedding and topic head, as float32.

    Args:
      values: of config.json.
      config: from `encoder_config`.
      arrays: by their names in the checkpoint.

    Returns:
      The nested parameters, tokens still in the file's order, and the names of arrays that have no counterpart here (a
      pooler, other heads). The masked-LM head is there only if the checkpoint has one.

    Raises:
      UnsupportedArrayError: for an array that is missing, has another shape, or is unknown inside the body.
    """
    family = find_family(values.get("model_type"))
    found = _without_prefix(arrays, family.prefix)
    head = list(family.masked_lm(config))
    has_head = any(name in found for entry in head for name in entry.theirs)
    used: set[str] = set()
    params: dict[str, Array] = {}
    for entry in (*family.body(values, config), *(head if has_head else [])):
        used.update(entry.theirs)
        theirs = [_checked(found, name, shape) for name, shape in zip(entry.theirs, entry.shapes, strict=True)]
        params |= zip(entry.ours, map(np.ascontiguousarray, entry.read(*theirs)), strict=True)
    if has_head:
        used |= {*family.output_bias, family.tied_table}
        table = params["token_embedding"]
        if family.tied_table in found and not np.array_equal(_checked(found, family.tied_table, table.shape), table):
            problem = "it is not the token table; NewsEncoder's output table is tied to it"
            raise UnsupportedArrayError(family.tied_table, problem)
        bias = next((name for name in family.output_bias if name in found), None)
        shape = (config.vocab_size,)
        params["mlm_bias"] = np.zeros(shape, np.float32) if bias is None else _checked(found, bias, shape)
    rest = [name for name in sorted(set(found) - used) if not name.endswith(_NO_WEIGHTS)]
    if unknown := [name for name in rest if name.startswith(family.body_names)]:
        raise UnsupportedArrayError(
            unknown[0], f"got {len(unknown)} arrays that config.json does not account for: another architecture"
        )
    return unflatten_dict(params, sep="."), rest


def write_params(values: Mapping[str, Any], config: TransformerConfig, params: Mapping[str, Any]) -> dict[str, Array]:
    """The encoder's arrays by their names in `transformers`, without the heads; inverse of `read_params`.

    Args:
      values: from `huggingface_config`.
      config: the encoder's.
      params: nested, as `NewsEncoder` has them.
    """
    flat = flatten_dict(params, sep=".")
    written: dict[str, Array] = {}
    for entry in find_family(values["model_type"]).body(values, config):
        ours = (np.asarray(flat[path], np.float32) for path in entry.ours)
        written |= zip(entry.theirs, entry.write(*ours), strict=True)
    return {name: np.ascontiguousarray(array) for name, array in written.items()}


def import_model(
    values: Mapping[str, Any], arrays: Arrays, modules: Any, *, num_topics: int, max_length: int | None = None
) -> tuple[EncoderConfig, dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Reads a transformer.

    Args:
      values: of config.json.
      arrays: by name.
      modules: of sentence-transformers.
      num_topics: T.
      max_length: fewer positions than the source has; None keeps them all.

    Returns:
      The architecture; its parameters, a nested dict of float32 arrays with tokens in the source's order, without heads
      that the source lacks; all heads, to replace missing ones: they return the pooled vector, or 0; the names of
      arrays that have no place in the architecture.

    Raises:
      UnsupportedModelError: if `NewsEncoder` does not compute that model, or an array does not fit.
    """
    is_weighted = modules.token_weights is not None
    config = encoder_config(
        values,
        num_topics=num_topics,
        pooling="weighted" if is_weighted else modules.pooling,
        embedding_size=None if modules.bias is None else modules.bias.size,
    )
    params, ignored = read_params(values, config, arrays)
    if max_length is not None and max_length < config.max_length:
        config = dataclasses.replace(config, max_length=max_length)
        if "position_embedding" in params:
            params["position_embedding"] = params["position_embedding"][:max_length]
    if is_weighted:
        config = dataclasses.replace(config, lead_length=modules.lead_length, sublinear=modules.sublinear)
        _check_shape("token weights", modules.token_weights, (config.vocab_size,))
        params["pooling_logits"] = np.log(modules.token_weights)
    if modules.kernel is not None:
        _check_shape("linear.weight", modules.kernel, (config.hidden_size, config.embedding_size))
        params["embedding_head"] = {"kernel": modules.kernel, "bias": modules.bias}
        config = _replaced(config, embedding_activation=modules.activation)
    return config, params, plain_heads(config), tuple(ignored)


def export_model(
    config: TransformerConfig, params: Mapping[str, Any], token_ids: npt.NDArray[np.int64] | None = None
) -> ExportedModel:
    """Writes a news encoder without its topic and masked-LM heads.

    Args:
      config: its architecture.
      params: nested, tokens in our order.
      token_ids: int64 [V], the id to give to each of our tokens; None: its own or, where the class of `transformers`
        has its padding token elsewhere, the nearest order.

    Raises:
      UnsupportedModelError: if no class of `transformers` computes this encoder with these tokens.
    """
    hidden = config.hidden_size
    if config.num_layers == 0 and config.positions == "rotary" and config.norm != "modern":
        # Without layers, rotary positions do nothing, as learned ones do that are all 0; ModernBERT's class has rotary
        # ones.
        config = dataclasses.replace(config, positions="learned")
        params = {**params, "position_embedding": np.zeros((config.max_length, hidden), np.float32)}
    family = family_of(config)
    if token_ids is None:
        token_ids = np.arange(config.vocab_size)
        token_ids[: len(SpecialIds())] = default_ids(family)
    values = huggingface_config(config, SpecialIds(*token_ids[: len(SpecialIds())].tolist()))
    params = reorder_tokens(params, np.argsort(token_ids))
    arrays = write_params(values, config, params)
    if family.has_pooler:
        # These classes have a pooler, which no module of ours reads; without its arrays each loading would draw it at
        # random.
        arrays |= {
            "pooler.dense.weight": np.zeros((hidden, hidden), np.float32),
            "pooler.dense.bias": np.zeros(hidden, np.float32),
        }
    return ExportedModel(values, arrays, _sentence_modules(config, params), hidden, token_ids)


def _sentence_modules(config: TransformerConfig, params: Mapping[str, Any]) -> dict[str, Any]:
    kernel, bias = (np.asarray(params["embedding_head"][name], np.float32) for name in ("kernel", "bias"))
    modules: dict[str, Any] = {"pooling": "mean" if config.pooling == "weighted" else config.pooling}
    # A model that had no dense layer gets none back: its head returns the pooled vector.
    hands_on = kernel.shape[0] == kernel.shape[1] and np.array_equal(kernel, np.eye(len(kernel))) and not bias.any()
    if not hands_on or config.embedding_activation != "identity":
        modules |= {"kernel": kernel, "bias": bias, "activation": config.embedding_activation}
    if config.pooling == "weighted":
        modules |= {
            "token_weights": np.exp(np.asarray(params["pooling_logits"], np.float32)),
            "lead_length": config.lead_length,
            "sublinear": config.sublinear,
        }
    return modules


def reorder_tokens(params: Mapping[str, Any], order: npt.NDArray[np.int64]) -> dict[str, Any]:
    """The parameters with all rows of word piece i, such as its row of the token table, taken from row `order[i]`."""
    moved = {
        name: np.asarray(params[name])[order]
        for name in ("token_embedding", "pooling_logits", "mlm_bias")
        if name in params
    }
    return {**params, **moved}


def plain_heads(config: TransformerConfig) -> dict[str, Any]:
    """Heads for an encoder whose checkpoint has none.

    The embedding head returns the pooled vector unchanged (its first D units; 0 beyond H), as sentence-transformers
    does without a Dense module. The topic head gives 0 for every topic. The masked-LM transform is the identity before
    GELU and norm.
    """
    hidden, vocabulary = config.hidden_size, config.vocab_size
    transform: dict[str, Any] = {"kernel": np.eye(hidden, dtype=np.float32)}
    norm: dict[str, Any] = {"scale": np.ones(hidden, np.float32)}
    if config.biases:
        transform["bias"], norm["bias"] = np.zeros(hidden, np.float32), np.zeros(hidden, np.float32)
    return {
        "embedding_head": {
            "kernel": np.eye(hidden, config.embedding_size, dtype=np.float32),
            "bias": np.zeros(config.embedding_size, np.float32),
        },
        "topic_head": {
            "kernel": np.zeros((hidden, config.num_topics), np.float32),
            "bias": np.zeros(config.num_topics, np.float32),
        },
        "mlm_transform": transform,
        "mlm_norm": norm,
        "mlm_bias": np.zeros(vocabulary, np.float32),
    }


def _replaced(config: EncoderConfig, **changes: Any) -> EncoderConfig:
    """The configuration with other values.

    Raises:
      UnsupportedModelError: for a value out of range.
    """
    try:
        return dataclasses.replace(config, **changes)
    except ValueError as error:
        raise UnsupportedModelError("modules.json", str(error)) from error


def _without_prefix(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """Names as the bare encoder has them; old files call a norm's weight and bias gamma and beta."""
    names = {}
    for name, array in arrays.items():
        bare = name.removeprefix(prefix)
        for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
            bare = bare.removesuffix(old) + new if bare.endswith(old) else bare
        names[bare] = array
    return names


def _checked(found: Arrays, name: str, shape: tuple[int, ...]) -> Array:
    if name not in found:
        raise UnsupportedArrayError(name, "the array is missing")
    _check_shape(name, found[name], shape)
    return np.asarray(found[name], np.float32)


def _check_shape(name: str, array: Array, expected: tuple[int, ...]) -> None:
    if tuple(array.shape) != expected:
        raise UnsupportedArrayError(name, f"got shape {list(array.shape)}, expected {list(expected)} by config.json")
