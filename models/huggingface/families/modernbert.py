"""ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward layers, local layers, norms first."""

from collections.abc import Iterator
from typing import Any, Final

from ...transformer import TransformerConfig
from ..family import Family, SpecialIds, Values, check_fields, written_activation
from ..interface import UnsupportedModelError
from ..layouts import Entry, attention_output, gated, linear, masked_lm_head, norm, query_key_value, same
from ..values import activation, integer, number, only

_BIASES: Final = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
_THETAS: Final = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}


def _options(values: Values) -> dict[str, Any]:
    biases = {name: bool(values.get(name, False)) for name in _BIASES}
    if len(set(biases.values())) > 1:
        raise UnsupportedModelError("attention_bias", f"got {biases}, expected all of them true or all false")
    only(values, "classifier_activation", values.get("hidden_activation", "gelu"), default="gelu")
    every = integer(values, "global_attn_every_n_layers", 3)
    local_attention = integer(values, "local_attention", 128)
    _check_layer_types(values, every)
    thetas = _rotary_thetas(values)
    is_local = every > 1
    return {
        "max_length": integer(values, "max_position_embeddings"),
        "dropout_rate": number(values, "mlp_dropout", 0.0),
        "norm": "modern",
        "positions": "rotary",
        "rotary_theta": thetas[0],
        "local_rotary_theta": thetas[1] if is_local else TransformerConfig.local_rotary_theta,
        "local_distance": local_attention // 2 if is_local else 0,
        "global_every": every,
        "mlp": "gated",
        "activation": activation(values, "hidden_activation"),
        "biases": biases["mlp_bias"],
        "layer_norm_epsilon": number(values, "norm_eps", 1e-5),
    }


def _check_layer_types(values: Values, every: int) -> None:
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


def _rotary_thetas(values: Values) -> tuple[float, float]:
    """Of global and local layers, from the keys of transformers 4 or 5.

    Raises:
      UnsupportedModelError: for scaled rotary positions.
    """
    parameters = values.get("rope_parameters")
    if parameters is None:
        local = values.get("local_rope_theta")
        theta = number(values, "global_rope_theta", _THETAS["full_attention"])
        return theta, float(_THETAS["sliding_attention"] if local is None else local)
    found = []
    for kind, default in _THETAS.items():
        part = parameters.get(kind) or {}
        if part.get("rope_type", "default") != "default":
            raise UnsupportedModelError("rope_parameters", f"got the rope_type {part['rope_type']!r}, expected default")
        found.append(float(part.get("rope_theta", default)))
    return found[0], found[1]


def _values(config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
    expected = {"norm": "modern", "positions": "rotary", "mlp": "gated", "relative_buckets": 0}
    check_fields(config, "modernbert", expected)
    name = written_activation(config)
    return {
        "max_position_embeddings": config.max_length,
        "hidden_activation": name,
        "classifier_activation": name,
        "embedding_dropout": config.dropout_rate,
        "mlp_dropout": config.dropout_rate,
        "attention_dropout": 0.0,
        "norm_eps": config.layer_norm_epsilon,
        "global_rope_theta": config.rotary_theta,
        "local_rope_theta": config.local_rotary_theta,
        "local_attention": 2 * config.local_distance or 128,
        "global_attn_every_n_layers": config.global_every,
        **dict.fromkeys(_BIASES, config.biases),
        "cls_token_id": ids.opening,
        "bos_token_id": ids.opening,
        "sep_token_id": ids.closing,
        "eos_token_id": ids.closing,
    }


def _body(values: Values, config: TransformerConfig) -> Iterator[Entry]:
    del values
    hidden, biases = config.hidden_size, config.biases
    yield same("token_embedding", "embeddings.tok_embeddings.weight", (config.vocab_size, hidden))
    yield from norm("input_norm", "embeddings.norm", hidden, biases=biases)
    for layer in range(config.num_layers):
        ours, theirs = f"layers_{layer}", f"layers.{layer}"
        if config.has_attention_norm(layer):
            yield from norm(f"{ours}.attention_norm", f"{theirs}.attn_norm", hidden, biases=biases)
        yield from query_key_value(config, f"{ours}.attention", (f"{theirs}.attn.Wqkv",))
        yield from attention_output(config, f"{ours}.attention", f"{theirs}.attn.Wo")
        yield from norm(f"{ours}.mlp_norm", f"{theirs}.mlp_norm", hidden, biases=biases)
        yield from gated(config, ours, f"{theirs}.mlp.Wi")
        yield from linear(f"{ours}.mlp_out", f"{theirs}.mlp.Wo", config.mlp_size, hidden, biases=biases)
    yield from norm("output_norm", "final_norm", hidden, biases=biases)


def _masked_lm(config: TransformerConfig) -> Iterator[Entry]:
    return masked_lm_head(config, "head.dense", "head.norm")


MODERNBERT: Final = Family(
    model_type="modernbert",
    architecture="ModernBertModel",
    prefix="model.",
    body_names=("embeddings.", "layers.", "final_norm."),
    output_bias=("decoder.bias",),
    tied_table=("decoder.weight",),
    keys=frozenset(
        {
            *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
            *("max_position_embeddings", "hidden_activation", "classifier_activation", "norm_eps", *_BIASES),
            *("global_rope_theta", "local_rope_theta", "rope_parameters", "layer_types"),
            *("local_attention", "global_attn_every_n_layers"),
            # Dropout, kernels and the masked-LM loss in training; heads for other tasks.
            *("attention_dropout", "embedding_dropout", "mlp_dropout", "classifier_pooling", "decoder_bias"),
            *("deterministic_flash_attn", "initializer_cutoff_factor", "position_embedding_type"),
            *("reference_compile", "repad_logits_with_grad", "sparse_pred_ignore_index", "sparse_prediction"),
        }
    ),
    options=_options,
    values=_values,
    body=_body,
    masked_lm=_masked_lm,
)
