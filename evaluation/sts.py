"""Semantic textual similarity: Spearman's rank correlation between people's scores and cosines.

Protocol. The two sentences of each pair are embedded as documents without a title. The predicted score is their cosine;
the measure is SciPy's Spearman correlation (ties share their mean rank). Published tables aggregate in two ways. Both
are reported for a set with several sources: over the concatenation of all pairs (``Spearman``; MTEB, SBERT, SimCSE),
and SentEval's means over the correlations of the sources, plain (``Spearman mean``) and weighted by their number of
pairs (``Spearman weighted``). STS-B is also scored by genre (NewsEmbed, Table 4).

Files are read as they are distributed; the names and first lines identify the layout:

- SemEval: ``score<TAB>sentence1<TAB>sentence2``. A fourth column names the part (a language, a genre), which is also
  scored separately.
- A folder of a SemEval year: such ``.tsv`` files, or pairs of files ``STS.input.SOURCE.txt`` and ``STS.gs.SOURCE.txt``.
- STS-B: ``sts-*.csv`` (tab-separated, no header, no quoting: genre, file, year, number, score, sentence1, sentence2,
  …), or its folder, whose test part is read.
- SICK: a file with its header line, or its folder, whose test part is read.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .benchmark import ALL, PathBenchmark, Score
from .encoders import Document, Embeddings, paired_cosines
from .files import folder_entries
from .intervals import spearman_interval

_LAYOUTS: Final = (
    "score<TAB>sentence1<TAB>sentence2[<TAB>part], STS-B's sts-*.csv, SICK's annotated .txt, "
    "or a folder of them (SemEval: *.tsv or STS.input.*.txt with STS.gs.*.txt)"
)
_SOURCE: Final = "SemEval STS and STS-B: https://ixa2.si.ehu.eus/stswiki; SICK: https://zenodo.org/records/2787612"
_TEST_FILES: Final = ("sts-test.csv", "SICK_test_annotated.txt")


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences, people's similarity score, and the genre ("" if the layout has none)."""

    score: float
    first: str
    second: str
    genre: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    name: str
    score: int
    first: int
    second: int
    genre: int | None = None
    header: bool = False

    @property
    def columns(self) -> int:
        return max(self.score, self.first, self.second) + 1


_SEMEVAL: Final = _Layout("SemEval", 0, 1, 2)
_PARTED: Final = _Layout("SemEval with a part", 0, 1, 2, genre=3)
_STSB: Final = _Layout("STS-B", 4, 5, 6, genre=0)


@dataclasses.dataclass(frozen=True)
class Sts(PathBenchmark):
    """An STS benchmark.

    Attributes:
      path: a file, or the folder of STS-B, SICK or one SemEval year.
      name: the name in tables.
      excluded: sentences to leave out together with their pairs, see ``leakage.py``.
      intervals: whether the correlation over all pairs has a bootstrap interval over pairs.
    """

    path: str
    name: str = "sts"
    excluded: frozenset[Document] = frozenset()
    intervals: bool = False

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {
            "suite": "sts",
            "similarity": "cosine",
            "correlation": "spearman",
            "aggregation": "concatenation; SentEval's means",
            "excluded": len(self.excluded),
        }

    @functools.cached_property
    def _pairs(self) -> list[Pair]:
        pairs = read_source(self.path)
        return [pair for pair in pairs if not {Document("", pair.first), Document("", pair.second)} & self.excluded]

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [Document("", pair.first) for pair in self._pairs] + [Document("", pair.second) for pair in self._pairs]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``Spearman`` over all pairs and by genre or source, and SentEval's means over sources.

        Raises:
          InputError: if all cosines are equal, so that there is no correlation.
        """
        count = len(self._pairs)
        predicted = paired_cosines(embeddings[:count], embeddings[count:])
        gold = np.array([pair.score for pair in self._pairs])
        genres = np.array([pair.genre for pair in self._pairs])
        parts = []
        for genre in sorted(set(genres) - {""}):
            members = genres == genre
            if len(set(gold[members])) > 1:
                parts.append(_spearman(gold[members], predicted[members], str(genre)))
        overall = _spearman(gold, predicted, ALL)
        if self.intervals:
            found = spearman_interval(gold, np.asarray(predicted, np.float64))
            overall = dataclasses.replace(overall, low=found.low, high=found.high)
        return [overall, *_source_means(parts), *parts]


def _source_means(parts: Sequence[Score]) -> list[Score]:
    """SentEval's ``all.spearman.mean`` and ``wmean``."""
    if len(parts) < 2:
        return []
    values, counts = [part.value for part in parts], [part.count for part in parts]
    return [
        Score("Spearman mean", float(np.mean(values)), ALL, sum(counts)),
        Score("Spearman weighted", float(np.average(values, weights=counts)), ALL, sum(counts)),
    ]


