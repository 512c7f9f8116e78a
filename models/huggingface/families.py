"""The families of `transformers`: how each keeps its models.

A new family is one more row of `FAMILIES`; one that is not built as BERT is overrides what `Family` does.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..transformer import TransformerConfig
from .interface import (
    Entry,
    LayerNames,
    UnsupportedModelError,
    activation,
    attention_output,
    gated,
    integer,
    layers,
    linear,
    norm,
    number,
    only,
    positions,
    query_key_value,
    same,
)

Values = Mapping[str, Any]

# The names of the sizes and of other options in most families.
_SIZES: Final = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "mlp_size": "intermediate_size",
}
_OPTIONS: Final = {
    "dropout_rate": "hidden_dropout_prob",
    "activation": "hidden_act",
    "layer_norm_epsilon": "layer_norm_eps",
}
_SHAPE: Final = {
    "norm": "post",
    "positions": "learned",
    "mlp": "dense",
    "biases": True,
    "local_distance": 0,
    "relative_buckets": 0,
}
_LAYER: Final = LayerNames(
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_out="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    mlp_in="intermediate.dense",
    mlp_out="output.dense",
    mlp_norm="output.LayerNorm",
)
_WRITTEN: Final = {"attention_probs_dropout_prob": 0.0, "type_vocab_size": 2, "position_embedding_type": "absolute"}
# Of the pooler of the first multilingual models, which is not read.
_POOLER: Final = frozenset(
    str.split(
        "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head "
        "pooler_type embedding_size"
    )
)
_RELATIVE: Final = "relative_attention_num_buckets"


class SpecialIds(NamedTuple):
    """The ids of the special tokens in an exported model, in the order of `formats.vocabulary.SPECIAL_TOKENS`."""

    pad: int = 0
    unknown: int = 1
    opening: int = 2
    closing: int = 3
    mask: int = 4


@dataclasses.dataclass(frozen=True)
class Family:
    """How `transformers` keeps the models of one ``model_type``; the defaults are BERT's (Devlin et al. 2019).

    Token types are folded into the positions.

    Attributes:
      model_type: of config.json.
      architecture: the class of `transformers` without a head.
      prefix: of the body's arrays in models with a head.
      masked_lm_names: the dense layer and the norm before the tied table.
      output_bias: names of the masked-LM bias; the first that is there is read.
      tied_table: the masked-LM output table; it must be the token table.
      stack: the name of all layers.
      layer: names within a layer.
      output_norm: the norm on top, where there is one.
      shape: fields of `TransformerConfig` that its class fixes.
      sizes: fields of `TransformerConfig` and their keys.
      options: the same of options.
      written: keys and values of every file that is written.
      ignored: keys that change nothing in trained models of this family.
      default_length: positions where config.json does not say.
      counts_from_pad: positions begin behind the padding token's id, which is 1 where config.json does not say.
      pad_id: the padding token's id in the code of its class, whatever config.json says; None: any.
      has_pooler: whether its class has a pooler, which no module here reads.
    """

    model_type: str = "bert"
    architecture: str = "BertModel"
    prefix: str = "bert."
    masked_lm_names: tuple[str, str] = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")
    output_bias: tuple[str, ...] = ("cls.predictions.bias", "cls.predictions.decoder.bias")
    tied_table: str = "cls.predictions.decoder.weight"
    stack: str = "encoder.layer"
    layer: LayerNames = _LAYER
    output_norm: str | None = None
    shape: Mapping[str, Any] = dataclasses.field(default_factory=lambda: _SHAPE)
    sizes: Mapping[str, str] = dataclasses.field(default_factory=lambda: _SIZES)
    options: Mapping[str, str] = dataclasses.field(default_factory=lambda: _OPTIONS)
    written: Mapping[str, Any] = dataclasses.field(default_factory=lambda: _WRITTEN)
    ignored: frozenset[str] = _POOLER
    default_length: int | None = None
    counts_from_pad: bool = False
    pad_id: int | None = None
    has_pooler: bool = True

    @property
    def keys(self) -> set[str]:
        """Those of config.json that are read, or that change nothing in trained models of this family."""
        read = {*self.sizes.values(), *self.options.values(), *self.written, "max_position_embeddings"}
        return read | self.ignored

    @property
    def body_names(self) -> tuple[str, ...]:
        """Beginnings of the names of the body's arrays; an unknown array there means another architecture."""
        return ("embeddings.", self.stack.partition(".")[0] + ".", *([self.output_norm] if self.output_norm else []))

    def offset(self, values: Values) -> int:
        """Rows of the position table before that of the first token."""
        return integer(values, "pad_token_id", 1) + 1 if self.counts_from_pad else 0

    def read_options(self, values: Values) -> dict[str, Any]:
        """Config.json to fields of `TransformerConfig`, without the sizes.

        Raises:
          UnsupportedModelError: for positions that are not absolute, another width of the embeddings, or another
            padding token than that of the code.
        """
        for name in ("position_embedding_type", _RELATIVE):
            if name in self.written:
                only(values, name, self.written[name], default=self.written[name])
        if self.pad_id is not None:
            only(values, "pad_token_id", self.pad_id, default=self.pad_id)
        width = values.get(self.sizes["hidden_size"])
        only(values, "embedding_size", width, default=width)
        length = integer(values, "max_position_embeddings", self.default_length) - self.offset(values)
        found = {"max_length": length, "activation": activation(values, self.options["activation"])}
        for name, default in (("dropout_rate", 0.1), ("layer_norm_epsilon", 1e-12)):
            if name in self.options:
                found[name] = number(values, self.options[name], default)
        return {**self.shape, **found}

    def values(self, config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
        """The reverse of `read_options`, the sizes included.

        Raises:
          UnsupportedModelError: if the family cannot hold that encoder.
        """
        check_fields(config, self.model_type, self.shape)
        found = {theirs: getattr(config, ours) for ours, theirs in {**self.sizes, **self.options}.items()}
        found |= {self.options["activation"]: written_activation(config), **self.written}
        ends = {"bos_token_id": ids.opening, "eos_token_id": ids.closing} if self.counts_from_pad else {}
        offset = self.offset({"pad_token_id": ids.pad})
        return found | {"max_position_embeddings": config.max_length + offset} | ends

    def body(self, values: Values, config: TransformerConfig) -> Iterator[Entry]:
        """All arrays but those of the heads."""
        hidden = config.hidden_size
        types = integer(values, "type_vocab_size", 2) if "type_vocab_size" in self.written else 0
        yield same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
        yield positions(config, offset=self.offset(values), types=types)
        if config.norm == "post":
            yield from norm("input_norm", "embeddings.LayerNorm", hidden)
        if config.relative_buckets:
            table = (config.relative_buckets, config.num_heads)
            yield same("relative_bias", "encoder.relative_attention_bias.weight", table)
        yield from layers(config, self.stack, self.layer)
        if self.output_norm:
            yield from norm("output_norm", self.output_norm, hidden)

    def masked_lm(self, config: TransformerConfig) -> Iterator[Entry]:
        """Transform and norm before the tied table."""
        hidden, (dense, last_norm) = config.hidden_size, self.masked_lm_names
        yield from linear("mlm_transform", dense, hidden, hidden, biases=config.biases)
        yield from norm("mlm_norm", last_norm, hidden, biases=config.biases)


def check_fields(config: TransformerConfig, model_type: str, expected: Mapping[str, Any]) -> None:
    """Refuses an encoder that a family does not compute.

    Args:
      config: the encoder's.
      model_type: the family.
      expected: the values of the fields that decide.

    Raises:
      UnsupportedModelError: naming the first field that has another value.
    """
    for name, value in expected.items():
        got = getattr(config, name)
        if got != value:
            reason = f"transformers has no class that computes this encoder ({model_type} is the nearest)"
            problem = f"got {got!r} with norm = {config.norm!r}, expected {value!r}: {reason}"
            raise UnsupportedModelError(f"EncoderConfig.{name}", problem)


def written_activation(config: TransformerConfig) -> str:
    """The name of an encoder's activation in config.json."""
    return "gelu" if config.activation == "gelu" else "gelu_pytorch_tanh"


_BIASES: Final = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
_THETAS: Final = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}


