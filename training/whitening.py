"""The embedding head that a pretrained encoder starts from: the whitening of its pooled vectors.

Pretraining gives the head no gradient, and the pooled vectors of a masked language model share a few strong directions
(its language, its most frequent words) that hide the differences between documents. Whitening gives every direction the
same weight (Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval"; Huang et
al. 2021). As weights of the dense head it costs nothing when serving, and contrastive training starts from a
well-conditioned space.
"""

from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from ..errors import InputError
from ..learning.batches import Batch
from ..learning.partitioning import Partitioner, place, replicated, shard_batch
from ..models.encoders import Architecture, Capability, require
from ..models.pooling import piece_starts

_LEAST_TOKENS: Final = 16  # a shorter piece is the cut end of a document
_RIDGE: Final = 1e-3  # of the mean variance, added to each: directions that hardly vary are noise


def whiten_embedding_head(
    config: Architecture, params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh
) -> Any:
    """Computes the embedding head x -> (x - mean) U diag(1 / sqrt(variance)) / sqrt(D).

    Args:
      config: the model's.
      params: its parameters on the mesh.
      batches: this process's packed rows: tokens, segment_ids and positions, each int32 [B, L].
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      `params` with the kernel [H, D] and bias [D] of the head replaced; U holds the D directions of most variance, and
      where D exceeds H the rest of the embedding is 0.

    Raises:
      InputError: if the architecture has no head that can be whitened, or there are fewer pieces than directions.
    """
    check_whitening(config)
    model, head = config.module(), params["embedding_head"]
    width, size = head["kernel"].shape

    def moments(params: Any, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns the count, sum [H] and sum of products [H, H] of the pieces of a batch that are long enough."""
        segments = batch["segment_ids"]
        hidden = model.apply({"params": params}, batch["tokens"], segments, batch["positions"], method="encode")
        pooled = model.apply({"params": params}, hidden, batch["tokens"], segments, method="pool_pieces")
        lengths = jnp.sum(segments[:, :, None] == segments[:, None, :], axis=-1)
        chosen = (piece_starts(segments) & (segments > 0) & (lengths >= _LEAST_TOKENS)).astype(jnp.float32)
        return (
            jnp.sum(chosen),
            jnp.einsum("bl,blh->h", chosen, pooled),
            jnp.einsum("bl,blh,blk->hk", chosen, pooled, pooled),
        )

    moments_of = partitioner.wrap(jax.jit(moments, out_shardings=replicated(mesh)), mesh)
    count, total, products = np.zeros(()), np.zeros(width), np.zeros((width, width))
    for batch in batches:
        part = moments_of(
            params, shard_batch({name: batch[name] for name in ("tokens", "segment_ids", "positions")}, mesh)
        )
        # Added up in float64: the covariance is a small difference of large sums.
        count, total, products = (
            so_far + np.asarray(more, np.float64) for so_far, more in zip((count, total, products), part, strict=True)
        )
    if count <= width:
        raise InputError(
            f"got {int(count)} pieces of at least {_LEAST_TOKENS} tokens, expected more than the model's width, "
            f"{width}",
            field="WHITENING_ROWS",
            remedy="Raise it, give more data, or set it to 0 to leave the head at random.",
        )
    mean = total / count
    kernel, bias = _head(mean, products / count - np.outer(mean, mean), size)
    new = {
        name: place(values.astype(np.float32), head[name].sharding)
        for name, values in (("kernel", kernel), ("bias", bias))
    }
    return {**params, "embedding_head": new}


def check_whitening(config: Architecture) -> None:
    """Refuses an architecture whose embedding head cannot be whitened.

    Raises:
      InputError: naming what it lacks.
    """
    remedy = "Set WHITENING_ROWS to 0, or choose another architecture."
    require(config, Capability.SEQUENCE, Capability.POOLED_PIECES, by="whitening (WHITENING_ROWS)", remedy=remedy)


def _head(mean: np.ndarray, covariance: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    variances, directions = np.linalg.eigh(covariance)
    strongest = slice(None, None, -1)
    variances, directions = np.maximum(variances[strongest][:size], 0.0), directions[:, strongest][:, :size]
    kernel = directions / np.sqrt((variances + _RIDGE * np.trace(covariance) / len(mean)) * size)
    kernel = np.pad(kernel, ((0, 0), (0, size - kernel.shape[1])))
    return kernel, -mean @ kernel
