"""MLDoc by the protocols of T-MDE, with LASER's classifier: train on language X, test on language Y.

Protocols (T-MDE, section 4.5). For each source X the classifier of ``perceptron.py`` is trained on frozen unit vectors
of ``X.train.1000``; the epoch is the best on ``X.dev``, and ``Y.test`` is tested. ``accuracy X→Y`` is a cell; ``Same``
is the mean over X = Y, ``Cross`` over X ≠ Y, ``All`` over all. Protocol I is ``train_languages=("english",)`` (Table
4.2), II is all languages (Table 4.3), III is ``languages=("english", "spanish")`` (Table 4.5). There is a run for
each seed, and the means are reported.

With ``folds`` (T-MDE, Table 4.4: ten): the documents of ``train.10000``, dev and test of a language are pooled and
shuffled; ``folds / 2`` disjoint samples of 2,000 are halved, and the halves swap the roles of training and test. The
dev part of all folds is 1,000 documents that no sample has. ``compare.py`` tests the folds of two encoders. Smaller
collections have smaller halves.

``on_dev`` tests on ``Y.dev`` instead of ``Y.test``: so T-MDE chooses its checkpoint, by Cross (``studies.evaluators``).

``mldoc_svm`` has a linear support vector machine in place of the perceptron (NTDV, thesis, section 3.4, on RCV1 and
RCV2, which have the layout of MLDoc here); it needs no dev part.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .benchmark import PathBenchmark, Score, over_runs
from .classification import span_features
from .crosslingual import ARROW, languages
from .encoders import Document, Embeddings
from .labelled import FORMATS, Labelled, read_mldoc_part
from .perceptron import Classes, Features, Perceptron, train

_LARGEST_HALF: Final = 1000
_HEAD: Final = Perceptron()
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class LinearSvm:
    """The options of scikit-learn's ``LinearSVC``: squared hinge loss, one class against the rest.

    Attributes:
      c: inverse of the strength of the L2 penalty.
    """

    c: float = 1.0


Head = Perceptron | LinearSvm


class Parts(NamedTuple):
    """The numbers of the documents of one language, by their part in one run."""

    train: Rows
    dev: Rows
    test: Rows


@dataclasses.dataclass(frozen=True)
class MlDoc(PathBenchmark):
    """Cross-lingual classification with LASER's classifier.

    Attributes:
      path: folder with ``LANGUAGE.train.1000``, ``LANGUAGE.dev``, ``LANGUAGE.test`` and, for folds,
        ``LANGUAGE.train.10000``.
      name: the name in tables.
      languages: which of the folder; empty takes all.
      train_languages: those to train on; empty takes all of ``languages``.
      folds: an even number of folds; 0 takes the official parts.
      seeds: of the classifier, one run each; folds have their number as seed instead.
      head: the options of the classifier.
      on_dev: whether to test on the dev parts; the test parts are then not read. Not with folds.
      excluded: documents to leave out, see ``leakage.py``.
    """

    path: str
    name: str
    languages: tuple[str, ...] = ()
    train_languages: tuple[str, ...] = ()
    folds: int = 0
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    head: Head = _HEAD
    on_dev: bool = False
    excluded: frozenset[Document] = frozenset()

    def __post_init__(self) -> None:
        if self.folds < 0 or self.folds % 2:
            raise InputError(f"got {self.folds}", field="folds", remedy="give an even number, such as 10, or 0")
        if self.folds and self.on_dev:
            raise InputError(
                f"got on_dev and {self.folds} folds", field="folds", remedy="folds have their own dev part"
            )

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        suite = f"{'mldoc_svm' if isinstance(self.head, LinearSvm) else 'mldoc_laser'} X→Y"
        if self.languages:
            suite += f" of {', '.join(sorted(self.languages))}"
        if self.train_languages:
            suite += f" from {', '.join(sorted(self.train_languages))}"
        head = dataclasses.asdict(self.head)
        if isinstance(self.head, Perceptron):
            head |= {"hidden": list(self.head.hidden)}
        runs: dict[str, Any] = {"folds": self.folds} if self.folds else {"seeds": list(self.seeds)}
        tested = {"tested": "dev"} if self.on_dev else {}
        return {"suite": suite, "head": head, **runs, **tested, "excluded": len(self.excluded)}

    @functools.cached_property
    def _names(self) -> list[str]:
        found = languages(self.path, "mldoc")
        names = sorted(self.languages) or found
        for field, asked, known in (
            ("languages", self.languages, found),
            ("train_languages", self.train_languages, names),
        ):
            missing = sorted(set(asked) - set(known))
            if missing or not known:
                raise InputError(
                    f"got the languages {', '.join(missing) or 'none'}, expected some of {', '.join(known) or 'none'}",
                    path=self.path,
                    field=field,
                    remedy=f"expected for each language: {FORMATS['mldoc'].layout}",
                )
        return names

    @functools.cached_property
    def _rows(self) -> dict[str, list[tuple[Labelled, ...]]]:
        """The documents of each language: of training, dev and, unless dev is tested, test."""
        first = "train.10000" if self.folds else "train.1000"
        names = (first, "dev") if self.on_dev else (first, "dev", "test")
        return {
            name: [
                tuple(row for row in read_mldoc_part(path, part) if row.document not in self.excluded) for part in names
            ]
            for name in self._names
            for path in (os.path.join(self.path, name),)
        }

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [row.document for parts in self._rows.values() for part in parts for row in part]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``accuracy`` of Same, Cross and All, and of every cell, as means over seeds or folds.

        Raises:
          InputError: if a language has too few documents for the folds.
        """
        labels = np.array([row.label for parts in self._rows.values() for part in parts for row in part])
        classes = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        runs = self._runs()
        sources = sorted(self.train_languages) or self._names
        cells: dict[tuple[str, str], list[float]] = {}
        for seed, parts in runs:
            for source in sources:
                tested = np.concatenate([parts[target].test for target in self._names])
                found = _predict(self.head, embeddings, classes, parts[source], tested, seed)
                for target in self._names:
                    end = len(parts[target].test)
                    here, found = found[:end], found[end:]
                    accuracy = float(np.mean(here == classes[parts[target].test]))
                    cells.setdefault((source, target), []).append(accuracy)
        return self._scores(cells, {name: len(parts.test) for name, parts in runs[0][1].items()})

    def _scores(self, cells: Mapping[tuple[str, str], list[float]], tested: Mapping[str, int]) -> list[Score]:
        groups = {
            "Same": [values for (source, target), values in cells.items() if source == target],
            "Cross": [values for (source, target), values in cells.items() if source != target],
            "All": list(cells.values()),
        }
        scores = []
        for group, values in groups.items():
            if values:
                means = [float(mean) for mean in np.mean(values, axis=0)]
                score = over_runs("accuracy", means, group, len(values))
                scores.append(dataclasses.replace(score, folds=tuple(means)) if self.folds else score)
        for (source, target), of_runs in cells.items():
            score = over_runs("accuracy", of_runs, f"{source}{ARROW}{target}", tested[target])
            scores.append(dataclasses.replace(score, folds=tuple(of_runs)) if self.folds else score)
        return scores

    def _runs(self) -> list[tuple[int, dict[str, Parts]]]:
        """The seed and the parts of each run."""
        starts: dict[str, list[int]] = {}
        start = 0
        for name, parts in self._rows.items():
            starts[name] = [start]
            for part in parts:
                start += len(part)
                starts[name].append(start)
        if not self.folds:
            ranges = {name: [np.arange(a, b) for a, b in itertools.pairwise(ends)] for name, ends in starts.items()}
            official = {name: Parts(train, dev, *(rest or [dev])) for name, (train, dev, *rest) in ranges.items()}
            return [(seed, official) for seed in self.seeds]
        of_language = {
            name: folds_of(np.arange(ends[0], ends[-1]), self.folds, path=os.path.join(self.path, name))
            for name, ends in starts.items()
        }
        return [(number, {name: folds[number] for name, folds in of_language.items()}) for number in range(self.folds)]


