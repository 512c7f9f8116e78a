"""Evaluates labels: how many there are of each kind, and how well a filter fitted on them does on held-out labels."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...beam_pipelines.progress import print_table
from ...beam_pipelines.triplets.evergreen import default_model, fit_model, read_label_rows
from ...errors import InputError
from .pairs import Sampled, Work, read_pairs

FOLDS: Final = 5
_SAMPLED_NOTE: Final = 3  # index of "how sampled" among the notes of a row
_MEANING: Final[dict[str, str]] = {
    Sampled.UNCERTAIN: "uncertain",
    Sampled.DROPPED: "at random, dropped by the filter",
    Sampled.KEPT: "at random, kept by the filter",
    "unknown": "unknown",
}
_CAVEAT: Final = (
    "precision and recall are those of the labelled pairs, which are harder than the rest; the shares of pairs\n"
    "drawn at random hold for all candidates of the filter and the languages that drew them"
)

Counts = list[tuple[str, int, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What the labels of a file say.

    Attributes:
      counts: see :func:`count_labels`.
      used: number of labels that ``triplets`` can use.
      threshold: the score above which a pair is dropped.
      filters: by name: precision (share of false negatives among the labelled pairs that it drops, NaN for none),
        recall (share of dropped pairs among the labelled false negatives), average precision, and the share of all
        candidates that it drops, labelled or not.
    """

    counts: Counts
    used: int
    threshold: float
    filters: dict[str, tuple[float, float, float, float]]


def make_report(work: Work, path: str, seed: int) -> Report:
    """Scores the labels of a file.

    Args:
      work: see ``read_work``.
      path: the labels.
      seed: of the folds.
    """
    from sklearn.metrics import average_precision_score, precision_score, recall_score

    rows, threshold = read_label_rows(path), work.threshold
    _check(path, [row.label for row in rows])  # before reading the neighbors, which takes time
    candidates, labelled = read_pairs(work, {(row.anchor, row.other) for row in rows})
    known = {(row.anchor, row.other): row.label for row in rows if (row.anchor, row.other) in labelled}
    if not known:
        remedy = "give the --work for which they were made"
        raise InputError("none of the labelled pairs is among the neighbors", path=path, remedy=remedy)
    _check(path, list(known.values()))
    features = np.array([labelled[pair].features for pair in sorted(known)])
    labels = np.array([known[pair] for pair in sorted(known)])
    every = np.array([pair.features for pair in candidates])
    fitted, default = fit_model(features, labels.tolist(), path), default_model()
    held_out = cross_validated(features, labels, seed)
    filters = {}
    for name, model, scores in ((f"fitted, {FOLDS}-fold", fitted, held_out), ("default", default, None)):
        found = model.scores(features) if scores is None else scores
        drops = found > threshold
        precision = float(precision_score(labels, drops, zero_division=np.nan))
        recall, average = float(recall_score(labels, drops)), float(average_precision_score(labels, found))
        filters[name] = (precision, recall, average, float(np.mean(model.scores(every) > threshold)))
    return Report(count_labels(path), len(known), threshold, filters)


def cross_validated(features: npt.NDArray[Any], labels: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """Score of each pair, float64 ``[N]``, by a regression fitted on the other folds (stratified, shuffled)."""
    from sklearn.model_selection import StratifiedKFold

    held_out = np.zeros(len(labels))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(features, labels):
        held_out[test] = fit_model(features[train], labels[train].tolist(), "folds").scores(features[test])
    return held_out


def count_labels(path: str) -> Counts:
    """(how sampled, labels, false negatives) of a file; the last entry counts all labels."""
    groups: dict[str, list[int]] = {name: [] for name in (*_MEANING, "all")}
    for row in read_label_rows(path):
        noted = row.notes[_SAMPLED_NOTE] if len(row.notes) > _SAMPLED_NOTE else ""
        for name in (noted if noted in _MEANING else "unknown", "all"):
            groups[name].append(row.label)
    return [(name, len(labels), sum(labels)) for name, labels in groups.items() if labels or name == "all"]


def show_counts(counts: Counts) -> None:
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
        (name, *("-" if np.isnan(value) else f"{value:.3f}" for value in values[:-1]), f"{values[-1]:.2%}")
        for name, values in report.filters.items()
    ]
    columns = ("weights", "precision", "recall", "avg. precision", "drops of all")
    title = f"the filter on {report.used} labels, threshold {report.threshold:g}"
    print_table(columns, rows, numbers=columns[1:], title=title)
    if (unused := report.counts[-1][1] - report.used) > 0:
        print(f"{unused} labels are not used: their pairs have several labels or are not among the neighbors")
    print(_CAVEAT)


def _check(path: str, labels: Sequence[int]) -> None:
    for value, kind in ((1, "false negatives (1)"), (0, "true negatives (0)")):
        if (found := labels.count(value)) < FOLDS:
            problem = f"got {found} {kind} among {len(labels)} labels, expected at least {FOLDS} to cross-validate"
            raise InputError(problem, path=path, remedy="label more pairs: newsembed label with a larger --count")
