"""The interface of encoders for benchmarks (documents in, vectors out), TF-IDF, and the cache of embeddings.

A benchmark passes *all* of its documents to one ``encode`` call. So an encoder may use statistics of the collection, as
TF-IDF does, and the cache needs one key for each benchmark.
"""

import dataclasses
import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import InputError, refusing
from ..formats.arrays import read_arrays, write_arrays

# Dense float32 [N, D] or a SciPy CSR matrix of the same shape and dtype (SciPy has no types to name).
Embeddings = Any

WORD_PATTERN: Final = r"(?u)\b\w+\b"  # scikit-learn's default drops one-letter words, which matter outside English

_MOST_WORDS: Final = 1 << 18


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A text to embed; either part may be empty, but not both.

    Attributes:
      is_query: whether it is a query without a title, for which a model may have another prompt.
    """

    title: str
    body: str
    is_query: bool = False

    @property
    def text(self) -> str:
        """Both parts as one text, the title on its own line."""
        return f"{self.title}\n{self.body}".strip()


class Encoder(Protocol):
    """Anything that maps documents to vectors."""

    @property
    def digest(self) -> str:
        """Identifies the encoder's state: it differs whenever the embeddings of the same documents may differ."""

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns the embeddings of ``N`` documents: float32 ``[N, D]``, dense or CSR, not necessarily normalised."""


@dataclasses.dataclass(frozen=True, slots=True)
class Encoded:
    """Checked embeddings of one benchmark's documents, and the time they took.

    Attributes:
      embeddings: float32 ``[N, D]`` of unit length (rows of zeros stay zero), dense or CSR.
      seconds: wall time of ``encode``; if ``from_cache``, of the run that filled the cache.
      from_cache: whether the embeddings were read from disk.
    """

    embeddings: Embeddings
    seconds: float
    from_cache: bool


class TfidfEncoder:
    """TF-IDF over words, the baseline that any news encoder must beat.

    Term weights are ``(1 + log tf) * idf``. idf is computed from the documents to embed, which favours the baseline.
    """

    digest: Final = f"tfidf-words-sublinear-{_MOST_WORDS}"

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns CSR float32 ``[N, words]``, rows of unit length.

        Raises:
          InputError: if no document contains a word.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(
            sublinear_tf=True, max_features=_MOST_WORDS, token_pattern=WORD_PATTERN, dtype=np.float32
        )
        with refusing("TF-IDF found no words:", ValueError, remedy="give documents with text"):
            return vectorizer.fit_transform(document.text for document in documents)


def encode_checked(encoder: Encoder, documents: Sequence[Document], cache: str | None = None) -> Encoded:
    """Embeds ``documents``, checks the result and normalises it; reads and fills the cache folder if one is given.

    Args:
      encoder: the encoder.
      documents: all documents of a benchmark.
      cache: folder of embeddings by content digest; created if missing.

    Raises:
      InputError: if there are no documents or a document is empty, or if the embeddings have a wrong number of rows or
        rank, NaN or infinity.
    """
    if not documents:
        raise InputError("no documents to embed", remedy="give a file with at least one document")
    if empty := [str(number) for number, document in enumerate(documents) if not document.text]:
        problem = f"{len(empty)} of {len(documents)} documents are empty (0-based numbers {', '.join(empty[:5])})"
        raise InputError(problem, remedy="remove them from the benchmark")
    path = None if cache is None else os.path.join(cache, f"{_content_digest(encoder.digest, documents)}.npz")
    if path is not None and (hit := _read_cache(path, len(documents))) is not None:
        return hit
    started = time.perf_counter()
    embeddings = encoder.encode(documents)
    seconds = time.perf_counter() - started
    encoded = Encoded(normalised(_checked(embeddings, len(documents))), seconds, from_cache=False)
    if path is not None:
        _write_cache(path, encoded)
    return encoded


def normalised(embeddings: Embeddings) -> Embeddings:
    """Returns the rows scaled to unit length as float32; rows of zeros stay zero."""
    from scipy import sparse

    if sparse.issparse(embeddings):
        from sklearn.preprocessing import normalize

        return normalize(embeddings.tocsr().astype(np.float32))
    dense = np.asarray(embeddings, np.float32)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(norms > 0, norms, 1).astype(np.float32)


def dense_rows(embeddings: Embeddings) -> npt.NDArray[np.float32]:
    """Returns embeddings, or products of them, as a dense float32 array."""
    from scipy import sparse

    return np.asarray(embeddings.toarray() if sparse.issparse(embeddings) else embeddings, np.float32)


def cosine_similarities(first: Embeddings, second: Embeddings) -> npt.NDArray[np.float32]:
    """Returns the cosines ``[N, M]``, dense, between the rows of two normalised matrices, dense or CSR."""
    return dense_rows(first @ second.T)


def paired_cosines(first: Embeddings, second: Embeddings) -> npt.NDArray[np.float32]:
    """Returns the cosines ``[N]`` between row i of one normalised matrix and row i of another, dense or CSR."""
    from scipy import sparse

    product = first.multiply(second) if sparse.issparse(first) else first * second
    return np.asarray(product.sum(axis=1), np.float32).reshape(-1)


def _checked(embeddings: Embeddings, rows: int) -> Embeddings:
    from scipy import sparse

    is_sparse = sparse.issparse(embeddings)
    matrix = embeddings if is_sparse else np.asarray(embeddings)
    if matrix.ndim != 2 or matrix.shape[0] != rows:
        problem = f"the encoder returned an array of shape {matrix.shape} for {rows} documents, expected [{rows}, D]"
        raise InputError(problem, remedy="fix the encoder: one row for each document, in order")
    if bad := int((~np.isfinite(matrix.data if is_sparse else matrix)).sum()):
        problem = f"the encoder returned {bad} values of NaN or infinity in {rows} rows"
        raise InputError(problem, remedy="use a checkpoint from before training diverged")
    return matrix


def _content_digest(encoder_digest: str, documents: Iterable[Document]) -> str:
    digest = hashlib.sha256(encoder_digest.encode())
    for document in documents:
        for text in ("\0query" if document.is_query else document.title, document.body):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()[:32]


def _read_cache(path: str, rows: int) -> Encoded | None:
    from scipy import sparse

    try:
        found = read_arrays(path)
        seconds, embeddings = float(found["seconds"]), found.get("dense")
        if embeddings is None:
            parts = (found["data"], found["indices"], found["indptr"])
            embeddings = sparse.csr_matrix(parts, found["shape"])
    except (InputError, ValueError, KeyError):
        return None  # absent or damaged: embed again and overwrite
    return Encoded(embeddings, seconds, from_cache=True) if embeddings.shape[0] == rows else None


def _write_cache(path: str, encoded: Encoded) -> None:
    from scipy import sparse

    matrix = encoded.embeddings
    names = ("data", "indices", "indptr", "shape") if sparse.issparse(matrix) else ()
    arrays = {name: np.asarray(getattr(matrix, name)) for name in names} or {"dense": matrix}
    write_arrays(path, arrays | {"seconds": np.array(encoded.seconds)})
