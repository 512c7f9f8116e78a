"""Trained models from their folders, and texts to vectors by them, in JAX.

Two kinds of folder are read: MODEL_DIR as the trainer leaves it, and the output of ``newsembed export --format
safetensors``; see ``formats.model_folder``. Each new shape costs a compilation of a second or more, so rows are sorted
into a few lengths and batched into a few sizes.
"""

import dataclasses
import functools
import importlib.util
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from ..errors import InputError
from ..formats.arrays import flatten
from ..formats.model_folder import ModelFolder
from ..formats.vocabulary import CLS_ID, PAD_ID, SEP_ID
from ..models.encoders import Architecture, Capability, config_from_dict, named_kind, require
from . import rows as shapes
from .interface import FloatArray, TokenizedEncoder
from .model import Model, described, matched
from .rows import Row

if TYPE_CHECKING:  # optional
    from .onnx_engine import OnnxEncoder

# Probabilities are [B, heads, L, L]: a layer of BERT-base at 512 tokens takes 100 MB with this many.
_OBSERVED_PER_BATCH: Final = 4_096

_NO_CLS: Final = "name the model without #cls, for its embedding"

# What a server compiles before it needs it, of queries.
_MOST_QUERIES: Final = 32
_LONGEST_QUERY: Final = 48


def load_model(folder: str, step: int | None = None) -> Model:
    """Reads the model of ``folder``.

    Args:
      folder: MODEL_DIR of the trainer, or a safetensors export.
      step: which checkpoint; ``None`` takes the last one.

    Raises:
      InputError: if the folder, a file or the step is missing, the architecture is unknown, or the parameters are of
        another one.
    """
    model = read_description(folder)
    found, step, source = ModelFolder(folder).read_params(step)

    def shapes_of(create: Callable[..., Any]) -> dict[str, tuple[int, ...]]:
        variables = jax.eval_shape(create, jax.random.key(0))
        return {name: tuple(spec.shape) for name, spec in flatten(nn.meta.unbox(variables["params"])).items()}

    with_heads = functools.partial(shapes_of, lambda key: model.config.module().init(key, np.zeros((1, 2), np.int32)))
    params = matched(found, shapes_of(_initializer(model.config)), source, with_heads)
    return model.with_params(params, step, named_kind(model.config))


def fresh_model(folder: str, seed: int = 0) -> Model:
    """The architecture and vocabulary of ``folder`` with parameters drawn from ``seed``: the untrained baseline."""
    model = read_description(folder)
    variables = _initializer(model.config)(jax.random.key(seed))
    params = jax.tree.map(np.asarray, nn.meta.unbox(variables["params"]))
    return model.with_params(params, -1, named_kind(model.config))


def read_description(folder: str) -> Model:
    """The model of a folder without its parameters.

    Raises:
      InputError: if a file is missing, ``model.json`` describes no known architecture, or the vocabulary is not the one
        it names.
    """
    return described(folder, lambda said, path: config_from_dict(said.encoder, said.kind, path=path))


@functools.cache
def _initializer(config: Architecture) -> Any:
    """Compiled ``key -> variables`` of what ``embed`` reads."""
    return jax.jit(lambda key: config.module().init(key, np.zeros((1, 2), np.int32), method="embed"))


