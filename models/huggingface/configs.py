"""config.json of `transformers` to `EncoderConfig` and back."""

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from ..transformer import TransformerConfig
from .interface import UnsupportedModelError

MODEL_TYPES: Final = ("bert", "roberta", "xlm-roberta", "megatron-bert", "modernbert")
TOKEN_TYPES: Final = 2
_ROBERTA: Final = ("roberta", "xlm-roberta")
_ACTIVATIONS: Final = {"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}


def encoder_config(
    values: Mapping[str, Any], *, embedding_size: int | None = None, num_topics: int = 600, pooling: str = "cls"
) -> TransformerConfig:
    """The architecture that a config.json describes.

    Args:
      values: of config.json.
      embedding_size: D; None takes H.
      num_topics: T.
      pooling: "cls" or "mean"; config.json does not say.

    Raises:
      UnsupportedModelError: for an unknown `model_type`, a missing key, or an option that `NewsEncoder` lacks.
    """
    model_type = values.get("model_type")
    if model_type not in MODEL_TYPES:
        raise UnsupportedModelError("model_type", f"got {model_type!r}, expected one of {', '.join(MODEL_TYPES)}")
    specific = _modernbert_options(values) if model_type == "modernbert" else _bert_options(values)
    hidden_size = integer(values, "hidden_size")
    try:
        return TransformerConfig(
            vocab_size=integer(values, "vocab_size"),
            hidden_size=hidden_size,
            num_layers=integer(values, "num_hidden_layers"),
            num_heads=integer(values, "num_attention_heads"),
            mlp_size=integer(values, "intermediate_size"),
            embedding_size=embedding_size or hidden_size,
            num_topics=num_topics,
            pooling=pooling,  # type: ignore[arg-type] # checked there
            **specific,
        )
    except UnsupportedModelError:
        raise
    except ValueError as error:
        raise UnsupportedModelError("config.json", str(error)) from error


def _bert_options(values: Mapping[str, Any]) -> dict[str, Any]:
    model_type = values["model_type"]
    _only(values, "position_embedding_type", "absolute", default="absolute")
    _only(values, "is_decoder", False, default=False)
    _only(values, "add_cross_attention", False, default=False)
    _only(values, "tie_word_embeddings", True, default=True)
    _only(values, "embedding_size", values.get("hidden_size"), default=values.get("hidden_size"))
    offset = position_offset(values)
    return {
        "max_length": integer(values, "max_position_embeddings") - offset,
        "dropout_rate": float(values.get("hidden_dropout_prob", 0.1)),
        "norm": "pre" if model_type == "megatron-bert" else "post",
        "activation": _activation(values, "hidden_act"),
        "layer_norm_epsilon": float(values.get("layer_norm_eps", 1e-12)),
    }


def _modernbert_options(values: Mapping[str, Any]) -> dict[str, Any]:
    biases = {
        name: bool(values.get(name, False)) for name in ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
    }
    if len(set(biases.values())) > 1:
        raise UnsupportedModelError("attention_bias", f"got {biases}, expected all of them true or all false")
    _only(values, "tie_word_embeddings", True, default=True)
    _only(values, "classifier_activation", values.get("hidden_activation", "gelu"), default="gelu")
    every = integer(values, "global_attn_every_n_layers", 3)
    local_attention = integer(values, "local_attention", 128)
    _check_layer_types(values, every)
    thetas = _rotary_thetas(values)
    is_local = every > 1
    return {
        "max_length": integer(values, "max_position_embeddings"),
        "dropout_rate": float(values.get("mlp_dropout", 0.0)),
        "norm": "modern",
        "positions": "rotary",
        "rotary_theta": thetas[0],
        "local_rotary_theta": thetas[1] if is_local else TransformerConfig.local_rotary_theta,
        "local_distance": local_attention // 2 if is_local else 0,
        "global_every": every,
        "mlp": "gated",
        "activation": _activation(values, "hidden_activation"),
        "biases": biases["mlp_bias"],
        "layer_norm_epsilon": float(values.get("norm_eps", 1e-5)),
    }


def _check_layer_types(values: Mapping[str, Any], every: int) -> None:
    """Newer files list the kind of every layer; the list must agree with `global_attn_every_n_layers`.

    Raises:
      UnsupportedModelError: if it does not.
    """
    kinds = values.get("layer_types")
    if kinds is None:
        return
    expected = ["sliding_attention" if layer % every else "full_attention" for layer in range(len(kinds))]
    if list(kinds) != expected:
        raise UnsupportedModelError(
            "layer_types", f"got {kinds}, expected every {every}th layer from the first to be full_attention"
        )


def _rotary_thetas(values: Mapping[str, Any]) -> tuple[float, float]:
    """Of global and local layers, from the keys of transformers 4 or 5.

    Raises:
      UnsupportedModelError: for scaled rotary positions.
    """
    parameters = values.get("rope_parameters")
    if parameters is None:
        local = values.get("local_rope_theta")
        theta = float(values.get("global_rope_theta", 160_000.0))
        return theta, float(10_000.0 if local is None else local)
    found = []
    for kind in ("full_attention", "sliding_attention"):
        part = parameters.get(kind) or {}
        if part.get("rope_type", "default") != "default":
            raise UnsupportedModelError("rope_parameters", f"got the rope_type {part['rope_type']!r}, expected default")
        found.append(float(part.get("rope_theta", 160_000.0 if kind == "full_attention" else 10_000.0)))
    return found[0], found[1]


def huggingface_config(config: TransformerConfig) -> dict[str, Any]:
    """The config.json of an encoder without its heads; special tokens have the ids of `formats.vocabulary`.

    Raises:
      UnsupportedModelError: if no class of `transformers` computes this encoder.
    """
    shared = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.mlp_size,
        "max_position_embeddings": config.max_length,
        "initializer_range": 0.02,
        "pad_token_id": 0,
    }
    activation = "gelu" if config.activation == "gelu" else "gelu_pytorch_tanh"
    if config.norm == "modern":
        return shared | _modernbert_config(config, activation)
    for name, expected in (("positions", "learned"), ("mlp", "dense"), ("biases", True), ("local_distance", 0)):
        if getattr(config, name) != expected:
            _refuse(config, name, expected)
    model_type, architecture = (
        ("bert", "BertModel") if config.norm == "post" else ("megatron-bert", "MegatronBertModel")
    )
    return shared | {
        "model_type": model_type,
        "architectures": [architecture],
        "hidden_act": activation,
        "hidden_dropout_prob": config.dropout_rate,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": config.layer_norm_epsilon,
        "type_vocab_size": TOKEN_TYPES,
        "position_embedding_type": "absolute",
    }