class ModernBert(Family):
    """ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward layers, local layers, norms first."""

    def read_options(self, values: Values) -> dict[str, Any]:
        """Config.json to fields of `TransformerConfig`, without the sizes."""
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

    def values(self, config: TransformerConfig, ids: SpecialIds) -> dict[str, Any]:
        """The reverse of `read_options`, the sizes included."""
        check_fields(config, self.model_type, self.shape)
        name = written_activation(config)
        return {
            **{theirs: getattr(config, ours) for ours, theirs in self.sizes.items()},
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

    def body(self, values: Values, config: TransformerConfig) -> Iterator[Entry]:
        """All arrays but those of the heads."""
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


_BERT: Final = Family()
_ROBERTA: Final = Family(  # Liu et al. 2019
    model_type="roberta",
    architecture="RobertaModel",
    prefix="roberta.",
    masked_lm_names=("lm_head.dense", "lm_head.layer_norm"),
    output_bias=("lm_head.bias", "lm_head.decoder.bias"),
    tied_table="lm_head.decoder.weight",
    written=_WRITTEN | {"type_vocab_size": 1},
    counts_from_pad=True,
)
_DISTILBERT: Final = Family(  # Sanh et al. 2019: without token types and pooler
    model_type="distilbert",
    architecture="DistilBertModel",
    prefix="distilbert.",
    masked_lm_names=("vocab_transform", "vocab_layer_norm"),
    output_bias=("vocab_projector.bias",),
    tied_table="vocab_projector.weight",
    stack="transformer.layer",
    layer=LayerNames(
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_out="attention.out_lin",
        attention_norm="sa_layer_norm",
        mlp_in="ffn.lin1",
        mlp_out="ffn.lin2",
        mlp_norm="output_layer_norm",
    ),
    shape=_SHAPE | {"layer_norm_epsilon": 1e-12},  # in its code; config.json does not say
    sizes={
        "vocab_size": "vocab_size",
        "hidden_size": "dim",
        "num_layers": "n_layers",
        "num_heads": "n_heads",
        "mlp_size": "hidden_dim",
    },
    options={"dropout_rate": "dropout", "activation": "activation"},
    written={"attention_dropout": 0.0, "sinusoidal_pos_embds": False},
    ignored=frozenset({"qa_dropout", "seq_classif_dropout", "tie_weights_"}),
    default_length=512,
    has_pooler=False,
)
# Song et al. 2020: BERT without token types, with T5's relative position bias, one table for all layers. Its class
# takes token 1 for padding whatever config.json says, and always has 32 buckets.
_MPNET: Final = dataclasses.replace(
    _ROBERTA,
    model_type="mpnet",
    architecture="MPNetModel",
    prefix="mpnet.",
    layer=_LAYER._replace(
        query="attention.attn.q",
        key="attention.attn.k",
        value="attention.attn.v",
        attention_out="attention.attn.o",
        attention_norm="attention.LayerNorm",
    ),
    shape=_SHAPE | {"relative_buckets": 32},
    written={"attention_probs_dropout_prob": 0.0, _RELATIVE: 32},
    ignored=frozenset(),
    default_length=512,
    pad_id=1,
)
_MEGATRON_BERT: Final = Family(  # Shoeybi et al. 2019: norms before the sub-layers and one on top
    model_type="megatron-bert",
    architecture="MegatronBertModel",
    layer=_LAYER._replace(attention_norm="attention.ln", mlp_norm="ln"),
    output_norm="encoder.ln",
    shape=_SHAPE | {"norm": "pre"},
)
_MODERNBERT: Final = ModernBert(
    model_type="modernbert",
    architecture="ModernBertModel",
    prefix="model.",
    masked_lm_names=("head.dense", "head.norm"),
    output_bias=("decoder.bias",),
    tied_table="decoder.weight",
    stack="layers",
    output_norm="final_norm",
    shape={"norm": "modern", "positions": "rotary", "mlp": "gated", "relative_buckets": 0},
    options={"activation": "hidden_activation", "layer_norm_epsilon": "norm_eps"},
    written={},
    # The last are dropout, kernels and the masked-LM loss in training, and heads for other tasks.
    ignored=frozenset(_BIASES).union(
        str.split(
            "classifier_activation global_rope_theta local_rope_theta rope_parameters layer_types local_attention "
            "global_attn_every_n_layers attention_dropout embedding_dropout mlp_dropout classifier_pooling "
            "decoder_bias deterministic_flash_attn initializer_cutoff_factor position_embedding_type reference_compile "
            "repad_logits_with_grad sparse_pred_ignore_index sparse_prediction"
        )
    ),
    has_pooler=False,
)
FAMILIES: Final[Mapping[str, Family]] = {
    family.model_type: family
    for family in (
        *(_BERT, _ROBERTA, dataclasses.replace(_ROBERTA, model_type="xlm-roberta", architecture="XLMRobertaModel")),
        *(_DISTILBERT, _MPNET, _MEGATRON_BERT, _MODERNBERT),
    )
}


def find_family(model_type: object, field: str = "model_type") -> Family:
    """The family of a ``model_type``.

    Raises:
      UnsupportedModelError: naming `field`, for one that is not here.
    """
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise UnsupportedModelError(field, f"got {model_type!r}, expected one of {', '.join(FAMILIES)}")
    return FAMILIES[model_type]


def family_by_shape(config: TransformerConfig) -> Family:
    """The family whose class computes an encoder of this shape, if any does."""
    if config.relative_buckets:
        return _MPNET
    return {"pre": _MEGATRON_BERT, "modern": _MODERNBERT}.get(config.norm, _BERT)


def family_of(config: TransformerConfig) -> Family:
    """The family that an encoder is written as: the one it came from or, without one, by its shape.

    Raises:
      UnsupportedModelError: if it came from a family that is not here.
    """
    if config.family is None:
        return family_by_shape(config)
    return find_family(config.family, "EncoderConfig.family")
