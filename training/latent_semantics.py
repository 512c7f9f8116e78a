"""The table of vectors that a model may start from: latent semantic analysis of some of its texts (Deerwester et al. 1990).

Random vectors say nothing of two word pieces: those that stand in the same texts start as far apart as any others, and some hundred steps on
pairs of articles reach a few of them. The singular vectors of the matrix of texts by pieces put them side by side from the start. It needs no
labels and takes less than a minute. A static model, without layers, knows of its pieces nothing else.
"""

from collections.abc import Iterator
from typing import Any, Final

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.vocabulary import PAD_ID
from ..models.encoders.news import NewsEncoder
from ..models.pooling import piece_starts
from .batches import Batch
from .partitioning import Partitioner, place, replicated, shard_batch

IntArray = npt.NDArray[np.integer[Any]]

_POWER: Final = (
    -0.75
)  # of the singular values: between U S, which the strongest topics rule, and U S^-1, to which noise counts as much
_LEAST_NORM: Final = 1e-3  # of a vector, by the longest: what is shorter has no direction worth keeping


def start_table(model: NewsEncoder, params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh) -> Any:
    """The parameters with the table of latent semantic analysis, X = U S V^T.

    A row of X is a text: of each piece how much its tokens count in what the heads read, scaled to length 1. The final layer norm leaves a
    vector's direction alone, so V S^-3/4 is split: its directions are the table, its lengths go into the weights of the pieces. With layers this
    is where the residual stream begins, and what the heads read at first is close to it.

    Args:
      model: the encoder; ``pooling="weighted"`` and ``embedding_init="t5"``.
      params: on the mesh, with the weights that `piece_weights` gives.
      batches: this process's packed rows: tokens and segment_ids, each int32 [B, L].
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      `params` with `token_embedding` [V, H] and `pooling_logits` [V] replaced. Pieces that no text has keep their random direction, and weigh as
      much as the lightest that has one.

    Raises:
      InputError: if the model pools or starts otherwise, or there are not more texts or pieces than the model is wide.
    """
    config = model.config
    if (config.pooling, config.embedding_init) != ("weighted", "t5"):
        raise InputError(
            f"got pooling = {config.pooling} and embedding_init = {config.embedding_init}, expected weighted and t5",
            field="train.latent_semantics",
            remedy="Set it to False: only a wide table whose pieces are weighted starts from latent semantics.",
        )

    def weighed(params: Any, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        tokens, segments = batch["tokens"], batch["segment_ids"]
        weights = model.apply({"params": params}, tokens, segments, method="token_weights")
        return tokens, piece_starts(segments), weights * (tokens != PAD_ID)

    # Every process decomposes the texts of all of them.
    weighed_of = partitioner.wrap(jax.jit(weighed, out_shardings=replicated(mesh)), mesh)
    parts = [
        weighed_of(params, shard_batch({name: batch[name] for name in ("tokens", "segment_ids")}, mesh))
        for batch in batches
    ]
    tokens, starts, weights = (np.concatenate([np.asarray(part[number]) for part in parts]) for number in range(3))
    texts = np.cumsum(starts).reshape(starts.shape) - 1
    count = len(np.unique(texts[weights > 0]))
    if min(count, config.vocab_size) <= config.hidden_size:
        raise InputError(
            f"got {count} texts of {config.vocab_size} word pieces, expected more of both than the model's width, {config.hidden_size}",
            field="train.whitening_rows",
            remedy="Raise it, give more data, or set train.latent_semantics to False.",
        )
    logits, table = params["pooling_logits"], params["token_embedding"]
    whole = partitioner.wrap(jax.jit(lambda arrays: arrays, out_shardings=replicated(mesh)), mesh)
    piece_weights, directions = (np.array(array) for array in whole((logits, table)))
    vectors = _piece_vectors(texts, tokens, weights, config.vocab_size, config.hidden_size)
    lengths = np.linalg.norm(vectors, axis=1)
    known = lengths > _LEAST_NORM * lengths.max()
    directions[known] = vectors[known] / lengths[known, None] * config.hidden_size**0.5
    piece_weights[known] += np.log(lengths[known] / lengths.max())
    piece_weights[~known] = piece_weights[known].min()
    return {
        **params,
        "token_embedding": place(directions.astype(np.float32), table.sharding),
        "pooling_logits": place(piece_weights.astype(np.float32), logits.sharding),
    }


def _piece_vectors(
    texts: IntArray, tokens: IntArray, weights: npt.NDArray[Any], vocab_size: int, size: int
) -> npt.NDArray[Any]:
    """V S^_POWER, float64 [V, size], of texts by the number, the piece and the weight of each token, all [B, L]."""
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import norm, svds

    kept = weights > 0
    matrix = csr_array(
        (weights[kept].astype(np.float64), (texts[kept], tokens[kept])), shape=(texts.max() + 1, vocab_size)
    )
    matrix.sum_duplicates()
    matrix = diags_array(1 / np.maximum(norm(matrix, axis=1), 1e-12)) @ matrix
    _, strengths, right = svds(matrix, k=size, v0=np.random.default_rng(0).normal(size=min(matrix.shape)))
    return right.T * np.where(strengths > 0, strengths, np.inf) ** _POWER
