"""The token table that a model may start from: latent semantic analysis of some of its texts (Deerwester et al. 1990).

Random vectors carry no meaning: word pieces of the same texts start as far apart as any others, and a few hundred steps
on pairs of articles move only some of them. The singular vectors of the matrix of texts by pieces are close for such
pieces from the start. They need no labels and take less than a minute. A static model, which has no layers, knows
nothing else about its pieces.
"""

from collections.abc import Iterator
from typing import Any, Final

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.vocabulary import PAD_ID
from ..learning.batches import Batch
from ..learning.partitioning import Partitioner, place, replicated, shard_batch
from ..models.encoders import Architecture, Capability, require
from ..models.pooling import piece_starts

IntArray = npt.NDArray[np.integer[Any]]

# Of the singular values: between U S, where the strongest topics dominate, and U S^-1, where noise counts as much.
_POWER: Final = -0.75
_SMOOTHING: Final = 1e-3  # a, as for the weights of pieces
_LAYOUT: Final = ("tokens", "segment_ids")
_LEAST_NORM: Final = 1e-3  # of a vector, as a share of the longest: a shorter one has no direction worth keeping


def start_table(
    config: Architecture, params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh
) -> Any:
    """Computes the token table of latent semantic analysis, X = U S V^T.

    A row of X is a text, with the weight of each piece in the pooled vector, scaled to length 1. The final layer norm
    keeps the direction of a vector only, so V S^-3/4 is split: its directions become the table, its lengths go into the
    weights of the pieces. In a model with layers this is the start of the residual stream, and the pooled vectors of an
    untrained model are close to it.

    Args:
      config: the model's.
      params: on the mesh, with the weights that `piece_weights` gives.
      batches: this process's packed rows: tokens and segment_ids, each int32 [B, L].
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      `params` with `token_embedding` [V, H] and `pooling_logits` [V] replaced. Pieces that no text has keep their
      random direction, and weigh as much as the lightest known one. An architecture with plain word vectors
      (`Capability.WORD_VECTORS`) gets the table alone, see `start_from_texts`.

    Raises:
      InputError: if the architecture cannot start from such a table, or there are not more texts or pieces than the
        model is wide.
    """
    if Capability.WORD_VECTORS in config.capabilities:
        return start_from_texts(params, batches, partitioner, mesh)
    needed = (Capability.PIECE_WEIGHTS, Capability.LATENT_SEMANTICS)
    remedy = 'Set LATENT_SEMANTICS to False, or EncoderConfig.pooling = "weighted" and embedding_init = "t5".'
    require(config, *needed, by="a start from latent semantics", remedy=remedy)
    logits, table = params["pooling_logits"], params["token_embedding"]
    pieces, width = table.shape
    texts, tokens, weights = _weighed_tokens(config, params, batches, partitioner, mesh)
    whole = partitioner.wrap(jax.jit(lambda arrays: arrays, out_shardings=replicated(mesh)), mesh)
    piece_weights, directions = (np.array(array) for array in whole((logits, table)))
    vectors = piece_vectors(texts, tokens, weights, pieces, width)
    lengths = np.linalg.norm(vectors, axis=1)
    known = lengths > _LEAST_NORM * lengths.max()
    directions[known] = vectors[known] / lengths[known, None] * width**0.5
    piece_weights[known] += np.log(lengths[known] / lengths.max())
    piece_weights[~known] = piece_weights[known].min()
    return {
        **params,
        "token_embedding": place(directions.astype(np.float32), table.sharding),
        "pooling_logits": place(piece_weights.astype(np.float32), logits.sharding),
    }


def _weighed_tokens(
    config: Architecture, params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh
) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    """The text, the piece and the weight of each token, all [B, L], of all processes."""
    model = config.module()

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
    return np.cumsum(starts).reshape(starts.shape) - 1, tokens, weights


def start_from_texts(params: Any, batches: Iterator[Batch], partitioner: Partitioner, mesh: Mesh) -> Any:
    """Replaces a table of plain word vectors, `token_embedding` [V, H], by the directions of latent semantic analysis.

    A vector is as long as random ones are on average, times a / (a + p) for the share p of its piece among all tokens
    (Arora, Liang, Ma 2017): the words that all texts share start small. Pieces that no text has keep their random
    vector.

    Args:
      params: of a model with `Capability.WORD_VECTORS`, on the mesh.
      batches: as in `start_table`.
      partitioner: the axis rules.
      mesh: the devices.

    Raises:
      InputError: if there are not more texts or pieces than the model is wide.
    """
    table = params["token_embedding"]
    pieces, width = table.shape
    whole = partitioner.wrap(jax.jit(lambda arrays: arrays, out_shardings=replicated(mesh)), mesh)
    start = np.array(whole(table))
    rows = [whole(shard_batch({name: batch[name] for name in _LAYOUT}, mesh)) for batch in batches]
    tokens, segments = (np.concatenate([np.asarray(row[name]) for row in rows]) for name in _LAYOUT)
    starts = np.asarray(piece_starts(segments))
    texts = np.cumsum(starts).reshape(starts.shape) - 1
    counts = np.bincount(tokens[tokens != PAD_ID], minlength=pieces)
    rareness = _SMOOTHING / (_SMOOTHING + counts / max(1, counts.sum()))
    vectors = piece_vectors(texts, tokens, rareness[tokens] * (tokens != PAD_ID), pieces, width)
    lengths = np.linalg.norm(vectors, axis=1)
    known = lengths > _LEAST_NORM * lengths.max()
    norm = np.sqrt(np.mean(np.sum(start.astype(np.float64) ** 2, axis=1)))
    start[known] = vectors[known] / lengths[known, None] * norm * rareness[known, None]
    return {**params, "token_embedding": place(start.astype(np.float32), table.sharding)}


def piece_vectors(
    texts: IntArray, tokens: IntArray, weights: npt.NDArray[Any], vocab_size: int, size: int
) -> npt.NDArray[Any]:
    """V S^_POWER, float64 [V, size], from the text, the piece and the weight of each token, all [B, L].

    Raises:
      InputError: if there are not more texts or pieces than `size`.
    """
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import norm, svds

    count = len(np.unique(texts[weights > 0]))
    if min(count, vocab_size) <= size:
        raise InputError(
            f"got {count} texts of {vocab_size} word pieces, expected more of both than the model's width, {size}",
            field="WHITENING_ROWS",
            remedy="Raise it, give more data, or set LATENT_SEMANTICS to False.",
        )
    kept = weights > 0
    matrix = csr_array(
        (weights[kept].astype(np.float64), (texts[kept], tokens[kept])), shape=(texts.max() + 1, vocab_size)
    )
    matrix.sum_duplicates()
    matrix = diags_array(1 / np.maximum(norm(matrix, axis=1), 1e-12)) @ matrix
    _, strengths, right = svds(matrix, k=size, v0=np.random.default_rng(0).normal(size=min(matrix.shape)))
    return right.T * np.where(strengths > 0, strengths, np.inf) ** _POWER
