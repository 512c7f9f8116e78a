"""Classification and clustering of frozen embeddings: in one language, across languages, with few examples.

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
- ``ARI`` and ``V``: adjusted Rand index and V-measure of k-means over the tested documents (NewsEmbed, Table 6), with k
  = the number of classes. k-means++ runs once for each seed, on unit vectors, where Euclidean distances rank pairs as
  cosines do.

Means over folds, repeats and seeds are reported with their standard deviation.

``clustering`` does the last of a JSONL file (``events.py``): the documents that have the label (``event`` or
``topic``), and if there are several languages, those of each language by themselves.

Across languages (T-MDE; MLDoc and MasakhaNEWS): for every ordered pair of languages the logistic regression is trained
on the training part of X and tested on the test part of Y, over the classes that both parts have. ``accuracy X→Y`` is
one cell; ``Same`` is the mean over X = Y, ``Cross`` over X ≠ Y, ``All`` over all cells. Paired t-tests over the cells
compare encoders (``statistics.py``). A language is a folder (MasakhaNEWS) or a prefix of file names (MLDoc).
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats.command_line import option
from ..benchmark import ALL, ARROW, Benchmark, Score, Suite, by_language, here, over_runs, seeds_option, with_averages
from ..encoders import Document, Embeddings
from ..events import EventDocument, read_events
from ..files import FORMATS, Split, folder_entries, remedy_of, sample_per_class
from ..heads import (
    BATCH,
    INNER_FOLDS,
    RATE,
    REGULARISATION,
    Labels,
    Rows,
    logistic_regression,
    macro_f1,
    paper_mlp,
    quiet_threads,
    span_mlp,
    stratified,
)

TASKS: Final = ("classification", "few_shot", "clustering")
DEFAULT_HEAD, SIMLTE_HEAD = "default", "simlte"
_OUTER_FOLDS: Final = 5
_MARKERS: Final = {"masakhanews": "test.tsv", "mldoc": ".test"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewsClassification(Benchmark):
    """The three tasks over one labelled collection.

    Attributes:
      format: a key of ``files.FORMATS``.
      repeats: number of few-shot draws.
      train_share: share of each class of the training part to train on; ``None`` takes the default of the format.
    """

    format: str
    tasks: tuple[str, ...] = option(TASKS, "labelled collections: what to score", choices=TASKS, many=True)
    head: str = option(
        DEFAULT_HEAD,
        "labelled collections: logistic regression and a few-shot MLP in the span of the drawn documents (default), or "
        "the MLP of SimLTE for both",
        choices=(DEFAULT_HEAD, SIMLTE_HEAD),
    )
    shots: tuple[int, ...] = option(
        (5, 10),
        "labelled collections: documents of each class in few-shot training; three or more give the curve shots.svg",
        many=True,
        ge=1,
        metavar="K",
    )
    seeds: int = seeds_option()
    repeats: int = 10
    train_share: float | None = None

    def _facts(self) -> dict[str, Any]:
        head = {} if self.head == DEFAULT_HEAD else {"head": self.head, "learning_rate": RATE, "batch_size": BATCH}
        return {
            "suite": self.format,
            "tasks": list(self.tasks),
            "train_share": self._share,
            "C": list(REGULARISATION),
            "folds": [_OUTER_FOLDS, INNER_FOLDS],
            "shots": sorted(set(self.shots)),
            "repeats": self.repeats,
            "seeds": list(range(self.seeds)),
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
            remedy = "give documents of two classes"
            raise InputError("fewer than two classes to train on", path=self.path, field="label", remedy=remedy)
        return kept

    def _texts(self) -> Sequence[Document]:
        return [row.document for row in self._split.all]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        labels = np.array([row.label for row in self._split.all])
        train, test = np.split(np.arange(len(labels)), [len(self._split.train)])
        splits: Iterable[tuple[Rows, Rows]] = [(train, test)]
        if not len(test):
            test, splits = train, stratified(_OUTER_FOLDS).split(train, labels)
            if self._share < 1:
                known = np.array(sample_per_class(labels, self._share, 0))
                splits = [(known, np.setdiff1d(train, known))]
        scores: list[Score] = []
        if "classification" in self.tasks:
            scores += classification_scores(embeddings, labels, splits, self.head)
        if "few_shot" in self.tasks:
            # Some collections have a class of a few documents; their other scores stand, and the table shows a dash
            # here.
            smallest = int(np.unique(labels[train], return_counts=True)[1].min())
            for shots in sorted(set(self.shots)):
                if shots <= smallest or len(self.tasks) == 1:
                    scores += few_shot_scores(embeddings, labels, train, test, shots, self.repeats, self.head)
        if "clustering" in self.tasks:
            scores += cluster_scores(ALL, embeddings[test], labels[test], self.seeds)
        return scores


def classification_scores(
    embeddings: Embeddings, labels: Labels, splits: Iterable[tuple[Rows, Rows]], head: str = DEFAULT_HEAD
) -> list[Score]:
    """Returns ``accuracy`` and ``macro-F1``, means over splits (training rows, test rows).

    By logistic regression; with the head ``simlte`` ``MLP accuracy`` and ``MLP macro-F1`` by SimLTE's.
    """
    by_mlp = head == SIMLTE_HEAD
    accuracies, values, count, kind = [], [], 0, "MLP " if by_mlp else ""
    for train, test in splits:
        where = embeddings, labels, train, test
        found = paper_mlp(*where, 0) if by_mlp else logistic_regression(*where)
        accuracies.append(float(np.mean(found == labels[test])))
        values.append(macro_f1(labels[test], found))
        count += len(test)
    return [
        over_runs(f"{kind}accuracy", accuracies, ALL, count),
        over_runs(f"{kind}macro-F1", values, ALL, count),
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
    """
    names, sizes = np.unique(labels[train], return_counts=True)
    remedy = "give more documents or leave out the few_shot task"
    if sizes.min() < shots:
        problem = f"the class {str(names[sizes.argmin()])!r} has {sizes.min()} documents, expected at least {shots}"
        raise InputError(f"{problem} for few-shot training", remedy=remedy)
    values, accuracies = [], []
    learn = paper_mlp if head == SIMLTE_HEAD else span_mlp
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        drawn = np.concatenate([random.choice(train[labels[train] == name], shots, replace=False) for name in names])
        rest = np.setdiff1d(test, drawn)
        if not len(rest):
            raise InputError("no document is left to test on", field="few_shot", remedy=remedy)
        found = learn(embeddings, labels, drawn, rest, seed)
        values.append(macro_f1(labels[rest], found))
        accuracies.append(float(np.mean(found == labels[rest])))
    f1 = over_runs(f"{shots}-shot macro-F1", values, ALL, len(test))
    return [over_runs(f"{shots}-shot accuracy", accuracies, ALL, len(test)), f1] if head == SIMLTE_HEAD else [f1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CrossLingual(Benchmark):
    """Cross-lingual classification over the languages under one folder.

    Attributes:
      format: "masakhanews" or "mldoc".
    """

    format: str

    def _facts(self) -> dict[str, Any]:
        return {"suite": f"{self.format} X→Y", "classes": "those of both parts"}

    @functools.cached_property
    def _splits(self) -> dict[str, Split]:
        read = FORMATS[self.format].read
        splits = {name: read(os.path.join(self.path, name)) for name in languages(self.path, self.format)}
        if len(splits) < 2:
            problem = f"found {len(splits)} languages, expected at least 2"
            raise InputError(problem, path=self.path, remedy=remedy_of(self.format))
        return {name: split.without(self.excluded) for name, split in splits.items()}

    def _texts(self) -> Sequence[Document]:
        return [row.document for split in self._splits.values() for row in split.all]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        labels = np.array([row.label for split in self._splits.values() for row in split.all])
        sizes = [len(part) for split in self._splits.values() for part in (split.train, split.test)]
        parts = np.split(np.arange(len(labels)), np.cumsum(sizes)[:-1])
        train, test = (dict(zip(self._splits, parts[side::2], strict=True)) for side in (0, 1))
        return with_averages(
            {
                (one, two): _cell(embeddings, labels, train[one], test[two], f"{one}{ARROW}{two}")
                for one in self._splits
                for two in self._splits
            }
        )


def languages(path: str, form: str) -> list[str]:
    """Returns the languages in the folder ``path``: folders with a test part, or the prefixes of ``LANGUAGE.test``."""
    names, marker = folder_entries(path, remedy_of(form)), _MARKERS[form]
    if marker.startswith("."):
        return [name.removesuffix(marker) for name in names if name.endswith(marker)]
    return [name for name in names if os.path.exists(os.path.join(path, name, marker))]


def _cell(embeddings: Embeddings, labels: Labels, train: Rows, test: Rows, part: str) -> Score:
    shared = np.intersect1d(labels[train], labels[test])
    if len(shared) < 2:
        problem = f"{part}: {len(shared)} shared classes, expected at least 2"
        raise InputError(problem, remedy="give languages with the same classes")
    train, test = train[np.isin(labels[train], shared)], test[np.isin(labels[test], shared)]
    found = logistic_regression(embeddings, labels, train, test)
    return Score("accuracy", float(np.mean(labels[test] == found)), part, len(test))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clustering(Benchmark):
    """The clustering benchmark over one JSONL file, see ``events.py``."""

    label: str = option("event", "clustering: the true classes", choices=("event", "topic"))
    seeds: int = seeds_option()

    def _facts(self) -> dict[str, Any]:
        return {"suite": "clustering", "label": self.label, "seeds": list(range(self.seeds))}

    @functools.cached_property
    def _rows(self) -> list[EventDocument]:
        rows = [row for row in read_events(self.path, self.label) if self.keeps(row.document)]
        labelled = [row for row in rows if getattr(row, self.label)]
        if len({getattr(row, self.label) for row in labelled}) < 2:
            remedy = "give documents of at least two classes"
            raise InputError("fewer than two classes", path=self.path, field=self.label, remedy=remedy)
        return labelled

    def _texts(self) -> Sequence[Document]:
        return [row.document for row in self._rows]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        labels = np.array([getattr(row, self.label) for row in self._rows])
        return cluster_scores_by_language([row.language for row in self._rows], embeddings, labels, self.seeds)


def cluster_scores_by_language(
    languages: Sequence[str], embeddings: Embeddings, labels: Any, seeds: int
) -> list[Score]:
    """Returns `cluster_scores` over all documents, and over those of each language that have several labels."""
    parts = {part: rows for part, rows in by_language(languages).items() if len(set(labels[rows])) > 1}
    return [
        score
        for part, rows in parts.items()
        for score in cluster_scores(part, embeddings[np.flatnonzero(rows)], labels[rows], seeds)
    ]


def cluster_scores(part: str, embeddings: Embeddings, labels: Any, seeds: int) -> list[Score]:
    """Returns ``ARI`` and ``V`` of k-means with the true number of clusters, mean and standard deviation over seeds."""
    from sklearn.metrics import adjusted_rand_score, v_measure_score

    runs = [kmeans(embeddings, len(set(labels)), seed) for seed in range(seeds)]
    return [
        over_runs("ARI", [float(adjusted_rand_score(labels, run)) for run in runs], part, len(labels)),
        over_runs("V", [float(v_measure_score(labels, run)) for run in runs], part, len(labels)),
    ]


def kmeans(embeddings: Embeddings, clusters: int, seed: int) -> Any:
    """Returns cluster numbers ``[N]`` from one k-means++ start.

    With fewer distinct vectors than clusters, some clusters are empty. The scores show it.
    """
    from sklearn.cluster import KMeans

    with quiet_threads():
        return KMeans(clusters, n_init=1, random_state=seed).fit_predict(embeddings)


def _is_mind(folder: str, _: set[str]) -> bool:
    parts = ("train", "MINDsmall_train", "MINDlarge_train")
    return any(os.path.exists(os.path.join(folder, part, "news.tsv")) for part in parts)


_IS_HERE: Final[dict[str, Callable[[str, set[str]], bool]]] = {
    "bbc": lambda _, names: {"business", "sport", "tech"} <= names,
    "newsgroups": lambda _, names: "20news-bydate-train" in names,
    "newsgroups_stripped": lambda _, names: "20news-bydate-train" in names,
    "agnews": lambda folder, names: "test.csv" in names and "ag_news" in os.path.abspath(folder),
    "mind": _is_mind,
    "fakenews": lambda _, names: "news_cleaned_2018_02_13.csv" in names,
    "arxiv": lambda _, names: "arxiv-metadata-oai-snapshot.json" in names,
    "nyt": lambda _, names: {"dataset.txt", "labels.txt", "classes.txt"} <= names,
}
_HAS_LANGUAGES: Final[dict[str, Callable[[str, set[str]], bool]]] = {
    "masakhanews": lambda folder, _: "masakha" in os.path.basename(folder).lower(),
    "mldoc": lambda _, names: any(name.endswith(".train.1000") for name in names),
}


def _each_language(form: str) -> Callable[[str, set[str]], Iterable[str]]:
    def find(folder: str, names: set[str]) -> list[str]:
        found = languages(folder, form) if _HAS_LANGUAGES[form](folder, names) else []
        return [os.path.join(folder, name) for name in found]

    return find


SUITES: Final = {
    **{form: Suite(NewsClassification, {"format": form}, here(is_here)) for form, is_here in _IS_HERE.items()},
    **{form: Suite(NewsClassification, {"format": form}, _each_language(form)) for form in _HAS_LANGUAGES},
    **{f"{form}_xy": Suite(CrossLingual, {"format": form}, here(found)) for form, found in _HAS_LANGUAGES.items()},
    "labels": Suite(NewsClassification, {"format": "labels"}),
    "clustering": Suite(Clustering),
    "topic_clustering": Suite(Clustering, {"label": "topic"}),
}
