"""Texts to vectors by a trained model, in JAX.

Each new shape costs a compilation of a second or more, so rows are sorted into a few lengths and batched into a few
sizes.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..formats.vocabulary import PAD_ID
from ..models.encoders import Architecture
from ..tasks.vocabulary import Vocabulary
from . import shapes
from .checkpoint import Model, fresh_model, load_model
from .interface import FloatArray
from .long_documents import Row, checked
from .tokenized import TokenizedEncoder

TOKENS_PER_BATCH: Final = 16_384  # BERT-base at 512 tokens peaks near 1 GB with this many
TOKENS_PER_BATCH_ON_CPU: Final = 2_048  # fits the caches better: 12 to 17 % less CPU time than 16,384, 2 layers x 128

# What a server compiles before it needs it, of queries.
_MOST_QUERIES: Final = 32
_LONGEST_QUERY: Final = 48


class JaxEncoder(TokenizedEncoder):
    """A trained model as a :class:`TextEncoder`.

    Args:
      model: from ``checkpoint.load_model`` or ``fresh_model``.
      max_length: tokens read of each document; ``None`` takes ``model.text_length``, as many as it was trained on.
      progress: show a tqdm bar.
      document_prompt: the text before each document; ``None`` takes the model's.
      query_prompt: the text before each query; ``None`` takes the model's.
      long_documents: how documents of more tokens are read, see `long_documents`; ``None`` takes the model's.
      few_texts: on a CPU, compile in half the time, for slower programs; embeddings differ by rounding.

    Attributes:
      model: as given.
      buckets: row lengths that get compiled.
      params: the model's, on the device.
    """

    def __init__(
        self,
        model: Model,
        *,
        max_length: int | None = None,
        progress: bool = False,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        long_documents: str | None = None,
        few_texts: bool = False,
    ) -> None:
        import jax

        self.model, self.model_digest = model, model.digest
        self.max_length = min(max_length or model.text_length, model.config.max_length)
        self.buckets = shapes.length_buckets(self.max_length)
        self._progress = progress
        self.document_prompt = model.prompts.document if document_prompt is None else document_prompt
        self.query_prompt = model.prompts.query if query_prompt is None else query_prompt
        self.long_documents = checked(long_documents or model.long_documents, self.max_length)
        self.vocabulary = Vocabulary.load(model.vocabulary_path)
        self.params = jax.device_put(model.params)
        self._compiled: set[shapes.Shape] = set()
        backend = jax.default_backend()
        self._embed = _embedder(model.config, few_texts and backend == "cpu")
        self._shape_cost = shapes.SHAPE_COST.get(backend, shapes.SHAPE_COST_ON_ACCELERATORS)
        self._tokens_per_batch = TOKENS_PER_BATCH_ON_CPU if backend == "cpu" else TOKENS_PER_BATCH
        self._query_costs = shapes.QUERY_COSTS_ON_CPU if backend == "cpu" else shapes.DEFAULT_COSTS
        self._document_costs = shapes.DOCUMENT_COSTS_ON_CPU if backend == "cpu" else shapes.DEFAULT_COSTS

    @property
    def dimensions(self) -> int:
        """D."""
        return self.model.config.embedding_size

    def _embed_rows(self, rows: Sequence[Row], *, are_queries: bool) -> FloatArray:
        return self.encode_tokens(rows, self._query_costs if are_queries else None)

    def encode_tokens(self, rows: Sequence[Row], costs: shapes.BatchCosts | None = None) -> FloatArray:
        """Embeds N rows of at most ``max_length`` tokens, with [CLS] and [SEP], as float32 ``[N, D]`` of length 1.

        Args:
          rows: of tokens.
          costs: of batches; ``None`` for those of documents.
        """
        embeddings = np.zeros((len(rows), self.dimensions), np.float32)
        if not rows:
            return embeddings
        with self._bar(len(rows)) as bar:
            lengths = [len(row) for row in rows]
            plan = shapes.plan(
                lengths,
                self.max_length,
                tokens_per_batch=self._tokens_per_batch,
                compiled=self._compiled,
                shape_cost=self._shape_cost,
                batch_costs=costs or self._document_costs,
            )
            for numbers, tokens in shapes.batches(rows, plan):
                embeddings[numbers] = np.asarray(self._embed(self.params, tokens))[: len(numbers)]
                self._compiled.add(tokens.shape)
                bar.update(len(numbers))
        return embeddings

    def preparations(self) -> Iterator[Callable[[], None]]:
        """Functions that compile one shape each; with few shapes no request has to compile, which takes seconds."""
        lengths: tuple[int, ...] = self.buckets
        queries: tuple[int, ...] = (min(shapes.SHORTEST, self.max_length), self.buckets[0])
        if self._tokens_per_batch == TOKENS_PER_BATCH_ON_CPU:  # where each position costs time
            lengths = shapes.row_lengths(self.max_length)
            queries = tuple(length for length in lengths if length <= _LONGEST_QUERY) or lengths[:1]
        wanted = list(itertools.product(shapes.heights(_MOST_QUERIES, self._query_costs.height_step), queries))
        for length in lengths:
            full = max(1, self._tokens_per_batch // length)
            wanted += ((height, length) for height in shapes.heights(full, self._document_costs.height_step))
        yield from (functools.partial(self._prepare, shape) for shape in dict.fromkeys(wanted))

    def _prepare(self, shape: shapes.Shape) -> None:
        self._embed(self.params, np.full(shape, PAD_ID, np.int32)).block_until_ready()
        self._compiled.add(shape)

    def tokenize(self, titles: Sequence[str], bodies: Sequence[str]) -> list[Row]:
        """``[CLS] title [SEP] body [SEP]`` of every document, int32 of at most ``max_length``; adds no prompt."""
        return self.vocabulary.encode_documents(titles, bodies, self.max_length)

    def _bar(self, total: int) -> Any:
        from tqdm import tqdm

        return tqdm(total=total, unit="text", desc="embed", disable=None if self._progress else True)


def load_encoder(folder: str, step: int | None = None, **options: Any) -> JaxEncoder:
    """The encoder of a training folder or safetensors export; the last checkpoint if no ``step`` is given.

    Args:
      folder: of the model.
      step: of the checkpoint.
      options: of :class:`JaxEncoder`.

    Raises:
      InputError: see ``checkpoint.load_model``.
    """
    return JaxEncoder(load_model(folder, step), **options)


def fresh_encoder(folder: str, seed: int = 0, **options: Any) -> JaxEncoder:
    """The same architecture and vocabulary with untrained parameters; `options` are those of :class:`JaxEncoder`.

    Raises:
      InputError: see ``checkpoint.fresh_model``.
    """
    return JaxEncoder(fresh_model(folder, seed), **options)


@functools.cache
def _embedder(config: Architecture, compiles_quickly: bool) -> Any:
    """Compiled ``(params, tokens) -> embeddings``; models of one architecture share their compilations."""
    import jax

    def embed(params: Any, tokens: Any) -> Any:
        return config.module().apply({"params": params}, tokens, method="embed")

    return jax.jit(embed, compiler_options={"xla_backend_optimization_level": 0} if compiles_quickly else None)
