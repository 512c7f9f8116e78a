"""LASER's classifier: a small multilayer perceptron on frozen embeddings, of which the best epoch on dev is kept.

As ``sent_classif.py`` and ``nli.py`` of LASER (Artetxe and Schwenk 2019) train it: dropout on the input and after each
hidden layer, tanh, Adam with PyTorch's defaults, and weights that start uniform within ``1 / sqrt(inputs)``. All epochs
run; the parameters of the last epoch with the best accuracy on the dev part are kept.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Features = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int32]
Layers = list[tuple[Any, Any]]


@dataclasses.dataclass(frozen=True)
class Perceptron:
    """The options of the classifier; the defaults are those of LASER for MLDoc.

    Attributes:
      hidden: sizes of the hidden layers.
      dropout: share of inputs and of hidden units that are dropped in training.
      learning_rate: of Adam.
      batch_size: documents of each step; the last batch of an epoch may be smaller.
      epochs: over the training documents, which are shuffled in each.
    """

    hidden: tuple[int, ...] = (10, 8)
    dropout: float = 0.2
    learning_rate: float = 1e-3
    batch_size: int = 12
    epochs: int = 500


class Trained:
    """A trained classifier.

    Attributes:
      dev_accuracy: of the epoch that was kept, on the dev part.
    """

    def __init__(self, layers: Layers, dev_accuracy: float) -> None:
        self._layers = [(np.asarray(weights), np.asarray(bias)) for weights, bias in layers]
        self.dev_accuracy = dev_accuracy

    def predict(self, features: Features) -> Classes:
        """Returns the class of each row, int32 ``[N]``, from float32 ``[N, F]``."""
        values = features
        for number, (weights, bias) in enumerate(self._layers):
            values = values @ weights + bias
            if number + 1 < len(self._layers):
                values = np.tanh(values)
        return np.argmax(values, axis=1).astype(np.int32)


def train(
    head: Perceptron,
    known: tuple[Features, Classes],
    dev: tuple[Features, Classes],
    classes: int,
    seed: int = 0,
) -> Trained:
    """Trains the classifier; the same seed gives the same result.

    Args:
      head: its options.
      known: training rows float32 ``[N, F]`` with classes int32 ``[N]``.
      dev: likewise, which chooses the epoch.
      classes: their number.
      seed: of initial weights, order and dropout.
    """
    import jax

    layers, accuracy = _trainer()(head, classes, *known, *dev, jax.random.key(seed))
    return Trained(layers, float(accuracy))


@functools.cache
def _trainer() -> Callable[..., Any]:
    # JAX is imported when a classifier is trained, not when the benchmarks are listed.
    import jax

    return jax.jit(_fit, static_argnums=(0, 1))


def _fit(head: Perceptron, classes: int, rows: Any, labels: Any, dev_rows: Any, dev_labels: Any, key: Any) -> Any:
    """Returns the layers of the best epoch, and their accuracy on dev."""
    import jax
    import jax.numpy as jnp
    import optax

    count = rows.shape[0]
    size = min(head.batch_size, count)
    steps = -(-count // size)
    optimizer = optax.adam(head.learning_rate)
    first, later = jax.random.split(key)
    layers = _initial(first, (rows.shape[1], *head.hidden, classes))

    def loss(layers: Layers, batch: Any, key: Any) -> Any:
        numbers, weights = batch
        logits = _logits(layers, rows[numbers], head.dropout, key)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[numbers])
        return jnp.sum(weights * losses) / jnp.sum(weights)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        layers, moments, key = state
        key, own = jax.random.split(key)
        updates, moments = optimizer.update(jax.grad(loss)(layers, batch, own), moments)
        return (optax.apply_updates(layers, updates), moments, key), None

    def epoch(state: Any, _: None) -> tuple[Any, None]:
        """Trains on all rows once, in random order, and keeps the layers if they are not worse on the dev rows."""
        (layers, moments, key), best = state
        key, own = jax.random.split(key)
        places = jnp.arange(steps * size)
        order = jax.random.permutation(own, count)[jnp.minimum(places, count - 1)].reshape(steps, size)
        weights = (places < count).astype(jnp.float32).reshape(steps, size)
        (layers, moments, key), _ = jax.lax.scan(step, (layers, moments, key), (order, weights))
        accuracy = jnp.mean(jnp.argmax(_logits(layers, dev_rows), axis=1) == dev_labels)
        is_better = accuracy >= best[1]
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), (layers, accuracy), best)
        return ((layers, moments, key), best), None

    state = (layers, optimizer.init(layers), later)
    (_, best), _ = jax.lax.scan(epoch, (state, (layers, jnp.float32(-1))), None, length=head.epochs)
    return best


def _initial(key: Any, sizes: tuple[int, ...]) -> Layers:
    import jax

    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        key, one, two = jax.random.split(key, 3)
        bound = inputs**-0.5
        weights = jax.random.uniform(one, (inputs, outputs), minval=-bound, maxval=bound)
        layers.append((weights, jax.random.uniform(two, (outputs,), minval=-bound, maxval=bound)))
    return layers


def _logits(layers: Layers, values: Any, dropout: float = 0.0, key: Any = None) -> Any:
    """Returns [N, classes]; without a key, nothing is dropped."""
    import jax
    import jax.numpy as jnp

    for number, (weights, bias) in enumerate(layers):
        if key is not None and dropout:
            kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - dropout, values.shape)
            values = jnp.where(kept, values / (1 - dropout), 0.0)
        values = values @ weights + bias
        if number + 1 < len(layers):
            values = jnp.tanh(values)
    return values