class JaxEncoder(TokenizedEncoder):
    """A trained model as a :class:`TextEncoder`.

    Args:
      model: from `load_model` or `fresh_model`.
      reading: see :class:`TokenizedEncoder`.

    Attributes:
      buckets: row lengths that get compiled.
      params: the model's, on the device.
    """

    def __init__(self, model: Model, **reading: Any) -> None:
        super().__init__(model, **reading)
        self.buckets = shapes.length_buckets(self.max_length)
        self.params = jax.device_put(model.params)
        self._compiled: set[shapes.Shape] = set()
        self._embed = _embedder(model.config)
        self._on_cpu = jax.default_backend() == "cpu"  # where each position costs time
        self._query_costs = shapes.QUERIES_ON_CPU if self._on_cpu else shapes.ON_ACCELERATORS
        self._document_costs = shapes.DOCUMENTS_ON_CPU if self._on_cpu else shapes.ON_ACCELERATORS

    def encode_tokens(self, rows: Sequence[Row], *, are_queries: bool = False) -> FloatArray:
        """Embeds N rows of at most ``max_length`` tokens, with [CLS] and [SEP], as float32 ``[N, D]`` of length 1."""
        costs = self._query_costs if are_queries else self._document_costs
        plan = shapes.plan([len(row) for row in rows], self.max_length, costs, self._compiled)
        return self._in_batches(rows, plan, self._embed_batch)

    def _embed_batch(self, tokens: Row) -> FloatArray:
        embeddings = np.asarray(self._embed(self.params, tokens))
        self._compiled.add(tokens.shape)
        return embeddings

    def preparations(self) -> Iterator[Callable[[], None]]:
        """Functions that compile one shape each; with few shapes no request has to compile, which takes seconds."""
        lengths: tuple[int, ...] = self.buckets
        queries: tuple[int, ...] = (min(shapes.SHORTEST, self.max_length), self.buckets[0])
        if self._on_cpu:
            lengths = shapes.row_lengths(self.max_length)
            queries = tuple(length for length in lengths if length <= _LONGEST_QUERY) or lengths[:1]
        wanted = list(itertools.product(shapes.heights(_MOST_QUERIES, self._query_costs.height_step), queries))
        for length in lengths:
            full = max(1, self._document_costs.tokens_per_batch // length)
            wanted += ((height, length) for height in shapes.heights(full, self._document_costs.height_step))
        yield from (functools.partial(self._prepare, shape) for shape in dict.fromkeys(wanted))

    def _prepare(self, shape: shapes.Shape) -> None:
        self._embed_batch(np.full(shape, PAD_ID, np.int32))

    def tokenize(self, titles: Sequence[str], bodies: Sequence[str]) -> list[Row]:
        """``[CLS] title [SEP] body [SEP]`` of every document, int32 of at most ``max_length``; adds no prompt."""
        return self.vocabulary.encode_documents(titles, bodies, self.max_length)


class ClsEncoder(JaxEncoder):
    """The state of [CLS] after the last layer, scaled to length 1, in place of the embedding.

    NewsEmbed scores its tables of transfer with it, and its tables of similarity with the embedding.

    Args:
      model: see `JaxEncoder`.
      reading: see `TokenizedEncoder`.

    Raises:
      InputError: if the architecture has no layers that give [CLS] a state.
    """

    def __init__(self, model: Model, **reading: Any) -> None:
        require(model.config, Capability.SEQUENCE, by="the state of [CLS] (#cls)", remedy=_NO_CLS)
        if not getattr(model.config, "num_layers", 1):
            problem = f"the state of [CLS] (#cls) needs layers, and this {model.config.kind} architecture has none"
            raise InputError(problem, path=model.folder, remedy=_NO_CLS)
        super().__init__(model, **reading)
        self._embed = _cls_reader(model.config)

    @property
    def digest(self) -> str:
        """Differs whenever the vectors of the same texts may differ."""
        return f"{super().digest}-cls"

    @functools.cached_property
    def dimensions(self) -> int:
        """H."""
        return int(jax.eval_shape(self._embed, self.params, np.zeros((1, 2), np.int32)).shape[-1])


def load_encoder(folder: str, step: int | None = None, **reading: Any) -> JaxEncoder:
    """The encoder of a training folder or safetensors export; the last checkpoint if no ``step`` is given.

    Args:
      folder: of the model.
      step: of the checkpoint.
      reading: see :class:`TokenizedEncoder`.
    """
    return JaxEncoder(load_model(folder, step), **reading)


def load_fastest(folder: str, step: int | None = None, **reading: Any) -> "JaxEncoder | OnnxEncoder":
    """`load_encoder`, but computed by OpenVINO on CPUs, where that is installed and ONNX has the architecture.

    The vectors of both have a cosine of nearly 1, so the digest is the same; see `onnx_engine`.

    Args:
      folder: of the model.
      step: of the checkpoint.
      reading: see :class:`TokenizedEncoder`.
    """
    model = load_model(folder, step)
    if jax.default_backend() == "cpu" and all(map(importlib.util.find_spec, ("onnx", "openvino"))):
        from .onnx_engine import encoder_of

        if (encoder := encoder_of(model, **reading)) is not None:
            return encoder
    return JaxEncoder(model, **reading)


@functools.cache
def _cls_reader(config: Architecture) -> Any:
    """Compiled ``(params, tokens) -> [CLS] states of length 1``."""

    def read(params: Any, tokens: Any) -> Any:
        return _units(config.module().apply({"params": params}, tokens, method="encode")[:, 0])

    return jax.jit(read)


def _units(vectors: Any) -> Any:
    """Rows scaled to length 1, float32; those of zeros stay as they are."""
    vectors = vectors.astype(jnp.float32)
    return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), jnp.finfo(jnp.float32).tiny)


