"""Semantic textual similarity: Spearman's rank correlation between people's scores and cosines.

Protocol. The two sentences of each pair are embedded as documents without a title. The predicted score is their cosine;
the measure is SciPy's Spearman correlation (ties share their mean rank). Published tables aggregate in two ways. Both
are reported for a set with several sources: over the concatenation of all pairs (``Spearman``; MTEB, SBERT, SimCSE),
and SentEval's means over the correlations of the sources, plain (``Spearman mean``) and weighted by their number of
pairs (``Spearman weighted``). STS-B is also scored by genre; ``stsb_genres`` merges its parts (NewsEmbed, Table 4).

Files are read as they are distributed; the names and first lines identify the layout:

- SemEval: ``score<TAB>sentence1<TAB>sentence2``. A fourth column names the part (a language, a genre), which is also
  scored separately.
- A folder of a SemEval year: such ``.tsv`` files, or pairs of files ``STS.input.SOURCE.txt`` and ``STS.gs.SOURCE.txt``.
- STS-B: ``sts-*.csv`` (tab-separated, no header, no quoting: genre, file, year, number, score, sentence1, sentence2,
  …), or its folder, whose test part is read.
- SICK: a file with its header line, or its folder, whose test part is read.

``sick_r`` and ``stsb_head`` score relatedness by a supervised head on frozen vectors (``relatedness.py`` of SentEval,
Conneau and Kiela 2018; NewsEmbed, Table 5). The features of a pair are ``[|u - v|, u * v]``. A score y becomes a
distribution over the scores 1 to 5: y - floor(y) of it on floor(y) + 1, the rest on floor(y) (Tai, Socher and Manning
2015). A softmax of one linear layer is trained on the mean squared error to these distributions, by Adam with batches
of 64. After every 50 epochs the Pearson correlation of the expected score on the dev part is measured: the best
parameters are kept, and training ends at the fourth round without a better one, or after 1,000 epochs. The measure is
the Spearman correlation of expected and true scores of the test part. SentEval's code trains on the squared error,
though its comments name the KL divergence; so does this. A score of STS-B below 1 leaves a distribution that sums to
less than 1, there as here. Here the vectors have length 1.
"""

import dataclasses
import functools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.names import number_in
from ..benchmark import ALL, Benchmark, Score, Suite, has, here, intervals_option
from ..encoders import Document, Embeddings, dense_rows, paired_cosines
from ..files import folder_entries, read_text
from ..heads import Features
from ..statistics import spearman_interval

_LAYOUTS: Final = (
    "score<TAB>sentence1<TAB>sentence2[<TAB>part], STS-B's sts-*.csv, SICK's annotated .txt, "
    "or a folder of them (SemEval: *.tsv or STS.input.*.txt with STS.gs.*.txt)"
)
_SOURCE: Final = "SemEval STS and STS-B: https://ixa2.si.ehu.eus/stswiki; SICK: https://zenodo.org/records/2787612"
_REMEDY: Final = f"get it from {_SOURCE}; expected {_LAYOUTS}"
_STSB_FILES: Final = ("sts-train.csv", "sts-dev.csv", "sts-test.csv")
_TEST_FILES: Final = ("sts-test.csv", "SICK_test_annotated.txt")
_PARTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "sick_r": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
    "stsb_head": _STSB_FILES,
}
SCORES: Final = 5
_BATCH: Final = 64
_ROUND: Final = 50  # epochs between two looks at the dev part
_MOST_EPOCHS: Final = 1000
_PATIENCE: Final = 3  # rounds without a better correlation that are forgiven
_RATE: Final = 1e-3  # of PyTorch's Adam

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences, people's similarity score, and the genre ("" if the layout has none)."""

    score: float
    first: str
    second: str
    genre: str = ""

    @property
    def documents(self) -> tuple[Document, Document]:
        """The sentences to embed."""
        return Document("", self.first), Document("", self.second)


class _Layout(NamedTuple):
    """The columns of a file, and the number of lines before the pairs."""

    name: str
    score: int
    first: int
    second: int
    genre: int | None = None
    headers: int = 0

    @property
    def columns(self) -> int:
        return max(self.score, self.first, self.second, self.genre or 0) + 1


