"""A map: embeddings in two dimensions, similar articles close to each other."""

import importlib
import importlib.util
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..encoders import Embeddings

Method = Literal["tsne", "umap"]
METHODS: Final[tuple[Method, ...]] = ("tsne", "umap")
FEWEST: Final = 5
_DENSE_DIMENSIONS: Final = 50  # wider vectors are reduced to 50 dimensions first, as scikit-learn advises for t-SNE
_PERPLEXITY: Final = 30.0
_NEIGHBORS: Final = 15
_WORTH_THREADS: Final = 1_000


def project(embeddings: Embeddings, method: Method = "tsne", seed: int = 0) -> npt.NDArray[np.float32]:
    """Returns float32 ``[N, 2]`` with mean 0; the axes have no unit.

    On unit vectors Euclidean distances rank pairs as cosines do, so both methods use Euclidean distances. Wide vectors
    are first reduced to 50 dimensions by a truncated SVD.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR, N >= 5.
      method: "tsne" (van der Maaten and Hinton 2008, by scikit-learn) or "umap" (McInnes et al. 2018, by umap-learn, if
        installed).
      seed: the same seed gives the same map on the same machine.

    Raises:
      InputError: on fewer than 5 articles, an unknown method, or if umap-learn is not installed.
    """
    rows = embeddings.shape[0]
    if rows < FEWEST:
        raise InputError(f"{rows} articles are too few for a map", remedy=f"give at least {FEWEST}")
    points = _reduced(embeddings, seed)
    if method == "tsne":
        placed = _tsne(points, seed)
    elif method == "umap":
        placed = _umap(points, seed)
    else:
        raise InputError(f"got {method!r}", field="--projection", remedy=f"choose one of {', '.join(METHODS)}")
    return np.asarray(placed - placed.mean(axis=0), np.float32)


def _reduced(embeddings: Embeddings, seed: int) -> npt.NDArray[np.float32]:
    from scipy import sparse

    if embeddings.shape[1] <= _DENSE_DIMENSIONS:
        return np.asarray(embeddings.toarray() if sparse.issparse(embeddings) else embeddings, np.float32)
    from sklearn.decomposition import TruncatedSVD

    dimensions = min(_DENSE_DIMENSIONS, embeddings.shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):  # equal vectors have no variance to explain
        return np.asarray(TruncatedSVD(dimensions, random_state=seed).fit_transform(embeddings), np.float32)


def _tsne(points: npt.NDArray[np.float32], seed: int) -> npt.NDArray[np.float32]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    # The initial positions are from a PCA, which needs two directions in which the points differ.
    spread = bool((points.std(axis=0) > 0).sum() >= 2)
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    # On few points, threads wait longer than they work.
    with threadpool_limits(1 if len(points) < _WORTH_THREADS else None):
        return np.asarray(
            TSNE(perplexity=perplexity, init="pca" if spread else "random", random_state=seed).fit_transform(points)
        )


def _umap(points: npt.NDArray[np.float32], seed: int) -> npt.NDArray[np.float32]:
    if importlib.util.find_spec("umap") is None:
        raise InputError(
            "umap-learn is not installed", field="--projection", remedy="pip install umap-learn, or choose tsne"
        )
    import warnings

    umap = importlib.import_module("umap")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that a seed disables its threads
        neighbors = min(_NEIGHBORS, len(points) - 1)
        init = "spectral" if len(points) > 4 * neighbors else "random"
        return np.asarray(
            umap.UMAP(n_neighbors=neighbors, init=init, random_state=seed, n_jobs=1).fit_transform(points)
        )
