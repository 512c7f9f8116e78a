"""`TransformerConfig`: the shape of a transformer encoder, and execution options, which never change the result."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

DTYPES: Final = ("float32", "bfloat16", "float16")  # of activations; `attention.TYPES` has those of JAX

# A run chooses them; a model's description (`TransformerConfig.to_dict`) leaves them out.
EXECUTION_OPTIONS: Final = ("remat", "scan_layers", "attention")

_CHOICES: Final = {
    "norm": ("post", "pre", "modern"),
    "pooling": ("cls", "mean", "weighted", "max", "last"),
    "embedding_activation": ("identity", "tanh"),
    "embedding_init": ("bert", "t5"),
    "dtype": DTYPES,
    "positions": ("learned", "rotary"),
    "mlp": ("dense", "gated"),
    "activation": ("gelu", "gelu_tanh"),
    "biases": (True, False),
    "sublinear": (True, False),
    "remat": ("none", "full", "dots"),
    "scan_layers": (True, False),
    "attention": ("auto", "xla", "cudnn", "flash"),
}
_POSITIVE: Final = ("vocab_size", "hidden_size", "num_heads", "mlp_size", "max_length", "embedding_size", "num_topics")
# Descriptions written before these options existed lack them. A model that does not use them keeps its description and
# digest.
_LEFT_OUT_AT_DEFAULT: Final = (
    "positions",
    "rotary_theta",
    "local_rotary_theta",
    "local_distance",
    "global_every",
    "mlp",
    "activation",
    "biases",
    "layer_norm_epsilon",
    "lead_length",
    "sublinear",
    "relative_buckets",
    "embedding_activation",
    "family",
    "window_length",
    "global_tokens",
)


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """The shape of a `NewsEncoder`, which can be rebuilt from it and the vocabulary.

    Users see it as its subclass `encoders.EncoderConfig`, which is named in errors.

    The defaults are BERT-base's. RoBERTa differs in `layer_norm_epsilon`; ModernBERT (Warner et al. 2024, arXiv
    2412.13663) has ``norm="modern"``, ``positions="rotary"``, ``mlp="gated"``, ``biases=False`` and local layers.

    Attributes:
      vocab_size: word pieces in the vocabulary file, V.
      hidden_size: width of the residual stream, H; a multiple of `num_heads`.
      num_layers: transformer blocks; 0 leaves a static model, which reads a text as a bag of pieces.
      num_heads: attention heads per block.
      mlp_size: width of the feed-forward layer.
      max_length: the longest row the model can read; the number of learned positions where it has some and reads rows
        in one piece.
      window_length: the layers read a longer text in windows of this many tokens, each with positions from 0, and the
        heads pool the vectors of all windows; the number of learned positions. 0: a text is one window. Packed rows are
        not cut.
      embedding_size: width of the document embedding, D.
      num_topics: width of the topic head, T; the paper has 600.
      dropout_rate: on embeddings and on each block's two outputs. Attention probabilities are not dropped: fused
        attention has no such option.
      norm: "post" normalises after each residual sum (BERT), "pre" before each sub-layer with one last norm on top;
        "modern" is "pre" with the norm before the first attention on the embeddings, so that the residual stream is
        normalised from the start (ModernBERT).
      pooling: the input of the heads: "cls", the top vector of the first token (the paper's), "mean", the mean over
        tokens that are not padding, or "weighted", that mean with one learned weight for each word piece (Arora et al.
        2017 fix them by frequency; `training.piece_weights` starts from that); "max", the largest value of each unit;
        or "last", the top vector of the last token that is not padding.
      embedding_activation: on the document embedding before it gets length 1, "identity" or "tanh" (LaBSE).
      lead_length: in the weighted mean only, a token at position p of its text counts 1 / (1 + p / lead_length),
        because news articles begin with what matters most; 0: all positions count the same.
      sublinear: in the weighted mean only, the tokens of one piece that would count s together count ln(1 + s), as in
        TF-IDF.
      embedding_init: how the token embeddings start: "bert", a standard deviation of 0.02, or "t5", 1, with the
        masked-LM logits divided by sqrt(hidden_size). With BERT's, a few hundred steps of pretraining pull all tokens
        of a narrow encoder into one direction.
      dtype: type of activations, one of float32, bfloat16, float16; parameters stay float32.
      positions: "learned" vectors added to the tokens, or "rotary": queries and keys turned by their position (Su et
        al. 2021).
      rotary_theta: base of the rotary wavelengths in layers that see the whole row.
      local_rotary_theta: the same in local layers.
      local_distance: how far to either side a token of a local layer sees; 0: no layer is local.
      global_every: layers 0, n, 2n, … see the whole row, the others are local. 1 where no layer is local; 0 where all
        are (Longformer, Beltagy et al. 2020).
      global_tokens: in local layers, the first tokens of a text, 1 for [CLS] alone, that see all of it and are seen by
        all of it. Longformer has parameters of their own for these tokens, we do not.
      mlp: "dense", or "gated": the activated half times a linear half (GeGLU, Shazeer 2020).
      activation: "gelu" by the error function, or "gelu_tanh", its approximation.
      relative_buckets: each head adds a learned number to the attention from a token to another by their signed
        distance, in this many buckets; all layers share them (T5, Raffel et al. 2020; MPNet). 0: none.
      biases: whether the blocks' projections, the masked-LM transform and all norms have biases.
      layer_norm_epsilon: added to the variance in layer norms.
      family: the ``model_type`` of `transformers` that the model is exported as; None: the one of its shape. It changes
        no result.
      remat: activations that the backward pass recomputes instead of keeping: "none"; "full", all but each block's
        input; "dots", all but the outputs of plain matrix products (attention is recomputed).
      scan_layers: compile one block and loop over it. Compiles faster; the parameters keep their names and shapes.
      attention: "xla", "cudnn" (NVIDIA's flash attention), "flash" (the TPU kernel), or "auto": see
        `attention.choose_attention`.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    mlp_size: int = 3072
    max_length: int = 512
    embedding_size: int = 768
    num_topics: int = 600
    dropout_rate: float = 0.1
    norm: Literal["post", "pre", "modern"] = "post"
    pooling: Literal["cls", "mean", "weighted", "max", "last"] = "cls"
    dtype: str = "float32"
    embedding_init: Literal["bert", "t5"] = "bert"
    positions: Literal["learned", "rotary"] = "learned"
    rotary_theta: float = 10_000.0
    local_rotary_theta: float = 10_000.0
    local_distance: int = 0
    global_every: int = 1
    global_tokens: int = 0
    mlp: Literal["dense", "gated"] = "dense"
    activation: Literal["gelu", "gelu_tanh"] = "gelu"
    biases: bool = True
    layer_norm_epsilon: float = 1e-12
    lead_length: int = 0
    sublinear: bool = False
    relative_buckets: int = 0
    embedding_activation: Literal["identity", "tanh"] = "identity"
    family: str | None = None
    window_length: int = 0
    remat: Literal["none", "full", "dots"] = "none"
    scan_layers: bool = False
    attention: Literal["auto", "xla", "cudnn", "flash"] = "auto"

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            _check_count(name, getattr(self, name), 1)
        _check_count("num_layers", self.num_layers, 0)
        _check_count("local_distance", self.local_distance, 0)
        _check_count("global_every", self.global_every, 0)
        _check_count("global_tokens", self.global_tokens, 0)
        _check_count("lead_length", self.lead_length, 0)
        _check_count("relative_buckets", self.relative_buckets, 0)
        _check_count("window_length", self.window_length, 0)
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"EncoderConfig.hidden_size: got {self.hidden_size}, expected a multiple of num_heads = "
                f"{self.num_heads}"
            )
        if not 0.0 <= self.dropout_rate < 1.0:
            raise ValueError(f"EncoderConfig.dropout_rate: got {self.dropout_rate!r}, expected a number in [0, 1)")
        for name in ("rotary_theta", "local_rotary_theta", "layer_norm_epsilon"):
            if not getattr(self, name) > 0:
                raise ValueError(f"EncoderConfig.{name}: got {getattr(self, name)!r}, expected a positive number")
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"EncoderConfig.{name}: got {value!r}, expected one of {', '.join(map(str, allowed))}")
        self._check_local()
        self._check_positions()

    def _check_local(self) -> None:
        if (self.local_distance > 0) != (self.global_every != 1):
            raise ValueError(
                f"EncoderConfig.global_every: got {self.global_every} with local_distance = {self.local_distance}, "
                "expected more than 1, or 0, where layers are local, and 1 where none is"
            )
        if self.global_tokens and not self.local_distance:
            raise ValueError(
                f"EncoderConfig.global_tokens: got {self.global_tokens} with local_distance = 0, expected 0: without "
                "local layers every token sees all"
            )
        if self.global_tokens and self.window_length:
            raise ValueError(
                f"EncoderConfig.global_tokens: got {self.global_tokens} with window_length = {self.window_length}, "
                "expected 0: a window would have global tokens of its own"
            )

    def _check_positions(self) -> None:
        if self.relative_buckets % 4:
            raise ValueError(f"EncoderConfig.relative_buckets: got {self.relative_buckets}, expected a multiple of 4")
        if self.positions == "rotary" and self.head_size % 2:
            raise ValueError(
                f"EncoderConfig.positions: got rotary with heads of {self.head_size} units, expected an even number"
            )

    @property
    def head_size(self) -> int:
        """Units of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def position_count(self) -> int:
        """Tokens that the layers read at a time: a window, or the whole row."""
        return min(self.window_length or self.max_length, self.max_length)

    @property
    def dense_size(self) -> int:
        """Units of the dense embedding head."""
        return self.embedding_size

    def is_local(self, layer: int) -> bool:
        """Whether a layer, counted from 0, sees `local_distance` tokens only."""
        return self.local_distance > 0 and (self.global_every == 0 or layer % self.global_every > 0)

    def seen_pairs(self, layer: int, length: int) -> int:
        """Returns how many (query, key) pairs of a text of ``length`` tokens a layer attends to.

        >>> TransformerConfig(9, local_distance=1, global_every=0).seen_pairs(0, 5)  # 2 + 3 + 3 + 3 + 2
        13
        """
        if not self.is_local(layer) or length <= self.local_distance:
            return length * length
        distance = self.local_distance
        apart = sum(max(length - 1 - place - distance, 0) for place in range(min(self.global_tokens, length)))
        return length * (2 * distance + 1) - distance * (distance + 1) + 2 * apart

    def has_attention_norm(self, layer: int) -> bool:
        """Whether a layer, counted from 0, has a norm of its own around its attention."""
        return self.norm != "modern" or layer > 0

    def to_dict(self) -> dict[str, Any]:
        """The model as JSON values without `EXECUTION_OPTIONS`, and without later options that it does not use."""
        values = dataclasses.asdict(self)
        left_out = [
            field.name
            for field in dataclasses.fields(self)
            if field.name in EXECUTION_OPTIONS
            or (field.name in _LEFT_OUT_AT_DEFAULT and values[field.name] == field.default)
        ]
        return {name: value for name, value in values.items() if name not in left_out}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; execution options take their defaults unless they are given.

        Raises:
          ValueError: for a key that is not an attribute, a missing `vocab_size` or a value out of range.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(
                f"EncoderConfig: got the unknown keys {', '.join(unknown)}, expected some of {', '.join(known)}"
            )
        if "vocab_size" not in values:
            raise ValueError("EncoderConfig: the key vocab_size is missing")
        return cls(**values)


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        kind = "a positive integer" if least else "an integer of at least 0"
        raise ValueError(f"EncoderConfig.{name}: got {value!r}, expected {kind}")