_SEMEVAL: Final = _Layout("SemEval", 0, 1, 2)
_PARTED: Final = _Layout("SemEval with a part", 0, 1, 2, genre=3)
_STSB: Final = _Layout("STS-B", 4, 5, 6, genre=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sts(Benchmark):
    """An STS benchmark: a file, or the folder of STS-B, SICK or one SemEval year."""

    intervals: bool = intervals_option()
    merged: bool = False

    def _facts(self) -> dict[str, Any]:
        measure = {"similarity": "cosine", "correlation": "spearman"}
        return {
            "suite": "stsb_genres" if self.merged else "sts",
            **measure,
            "aggregation": "concatenation; SentEval's means",
        }

    @functools.cached_property
    def _pairs(self) -> list[Pair]:
        return [pair for pair in read_source(self.path, merged=self.merged) if self.keeps(*pair.documents)]

    def _texts(self) -> Sequence[Document]:
        return [pair.documents[side] for side in (0, 1) for pair in self._pairs]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
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
        if len(parts) < 2:
            return [overall, *parts]
        # SentEval's all.spearman.mean and wmean
        values, counts = [part.value for part in parts], [part.count for part in parts]
        means = {"mean": np.mean(values), "weighted": np.average(values, weights=counts)}
        return [
            overall,
            *(Score(f"Spearman {name}", float(mean), ALL, sum(counts)) for name, mean in means.items()),
            *parts,
        ]


def read_source(path: str, *, merged: bool = False) -> list[Pair]:
    """Reads the pairs of a file, or of a folder as distributed; the genre of a pair is then the name of its file.

    Args:
      path: the file or folder.
      merged: reads all three parts of STS-B instead of the test part.
    """
    if not os.path.isdir(path):
        return read_pairs(path)
    names = folder_entries(path, _REMEDY)
    if merged:
        return [pair for name in _STSB_FILES for pair in read_pairs(os.path.join(path, name))]
    if whole := next((name for name in _TEST_FILES if name in names), None):
        return read_pairs(os.path.join(path, whole))
    tables = {name.split(".")[0]: read_pairs(os.path.join(path, name)) for name in names if name.endswith(".tsv")}
    for name in names:
        source = name.removeprefix("STS.input.")
        if name != source and f"STS.gs.{source}" in names:
            tables[source.removesuffix(".txt")] = _read_halves(path, source)
    if not tables:
        raise InputError("no STS files in the folder", path=path, remedy=_REMEDY)
    return [dataclasses.replace(pair, genre=source) for source, pairs in tables.items() for pair in pairs]


def _read_halves(folder: str, source: str) -> list[Pair]:
    """Reads SemEval's two files: sentences in one, scores in the other, where a blank line means no score."""
    path, gold = (os.path.join(folder, f"STS.{kind}.{source}") for kind in ("input", "gs"))
    sentences, scores = (_lines(file) for file in (path, gold))
    count = len([line for line in sentences if line.strip()])
    if len(scores) < count or any(line.strip() for line in [*sentences[count:], *scores[count:]]):
        problem = f"{count} pairs, but {len(scores)} lines of scores"
        raise InputError(problem, path=gold, remedy="give both files of the same source, complete")
    lines = [f"{score.strip()}\t{pair}" for score, pair in zip(scores[:count], sentences[:count], strict=True)]
    found = [_pair(line.split("\t"), _SEMEVAL, f"{path}:{number}") for number, line in enumerate(lines, 1)]
    return [pair for pair in found if pair is not None]


def read_pairs(path: str) -> list[Pair]:
    """Reads the scored pairs of one file; pairs without a score, which SemEval has, are skipped."""
    lines = _lines(path)
    layout = _layout(lines, path)
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip()]
    pairs = [_pair(columns, layout, f"{path}:{number}") for number, columns in rows[layout.headers :]]
    scored = [pair for pair in pairs if pair is not None]
    if len({pair.score for pair in scored}) < 2:
        problem = f"{len(scored)} scored pairs with fewer than two distinct scores"
        raise InputError(problem, path=path, remedy="give a file whose scores differ")
    return scored


