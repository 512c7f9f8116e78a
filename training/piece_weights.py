"""The weights of word pieces that weighted pooling starts from: rare pieces count most.

Pretraining gives these weights no gradient. Events differ by their names and numbers, which a plain mean hides among
the words that all news share. With smooth inverse frequency (Arora, Liang, Ma 2017, "A Simple but Tough-to-Beat
Baseline for Sentence Embeddings") even a mean of untrained vectors retrieves. Contrastive training then moves each
weight on its own.
"""

from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from ..formats.vocabulary import PAD_ID
from ..learning.batches import Batch
from ..learning.partitioning import Partitioner, place, replicated, shard_batch

_SMOOTHING: Final = 1e-3  # a of the paper's a / (a + p), within the range that it found best


def weigh_pieces(params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh) -> Any:
    """Computes `pooling_logits` = log(a / (a + p)), where p is the share of each piece among all tokens.

    Args:
      params: of a model with `Capability.PIECE_WEIGHTS`, on the mesh.
      batches: this process's rows: tokens, int32 [B, L].
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      `params` with these logits, float32 [V], replaced. A piece that never occurs counts most.
    """
    before = params["pooling_logits"]

    def count(tokens: jax.Array) -> jax.Array:
        return jnp.zeros(before.shape, jnp.int32).at[tokens].add(tokens != PAD_ID)

    count_of = partitioner.wrap(jax.jit(count, out_shardings=replicated(mesh)), mesh)
    counts = np.zeros(before.shape, np.int64)
    for batch in batches:
        counts += np.asarray(count_of(shard_batch({"tokens": batch["tokens"]}, mesh)["tokens"]))
    shares = counts / max(1, counts.sum())
    return {**params, "pooling_logits": place(-np.log1p(shares / _SMOOTHING).astype(np.float32), before.sharding)}