def folds_of(pool: Rows, folds: int, path: str = "") -> list[Parts]:
    """Returns the parts of each fold: halves of disjoint samples that swap their roles, and one dev part.

    >>> [part.tolist() for part in folds_of(np.arange(3), 2)[0]]
    [[2], [1], [0]]

    Args:
      pool: numbers of documents ``[N]``.
      folds: their even number.
      path: for the error.

    Raises:
      InputError: if there are fewer than ``folds + 1`` documents.
    """
    half = min(_LARGEST_HALF, len(pool) // (folds + 1))
    if not half:
        raise InputError(
            f"got {len(pool)} documents for {folds} folds", path=path, field="folds", remedy="give fewer folds"
        )
    drawn = np.random.default_rng(0).permutation(pool)
    halves = [drawn[number * half : (number + 1) * half] for number in range(folds)]
    dev = drawn[folds * half : (folds + 1) * half]
    # Folds 2 k and 2 k + 1 are the halves of one sample: each is the other's test part.
    return [Parts(halves[number], dev, halves[number ^ 1]) for number in range(folds)]


def _predict(head: Head, embeddings: Embeddings, classes: Classes, source: Parts, tested: Rows, seed: int) -> Classes:
    """Returns the classes of the tested rows by the classifier of one source."""
    known, others = _features(embeddings[source.train], embeddings[np.concatenate([source.dev, tested])])
    dev, asked = others[: len(source.dev)], others[len(source.dev) :]
    if isinstance(head, LinearSvm):
        from sklearn.svm import LinearSVC

        machine = LinearSVC(C=head.c, random_state=seed).fit(known, classes[source.train])
        found: Classes = machine.predict(asked).astype(np.int32)
        return found
    count = int(classes.max()) + 1
    trained = train(head, (known, classes[source.train]), (dev, classes[source.dev]), count, seed)
    return trained.predict(asked)


def _features(known: Embeddings, others: Embeddings) -> tuple[Features, Features]:
    """Returns dense rows; sparse ones as coordinates in the span of the training rows, as few-shot heads read them."""
    from scipy import sparse

    if sparse.issparse(known):
        known, others = span_features(known, others)
    return np.asarray(known, np.float32), np.asarray(others, np.float32)