def _lines(path: str) -> list[str]:
    return read_text(path, _REMEDY).replace("\r\n", "\n").split("\n")


def _layout(lines: list[str], path: str) -> _Layout:
    first = next((line for line in lines if line.strip()), "").split("\t")
    sick = ("relatedness_score", "sentence_A", "sentence_B")
    if set(sick) <= set(first):
        score, left, right = map(first.index, sick)
        return _Layout("SICK", score, left, right, headers=1)
    if len(first) >= _STSB.columns and math.isfinite(number_in(first[_STSB.score])):
        return _STSB
    if not first[0].strip() or math.isfinite(number_in(first[0])):
        for layout in (_SEMEVAL, _PARTED):
            if len(first) == layout.columns and (first[0].strip() or layout is _SEMEVAL):
                return layout
    problem = f"the {len(first)} tab-separated columns of the first line match no known layout"
    raise InputError(problem, path=path, remedy=f"give {_LAYOUTS}")


def _pair(columns: list[str], layout: _Layout, where: str) -> Pair | None:
    if len(columns) < layout.columns:
        problem = f"got {len(columns)} tab-separated columns, expected at least {layout.columns} ({layout.name})"
        raise InputError(problem, path=where, remedy="fix the line")
    text = columns[layout.score].strip()
    if not text:
        return None
    score = number_in(text)
    if not math.isfinite(score):
        raise InputError(f"got {text!r}, expected a number", path=where, field="score", remedy="fix the line")
    left, right = columns[layout.first].strip(), columns[layout.second].strip()
    if not left or not right:
        field = "sentence2" if left else "sentence1"
        raise InputError("a sentence is empty", path=where, field=field, remedy="fix or remove the line")
    genre = "" if layout.genre is None else columns[layout.genre]
    # STS-B's training part spells the genre of its forums in another way than the other parts.
    return Pair(score, left, right, "main-forums" if genre == "main-forum" else genre)


def _spearman(gold: Any, predicted: Any, part: str) -> Score:
    from scipy.stats import spearmanr

    if len(set(predicted.tolist())) < 2:
        problem = f"all {len(predicted)} cosines of {part} are equal, so there is no correlation"
        raise InputError(problem, remedy="use another encoder: this one maps all texts to one point")
    return Score("Spearman", float(spearmanr(gold, predicted).statistic), part, len(gold))


