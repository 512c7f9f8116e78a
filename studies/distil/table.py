"""The pieces of a distilled model: principal components, weights, and the rows by which an encoder reads them.

Model2Vec (van Dongen and Tulkens 2024, https://github.com/MinishLab/model2vec) passes every piece of the vocabulary
through a sentence encoder, keeps the first principal components of the vectors, and gives frequent pieces small
weights. The embedding of a text is the weighted sum of the vectors of its pieces. The weights are smooth inverse
frequencies (Arora, Liang, Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"), from counts or, by
Zipf's law, from the ranks of the pieces.

Shapes: V pieces, E units of the encoder, D units of the result.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ...formats.articles import ArticleText
from ...formats.vocabulary import CLS_ID, CONTINUATION, SEP_ID
from ..shared.static import chunks, unit_rows, weighted_means

if TYPE_CHECKING:  # TensorFlow Text comes with it
    from ...tasks.vocabulary import Vocabulary

Array = npt.NDArray[Any]

CORPUS_WEIGHTS: Final = ("sif", "idf")  # need counts
WEIGHTS: Final = (*CORPUS_WEIGHTS, "zipf", "none")
_SMOOTHING: Final = 1e-4  # a of a / (a + p), as Model2Vec has it
_RIDGE: Final = 1e-3  # of the mean variance
_LEAST_COUNT: Final = 3  # a rarer word is a misspelling as often as a name


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
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    strongest = np.argsort(variances)[::-1][:size]
    kept = np.maximum(variances[strongest], _RIDGE * variances.mean())
    result: Array = directions[:, strongest] * kept ** (-whitening / 2)
    return result


def distilled(vectors: Array, size: int, terms: Any, weights: Array, *, whitening: float) -> Array:
    """The principal components of the vectors of all pieces, [V, E] -> [V, D].

    Args:
      vectors: [V, E].
      size: D, E at most.
      terms: sparse [N, V], see `studies.shared.static.Corpus`: the components are those of these texts. None: those of
        the pieces, each row of length 1.
      weights: [V].
      whitening: see `principal_components`.
    """
    centred = vectors - vectors.mean(axis=0)
    if terms is None:
        return unit_rows(centred @ principal_components(vectors, size, whitening=whitening))
    units = unit_rows(centred)
    result: Array = units @ principal_components(weighted_means(terms, weights, units), size, whitening=whitening)
    return result


def beside(terms: Any, weights: Array, parts: Sequence[tuple[Array, float]]) -> Array:
    """Several vectors of each piece as one, so that each part has its share of the variance of texts.

    Args:
      terms: sparse [N, V], see `studies.shared.static.Corpus`; None takes the variance of the pieces.
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
    """
    if kind == "none":
        return np.ones(pieces)
    if kind == "idf" and texts is not None:
        weights: Array = np.log((1 + texts[-1]) / (1 + texts[:-1])) + 1
        return weights
    if kind == "zipf" or counts is None:
        counts = 1.0 / np.arange(2, pieces + 2)
    shares = counts / max(counts.sum(), 1)
    result: Array = _SMOOTHING / (_SMOOTHING + shares)
    return result


def frequent_words(articles: Iterator[ArticleText], count: int, known: Collection[str]) -> list[str]:
    """The most frequent words of some articles that are not pieces yet, at most `count`; ties in the order of letters.

    Words are what newsembed's own tokenizer cuts into pieces. Those that occur less than 3 times are left out.
    """
    from ...tasks.vocabulary import normalize_for_learning

    counts: Counter[str] = Counter()
    for chunk in chunks(articles):
        for text in normalize_for_learning([part for article in chunk for part in (article.title, article.body)]):
            counts.update(text.split(" "))
    known = {*known, ""}
    found = [(-number, word) for word, number in counts.items() if number >= _LEAST_COUNT and word not in known]
    return [word for _, word in sorted(found)[:count]]


def piece_rows(
    own: "Vocabulary", pieces: Sequence[str], *, is_own: bool, max_length: int
) -> list[npt.NDArray[np.int32]]:
    """The row by which an encoder reads each piece, ``[CLS] … [SEP]``, int32.

    A piece that the encoder knows is its id. Another one is cut by the encoder's tokenizer, without the mark of its
    vocabulary that it continues a word.

    Args:
      own: the encoder's vocabulary.
      pieces: to be read.
      is_own: whether they are those of `own`, in its order.
      max_length: of a row.
    """
    ids = {piece: token for token, piece in enumerate(own.pieces)} if own.tokenizer is None else {}
    known = range(len(pieces)) if is_own else [ids.get(piece) for piece in pieces]
    rows: list[Any] = [None if token is None else np.array([CLS_ID, token, SEP_ID], np.int32) for token in known]
    others = [number for number, row in enumerate(rows) if row is None]
    texts = [pieces[number].removeprefix(CONTINUATION) or pieces[number] for number in others]
    for number, row in zip(others, own.encode_documents(texts, [""] * len(texts), max_length), strict=True):
        rows[number] = row
    return rows
