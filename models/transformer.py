"""`TransformerConfig`: the shape of a transformer encoder, and execution options, which never change the result."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from .architecture import Architecture

# A run chooses them; a model's description (`TransformerConfig.to_dict`) leaves them out.
EXECUTION_OPTIONS: Final = ("remat", "scan_layers", "attention")

HALF_LENGTH: Final = 64  # of `HybridEncoder`: tokens of a text that has half the lexical share of a long one


@dataclasses.dataclass(frozen=True)
class TransformerConfig(Architecture):
    """The shape of a `NewsEncoder`, which can be rebuilt from it and the vocabulary.

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
      attention: "xla", or "auto" for the fastest kernel of the platform: see `attention.choose_attention`.
    """

    execution_options: ClassVar[tuple[str, ...]] = EXECUTION_OPTIONS
    later_options: ClassVar[tuple[str, ...]] = tuple(
        str.split(
            "positions rotary_theta local_rotary_theta local_distance global_every mlp activation biases "
            "layer_norm_epsilon lead_length sublinear relative_buckets embedding_activation family window_length "
            "global_tokens"
        )
    )
    least: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("num_layers", "local_distance", "global_every", "global_tokens"), 0),
        **dict.fromkeys(("lead_length", "relative_buckets", "window_length"), 0),
    }

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
    attention: Literal["auto", "xla"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_local, divides = self.local_distance > 0, self.hidden_size % self.num_heads == 0
        self.require("hidden_size", divides, f"a multiple of num_heads = {self.num_heads}")
        every = "more than 1, or 0, where layers are local, and 1 where none is"
        self.require("global_every", is_local == (self.global_every != 1), every, beside="local_distance")
        all_seen, many = (
            "0: without local layers every token sees all",
            "0: a window would have global tokens of its own",
        )
        self.require("global_tokens", is_local or not self.global_tokens, all_seen, beside="local_distance")
        self.require("global_tokens", not (self.global_tokens and self.window_length), many, beside="window_length")
        self.require("relative_buckets", self.relative_buckets % 4 == 0, "a multiple of 4")
        is_even = self.positions == "learned" or self.head_size % 2 == 0
        self.require("positions", is_even, "heads of an even number of units", beside="head_size")

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

    def has_attention_norm(self, layer: int) -> bool:
        """Whether a layer, counted from 0, has a norm of its own around its attention."""
        return self.norm != "modern" or layer > 0
