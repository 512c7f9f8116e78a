"""The inside of a trained model, for people to look at: its attention, and the similarity of its token vectors."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..formats.vocabulary import CLS_ID, PAD_ID, SEP_ID
from ..models.encoders import Architecture, Capability, require
from .encoder import JaxEncoder
from .interface import FloatArray
from .shapes import batches, by_bucket

# Probabilities are [B, heads, L, L]: a layer of BERT-base at 512 tokens takes 100 MB with this many.
_TOKENS_PER_BATCH: Final = 4_096


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

    tokens: list[npt.NDArray[np.int32]]
    attention: list[FloatArray]
    similarity: FloatArray


def probe(encoder: JaxEncoder, titles: Sequence[str], bodies: Sequence[str]) -> Probed:
    """Runs the model and records its attention and its token vectors.

    Args:
      encoder: the model.
      titles: of the documents.
      bodies: of the documents, as many; either part may be empty.

    Raises:
      InputError: if the architecture has no attention to show.
      ValueError: if there are not as many titles as bodies.
    """
    config = encoder.model.config
    require(config, Capability.ATTENTION, Capability.SEQUENCE, by="the view of attention")
    rows = encoder.tokenize(titles, bodies)
    attention = [np.zeros((0, len(row)), np.float32) for row in rows]
    similarity = np.full(len(rows), np.nan, np.float32)
    observe = _observer(config)
    planned = by_bucket([len(row) for row in rows], encoder.buckets, _TOKENS_PER_BATCH)
    for numbers, tokens in batches(rows, planned):
        received, cosines = (np.asarray(array) for array in observe(encoder.params, tokens))
        for line, number in enumerate(numbers):
            attention[number] = received[:, line, : len(rows[number])]
            similarity[number] = cosines[line]
    return Probed(rows, attention, similarity)


@functools.cache
def _observer(config: Architecture) -> Any:
    """Compiled ``(params, tokens [B, L]) -> (attention [layers, B, L], similarity [B])``."""
    import jax
    import jax.numpy as jnp

    def observe(params: Any, tokens: Any) -> Any:
        hidden, received = config.module().apply({"params": params}, tokens, method="encode_observed")
        hidden = hidden.astype(jnp.float32)
        units = hidden / jnp.maximum(jnp.linalg.norm(hidden, axis=-1, keepdims=True), jnp.finfo(jnp.float32).tiny)
        counted = (tokens != PAD_ID) & (tokens != CLS_ID) & (tokens != SEP_ID)
        total = jnp.sum(jnp.where(counted[..., None], units, 0.0), axis=1)
        count = jnp.sum(counted, axis=1).astype(jnp.float32)
        # The sum over all ordered pairs is |sum of units|^2; those of a token with itself are 1 each.
        pairs = count * (count - 1)
        return received, jnp.where(pairs > 0, (jnp.sum(total**2, axis=-1) - count) / jnp.maximum(pairs, 1.0), jnp.nan)

    return jax.jit(observe)
