"""A map: embeddings in two dimensions, near ones near each other."""

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
_DENSE_DIMENSIONS: Final = 50  # sparse and wide vectors are reduced to these first, as scikit-learn advises for t-SNE
_PERPLEXITY: Final = 30.0
_NEIGHBORS: Final = 15
_WORTH_THREADS: Final = 1_000


def project(embeddings: Embeddings, method: Method = "tsne", seed: int = 0) -> npt.NDArray[np.float32]:
    """float32 ``[N, 2]`` with the mean at 0, the axes in no unit.

    On unit vectors Euclidean distances rank pairs as cosines do, so both methods measure those. Wide or sparse vectors pass a truncated SVD to 50
    dimensions first.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR, N >= 5.
      method: "tsne" (van der Maaten and Hinton 2008, scikit-learn's) or "umap" (McInnes et al. 2018, umap-learn's, where it is installed).
      seed: the same seed gives the same map on one machine.

    Raises:
      InputError: on fewer articles, an unknown method, or if umap-learn is not installed.
    """
    rows = embeddings.shape[0]
    if rows < FEWEST:
        raise InputError(f"a map of {rows} articles shows nothing", remedy=f"give at least {FEWEST}")
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

    # PCA begins with it, and where all points are one there is no direction to begin with.
    spread = bool((points.std(axis=0) > 0).sum() >= 2)
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    # Few points are done before the threads have met.
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
        warnings.simplefilter("ignore")  # it says that a seed costs it its threads
        neighbors = min(_NEIGHBORS, len(points) - 1)
        init = "spectral" if len(points) > 4 * neighbors else "random"
        return np.asarray(
            umap.UMAP(n_neighbors=neighbors, init=init, random_state=seed, n_jobs=1).fit_transform(points)
        )
