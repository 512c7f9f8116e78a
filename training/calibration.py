"""Parameters that a run computes from some of its texts, or from a file, instead of training them.

* Weights of word pieces for weighted pooling: rare pieces count most. Pretraining gives these weights no gradient.
  Events differ by their names and numbers, which a plain mean hides among the words that all news share. With smooth
  inverse frequency (Arora, Liang, Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings") a mean of
  untrained vectors retrieves. Contrastive training then moves each weight on its own.
* The embedding head of a pretrained encoder: the whitening of its pooled vectors. Pretraining gives the head no
  gradient, and the pooled vectors of a masked language model share a few strong directions (its language, its most
  frequent words) that hide the differences between documents. Whitening gives every direction the same weight (Su et
  al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval"; Huang et al. 2021). As
  weights of the dense head it costs nothing when serving.
* The token table: latent semantic analysis of some texts (Deerwester et al. 1990). Random vectors carry no meaning, and
  a few hundred steps on pairs of articles move only some of them. The singular vectors of the matrix of texts by pieces
  are close for pieces of the same texts from the start. They need no labels and take less than a minute.
* A table of plain word vectors from a file, such as GloVe (Pennington et al. 2014).
* The bias of an auto-encoder's decoder: the log odds that a text has each word.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.arrays import WordVectorFile
from ..formats.vocabulary import PAD_ID
from ..learning.batches import Batch
from ..learning.mixture import MixtureBatches
from ..learning.partitioning import Partitioner, place, shard_batch
from ..models.attention import piece_starts
from ..models.encoders import Architecture, Capability, require
from ..tasks import registry
from .options import CalibrationOptions

IntArray = npt.NDArray[np.integer[Any]]

_SMOOTHING: Final = 1e-3  # a of a / (a + p), within the range that Arora et al. found best
_LEAST_TOKENS: Final = 16  # a shorter piece is the cut end of a document
_RIDGE: Final = 1e-3  # of the mean variance, added to each: directions that hardly vary are noise
_PRIOR: Final = 0.5  # texts with the word and without it that are counted beforehand: no odds are 0 or infinite
# Of the singular values: between U S, where the strongest topics dominate, and U S^-1, where noise counts as much.
_POWER: Final = -0.75
_LEAST_NORM: Final = 1e-3  # of a vector, as a share of the longest: a shorter one has no direction worth keeping


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Computes parameters of a model on the mesh; each method returns them with some arrays replaced.

    Attributes:
      config: the model's.
      partitioner: the axis rules.
      mesh: the devices.
      rows: opens this process's packed rows, tokens, segment_ids and positions, each int32 [B, L], see `first_rows`;
        from the start at each call.
      options: what is computed.
      pieces: of the vocabulary, V.
      is_pretraining: whether the run leaves the head untrained, so that it is computed after the last step.
    """

    config: Architecture
    partitioner: Partitioner
    mesh: Mesh
    rows: Callable[[], Iterator[Batch]]
    options: CalibrationOptions = CalibrationOptions()
    pieces: Sequence[str] = ()
    is_pretraining: bool = False

    def started(self, params: Any) -> Any:
        """Returns the parameters that a run starts from, instead of random ones."""
        if self.options.word_vectors:
            params, count = self.with_word_vectors(params, self.options.word_vectors, self.pieces)
            print(f"WORD_VECTORS: {count:,} of {len(self.pieces):,} pieces start from {self.options.word_vectors}")
        if self.options.whitening_rows and not self.is_pretraining:
            params = self.calibrated(params, latent_semantics=self.options.latent_semantics)
        return params

    def finished(self, params: Any) -> Any:
        """Returns the parameters that a run ends with."""
        return self.calibrated(params) if self.options.whitening_rows and self.is_pretraining else params

    def calibrated(self, params: Any, *, latent_semantics: bool = False) -> Any:
        """Computes piece weights and a head that whitens, where the model has them, and a token table if asked for.

        Of an auto-encoder it computes the bias of the decoder.

        Raises:
          InputError: if the architecture lacks what is asked for, or there are too few texts.
        """
        capabilities = self.config.capabilities
        if Capability.RECONSTRUCTION in capabilities:
            return self.with_decoder_bias(params)
        if Capability.PIECE_WEIGHTS in capabilities:
            params = self.with_piece_weights(params)
        if latent_semantics:
            params = self.with_token_table(params)
        return self.with_whitened_head(params) if Capability.POOLED_PIECES in capabilities else params

    def with_piece_weights(self, params: Any) -> Any:
        """Computes `pooling_logits` [V] = log(a / (a + p)), where p is the share of each piece among all tokens.

        A piece that never occurs counts most.
        """
        before = params["pooling_logits"]

        def count(tokens: jax.Array) -> tuple[jax.Array]:
            return (jnp.zeros(before.shape, jnp.int32).at[tokens].add(tokens != PAD_ID),)

        (counts,) = self._sums(count, "tokens")
        logits = -np.log1p(counts / max(1, counts.sum()) / _SMOOTHING)
        return {**params, "pooling_logits": _like(before, logits)}

    def with_decoder_bias(self, params: Any) -> Any:
        """Computes `decoder_bias` [V] = log(p / (1 - p)), where p is the share of the texts that have the word.

        Each row is one text. Padding and a text of nothing but padding are not counted.
        """
        before = params["decoder_bias"]

        def count(tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
            has = jax.vmap(lambda row: jnp.zeros(before.shape, jnp.int32).at[row].set(1))(tokens)
            return jnp.sum(has, axis=0), jnp.sum(jnp.any(tokens != PAD_ID, axis=1))

        counts, texts = self._sums(count, "tokens")
        shares = (np.minimum(counts, texts) + _PRIOR) / (texts + 2 * _PRIOR)
        return {**params, "decoder_bias": _like(before, np.log(shares) - np.log1p(-shares))}

    def with_whitened_head(self, params: Any) -> Any:
        """Computes the embedding head x -> (x - mean) U diag(1 / sqrt(variance)) / sqrt(D): kernel [H, D] and bias [D].

        U holds the D directions of most variance, and where D exceeds H the rest of the embedding is 0.

        Raises:
          InputError: if the architecture has no head that can be whitened, or there are fewer pieces than directions.
        """
        check_whitening(self.config)
        model, head = self.config.module(), params["embedding_head"]
        width, size = head["kernel"].shape

        def moments(tokens: jax.Array, segments: jax.Array, positions: jax.Array, params: Any) -> tuple[jax.Array, ...]:
            """Returns the count, sum [H] and sum of products [H, H] of the pieces that are long enough."""
            hidden = model.apply({"params": params}, tokens, segments, positions, method="encode")
            pooled = model.apply({"params": params}, hidden, tokens, segments, method="pool_pieces")
            lengths = jnp.sum(segments[:, :, None] == segments[:, None, :], axis=-1)
            chosen = (piece_starts(segments) & (segments > 0) & (lengths >= _LEAST_TOKENS)).astype(jnp.float32)
            products = jnp.einsum("bl,blh,blk->hk", chosen, pooled, pooled)
            return jnp.sum(chosen), jnp.einsum("bl,blh->h", chosen, pooled), products

        count, total, products = self._sums(moments, "tokens", "segment_ids", "positions", params=params)
        if count <= width:
            problem = (
                f"got {int(count)} pieces of at least {_LEAST_TOKENS} tokens, expected more than the model's width"
            )
            remedy = "Raise it, give more data, or set it to 0 to leave the head at random."
            raise InputError(f"{problem}, {width}", field="WHITENING_ROWS", remedy=remedy)
        mean = total / count
        kernel, bias = _head(mean, products / count - np.outer(mean, mean), size)
        new = {"kernel": _like(head["kernel"], kernel), "bias": _like(head["bias"], bias)}
        return {**params, "embedding_head": new}

    def with_token_table(self, params: Any) -> Any:
        """Computes `token_embedding` [V, H] and `pooling_logits` [V] by latent semantic analysis, X = U S V^T.

        A row of X is a text, with the weight of each piece in the pooled vector, scaled to length 1. The final layer
        norm keeps the direction of a vector only, so V S^-3/4 is split: its directions become the table, its lengths go
        into the weights of the pieces. In a model with layers this is the start of the residual stream, and the pooled
        vectors of an untrained model are close to it. Pieces that no text has keep their random direction, and weigh as
        much as the lightest known one.

        An architecture with plain word vectors (`Capability.WORD_VECTORS`) gets the table alone. There a vector is as
        long as random ones are on average, times a / (a + p) for the share p of its piece: the words that all texts
        share start small.

        Raises:
          InputError: if the architecture cannot start from such a table, or there are not more texts or pieces than the
            model is wide.
        """
        has_words = Capability.WORD_VECTORS in self.config.capabilities
        if not has_words:
            needed = (Capability.PIECE_WEIGHTS, Capability.LATENT_SEMANTICS)
            remedy = 'Set LATENT_SEMANTICS to False, or EncoderConfig.pooling = "weighted" and embedding_init = "t5".'
            require(self.config, *needed, by="a start from latent semantics", remedy=remedy)
        table = params["token_embedding"]
        pieces, width = table.shape
        model = self.config.module()

        def weighed(tokens: jax.Array, segments: jax.Array, params: Any) -> tuple[jax.Array, ...]:
            if has_words:
                return tokens, segments
            weights = model.apply({"params": params}, tokens, segments, method="token_weights")
            return tokens, segments, weights

        # Every process decomposes the texts of all of them.
        parts = list(self._of_rows(weighed, "tokens", "segment_ids", params=params))
        tokens, segments, *given = (
            np.concatenate([np.asarray(one) for one in all_rows]) for all_rows in zip(*parts, strict=True)
        )
        starts = np.asarray(piece_starts(segments))
        counts = np.bincount(tokens[tokens != PAD_ID], minlength=pieces)
        rareness = _SMOOTHING / (_SMOOTHING + counts / max(1, counts.sum()))
        weights = (given[0] if given else rareness[tokens]) * (tokens != PAD_ID)
        vectors = piece_vectors(np.cumsum(starts).reshape(starts.shape) - 1, tokens, weights, pieces, width)
        lengths = np.linalg.norm(vectors, axis=1)
        known = lengths > _LEAST_NORM * lengths.max()
        start = self._whole(table)
        directions = vectors[known] / lengths[known, None]
        if has_words:
            norm = np.sqrt(np.mean(np.sum(start.astype(np.float64) ** 2, axis=1)))
            start[known] = directions * norm * rareness[known, None]
            return {**params, "token_embedding": _like(table, start)}
        start[known] = directions * width**0.5
        logits = self._whole(params["pooling_logits"])
        logits[known] += np.log(lengths[known] / lengths.max())
        logits[~known] = logits[known].min()
        return {
            **params,
            "token_embedding": _like(table, start),
            "pooling_logits": _like(params["pooling_logits"], logits),
        }

    def with_word_vectors(self, params: Any, path: str, pieces: Sequence[str]) -> tuple[Any, int]:
        """Replaces the vectors of the pieces that are words of a file, `token_embedding` [V, H], by the file's.

        A piece is looked up as written, then in lower case. Parts of words ("##ing") and pieces that the file lacks
        keep their random vector.

        Args:
          params: on the mesh.
          path: text file of word vectors of width H, see `formats.arrays`.
          pieces: of the vocabulary, V.

        Returns:
          The parameters, and the number of pieces whose vector is the file's.

        Raises:
          InputError: if the architecture has no such table, for vectors of another width, or if no piece is in the
            file.
        """
        remedy = "Leave WORD_VECTORS out, or choose StarConfig or another architecture of word vectors."
        require(self.config, Capability.WORD_VECTORS, by="a start from word vectors (WORD_VECTORS)", remedy=remedy)
        table, file = params["token_embedding"], WordVectorFile(path)
        if file.dimensions != table.shape[1]:
            raise InputError(
                f"got vectors of {file.dimensions} numbers, the model's hidden_size is {table.shape[1]}",
                path=path,
                field="WORD_VECTORS",
                remedy=f"Set {type(self.config).__name__}.hidden_size = {file.dimensions}.",
            )
        found = file.read({form for piece in pieces for form in (piece, piece.lower())})
        start, count = self._whole(table), 0
        for number, piece in enumerate(pieces):
            vector = found.get(piece, found.get(piece.lower()))
            if vector is not None:
                start[number] = vector
                count += 1
        if not count:
            remedy = "Give vectors of the language of the vocabulary."
            raise InputError("no word piece is a word of the file", path=path, field="WORD_VECTORS", remedy=remedy)
        return {**params, "token_embedding": _like(table, start)}, count

    def _sums(self, function: Callable[..., Any], *names: str, **arguments: Any) -> list[Any]:
        """The sums over all batches of what a function computes, in float64: a covariance is a difference of them."""
        parts = self._of_rows(function, *names, **arguments)
        wide = ([np.asarray(one, np.float64) for one in part] for part in parts)
        return functools.reduce(lambda sums, part: [one + two for one, two in zip(sums, part, strict=True)], wide)

    def _of_rows(self, function: Callable[..., Any], *names: str, **arguments: Any) -> Iterator[Any]:
        """Yields what a function of these features computes of each batch of all processes, whole on every device."""
        compiled = self.partitioner.compiled(
            lambda batch, given: function(*(batch[name] for name in names), **given), self.mesh
        )
        for batch in self.rows():
            yield compiled(shard_batch({name: batch[name] for name in names}, self.mesh), arguments)

    def _whole(self, array: jax.Array) -> npt.NDArray[Any]:
        """Returns a copy of an array of the devices of all processes."""
        return np.array(self.partitioner.compiled(lambda one: one, self.mesh)(array))


def first_rows(batches: MixtureBatches, count: int) -> Iterator[Batch]:
    """Texts of the first batches (`Task.text`) as packed rows: tokens, segment_ids and positions, each int32 [B, L]."""
    for number in range(count):
        draw = batches.draw(number)
        task = registry.get(draw.data_set.task)
        if task.is_packed:
            yield draw.batch
            continue
        texts = draw.batch[task.text]
        tokens = texts.reshape(len(texts), -1, texts.shape[-1])[:, 0]  # of several texts the first
        yield {
            "tokens": tokens,
            "segment_ids": (tokens != PAD_ID).astype(np.int32),
            "positions": np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape),
        }