@functools.cache
def _embedder(config: Architecture) -> Any:
    """Compiled ``(params, tokens) -> embeddings``; models of one architecture share their compilations."""
    return jax.jit(lambda params, tokens: config.module().apply({"params": params}, tokens, method="embed"))


@dataclasses.dataclass(frozen=True)
class Probed:
    """N documents as a model sees them.

    Attributes:
      tokens: int32 ``[n]`` of each, ``[CLS] title [SEP] body [SEP]``, cut to the encoder's length.
      attention: float32 ``[layers, n]`` of each: the attention that each token gets from what the embedding is read
        from, see ``Capability.ATTENTION``. Each row sums to 1.
      similarity: float32 ``[N]``, the mean cosine between the top-layer vectors of two different tokens of the
        document, [CLS] and [SEP] left out; NaN where it has fewer than two other tokens.
    """

    tokens: list[Row]
    attention: list[FloatArray]
    similarity: FloatArray


def probe(encoder: JaxEncoder, titles: Sequence[str], bodies: Sequence[str]) -> Probed:
    """Runs the model and records its attention and its token vectors; either part of a document may be empty.

    Raises:
      InputError: if the architecture has no attention to show.
    """
    config = encoder.model.config
    require(config, Capability.ATTENTION, Capability.SEQUENCE, by="the view of attention")
    rows = encoder.tokenize(titles, bodies)
    attention = [np.zeros((0, len(row)), np.float32) for row in rows]
    similarity = np.full(len(rows), np.nan, np.float32)
    observe = _observer(config)
    planned = shapes.by_bucket([len(row) for row in rows], encoder.buckets, _OBSERVED_PER_BATCH)
    for numbers, tokens in shapes.batches(rows, planned):
        received, cosines = (np.asarray(array) for array in observe(encoder.params, tokens))
        for line, number in enumerate(numbers):
            attention[number] = received[:, line, : len(rows[number])]
            similarity[number] = cosines[line]
    return Probed(rows, attention, similarity)


@functools.cache
def _observer(config: Architecture) -> Any:
    """Compiled ``(params, tokens [B, L]) -> (attention [layers, B, L], similarity [B])``."""

    def observe(params: Any, tokens: Any) -> Any:
        hidden, received = config.module().apply({"params": params}, tokens, method="encode_observed")
        counted = (tokens != PAD_ID) & (tokens != CLS_ID) & (tokens != SEP_ID)
        total = jnp.sum(jnp.where(counted[..., None], _units(hidden), 0.0), axis=1)
        count = jnp.sum(counted, axis=1).astype(jnp.float32)
        # The sum over all ordered pairs is |sum of units|^2; those of a token with itself are 1 each.
        pairs = count * (count - 1)
        return received, jnp.where(pairs > 0, (jnp.sum(total**2, axis=-1) - count) / jnp.maximum(pairs, 1.0), jnp.nan)

    return jax.jit(observe)
