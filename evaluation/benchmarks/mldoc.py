"""MLDoc by the protocols of T-MDE, with LASER's classifier: train on language X, test on language Y.

Protocols (T-MDE, section 4.5). For each source X the classifier of ``heads.py`` is trained on frozen unit vectors
of ``X.train.1000``; the epoch is the best on ``X.dev``, and ``Y.test`` is tested. ``accuracy X→Y`` is a cell; ``Same``
is the mean over X = Y, ``Cross`` over X ≠ Y, ``All`` over all. Protocol I is ``train_languages=("english",)`` (Table
4.2), II is all languages (Table 4.3), III is ``languages=("english", "spanish")`` (Table 4.5). There is a run for
each seed, and the means are reported.

With ``folds`` (T-MDE, Table 4.4: ten): the documents of ``train.10000``, dev and test of a language are pooled and
shuffled; ``folds / 2`` disjoint samples of 2,000 are halved, and the halves swap the roles of training and test. The
dev part of all folds is 1,000 documents that no sample has. ``statistics.py`` tests the folds of two encoders. Smaller
collections have smaller halves.

``on_dev`` tests on ``Y.dev`` instead of ``Y.test``: so T-MDE chooses its checkpoint, by Cross (``studies.evaluators``).

``mldoc_svm`` has a linear support vector machine in place of the perceptron (NTDV, thesis, section 3.4, on RCV1 and
RCV2, which have the layout of MLDoc here); it needs no dev part.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import InputError
from ...formats.command_line import option
from ..benchmark import ARROW, Benchmark, Score, Suite, by_average, languages_option, over_runs, seeds_option
from ..encoders import Document, Embeddings
from ..files import FORMATS, Labelled, read_mldoc_part
from ..heads import Classes, Perceptron, Rows, predict, span_features, train
from .classification import languages

_LARGEST_HALF: Final = 1000


class Parts(NamedTuple):
    """The numbers of the documents of one language, by their part in one run."""

    train: Rows
    dev: Rows
    test: Rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class MlDoc(Benchmark):
    """Cross-lingual classification with LASER's classifier.

    The folder has ``LANGUAGE.train.1000``, ``.dev``, ``.test`` and, for folds, ``LANGUAGE.train.10000``.

    Attributes:
      seeds: of the classifier, one run each; folds have their number as seed instead.
      head: the options of the classifier; None: scikit-learn's ``LinearSVC``, squared hinge loss and C = 1.
      on_dev: whether to test on the dev parts; the test parts are then not read. Not with folds.
    """

    languages: tuple[str, ...] = languages_option()
    train_languages: tuple[str, ...] = option(
        (), "mldoc_laser, mldoc_svm: train on these languages only (default: on each)", many=True, metavar="LANGUAGE"
    )
    folds: int = option(
        0,
        "mldoc_laser, mldoc_svm: number of folds (even) of all documents instead of the official parts, with t-tests "
        "of each pair of encoders over them; T-MDE has 10",
        ge=0,
    )
    seeds: int = seeds_option()
    head: Perceptron | None = Perceptron()
    on_dev: bool = False

    def __post_init__(self) -> None:
        """Checks the folds."""
        super().__post_init__()
        if self.folds % 2:
            raise InputError(f"got {self.folds}", field="folds", remedy="give an even number, such as 10, or 0")

    def _facts(self) -> dict[str, Any]:
        suite = f"{'mldoc_laser' if self.head else 'mldoc_svm'} X→Y"
        if self.languages:
            suite += f" of {', '.join(sorted(self.languages))}"
        if self.train_languages:
            suite += f" from {', '.join(sorted(self.train_languages))}"
        head = {**dataclasses.asdict(self.head), "hidden": list(self.head.hidden)} if self.head else {"c": 1.0}
        runs: dict[str, Any] = {"folds": self.folds} if self.folds else {"seeds": list(range(self.seeds))}
        return {"suite": suite, "head": head, **runs, **({"tested": "dev"} if self.on_dev else {})}

    @functools.cached_property
    def _names(self) -> list[str]:
        found = languages(self.path, "mldoc")
        names = sorted(self.languages) or found
        for field, known in (("languages", found), ("train_languages", names)):
            missing = sorted(set(getattr(self, field)) - set(known))
            if missing or not known:
                problem = f"got the languages {', '.join(missing)}, expected some of {', '.join(known)}"
                problem = problem if known else "has no files of any language"
                remedy = f"expected for each language: {FORMATS['mldoc'].layout}"
                raise InputError(problem, path=self.path, field=field, remedy=remedy)
        return names

    @functools.cached_property
    def _rows(self) -> dict[str, list[list[Labelled]]]:
        """The documents of each language: of training, dev and, unless dev is tested, test."""
        parts = ["train.10000" if self.folds else "train.1000", "dev", *([] if self.on_dev else ["test"])]
        return {
            name: [
                [row for row in read_mldoc_part(os.path.join(self.path, name), part) if self.keeps(row.document)]
                for part in parts
            ]
            for name in self._names
        }

    def _texts(self) -> Sequence[Document]:
        return [row.document for parts in self._rows.values() for part in parts for row in part]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        labels = np.array([row.label for parts in self._rows.values() for part in parts for row in part])
        classes = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        runs = self._runs()
        cells: dict[tuple[str, str], list[float]] = {}
        for seed, parts in runs:
            for source in sorted(self.train_languages) or self._names:
                tested = np.concatenate([parts[target].test for target in self._names])
                found = _predict(self.head, embeddings, classes, parts[source], tested, seed)
                for target in self._names:
                    end = len(parts[target].test)
                    here, found = found[:end], found[end:]
                    accuracy = float(np.mean(here == classes[parts[target].test]))
                    cells.setdefault((source, target), []).append(accuracy)
        # The averages and the cells, as means over seeds or folds.
        averages = by_average(cells).items()
        rows = [(part, np.mean(of, axis=0).tolist(), len(of)) for part, of in averages]
        rows += [(f"{one}{ARROW}{two}", of, len(runs[0][1][two].test)) for (one, two), of in cells.items()]
        scores = [over_runs("accuracy", values, part, count) for part, values, count in rows]
        if self.folds:
            folds = [tuple(values) for _, values, _ in rows]
            scores = [dataclasses.replace(one, folds=own) for one, own in zip(scores, folds, strict=True)]
        return scores

    def _runs(self) -> list[tuple[int, dict[str, Parts]]]:
        """The seed and the parts of each run."""
        ends = np.cumsum([0, *(len(part) for parts in self._rows.values() for part in parts)])
        numbers = [np.arange(*pair) for pair in itertools.pairwise(ends)]
        each = len(numbers) // len(self._rows)
        own = {name: numbers[place * each :][:each] for place, name in enumerate(self._rows)}
        if not self.folds:
            official = {name: Parts(train, dev, *(rest or [dev])) for name, (train, dev, *rest) in own.items()}
            return [(seed, official) for seed in range(self.seeds)]
        folds = {
            name: folds_of(np.concatenate(parts), self.folds, os.path.join(self.path, name))
            for name, parts in own.items()
        }
        return [(number, {name: some[number] for name, some in folds.items()}) for number in range(self.folds)]


def folds_of(pool: Rows, folds: int, path: str = "") -> list[Parts]:
    """Returns the parts of each fold: halves of disjoint samples that swap their roles, and one dev part.

    >>> [part.tolist() for part in folds_of(np.arange(3), 2)[0]]
    [[2], [1], [0]]

    Args:
      pool: numbers of documents ``[N]``.
      folds: their even number.
      path: for the error.
    """
    half = min(_LARGEST_HALF, len(pool) // (folds + 1))
    if not half:
        problem = f"got {len(pool)} documents for {folds} folds"
        raise InputError(problem, path=path, field="folds", remedy="give fewer folds")
    drawn = np.random.default_rng(0).permutation(pool)
    halves = [drawn[number * half : (number + 1) * half] for number in range(folds)]
    dev = drawn[folds * half : (folds + 1) * half]
    # Folds 2 k and 2 k + 1 are the halves of one sample: each is the other's test part.
    return [Parts(halves[number], dev, halves[number ^ 1]) for number in range(folds)]


def _predict(
    head: Perceptron | None, embeddings: Embeddings, classes: Classes, source: Parts, tested: Rows, seed: int
) -> Classes:
    """Returns the classes of the tested rows by the classifier of one source.

    It reads dense rows; sparse ones as coordinates in the span of the training rows, as few-shot heads read them.
    """
    from scipy import sparse

    known, others = embeddings[source.train], embeddings[np.concatenate([source.dev, tested])]
    if sparse.issparse(known):
        known, others = span_features(known, others)
    known, others = np.asarray(known, np.float32), np.asarray(others, np.float32)
    dev, asked = others[: len(source.dev)], others[len(source.dev) :]
    if head is None:
        from sklearn.svm import LinearSVC

        return LinearSVC(random_state=seed).fit(known, classes[source.train]).predict(asked).astype(np.int32)
    count = int(classes.max()) + 1
    return predict(train(head, (known, classes[source.train]), (dev, classes[source.dev]), count, seed), asked)


SUITES: Final = {
    "mldoc_laser": Suite(MlDoc),
    "mldoc_svm": Suite(MlDoc, {"head": None, "seeds": 1}),  # the classifier is the same for every seed
}