def check_calibration(config: Architecture, options: CalibrationOptions, *, is_pretraining: bool) -> None:
    """Refuses options of the calibration that the architecture or the run cannot follow.

    Raises:
      InputError: naming the option.
    """
    has_decoder = Capability.RECONSTRUCTION in config.capabilities
    starts_table = options.latent_semantics and Capability.WORD_VECTORS in config.capabilities
    if options.whitening_rows and not has_decoder and not starts_table:
        check_whitening(config)
    if not options.latent_semantics:
        return
    if has_decoder:
        require(config, Capability.LATENT_SEMANTICS, by="LATENT_SEMANTICS", remedy="Set it to False.")
    if is_pretraining:
        remedy = "Set it to False: masked-LM steps undo it (docs/results.md)."
        raise InputError("got True in a run of pretraining", field="LATENT_SEMANTICS", remedy=remedy)
    if not options.whitening_rows:
        remedy = "Give WHITENING_ROWS, how many texts it reads."
        raise InputError("got True without texts", field="LATENT_SEMANTICS", remedy=remedy)


def check_whitening(config: Architecture) -> None:
    """Refuses an architecture whose embedding head cannot be whitened.

    Raises:
      InputError: naming what it lacks.
    """
    remedy = "Set WHITENING_ROWS to 0, or choose another architecture."
    require(config, Capability.SEQUENCE, Capability.POOLED_PIECES, by="whitening (WHITENING_ROWS)", remedy=remedy)


