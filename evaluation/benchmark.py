"""Benchmarks: their interface, scores and results, and the suites by name.

A module in ``benchmarks/`` is one file to add: a dataclass that inherits from `Benchmark`, whose docstring says the
protocol and whose fields made by ``option`` are options of ``newsembed evaluate`` and of recipes; and ``SUITES``, which
names it.
"""

import dataclasses
import functools
import importlib
import math
import os
import pkgutil
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.command_line import Options, option
from .encoders import Document, Embeddings
from .files import folder_entries

ALL: Final = "all"
ARROW: Final = "→"  # of the cells of a benchmark that trains on language X and tests on language Y
AVERAGES: Final = ("Same", "Cross", "All")  # of cells with X = Y, with X ≠ Y, of all cells
ALL_SUITES: Final = "all"
_REMEDY: Final = "give a folder with benchmarks as distributed, or give a --suite and its folder"
_DEPTH: Final = 3  # benchmarks/sts/semeval/2014


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """One number of one benchmark.

    Attributes:
      metric: name as in the tables ("mAP", "ARI", "Spearman").
      value: in the metric's own range, never scaled by 100.
      part: the slice of the data: a language, a genre, or "all".
      count: number of queries, documents or pairs in the slice.
      std: standard deviation over runs (n - 1 in the denominator); ``None`` for a single run.
      runs: number of seeds, folds or repeats; ``value`` is their mean.
      low, high: the ends of the 95 % bootstrap interval, see ``statistics.py``; ``None`` without one.
      folds: the values of the folds of a protocol that has the same folds for all encoders.
      draws: the values on the resamples of a protocol that draws the same ones for all encoders, for paired tests;
        empty unless the option ``draws`` asks for them.
    """

    metric: str
    value: float
    part: str = ALL
    count: int = 0
    std: float | None = None
    runs: int = 1
    low: float | None = None
    high: float | None = None
    folds: tuple[float, ...] = ()
    draws: tuple[float, ...] = ()

    @property
    def confidence(self) -> float | None:
        """Half the width of the 95 % confidence interval of the mean over runs; ``None`` for a single run.

        Student's t distribution with ``runs - 1`` degrees of freedom.
        """
        if self.std is None or self.runs < 2:
            return None
        from scipy.stats import t

        return float(t.ppf(0.975, self.runs - 1)) * self.std / math.sqrt(self.runs)


def over_runs(metric: str, values: Sequence[float], part: str, count: int) -> Score:
    """Returns the mean and the standard deviation over runs as one score; a single run has no deviation."""
    std = statistics.stdev(values) if len(values) > 1 else None
    return Score(metric, statistics.fmean(values), part, count, std, len(values))


_T = TypeVar("_T")


def by_average(cells: Mapping[tuple[str, str], _T]) -> dict[str, list[_T]]:
    """The cells (X, Y) of each of `AVERAGES` that has some."""
    same, cross = (
        [cell for pair, cell in cells.items() if (pair[0] == pair[1]) == is_same] for is_same in (True, False)
    )
    return {name: of for name, of in zip(AVERAGES, (same, cross, [*cells.values()]), strict=True) if of}


