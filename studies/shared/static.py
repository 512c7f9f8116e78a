"""A static model that is written down: a table of vectors and a weight for each word piece, without training.

Shapes: V pieces, D units of the result, H units of the static architecture.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...formats.model_folder import ModelFolder
from ...formats.vocabulary import SPECIAL_TOKENS, VocabularyFile
from ...models.encoders.news import EncoderConfig

Array = npt.NDArray[Any]

_SPECIAL_LOGIT: Final = -60.0  # [CLS] and [SEP] count only in a text that has nothing else
_LEAST_WEIGHT: Final = 1e-6  # of the largest: a shorter vector has no direction worth keeping
_LONGEST: Final = 2048  # tokens of a text; there are no positions to learn
_TOPICS: Final = 600


def write_static_model(
    target: str,
    vocabulary: VocabularyFile,
    vectors: Array,
    weights: Array,
    *,
    terms: Any = None,
    lead_length: int,
    max_length: int,
    origin: Mapping[str, Any],
) -> None:
    """Writes the model folder of the weighted mean of `vectors`.

    Args:
      target: the folder.
      vocabulary: of V pieces.
      vectors: [V, D].
      weights: [V], see `static_params`.
      terms: see `static_params`.
      lead_length: a token at position p counts 1 / (1 + p / lead_length); 0: all the same.
      max_length: tokens of a text that the model reads.
      origin: where it comes from, JSON values.
    """
    import flax.linen as nn
    import jax

    from ...learning.model_files import architecture_gin, write_model_files

    config = static_config(len(vectors), vectors.shape[1], num_topics=_TOPICS, lead_length=lead_length)
    created = nn.unbox(config.module().init(jax.random.key(0), np.ones((1, 2), np.int32)))["params"]
    params = static_params(config, jax.tree.map(np.asarray, created), vectors, weights, terms)
    write_model_files(target, config, vocabulary, max_length)
    ModelFolder(target).write_import(params, architecture_gin(config), origin)


def unit_rows(vectors: Array) -> Array:
    """Rows of length 1; rows of zeros stay."""
    result: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return result


def weighted_means(terms: Any, weights: Array, vectors: Array) -> Array:
    """The weighted mean of the vectors of the pieces of each text, [N, D]."""
    result: Array = terms @ (weights[:, None] * vectors) / (terms @ weights)[:, None]
    return result


def static_config(vocab_size: int, size: int, *, num_topics: int, lead_length: int) -> EncoderConfig:
    """The shape of a static model with D = `size`.

    It is one unit wider than its embedding, or two where that is odd: its layer norm removes one direction, and rotary
    positions need an even number. Without layers no positions act.
    """
    return EncoderConfig(
        vocab_size=vocab_size,
        hidden_size=size + 2 - size % 2,
        num_layers=0,
        num_heads=1,
        mlp_size=1,
        max_length=_LONGEST,
        embedding_size=size,
        num_topics=num_topics,
        dropout_rate=0.0,
        norm="pre",
        pooling="weighted",
        embedding_init="t5",
        positions="rotary",
        lead_length=lead_length,
        sublinear=True,
    )


def static_params(
    config: EncoderConfig, created: Mapping[str, Any], vectors: Array, weights: Array, terms: Any
) -> dict[str, Any]:
    """The parameters with which a static model computes the weighted mean of `vectors`.

    The layer norm of the architecture keeps the direction of a vector in the plane of mean 0. An orthonormal basis B
    [H, D] of directions in that plane takes each vector there, its length goes into the weight of the piece, and the
    head takes the mean back: ``sum_i w_i |v_i| (B v_i / |v_i|)^T B = sum_i w_i v_i``.

    Args:
      config: see `static_config`.
      created: the parameters of the architecture as drawn at random; its other heads stay.
      vectors: [V, D].
      weights: [V], positive; those of special tokens are not read.
      terms: sparse [N, V], see `studies.shared.corpus.Corpus`: the head subtracts the mean embedding of these texts.
        None: nothing.

    Returns:
      Nested float32 arrays.
    """
    width, size = config.hidden_size, config.embedding_size
    draws = np.random.default_rng(0).normal(size=(width, size))
    basis = np.linalg.qr(np.column_stack([np.ones(width), draws]))[0][:, 1:]
    lengths = np.linalg.norm(vectors, axis=1)
    known = weights * lengths
    known = np.maximum(known, _LEAST_WEIGHT * known.max()) / known.max()
    units = np.where(lengths[:, None] > 0, unit_rows(vectors), np.eye(1, size))
    logits = np.log(known)
    logits[: len(SPECIAL_TOKENS)] = _SPECIAL_LOGIT
    # Of the norm, each vector has the length sqrt(H).
    bias = np.zeros(size) if terms is None else -(width**0.5) * weighted_means(terms, known, units).mean(axis=0)
    return dict(created) | {
        "token_embedding": (units @ basis.T * width**0.5).astype(np.float32),
        "pooling_logits": logits.astype(np.float32),
        "embedding_head": {"kernel": basis.astype(np.float32), "bias": bias.astype(np.float32)},
    }