def piece_vectors(
    texts: IntArray, tokens: IntArray, weights: npt.NDArray[Any], vocab_size: int, size: int
) -> npt.NDArray[Any]:
    """V S^_POWER, float64 [V, size], from the text, the piece and the weight of each token, all [B, L].

    Raises:
      InputError: if there are not more texts or pieces than `size`.
    """
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import norm, svds

    kept = weights > 0
    count = len(np.unique(texts[kept]))
    if min(count, vocab_size) <= size:
        raise InputError(
            f"got {count} texts of {vocab_size} word pieces, expected more of both than the model's width, {size}",
            field="WHITENING_ROWS",
            remedy="Raise it, give more data, or set LATENT_SEMANTICS to False.",
        )
    places = texts[kept], tokens[kept]
    matrix = csr_array((weights[kept].astype(np.float64), places), shape=(texts.max() + 1, vocab_size))
    matrix.sum_duplicates()
    matrix = diags_array(1 / np.maximum(norm(matrix, axis=1), 1e-12)) @ matrix
    _, strengths, right = svds(matrix, k=size, v0=np.random.default_rng(0).normal(size=min(matrix.shape)))
    return right.T * np.where(strengths > 0, strengths, np.inf) ** _POWER


def _head(mean: np.ndarray, covariance: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    variances, directions = np.linalg.eigh(covariance)
    strongest = slice(None, None, -1)
    variances, directions = np.maximum(variances[strongest][:size], 0.0), directions[:, strongest][:, :size]
    kernel = directions / np.sqrt((variances + _RIDGE * np.trace(covariance) / len(mean)) * size)
    kernel = np.pad(kernel, ((0, 0), (0, size - kernel.shape[1])))
    return kernel, -mean @ kernel


def _like(before: jax.Array, values: np.ndarray) -> jax.Array:
    """Returns values as float32 on the devices of the array that they replace."""
    return place(values.astype(np.float32), before.sharding)
