"""Classification of frozen embeddings: logistic regression, few-shot MLP, and clustering of the same documents.

Protocol (NewsEmbed, news classification; SimLTE, Table 2, for few-shot). Documents are embedded once.

- ``accuracy`` and ``macro-F1``: multinomial logistic regression with an L2 penalty on unit vectors. C is chosen between
  0.1 and 1000 by stratified 3-fold cross-validation over the training documents only. With an official split, the head
  is trained on the training part (or on ``train_share`` of each class, 10 % for AG News) and tested on the whole test
  part. Without one: 5 stratified folds, mean over folds; with a ``train_share`` below 1, that share of each class is
  trained on and the rest is tested on.
- ``few-shot macro-F1``: k documents of each class (5 and 10) are drawn from the training documents, 10 times. An MLP
  with one hidden layer of 100 units is trained on them and tested on the test part, or on the documents that were not
  drawn. It reads coordinates in the span of the drawn documents, for every encoder: weights in other directions would
  keep their random initial values, and that noise would hurt wide vectors most. Skipped where a class has fewer than k
  documents.
- With the head ``simlte``, both by an MLP of one hidden layer of 100 units, Adam at 3e-4 and batches of 8, on the
  embeddings as they are (SimLTE, section 3.2; depth and epochs are unstated there): ``MLP accuracy`` and ``MLP
  macro-F1`` after training on the whole training part, and few-shot accuracy beside macro-F1. More ``shots`` give the
  curve of SimLTE's Figure 2.
- ``ARI`` and ``V``: k-means with k = number of classes over the tested documents, one start for each seed (the paper's
  clustering).

Means over folds, repeats and seeds are reported with their standard deviation.
"""

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .benchmark import ALL, PathBenchmark, Score, over_runs
from .clustering import cluster_scores
from .encoders import Document, Embeddings
from .labelled import FORMATS, Split, sample_per_class

TASKS: Final = ("classification", "few_shot", "clustering")
SHOTS: Final = (5, 10)
DEFAULT_HEAD, SIMLTE_HEAD = "default", "simlte"
HEADS: Final = (DEFAULT_HEAD, SIMLTE_HEAD)
_RATE: Final = 3e-4
_BATCH: Final = 8
_EPOCHS: Final = 500  # at most: training ends when the loss falls no further
_REGULARISATION: Final = (0.1, 1.0, 10.0, 100.0, 1000.0)
_INNER_FOLDS: Final = 3
_OUTER_FOLDS: Final = 5
_DENSE_ROWS: Final = 3000  # 3000 x 3000 float64 take 72 MB, and their eigenvectors take seconds

Labels = npt.NDArray[np.str_]
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class NewsClassification(PathBenchmark):
    """The three tasks over one labelled collection.

    Attributes:
      path: folder or file as distributed.
      format: a key of ``labelled.FORMATS``.
      name: the name in tables.
      tasks: which of ``TASKS`` to score.
      repeats: number of few-shot draws.
      seeds: seeds of the k-means starts.
      train_share: share of each class of the training part to train on; ``None`` takes the default of the format.
      excluded: documents to leave out, see ``leakage.py``.
      head: which of ``HEADS`` classifies.
      shots: documents of each class in few-shot training, ascending.
    """

    path: str
    format: str
    name: str
    tasks: tuple[str, ...] = TASKS
    repeats: int = 10
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    train_share: float | None = None
    excluded: frozenset[Document] = frozenset()
    head: str = DEFAULT_HEAD
    shots: tuple[int, ...] = SHOTS

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.tasks) - set(TASKS)):
            remedy = f"choose from {', '.join(TASKS)}"
            raise InputError(f"got the tasks {', '.join(unknown)}", field="tasks", remedy=remedy)

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        head = {} if self.head == DEFAULT_HEAD else {"head": self.head, "learning_rate": _RATE, "batch_size": _BATCH}
        return {
            "suite": self.format,
            "tasks": list(self.tasks),
            "train_share": self._share,
            "C": list(_REGULARISATION),
            "folds": [_OUTER_FOLDS, _INNER_FOLDS],
            "shots": list(self.shots),
            "repeats": self.repeats,
            "seeds": list(self.seeds),
            "excluded": len(self.excluded),
            **head,
        }

    @property
    def _share(self) -> float:
        return FORMATS[self.format].train_share if self.train_share is None else self.train_share

    @functools.cached_property
    def _split(self) -> Split:
        split = FORMATS[self.format].read(self.path)
        train = split.train
        if split.test and self._share < 1:  # the other training documents need no embedding
            train = tuple(train[number] for number in sample_per_class([row.label for row in train], self._share, 0))
        kept = Split(train, split.test).without(self.excluded)
        if len({row.label for row in kept.train}) < 2:
            raise InputError(
                "fewer than two classes to train on",
                path=self.path,
                field="label",
                remedy="give documents of two classes",
            )
        return kept

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [row.document for row in self._split.all]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns the scores of the chosen tasks."""
        labels = np.array([row.label for row in self._split.all])
        fixed = bool(self._split.test)
        train = np.arange(len(self._split.train))
        test = np.arange(len(train), len(labels)) if fixed else train
        scores: list[Score] = []
        if "classification" in self.tasks:
            splits = [(train, test)] if fixed else list(self._own_splits(labels))
            classify = mlp_scores if self.head == SIMLTE_HEAD else classification_scores
            scores += classify(embeddings, labels, splits)
        if "few_shot" in self.tasks:
            # Some collections have a class of a few documents; their other scores stand, and the table shows a dash
            # here.
            smallest = int(np.unique(labels[train], return_counts=True)[1].min())
            for shots in (shots for shots in self.shots if shots <= smallest or len(self.tasks) == 1):
                scores += few_shot_scores(embeddings, labels, train, test, shots, self.repeats, self.head)
        if "clustering" in self.tasks:
            scores += cluster_scores(ALL, embeddings[test], labels[test], self.seeds)
        return scores

    def _own_splits(self, labels: Labels) -> Iterator[tuple[Rows, Rows]]:
        if self._share < 1:
            train = np.array(sample_per_class(labels, self._share, 0))
            yield train, np.setdiff1d(np.arange(len(labels)), train)
            return
        yield from _stratified(_OUTER_FOLDS).split(np.zeros(len(labels)), labels)


def classification_scores(embeddings: Embeddings, labels: Labels, splits: Sequence[tuple[Rows, Rows]]) -> list[Score]:
    """Returns ``accuracy`` and ``macro-F1`` of logistic regression, means over splits (training rows, test rows)."""
    from sklearn.metrics import accuracy_score

    runs = [(labels[test], logistic_regression(embeddings, labels, train, test)) for train, test in splits]
    count = sum(len(truth) for truth, _ in runs)
    return [
        over_runs("accuracy", [float(accuracy_score(truth, found)) for truth, found in runs], ALL, count),
        over_runs("macro-F1", [macro_f1(truth, found) for truth, found in runs], ALL, count),
    ]


def mlp_scores(embeddings: Embeddings, labels: Labels, splits: Sequence[tuple[Rows, Rows]]) -> list[Score]:
    """Returns ``MLP accuracy`` and ``MLP macro-F1`` of SimLTE's head, means over splits (training rows, test rows)."""
    from sklearn.metrics import accuracy_score

    runs = [(labels[test], paper_mlp(embeddings, labels, train, test, 0)) for train, test in splits]
    count = sum(len(truth) for truth, _ in runs)
    return [
        over_runs("MLP accuracy", [float(accuracy_score(truth, found)) for truth, found in runs], ALL, count),
        over_runs("MLP macro-F1", [macro_f1(truth, found) for truth, found in runs], ALL, count),
    ]


