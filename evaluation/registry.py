"""The suites by name, and the discovery of suites in a folder of benchmarks.

The docstring of each suite's module describes its protocol: ``sts``, ``pairs``, ``classification``, ``crosslingual``,
``clustering``, ``retrieval``, ``bitext``, ``mining``, ``duplicates``, ``display``, ``links``, ``mldoc``, ``nli``.
"""

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ..errors import InputError
from .benchmark import Benchmark
from .bitext import BitextRetrieval
from .classification import DEFAULT_HEAD, SHOTS, TASKS, NewsClassification
from .clustering import Clustering
from .crosslingual import CrossLingual, languages
from .day_pairs import DayDuplicates
from .display import Display
from .duplicates import NearDuplicates
from .files import folder_entries
from .labelled import FORMATS
from .links import PostLinking
from .mining import BitextMining
from .mldoc import LinearSvm, MlDoc
from .nli import DEV, TEST, Xnli
from .pairs import LAYOUTS, PairClassification
from .retrieval import SameEventRetrieval
from .sts import Sts

ALL_SUITES: Final = "all"
_DEPTH: Final = 3  # benchmarks/sts/semeval/2014


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Options of protocols, on the command line or in a recipe; see the attributes of the benchmarks."""

    cross_publisher: bool = False
    cross_language: bool = False
    exclude_near_copies: bool = False
    max_day_gap: int | None = None
    label: str = "event"
    min_cluster_size: int = 1
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    at_k: int | None = None
    intervals: bool = False
    languages: tuple[str, ...] = ()
    train_languages: tuple[str, ...] = ()
    folds: int = 0
    head: str = DEFAULT_HEAD
    shots: tuple[int, ...] = SHOTS
    tasks: tuple[str, ...] = TASKS
    draws: bool = False


Builder = Callable[[str, str, Options], Benchmark]


def _classification(form: str) -> Builder:
    return lambda path, name, options: NewsClassification(
        path, form, name, options.tasks, seeds=options.seeds, head=options.head, shots=options.shots
    )


def _pairs(form: str) -> Builder:
    return lambda path, name, _: PairClassification(path, form, name)


def _events(path: str, name: str, options: Options) -> Benchmark:
    return SameEventRetrieval(
        path,
        name,
        cross_publisher=options.cross_publisher,
        cross_language=options.cross_language,
        exclude_near_copies=options.exclude_near_copies,
        max_day_gap=options.max_day_gap,
        at_k=options.at_k,
        intervals=options.intervals,
        draws=options.draws,
    )


def _events_across(path: str, name: str, options: Options) -> Benchmark:
    return _events(path, name, dataclasses.replace(options, cross_language=True))


def _mldoc_laser(path: str, name: str, options: Options) -> Benchmark:
    return MlDoc(path, name, options.languages, options.train_languages, options.folds, options.seeds)


def _mldoc_svm(path: str, name: str, options: Options) -> Benchmark:
    # The classifier is the same for every seed.
    return MlDoc(path, name, options.languages, options.train_languages, options.folds, (0,), LinearSvm())


SUITES: Final[Mapping[str, Builder]] = {
    "events": _events,
    "events_across": _events_across,
    "clustering": lambda path, name, options: Clustering(
        path, name, options.label, options.seeds, options.min_cluster_size
    ),
    "topic_clustering": lambda path, name, options: Clustering(
        path, name, "topic", options.seeds, options.min_cluster_size
    ),
    "sts": lambda path, name, options: Sts(path, name, intervals=options.intervals),
    **{form: _classification(form) for form in FORMATS},
    **{form: _pairs(form) for form in LAYOUTS},
    "masakhanews_xy": lambda path, name, _: CrossLingual(path, "masakhanews", name),
    "mldoc_xy": lambda path, name, _: CrossLingual(path, "mldoc", name),
    "mldoc_laser": _mldoc_laser,
    "mldoc_svm": _mldoc_svm,
    "xnli": lambda path, name, options: Xnli(path, name, options.languages),
    "tatoeba": lambda path, name, _: BitextRetrieval(path, name),
    "links": lambda path, name, options: PostLinking(path, name, draws=options.draws),
    "title_links": lambda path, name, options: PostLinking(path, name, titles=True, draws=options.draws),
    "bucc": lambda path, name, _: BitextMining(path, name),
    "duplicates": lambda path, name, _: NearDuplicates(path, name),
    "day_duplicates": lambda path, name, options: DayDuplicates(path, name, draws=options.draws),
    "display": lambda path, name, _: Display(path, name),
}


def discover(root: str, options: Options) -> list[Benchmark]:
    """Finds every benchmark below ``root`` in its distributed layout.

    Returns:
      The benchmarks in the order of folders, named by suite and folder.

    Raises:
      InputError: if there is no such folder, or if it contains no known layout.
    """
    remedy = "give a folder with benchmarks as distributed, or give a --suite and its folder"
    folder_entries(root, remedy)
    found = []
    for folder in _folders(root, _DEPTH):
        for suite, path in _suites_in(folder):
            place = os.path.relpath(path, root)
            name = os.path.basename(os.path.abspath(path)) if place == "." else place
            found.append(SUITES[suite](path, f"{suite} ({name})", options))
    if not found:
        raise InputError("no known benchmark in the folder", path=root, remedy=remedy)
    return found


def _folders(root: str, depth: int) -> Iterator[str]:
    yield root
    if depth:
        for name in sorted(os.listdir(root)):
            inner = os.path.join(root, name)
            if os.path.isdir(inner) and not name.startswith("."):
                yield from _folders(inner, depth - 1)


def _suites_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yields (suite, path) of the benchmarks directly in this folder."""
    names = set(os.listdir(folder))
    for suites, is_here in _SIGNATURES:
        if is_here(folder, names):
            yield from ((suite, folder) for suite in suites)
    for form, is_here in _LANGUAGE_SIGNATURES.items():
        if is_here(folder, names):
            yield from ((form, os.path.join(folder, name)) for name in languages(folder, form))
            yield f"{form}_xy", folder
    yield from ((suite, folder) for suite, layout in LAYOUTS.items() if set(layout.files) <= names)


