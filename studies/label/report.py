"""Evaluates labels: how many there are of each kind, and how well a filter fitted on them does on held-out labels."""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...beam_pipelines.progress import print_table
from ...beam_pipelines.triplets.evergreen import EvergreenModel, LabelRow, default_model, fit_model, read_label_rows
from ...errors import InputError
from .pairs import Pair, Work, read_pairs
from .sample import Sampled

FOLDS = 5
_SAMPLED_NOTE = 3  # index of "how sampled" among the notes of a row

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Quality:
    """The quality of a filter on labelled pairs; precision is NaN if it drops no labelled pair.

    Attributes:
      precision: share of false negatives among the labelled pairs that it drops.
      recall: share of dropped pairs among the labelled false negatives.
      average_precision: area under the precision-recall curve.
      dropped: share of all candidates that it drops, labelled or not.
    """

    name: str
    precision: float
    recall: float
    average_precision: float
    dropped: float


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The report.

    Attributes:
      counts: (how sampled, labels, false negatives).
      used: number of labels that ``triplets`` can use.
      threshold: the score above which a pair is dropped.
      qualities: of each filter.
    """

    counts: tuple[tuple[str, int, int], ...]
    used: int
    threshold: float
    qualities: tuple[Quality, ...]


def make_report(work: Work, path: str, seed: int) -> Report:
    """Scores the labels of a file.

    Args:
      work: see ``read_work``.
      path: the labels.
      seed: of the folds.

    Raises:
      InputError: if fewer than five usable labels are of one kind, or the file is broken.
    """
    rows = read_label_rows(path)
    _check(path, [row.label for row in rows])  # before reading the neighbors, which takes time
    candidates, labelled = read_pairs(work, {(row.anchor, row.other) for row in rows})
    known = {(row.anchor, row.other): row.label for row in rows if (row.anchor, row.other) in labelled}
    if not known:
        raise InputError(
            "none of the labelled pairs is among the neighbors",
            path=path,
            remedy="give the --work folder for which they were made",
        )
    _check(path, list(known.values()))
    features = np.array([labelled[pair].features for pair in sorted(known)])
    labels = np.array([known[pair] for pair in sorted(known)])
    fitted, default = fit_model(features, labels.tolist(), path), default_model()
    scored = [
        (f"fitted, {FOLDS}-fold", cross_validated(features, labels, seed), fitted),
        ("default", default.scores(features), default),
    ]
    qualities = tuple(
        _quality(name, labels, held_out, model, candidates, work.threshold) for name, held_out, model in scored
    )
    return Report(_counts(rows), len(known), work.threshold, qualities)


def cross_validated(features: Floats, labels: npt.NDArray[np.int64], seed: int) -> Floats:
    """Score of each pair, float64 ``[N]``, by a regression fitted on the other folds (stratified, shuffled)."""
    from sklearn.model_selection import StratifiedKFold

    held_out = np.zeros(len(labels))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(features, labels):
        held_out[test] = fit_model(features[train], labels[train].tolist(), "folds").scores(features[test])
    return held_out


def count_labels(path: str) -> tuple[tuple[str, int, int], ...]:
    """(how sampled, labels, false negatives) of a file; the last entry counts all labels."""
    return _counts(read_label_rows(path))


def show_counts(counts: Sequence[tuple[str, int, int]]) -> None:
    """Prints the counts."""
    rows = [
        (_MEANING.get(name, name), str(number), str(same), f"{same / number:.1%}" if number else "-")
        for name, number, same in counts
    ]
    columns = ("how sampled", "labels", "false negatives", "share")
    print_table(columns, rows, numbers=columns[1:])


def show_report(report: Report) -> None:
    """Prints the filters side by side; :func:`show_counts` prints the counts."""
    rows = [
        (one.name, *map(_number, (one.precision, one.recall, one.average_precision)), f"{one.dropped:.2%}")
        for one in report.qualities
    ]
    columns = ("weights", "precision", "recall", "avg. precision", "drops of all")
    title = f"the filter on {report.used} labels, threshold {report.threshold:g}"
    print_table(columns, rows, numbers=columns[1:], title=title)
    if (unused := report.counts[-1][1] - report.used) > 0:
        print(f"{unused} labels are not used: their pairs have several labels or are not among the neighbors")
    print(_CAVEAT)


_CAVEAT = """precision and recall are those of the labelled pairs, which are harder than the rest; the shares of pairs
drawn at random hold for all candidates of the filter and the languages that drew them"""
_MEANING: dict[str, str] = {
    Sampled.UNCERTAIN: "uncertain",
    Sampled.DROPPED: "at random, dropped by the filter",
    Sampled.KEPT: "at random, kept by the filter",
}


def _counts(rows: Sequence[LabelRow]) -> tuple[tuple[str, int, int], ...]:
    groups: dict[str, list[int]] = collections.defaultdict(list)
    for row in rows:
        noted = row.notes[_SAMPLED_NOTE] if len(row.notes) > _SAMPLED_NOTE else ""
        groups[noted if noted in _MEANING else "unknown"].append(row.label)
    ordered = [(name, groups[name]) for name in (*_MEANING, "unknown") if name in groups]
    return tuple(
        (str(name), len(labels), sum(labels)) for name, labels in [*ordered, ("all", [row.label for row in rows])]
    )


def _check(path: str, labels: Sequence[int]) -> None:
    for value, kind in ((1, "false negatives (1)"), (0, "true negatives (0)")):
        if (found := labels.count(value)) < FOLDS:
            raise InputError(
                f"got {found} {kind} among {len(labels)} labels, expected at least {FOLDS} to cross-validate",
                path=path,
                remedy="label more pairs: newsembed label with a larger --count",
            )


def _quality(
    name: str,
    labels: npt.NDArray[np.int64],
    held_out: Floats,
    model: EvergreenModel,
    candidates: Sequence[Pair],
    threshold: float,
) -> Quality:
    from sklearn.metrics import average_precision_score, precision_score, recall_score

    drops = held_out > threshold
    return Quality(
        name,
        float(precision_score(labels, drops, zero_division=np.nan)),
        float(recall_score(labels, drops)),
        float(average_precision_score(labels, held_out)),
        float(np.mean(model.scores(np.array([pair.features for pair in candidates])) > threshold)),
    )


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"