def _is_sts(folder: str, names: set[str]) -> bool:
    is_semeval = any(name.startswith("STS.gs.") and name.endswith(".txt") for name in names)
    is_year = os.path.basename(folder).isdigit() and any(name.endswith(".test.tsv") for name in names)
    return bool(set(_TEST_FILES) & names) or is_semeval or is_year


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relatedness(Benchmark):
    """SICK-R or STS-B, from the folder of its three parts.

    Attributes:
      format: a key of the table of files.
      seed: of initial weights and order.
    """

    format: str
    seed: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the three parts."""
        return tuple(os.path.join(self.path, file) for file in _PARTS[self.format])

    def _facts(self) -> dict[str, Any]:
        return {"suite": self.format, "features": "|u-v|, u*v", "seed": self.seed}

    @functools.cached_property
    def _parts(self) -> tuple[list[Pair], ...]:
        parts = tuple([pair for pair in read_pairs(path) if self.keeps(*pair.documents)] for path in self.paths)
        for path, part in zip(self.paths, parts, strict=True):
            if bad := next((pair.score for pair in part if not 0 <= pair.score <= SCORES), None):
                raise InputError(f"got {bad:g}, expected 0 to {SCORES}", path=path, field="score")
        return parts

    def _texts(self) -> Sequence[Document]:
        pairs = [pair for part in self._parts for pair in part]
        return [pair.documents[side] for side in (0, 1) for pair in pairs]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        from scipy.stats import pearsonr, spearmanr

        gold = [np.array([pair.score for pair in part]) for part in self._parts]
        count = sum(map(len, gold))
        one, two = (dense_rows(part) for part in (embeddings[:count], embeddings[count:]))
        features = np.concatenate([np.abs(one - two), one * two], axis=1)
        train, dev, test = np.split(features, np.cumsum([len(part) for part in gold])[:2])
        found = expected_scores((train, gold[0]), (dev, gold[1]), test, self.seed)
        if np.ptp(found) == 0:
            problem = f"all {len(found)} predicted scores are equal, so there is no correlation"
            raise InputError(problem, remedy="use another encoder: this one maps all texts to one point")
        measures = {"Spearman": spearmanr, "Pearson": pearsonr}
        return [Score(name, float(of(found, gold[2]).statistic), ALL, len(found)) for name, of in measures.items()]


def distributions(scores: Floats) -> npt.NDArray[np.float32]:
    """Scores [N] of 0 to 5 as distributions over 1 to 5, float32 [N, 5]; one below 1 sums to itself.

    >>> distributions(np.array([1.0, 3.25, 5.0, 0.5])).tolist()[1:]
    [[0.0, 0.0, 0.75, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    lower, places = np.floor(scores)[:, None], np.arange(1, SCORES + 1)
    share = scores[:, None] - lower
    return np.where(places == lower, 1 - share, np.where(places == lower + 1, share, 0)).astype(np.float32)


def expected_scores(
    known: tuple[Features, Floats], dev: tuple[Features, Floats], asked: Features, seed: int = 0
) -> Floats:
    """The expected scores [M] of features, by a head that is trained on others.

    Args:
      known: training features float32 [N, F], and their scores [N].
      dev: likewise, which chooses the round.
      asked: float32 [M, F].
      seed: of initial weights and order.
    """
    import jax
    import jax.numpy as jnp
    import optax

    rows, targets, optimizer = jnp.asarray(known[0]), jnp.asarray(distributions(known[1])), optax.adam(_RATE)
    random, count = np.random.default_rng(seed), len(known[1])
    bound = rows.shape[1] ** -0.5
    layer = tuple(
        jnp.asarray(random.uniform(-bound, bound, shape), jnp.float32) for shape in ((rows.shape[1], SCORES), (SCORES,))
    )
    places = np.resize(np.arange(count), -(-count // _BATCH) * _BATCH)
    weights = jnp.asarray(np.arange(len(places)) < count, jnp.float32).reshape(-1, _BATCH)

    def probabilities(layer: Any, values: Any) -> Any:
        return jax.nn.softmax(values @ layer[0] + layer[1])

    def loss(layer: Any, numbers: Any, weight: Any) -> Any:
        errors = jnp.mean((probabilities(layer, rows[numbers]) - targets[numbers]) ** 2, axis=1)
        return jnp.sum(weight * errors) / jnp.sum(weight)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        layer, moments = state
        updates, moments = optimizer.update(jax.grad(loss)(layer, *batch), moments)
        return (optax.apply_updates(layer, updates), moments), None

    @jax.jit
    def trained(state: Any, orders: Any) -> Any:
        """The state after a round; orders int32 [rounds' steps, batch]."""
        shares = jnp.tile(weights, (_ROUND, 1))
        return jax.lax.scan(step, state, (orders, shares))[0]

    def scores_of(layer: Any, values: Features) -> Floats:
        return np.asarray(probabilities(layer, jnp.asarray(values)), np.float64) @ np.arange(1.0, SCORES + 1)

    state, best, highest, failures = (layer, optimizer.init(layer)), layer, -1.0, 0
    for _ in range(_MOST_EPOCHS // _ROUND + 1):
        orders = [random.permutation(count)[places] for _ in range(_ROUND)]
        state = trained(state, np.concatenate(orders).reshape(-1, _BATCH))
        with np.errstate(invalid="ignore"):  # of equal scores it is not a number, and so no improvement
            correlation = np.corrcoef(scores_of(state[0], dev[0]), dev[1])[0, 1]
        if correlation > highest:
            best, highest = state[0], correlation
        elif (failures := failures + 1) > _PATIENCE:
            break
    return scores_of(best, asked)


SUITES: Final = {
    "sts": Suite(Sts, find=here(_is_sts)),
    "stsb_genres": Suite(Sts, {"merged": True}, has(*_STSB_FILES)),
    **{form: Suite(Relatedness, {"format": form}, has(*files)) for form, files in _PARTS.items()},
}
