"""The arithmetic of a distilled model: principal components, weights of pieces, and the parameters that compute them.

Model2Vec (van Dongen and Tulkens 2024, https://github.com/MinishLab/model2vec) passes every piece of the vocabulary
through a sentence encoder, keeps the first principal components of the vectors, and gives frequent pieces small
weights. The embedding of a text is the weighted sum of the vectors of its pieces. The weights are smooth inverse
frequencies (Arora, Liang, Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"), from counts or, by
Zipf's law, from the ranks of the pieces.

Shapes: V pieces, E units of the encoder, D units of the result, H units of the static architecture.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...formats.vocabulary import SPECIAL_TOKENS
from ...models.encoders.news import EncoderConfig

Array = npt.NDArray[Any]

CORPUS_WEIGHTS: Final = ("sif", "idf")  # need counts
WEIGHTS: Final = (*CORPUS_WEIGHTS, "zipf", "none")
_SMOOTHING: Final = 1e-4  # a of a / (a + p), as Model2Vec has it
_RIDGE: Final = 1e-3  # of the mean variance
_SPECIAL_LOGIT: Final = -60.0  # [CLS] and [SEP] count only in a text that has nothing else
_LEAST_WEIGHT: Final = 1e-6  # of the largest: a shorter vector has no direction worth keeping
_LONGEST: Final = 2048  # tokens of a text; there are no positions to learn


def principal_components(vectors: Array, size: int, *, whitening: float = 0.0) -> Array:
    """The directions of the largest variance of some vectors, divided by powers of their standard deviations.

    Args:
      vectors: [N, E].
      size: D, E at most.
      whitening: the power: 0 leaves the components as they are, 1 gives all of them the same variance. The strongest
        directions of an encoder tell frequent pieces from rare ones, and hide the differences of texts.

    Returns:
      float64 [E, D], the strongest first: ``(vectors - mean) @ result`` are the components. A direction that hardly
      varies is noise, and is not made larger than one with 0.001 of the mean variance.

    Raises:
      ValueError: for a size above E.
    """
    if size > vectors.shape[1]:
        raise ValueError(f"got size {size}, expected at most the width of the vectors, {vectors.shape[1]}")
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    strongest = np.argsort(variances)[::-1][:size]
    kept = np.maximum(variances[strongest], _RIDGE * variances.mean())
    result: Array = directions[:, strongest] * kept ** (-whitening / 2)
    return result


def unit_rows(vectors: Array) -> Array:
    """Rows of length 1; rows of zeros stay."""
    result: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return result


def distilled(vectors: Array, size: int, *, whitening: float) -> Array:
    """The principal components of the vectors of all pieces, each row of length 1: [V, E] -> [V, D]."""
    return unit_rows((vectors - vectors.mean(axis=0)) @ principal_components(vectors, size, whitening=whitening))


def distilled_for(terms: Any, weights: Array, vectors: Array, size: int, *, whitening: float) -> Array:
    """The principal components of the texts of a corpus, as vectors of the pieces: [V, E] -> [V, D].

    Args:
      terms: sparse [N, V], see `studies.shared.corpus.Corpus`.
      weights: [V].
      vectors: [V, E].
      size: D, E at most.
      whitening: see `principal_components`.
    """
    vectors = unit_rows(vectors - vectors.mean(axis=0))
    means = weighted_means(terms, weights, vectors)
    result: Array = vectors @ principal_components(means, size, whitening=whitening)
    return result


def weighted_means(terms: Any, weights: Array, vectors: Array) -> Array:
    """The weighted mean of the vectors of the pieces of each text, [N, D]."""
    result: Array = terms @ (weights[:, None] * vectors) / (terms @ weights)[:, None]
    return result


def beside(terms: Any, weights: Array, parts: Sequence[tuple[Array, float]]) -> Array:
    """Several vectors of each piece as one, so that each part has its share of the variance of texts.

    Args:
      terms: sparse [N, V], see `studies.shared.corpus.Corpus`; None takes the variance of the pieces.
      weights: [V].
      parts: vectors [V, D of the part], and the share of the part.
    """
    scaled = []
    for vectors, share in parts:
        means = vectors if terms is None else weighted_means(terms, weights, vectors)
        scaled.append(vectors * (share / means.var(axis=0).sum()) ** 0.5)
    return np.hstack(scaled)


def random_units(pieces: int, size: int, seed: int = 0) -> Array:
    """Random vectors [V, D] of length 1 about: the cosines of texts are those of TF-IDF, up to about 1 / sqrt(D)."""
    return np.random.default_rng(seed).normal(scale=size**-0.5, size=(pieces, size))


def piece_weights(kind: str, pieces: int, *, counts: Array | None = None, texts: Array | None = None) -> Array:
    """The weight of every piece, float64 [V].

    Args:
      kind: "sif", a / (a + p), where p is the share of the piece among all tokens of a corpus; "zipf", the same where p
        is proportional to 1 / (rank + 2) for ranks from 0; "idf", ln((1 + n) / (1 + df)) + 1 as in scikit-learn; or
        "none", 1.
      pieces: V.
      counts: of each piece in the corpus, [V]; for "sif".
      texts: of the corpus with each piece, [V], and last the number of all, so [V + 1]; for "idf".

    Raises:
      ValueError: for another kind, or one without its counts.
    """
    if kind == "none":
        return np.ones(pieces)
    if kind == "idf" and texts is not None:
        weights: Array = np.log((1 + texts[-1]) / (1 + texts[:-1])) + 1
        return weights
    if kind == "zipf":
        counts = 1.0 / np.arange(2, pieces + 2)
    elif kind != "sif" or counts is None:
        raise ValueError(f"got the weights {kind!r}, expected one of {', '.join(WEIGHTS)}, with the counts they need")
    shares = counts / max(counts.sum(), 1)
    result: Array = _SMOOTHING / (_SMOOTHING + shares)
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
    config: EncoderConfig, created: Mapping[str, Any], vectors: Array, weights: Array, terms: Any = None
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
