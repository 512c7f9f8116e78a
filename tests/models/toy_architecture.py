"""An architecture that no file of the product knows: the mean of token vectors, scaled to length 1."""

import dataclasses
from typing import ClassVar

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from newsembed.models.encoders import Architecture, register


class Mean(nn.Module):
    config: "MeanConfig"

    def setup(self):
        shape = (self.config.vocab_size, self.config.embedding_size)
        init = nn.with_logical_partitioning(nn.initializers.normal(1.0), ("vocab", "embed"))
        self.table = self.param("table", init, shape)

    def __call__(self, tokens):
        return self.embed(tokens)

    def embed(self, tokens, *, deterministic=True):
        weights = (tokens != 0)[..., None]
        vectors = jnp.sum(self.table[tokens] * weights, axis=1)
        return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


@register
@dataclasses.dataclass(frozen=True)
class MeanConfig(Architecture):
    kind: ClassVar[str] = "toy_mean"
    free_options: ClassVar[tuple] = ("dropout_rate", "dtype")
    least: ClassVar[dict] = {"num_topics": 0}

    vocab_size: int
    embedding_size: int = 8
    max_length: int = 40
    num_topics: int = 0
    dropout_rate: float = 0.0
    dtype: str = "float32"

    def module(self):
        return Mean(self)

    def summary(self):
        return f"mean of {self.embedding_size}"


def embedded(table, rows):
    """The embeddings of rows of token ids, in NumPy."""
    vectors = np.array([np.asarray(table)[row].sum(axis=0) for row in rows])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