def with_averages(cells: Mapping[tuple[str, str], Score]) -> list[Score]:
    """Accuracies of cells after their averages, whose ``count`` is the number of cells."""
    averages = by_average({pair: cell.value for pair, cell in cells.items()}).items()
    return [*(Score("accuracy", float(np.mean(of)), part, len(of)) for part, of in averages), *cells.values()]


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One encoder on one benchmark.

    Attributes:
      status: "ok", or "failed": then ``error`` is the reason and there are no scores.
      seconds: wall time of embedding; if ``from_cache``, of the run that filled the cache.
      scoring_seconds: wall time of the metric.
    """

    encoder: str
    benchmark: str
    status: Literal["ok", "failed"]
    scores: tuple[Score, ...] = ()
    error: str = ""
    texts: int = 0
    dimensions: int = 0
    seconds: float = 0.0
    scoring_seconds: float = 0.0
    from_cache: bool = False

    @property
    def texts_per_second(self) -> float | None:
        """Texts embedded each second; ``None`` without a measured time."""
        return self.texts / self.seconds if self.seconds > 0 else None


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """All results of one run, in the order of encoders, then of benchmarks, with the manifest."""

    results: tuple[Result, ...]
    manifest: Mapping[str, Any]

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results of encoders and benchmarks that failed."""
        return tuple(result for result in self.results if result.status == "failed")

    @property
    def encoders(self) -> list[str]:
        """The names of the encoders."""
        return list(dict.fromkeys(result.encoder for result in self.results))

    def by_benchmark(self) -> dict[str, list[Result]]:
        """The results of each benchmark, in the order of encoders."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            found.setdefault(result.benchmark, []).append(result)
        return found

    def score(self, encoder: str, benchmark: str, metric: str, part: str = ALL) -> float:
        """Returns one number; a KeyError if that benchmark failed or has no such number."""
        for result in self.results:
            if (result.encoder, result.benchmark) == (encoder, benchmark):
                for score in result.scores:
                    if (score.metric, score.part) == (metric, part):
                        return score.value
        raise KeyError((encoder, benchmark, metric, part))


@dataclasses.dataclass(frozen=True)
class Benchmark(Options, ABC):
    """Documents to embed, and a function from their embeddings to scores.

    Reading is lazy: a missing or broken file raises InputError from ``documents`` and fails this benchmark only.

    Attributes:
      path: the file or folder that it reads, as distributed.
      name: in tables; unique in a run.
      excluded: documents to leave out, together with the pairs that they are in, see ``leakage.py``.
    """

    path: str
    name: str = ""
    excluded: frozenset[Document] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """What it reads, for the digests in the results manifest."""
        return (self.path,)

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        draws = {"draws": True} if getattr(self, "draws", False) else {}
        return {**self._facts(), **draws, "excluded": len(self.excluded)}

    def documents(self) -> Sequence[Document]:
        """All documents, in the order in which ``score`` expects their embeddings."""
        return self._texts()

    def score(self, embeddings: Embeddings) -> list[Score]:
        """The scores of normalised embeddings, float32 ``[N, D]``, dense or CSR."""
        return self._scores(embeddings)

    def keeps(self, *documents: Document) -> bool:
        """Whether none of the documents is left out."""
        return self.excluded.isdisjoint(documents)

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """The suite, as ``published.json`` names it, and the options of the protocol."""

    @abstractmethod
    def _texts(self) -> Sequence[Document]: ...

    @abstractmethod
    def _scores(self, embeddings: Embeddings) -> list[Score]: ...


def seeds_option() -> int:
    """An option that several benchmarks share."""
    return option(5, "runs of k-means, and of mldoc_laser without folds, seeds 0 to N-1", ge=1)


def draws_option() -> bool:
    """An option that several benchmarks share."""
    return option(False, "keep the scores of each resample (events, links) or day, for paired tests of encoders")


def intervals_option() -> bool:
    """An option that several benchmarks share."""
    return option(False, "95 % bootstrap intervals of events (over events) and sts (over pairs); always with --recipe")


def languages_option() -> tuple[str, ...]:
    """An option that several benchmarks share."""
    text = "mldoc_laser, mldoc_svm, xnli: only these languages, such as english spanish (xnli: en es)"
    return option((), text, many=True, metavar="LANGUAGE")


@dataclasses.dataclass(frozen=True)
class Suite:
    """A benchmark as ``--suite`` names it.

    Attributes:
      kind: makes it.
      fixed: values of its fields; they are no options of this suite.
      find: the benchmarks directly in a folder, given its path and the names in it: a path for each.
    """

    kind: Callable[..., Benchmark]
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    find: Callable[[str, set[str]], Iterable[str]] = lambda _folder, _names: ()

    @property
    def options(self) -> dict[str, "dataclasses.Field[Any]"]:
        """Its options by name."""
        fields = dataclasses.fields(self.kind)  # type: ignore[arg-type]  # a dataclass is callable
        return {field.name: field for field in fields if "help" in field.metadata and field.name not in self.fixed}

    def make(self, path: str, name: str, options: Mapping[str, Any] | None = None) -> Benchmark:
        """The benchmark, with those of the options that it has."""
        own = {key: value for key, value in (options or {}).items() if key in self.options}
        return self.kind(path, name, **own, **self.fixed)


def here(is_here: Callable[[str, set[str]], bool]) -> Callable[[str, set[str]], Iterable[str]]:
    """`Suite.find` of a benchmark that is the folder itself."""
    return lambda folder, names: [folder] if is_here(folder, names) else []


def has(*files: str) -> Callable[[str, set[str]], Iterable[str]]:
    """`Suite.find` of a benchmark that is a folder with these files."""
    return here(lambda _, names: names.issuperset(files))


def by_language(languages: Sequence[str]) -> dict[str, npt.NDArray[np.bool_]]:
    """Which documents are of each part, bool ``[N]``: of all, then of each language where there are several."""
    each, names = np.array(languages), sorted(set(languages))
    parts = {ALL: np.ones(len(each), bool)}
    return parts | ({name or "unknown": each == name for name in names} if len(names) > 1 else {})


@functools.cache
def suites() -> dict[str, Suite]:
    """All suites by name."""
    package = importlib.import_module(".benchmarks", __package__)
    found: dict[str, Suite] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        found |= importlib.import_module(module.name).SUITES
    return found


def chosen(suite: str, path: str, name: str, options: Mapping[str, Any]) -> list[Benchmark]:
    """The benchmark of a suite, or all benchmarks in the folder for "all"."""
    if suite != ALL_SUITES:
        return [suites()[suite].make(path, name, options)]
    if not (found := discover(path, options)):
        raise InputError("no known benchmark in the folder", path=path, remedy=_REMEDY)
    return found


def discover(root: str, options: Mapping[str, Any] | None = None) -> list[Benchmark]:
    """Finds every benchmark below ``root`` in its distributed layout.

    Returns:
      The benchmarks in the order of folders, named by suite and folder.

    Raises:
      InputError: if there is no such folder.
    """
    folder_entries(root, _REMEDY)
    found = []
    for folder, folders, others in os.walk(root, followlinks=True):
        names = {*folders, *others}
        is_deepest = os.path.relpath(folder, root).count(os.sep) == _DEPTH - 1
        folders[:] = [] if is_deepest else sorted(name for name in folders if not name.startswith("."))
        for suite, kind in suites().items():
            for path in kind.find(folder, names):
                place = os.path.relpath(path, root)
                name = os.path.basename(os.path.abspath(path)) if place == "." else place
                found.append(kind.make(path, f"{suite} ({name})", options))
    return found
