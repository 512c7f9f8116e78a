"""The bias that the decoder of an auto-encoder starts from: the log odds that a text has each word."""

from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from ..formats.vocabulary import PAD_ID
from ..learning.batches import Batch
from ..learning.partitioning import Partitioner, place, replicated, shard_batch

_PRIOR: Final = 0.5  # texts with the word and without it that are counted beforehand: no odds are 0 or infinite


def start_decoder_bias(params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh) -> Any:
    """Computes `decoder_bias` = log(p / (1 - p)), where p is the share of the texts that have the word.

    Args:
      params: of a model with `Capability.RECONSTRUCTION`, on the mesh.
      batches: this process's rows, one text each: tokens, int32 [B, L].
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      `params` with this bias, float32 [V], replaced. Padding and a text of nothing but padding are not counted.
    """
    before = params["decoder_bias"]

    def count(tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        has = jax.vmap(lambda row: jnp.zeros(before.shape, jnp.int32).at[row].set(1))(tokens)
        return jnp.sum(has, axis=0), jnp.sum(jnp.any(tokens != PAD_ID, axis=1))

    count_of = partitioner.wrap(jax.jit(count, out_shardings=replicated(mesh)), mesh)
    counts, texts = np.zeros(before.shape, np.int64), 0
    for batch in batches:
        of_words, of_texts = count_of(shard_batch({"tokens": batch["tokens"]}, mesh)["tokens"])
        counts, texts = counts + np.asarray(of_words), texts + int(of_texts)
    shares = (np.minimum(counts, texts) + _PRIOR) / (texts + 2 * _PRIOR)
    bias = np.log(shares) - np.log1p(-shares)
    return {**params, "decoder_bias": place(bias.astype(np.float32), before.sharding)}
