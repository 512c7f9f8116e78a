"""Classifiers of frozen embeddings: logistic regression and MLPs by scikit-learn, and LASER's perceptron.

LASER's is a small multilayer perceptron of which the best epoch on dev is kept, as ``sent_classif.py`` and ``nli.py``
of LASER (Artetxe and Schwenk 2019) train it: dropout on the input and after each hidden layer, tanh, Adam with
PyTorch's defaults, and weights that start uniform within ``1 / sqrt(inputs)``. All epochs run; the parameters of the
last epoch with the best accuracy on the dev part are kept. scikit-learn's has no dropout.
"""

import contextlib
import dataclasses
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .encoders import Embeddings

RATE: Final = 3e-4  # of SimLTE's MLP
BATCH: Final = 8
_EPOCHS: Final = 500  # at most: training ends when the loss falls no further
REGULARISATION: Final = (0.1, 1.0, 10.0, 100.0, 1000.0)
INNER_FOLDS: Final = 3
_DENSE_ROWS: Final = 3000  # 3000 x 3000 float64 take 72 MB, and their eigenvectors take seconds

Labels = npt.NDArray[np.str_]
Rows = npt.NDArray[np.int64]
Features = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int32]
Layers = list[tuple[Any, Any]]


def logistic_regression(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows) -> Labels:
    """Returns the predicted classes of the rows ``test``, trained on the rows ``train``."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    with quiet_threads():
        known, asked = small_features(embeddings[train], embeddings[test])
        options = {"cv": stratified(INNER_FOLDS), "scoring": "accuracy"}
        model = GridSearchCV(LogisticRegression(max_iter=2000), {"C": list(REGULARISATION)}, **options)
        model.fit(known, labels[train])
        return np.asarray(model.predict(asked))


def small_features(train: Embeddings, test: Embeddings) -> tuple[Any, Any]:
    """Returns float64 features (training, test) that give the same classifier faster, if the rows are sparse and few.

    The weights of a classifier with an L2 penalty are in the span of the training rows (the representer theorem), so
    only the projection onto that span matters: ``K = X X^T = U S U^T`` gives the basis ``X^T U S^{-1/2}``. Other rows
    are returned as they are.
    """
    from scipy import sparse

    if not sparse.issparse(train):
        return np.asarray(train, np.float64), np.asarray(test, np.float64)
    if train.shape[0] > min(_DENSE_ROWS, train.shape[1]):
        return train.astype(np.float64), test.astype(np.float64)
    return span_features(train, test)


def span_features(train: Embeddings, test: Embeddings) -> tuple[Any, Any]:
    """Returns dense float64 coordinates (training, test) in an orthonormal basis of the span of the training rows."""
    from scipy import sparse

    train, test = train.astype(np.float64), test.astype(np.float64)
    gram, across = train @ train.T, test @ train.T
    if sparse.issparse(gram):
        gram, across = gram.toarray(), across.toarray()
    values, vectors = np.linalg.eigh(gram)
    kept = values > values.max() * 1e-10
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return gram @ basis, across @ basis


def macro_f1(truth: Labels, found: Labels) -> float:
    """Returns the mean F1 over the classes of ``truth``; a class that is never predicted counts 0."""
    from sklearn.metrics import f1_score

    return float(f1_score(truth, found, labels=np.unique(truth), average="macro", zero_division=0))


@contextlib.contextmanager
def quiet_threads() -> Iterator[None]:
    """Limits BLAS and OpenMP to one thread: on problems this small, threads wait longer than they work.

    Silences scikit-learn's warnings about rare classes and slow convergence: the scores show both.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


def span_mlp(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows, seed: int) -> Labels:
    """Returns the classes of the rows ``test`` by an MLP in the span of the training rows."""
    from sklearn.neural_network import MLPClassifier

    with quiet_threads():
        known, asked = span_features(embeddings[train], embeddings[test])
        return np.asarray(MLPClassifier(max_iter=500, random_state=seed).fit(known, labels[train]).predict(asked))


def paper_mlp(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows, seed: int) -> Labels:
    """Returns the classes of the rows ``test`` by the MLP of the head ``simlte``, trained on the rows ``train``."""
    from sklearn.neural_network import MLPClassifier

    batch = min(BATCH, len(train))
    with quiet_threads():
        model = MLPClassifier(learning_rate_init=RATE, batch_size=batch, max_iter=_EPOCHS, random_state=seed)
        return np.asarray(model.fit(embeddings[train], labels[train]).predict(embeddings[test]))


def stratified(folds: int) -> Any:
    """scikit-learn's folds, the same on every call."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(folds, shuffle=True, random_state=0)


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


def train(
    head: Perceptron,
    known: tuple[Features, Classes],
    dev: tuple[Features, Classes],
    classes: int,
    seed: int = 0,
) -> Layers:
    """Trains the classifier, and returns the weights and bias of each layer; the same seed gives the same result.

    Args:
      head: its options.
      known: training rows float32 ``[N, F]`` with classes int32 ``[N]``.
      dev: likewise, which chooses the epoch.
      classes: their number.
      seed: of initial weights, order and dropout.
    """
    import jax

    return jax.device_get(_trainer()(head, classes, *known, *dev, jax.random.key(seed)))


def predict(layers: Layers, features: Features) -> Classes:
    """Returns the class of each row, int32 ``[N]``, from float32 ``[N, F]``."""
    return np.argmax(np.asarray(_logits(layers, features)), axis=1).astype(np.int32)


@functools.cache
def _trainer() -> Callable[..., Any]:
    # JAX is imported when a classifier is trained, not when the benchmarks are listed.
    import jax

    return jax.jit(_fit, static_argnums=(0, 1))


def _fit(head: Perceptron, classes: int, rows: Any, labels: Any, dev_rows: Any, dev_labels: Any, key: Any) -> Any:
    """Returns the layers of the best epoch on dev."""
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
    return best[0]


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