Signature = Callable[[str, set[str]], bool]


def _is_sts(folder: str, names: set[str]) -> bool:
    year = os.path.basename(folder).isdigit() and _has(names, "", ".test.tsv")
    return bool({"sts-test.csv", "SICK_test_annotated.txt"} & names) or _has(names, "STS.gs.", ".txt") or year


def _is_mind(folder: str, _: set[str]) -> bool:
    return any(
        os.path.exists(os.path.join(folder, name, "news.tsv"))
        for name in ("train", "MINDsmall_train", "MINDlarge_train")
    )


def _has(names: set[str], prefix: str, suffix: str) -> bool:
    return any(name.startswith(prefix) and name.endswith(suffix) for name in names)


_SIGNATURES: Final[tuple[tuple[tuple[str, ...], Signature], ...]] = (
    (("bbc",), lambda _, names: {"business", "sport", "tech"} <= names),
    (("newsgroups", "newsgroups_stripped"), lambda _, names: "20news-bydate-train" in names),
    (("agnews",), lambda folder, names: "test.csv" in names and "ag_news" in os.path.abspath(folder)),
    (("mind",), _is_mind),
    (("sts",), _is_sts),
    (("xnli",), lambda _, names: {DEV, TEST} <= names),
    (("tatoeba",), lambda _, names: _has(names, "tatoeba.", ".eng")),
    (("bucc",), lambda _, names: _has(names, "", ".gold")),
)
_LANGUAGE_SIGNATURES: Final[Mapping[str, Signature]] = {
    "masakhanews": lambda folder, _: "masakha" in os.path.basename(folder).lower(),
    "mldoc": lambda _, names: _has(names, "", ".train.1000"),
}
