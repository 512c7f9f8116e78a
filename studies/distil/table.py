"""The arithmetic of a distilled model: principal components, and weights of pieces.

Model2Vec (van Dongen and Tulkens 2024, https://github.com/MinishLab/model2vec) passes every piece of the vocabulary
through a sentence encoder, keeps the first principal components of the vectors, and gives frequent pieces small
weights. The embedding of a text is the weighted sum of the vectors of its pieces. The weights are smooth inverse
frequencies (Arora, Liang, Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"), from counts or, by
Zipf's law, from the ranks of the pieces.

Shapes: V pieces, E units of the encoder, D units of the result.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..shared.static import unit_rows, weighted_means

Array = npt.NDArray[Any]

CORPUS_WEIGHTS: Final = ("sif", "idf")  # need counts
WEIGHTS: Final = (*CORPUS_WEIGHTS, "zipf", "none")
_SMOOTHING: Final = 1e-4  # a of a / (a + p), as Model2Vec has it
_RIDGE: Final = 1e-3  # of the mean variance


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


def random_units(pieces: int, size: int) -> Array:
    """Random vectors [V, D] of length 1 about: the cosines of texts are those of TF-IDF, up to about 1 / sqrt(D)."""
    return np.random.default_rng(0).normal(scale=size**-0.5, size=(pieces, size))


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
