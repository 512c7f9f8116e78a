"""Texts to vectors by a trained model, in JAX.

Each new shape costs a compilation of a second or more, so rows are sorted into a few lengths and batched into a few sizes.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ..formats.vocabulary import PAD_ID
from ..models.encoders import Architecture
from . import shapes
from .checkpoint import Model, fresh_model, load_model

SHORTEST_BUCKET: Final = 32
TOKENS_PER_BATCH: Final = 16_384  # BERT-base at 512 tokens peaks near 1 GB with this many
TOKENS_PER_BATCH_ON_CPU: Final = (
    2_048  # fits the caches better: 12 to 17 % less CPU time than 16,384 with 2 layers x 128
)
_ROW_STEP: Final = 8  # batch sizes are powers of eight up to the full one: a lone query does not pay for a full batch

FloatArray = npt.NDArray[np.float32]


class TextEncoder(Protocol):
    """What the commands and the server need of an encoder."""

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""

    @property
    def dimensions(self) -> int:
        """D."""

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        """Embeds N documents as float32 ``[N, D]`` of unit length; either part may be empty."""


class JaxEncoder:
    """A trained model as a :class:`TextEncoder`.

    Args:
      model: from ``checkpoint.load_model`` or ``fresh_model``.
      max_length: tokens read of each document; ``None`` takes ``model.text_length``, as many as it was trained on.
      progress: show a tqdm bar.

    Attributes:
      model: as given.
      max_length: tokens read of each document.
      buckets: row lengths that get compiled.
      vocabulary: the model's.
      params: the model's, on the device.
    """

    def __init__(self, model: Model, *, max_length: int | None = None, progress: bool = False) -> None:
        import jax

        from ..tasks.vocabulary import Vocabulary

        self.model = model
        self.max_length = min(max_length or model.text_length, model.config.max_length)
        self.buckets = length_buckets(self.max_length)
        self._progress = progress
        self.vocabulary = Vocabulary.load(model.vocabulary_path)
        self.params = jax.device_put(model.params)
        self._embed = _embedder(model.config)
        self._compiled: set[shapes.Shape] = set()
        backend = jax.default_backend()
        self._shape_cost = shapes.SHAPE_COST.get(backend, shapes.SHAPE_COST_ON_ACCELERATORS)
        self._tokens_per_batch = TOKENS_PER_BATCH_ON_CPU if backend == "cpu" else TOKENS_PER_BATCH

    @property
    def digest(self) -> str:
        return f"{self.model.digest}-{self.max_length}"

    @property
    def dimensions(self) -> int:
        return self.model.config.embedding_size

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        """Embeds N documents as float32 ``[N, D]`` of unit length; ``N = 0`` gives ``[0, D]``.

        Raises:
          ValueError: if there are not as many titles as bodies.
        """
        if len(titles) != len(bodies):
            raise ValueError(f"got {len(titles)} titles and {len(bodies)} bodies")
        embeddings = np.zeros((len(titles), self.dimensions), np.float32)
        if not titles:
            return embeddings
        rows = self.tokenize(titles, bodies)
        with self._bar(len(rows)) as bar:
            lengths = [len(row) for row in rows]
            plan = shapes.plan(
                lengths,
                self.max_length,
                tokens_per_batch=self._tokens_per_batch,
                compiled=self._compiled,
                shape_cost=self._shape_cost,
            )
            for numbers, shape in plan:
                embeddings[numbers] = np.asarray(self._embed(self.params, _filled(rows, numbers, shape)))[
                    : len(numbers)
                ]
                self._compiled.add(shape)
                bar.update(len(numbers))
        return embeddings

    def tokenize(self, titles: Sequence[str], bodies: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """``[CLS] title [SEP] body [SEP]`` of every document, int32 of at most ``max_length``."""
        return self.vocabulary.encode_documents(titles, bodies, self.max_length)

    def _bar(self, total: int) -> Any:
        from tqdm import tqdm

        return tqdm(total=total, unit="text", desc="embed", disable=None if self._progress else True)


class DocumentEncoder:
    """A :class:`TextEncoder` in the shape the benchmarks ask for: one argument, documents with a title and a body."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder

    @property
    def digest(self) -> str:
        return self.encoder.digest

    def encode(self, documents: Sequence[Any]) -> FloatArray:
        """Embeds documents (anything with ``title`` and ``body``) as float32 ``[N, D]``."""
        return self.encoder.encode(
            [document.title for document in documents], [document.body for document in documents]
        )


def load_encoder(
    folder: str, step: int | None = None, *, max_length: int | None = None, progress: bool = False
) -> JaxEncoder:
    """The encoder of a training folder or safetensors export; the last checkpoint if no ``step`` is given.

    Raises:
      InputError: see ``checkpoint.load_model``.
    """
    return JaxEncoder(load_model(folder, step), max_length=max_length, progress=progress)


def fresh_encoder(folder: str, seed: int = 0, *, max_length: int | None = None, progress: bool = False) -> JaxEncoder:
    """The same architecture and vocabulary with untrained parameters."""
    return JaxEncoder(fresh_model(folder, seed), max_length=max_length, progress=progress)


def length_buckets(max_length: int) -> tuple[int, ...]:
    """Row lengths that get compiled: doublings of 32 below ``max_length``, then ``max_length``.

    >>> length_buckets(200)
    (32, 64, 128, 200)
    """
    doublings = itertools.takewhile(
        lambda length: length < max_length, (SHORTEST_BUCKET << k for k in itertools.count())
    )
    return (*doublings, max_length)


def token_batches(
    rows: Sequence[npt.NDArray[np.int32]], buckets: Sequence[int], tokens_per_batch: int = TOKENS_PER_BATCH
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
    """Sorts rows into batches of few shapes, the longest first (so that memory runs out at the start or never).

    Args:
      rows: token ids, each no longer than the last bucket.
      buckets: ascending row lengths.
      tokens_per_batch: upper bound on cells of a batch, unless one row is longer.

    Yields:
      (numbers of the rows ``[n]``, tokens ``[B, L]`` int32 with L in ``buckets`` and B >= n; rows from n on are padding).
    """
    bucket_of = np.searchsorted(buckets, [len(row) for row in rows])
    for bucket in reversed(range(len(buckets))):
        length = buckets[bucket]
        members = np.flatnonzero(bucket_of == bucket)
        full = max(1, tokens_per_batch // length)
        for start in range(0, len(members), full):
            numbers = members[start : start + full]
            yield numbers, _filled(rows, numbers, (_padded_rows(len(numbers), full), length))


def _filled(
    rows: Sequence[npt.NDArray[np.int32]], numbers: npt.NDArray[np.int64], shape: shapes.Shape
) -> npt.NDArray[np.int32]:
    """The numbered rows as one batch, the rest padding."""
    tokens = np.full(shape, PAD_ID, np.int32)
    for line, number in enumerate(numbers):
        tokens[line, : len(rows[number])] = rows[number]
    return tokens


@functools.cache
def _embedder(config: Architecture) -> Any:
    """Compiled ``(params, tokens) -> embeddings``; models of one architecture share their compilations."""
    import jax

    return jax.jit(lambda params, tokens: config.module().apply({"params": params}, tokens, method="embed"))


def _padded_rows(rows: int, full: int) -> int:
    size = 1
    while size < rows:
        size *= _ROW_STEP
    return min(size, full)