def few_shot_scores(
    embeddings: Embeddings,
    labels: Labels,
    train: Rows,
    test: Rows,
    shots: int,
    repeats: int,
    head: str = DEFAULT_HEAD,
) -> list[Score]:
    """Returns the macro-F1 of an MLP trained on ``shots`` documents of each class, mean over ``repeats`` draws.

    With the head ``simlte``, the accuracy comes before it.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR.
      labels: ``[N]``.
      train: rows to draw from.
      test: rows to test on; drawn rows are left out of them.
      shots: documents of each class.
      repeats: number of draws, seeded 0, 1, ….
      head: one of ``HEADS``.

    Raises:
      InputError: if a class has fewer than ``shots`` documents, or no document is left to test on.
    """
    names, sizes = np.unique(labels[train], return_counts=True)
    if sizes.min() < shots:
        raise InputError(
            f"the class {str(names[sizes.argmin()])!r} has {sizes.min()} documents, "
            f"expected at least {shots} for few-shot training",
            remedy="give more documents or leave out the few_shot task",
        )
    values, accuracies = [], []
    learn = paper_mlp if head == SIMLTE_HEAD else _mlp
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        drawn = np.concatenate([random.choice(train[labels[train] == name], shots, replace=False) for name in names])
        rest = np.setdiff1d(test, drawn)
        if not len(rest):
            raise InputError("no document is left to test on", field="few_shot", remedy="give more documents")
        found = learn(embeddings, labels, drawn, rest, seed)
        values.append(macro_f1(labels[rest], found))
        accuracies.append(float(np.mean(found == labels[rest])))
    f1 = over_runs(f"{shots}-shot macro-F1", values, ALL, len(test))
    return [over_runs(f"{shots}-shot accuracy", accuracies, ALL, len(test)), f1] if head == SIMLTE_HEAD else [f1]


def logistic_regression(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows) -> Labels:
    """Returns the predicted classes of the rows ``test``, trained on the rows ``train``.

    Raises:
      InputError: if the training rows have one class only.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    if len(set(labels[train])) < 2:
        raise InputError(
            "the training documents have one class only",
            field="label",
            remedy="give documents of at least two classes",
        )
    with quiet_threads():
        known, asked = small_features(embeddings[train], embeddings[test])
        model = GridSearchCV(
            LogisticRegression(max_iter=2000),
            {"C": list(_REGULARISATION)},
            cv=_stratified(_INNER_FOLDS),
            scoring="accuracy",
        )
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


def _mlp(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows, seed: int) -> Labels:
    from sklearn.neural_network import MLPClassifier

    with quiet_threads():
        known, asked = span_features(embeddings[train], embeddings[test])
        return np.asarray(MLPClassifier(max_iter=500, random_state=seed).fit(known, labels[train]).predict(asked))


def paper_mlp(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows, seed: int) -> Labels:
    """Returns the classes of the rows ``test`` by the MLP of the head ``simlte``, trained on the rows ``train``."""
    from sklearn.neural_network import MLPClassifier

    batch = min(_BATCH, len(train))
    with quiet_threads():
        model = MLPClassifier(learning_rate_init=_RATE, batch_size=batch, max_iter=_EPOCHS, random_state=seed)
        return np.asarray(model.fit(embeddings[train], labels[train]).predict(embeddings[test]))


def _stratified(folds: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(folds, shuffle=True, random_state=0)