def read_source(path: str) -> list[Pair]:
    """Reads the pairs of a file, or of a folder as distributed; the genre of a pair is then the name of its file.

    Raises:
      InputError: as :func:`read_pairs`, and on a folder without STS files.
    """
    if not os.path.isdir(path):
        return read_pairs(path)
    remedy = f"get it from {_SOURCE}; expected {_LAYOUTS}"
    names = folder_entries(path, remedy)
    for name in _TEST_FILES:
        if name in names:
            return read_pairs(os.path.join(path, name))
    tables = {name.split(".")[0]: read_pairs(os.path.join(path, name)) for name in names if name.endswith(".tsv")}
    inputs = [
        name for name in names if name.startswith("STS.input.") and f"STS.gs.{name.removeprefix('STS.input.')}" in names
    ]
    tables |= {name.removeprefix("STS.input.").removesuffix(".txt"): _read_halves(path, name) for name in inputs}
    if not tables:
        raise InputError("no STS files in the folder", path=path, remedy=remedy)
    return [dataclasses.replace(pair, genre=source) for source, pairs in tables.items() for pair in pairs]


def _read_halves(folder: str, name: str) -> list[Pair]:
    """Reads SemEval's two files: sentences in one, scores in the other, where a blank line means no score.

    Raises:
      InputError: if the files do not have the same number of lines.
    """
    path = os.path.join(folder, name)
    gold = os.path.join(folder, f"STS.gs.{name.removeprefix('STS.input.')}")
    sentences, scores = (_lines(file) for file in (path, gold))
    count = len([line for line in sentences if line.strip()])
    if (
        [line for line in sentences[count:] if line.strip()]
        or len(scores) < count
        or any(line.strip() for line in scores[count:])
    ):
        raise InputError(
            f"{count} pairs, but {len(scores)} lines of scores",
            path=gold,
            remedy="give both files of the same source, complete",
        )
    lines = [f"{score.strip()}\t{pair}" for score, pair in zip(scores[:count], sentences[:count], strict=True)]
    found = [_pair(line.split("\t"), _SEMEVAL, f"{path}:{number}") for number, line in enumerate(lines, 1)]
    return [pair for pair in found if pair is not None]


def read_pairs(path: str) -> list[Pair]:
    """Reads the scored pairs of one file; pairs without a score, which SemEval has, are skipped.

    Raises:
      InputError: on a missing file, wrong columns, a score that is not a number, an empty sentence, or one score for
        all pairs.
    """
    lines = _lines(path)
    layout = _layout(lines, path)
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip()]
    pairs = [_pair(columns, layout, f"{path}:{number}") for number, columns in rows[int(layout.header) :]]
    scored = [pair for pair in pairs if pair is not None]
    if len({pair.score for pair in scored}) < 2:
        raise InputError(
            f"{len(scored)} scored pairs with fewer than two distinct scores",
            path=path,
            remedy="give a file whose scores differ",
        )
    return scored


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read().split("\n")
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", path=path, remedy=f"get it from {_SOURCE}; expected {_LAYOUTS}"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error}", path=path, remedy="convert it to UTF-8") from error


def _layout(lines: list[str], path: str) -> _Layout:
    first = next((line for line in lines if line.strip()), "").rstrip("\r").split("\t")
    if {"sentence_A", "sentence_B", "relatedness_score"} <= set(first):
        return _Layout(
            "SICK", first.index("relatedness_score"), first.index("sentence_A"), first.index("sentence_B"), header=True
        )
    if len(first) >= _STSB.columns and _number(first[_STSB.score]) is not None:
        return _STSB
    if len(first) == _SEMEVAL.columns + 1 and _number(first[_PARTED.score]) is not None:
        return _PARTED
    if len(first) == _SEMEVAL.columns and (not first[0].strip() or _number(first[0]) is not None):
        return _SEMEVAL
    raise InputError(
        f"the {len(first)} tab-separated columns of the first line match no known layout",
        path=path,
        remedy=f"give {_LAYOUTS}",
    )


def _pair(columns: list[str], layout: _Layout, where: str) -> Pair | None:
    if len(columns) < layout.columns:
        raise InputError(
            f"got {len(columns)} tab-separated columns, expected at least {layout.columns} ({layout.name})",
            path=where,
            remedy="fix the line",
        )
    text = columns[layout.score].strip()
    if not text:
        return None
    score = _number(text)
    if score is None:
        raise InputError(f"got {text!r}, expected a number", path=where, field="score", remedy="fix the line")
    first, second = columns[layout.first].strip(), columns[layout.second].strip()
    if not first or not second:
        raise InputError(
            "a sentence is empty",
            path=where,
            field="sentence2" if first else "sentence1",
            remedy="fix or remove the line",
        )
    return Pair(score, first, second, "" if layout.genre is None else columns[layout.genre])


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _spearman(gold: Any, predicted: Any, part: str) -> Score:
    from scipy.stats import spearmanr

    if len(set(predicted.tolist())) < 2:
        raise InputError(
            f"all {len(predicted)} cosines of {part} are equal, so there is no correlation",
            remedy="use another encoder: this one maps all texts to one point",
        )
    return Score("Spearman", float(spearmanr(gold, predicted).statistic), part, len(gold))