def _modernbert_config(config: TransformerConfig, activation: str) -> dict[str, Any]:
    for name, expected in (("positions", "rotary"), ("mlp", "gated")):
        if getattr(config, name) != expected:
            _refuse(config, name, expected)
    return {
        "model_type": "modernbert",
        "architectures": ["ModernBertModel"],
        "hidden_activation": activation,
        "classifier_activation": activation,
        "embedding_dropout": config.dropout_rate,
        "mlp_dropout": config.dropout_rate,
        "attention_dropout": 0.0,
        "norm_eps": config.layer_norm_epsilon,
        "global_rope_theta": config.rotary_theta,
        "local_rope_theta": config.local_rotary_theta,
        "local_attention": 2 * config.local_distance or 128,
        "global_attn_every_n_layers": config.global_every,
        **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), config.biases),
        "cls_token_id": 2,
        "bos_token_id": 2,
        "sep_token_id": 3,
        "eos_token_id": 3,
    }


def _refuse(config: TransformerConfig, name: str, expected: Any) -> NoReturn:
    got = getattr(config, name)
    reason = "transformers has no class that computes this encoder"
    problem = f"got {got!r} with norm = {config.norm!r}, expected {expected!r}: {reason}"
    raise UnsupportedModelError(f"EncoderConfig.{name}", problem)


def position_offset(values: Mapping[str, Any]) -> int:
    """Rows of the position table before that of the first token."""
    return integer(values, "pad_token_id", 1) + 1 if values["model_type"] in _ROBERTA else 0


def integer(values: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """An integer of config.json.

    Raises:
      UnsupportedModelError: if it is missing without a default, or another type.
    """
    value = values.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnsupportedModelError(name, f"got {value!r}, expected an integer")
    return value


def _only(values: Mapping[str, Any], name: str, expected: Any, *, default: Any) -> None:
    if values.get(name, default) != expected:
        raise UnsupportedModelError(
            name, f"got {values[name]!r}, expected {expected!r}; NewsEncoder computes nothing else"
        )


def _activation(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name, "gelu")
    if value not in _ACTIVATIONS:
        raise UnsupportedModelError(name, f"got {value!r}, expected one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[value]
