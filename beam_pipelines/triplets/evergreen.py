"""The evergreen filter, which finds false negatives: pairs far apart in time that could still be about one subject.

A logistic regression over how well both articles can be dated and how similar they are (section 2.2.1). The default
weights were fitted on the labels that ``evergreen_defaults.json`` names; ``--labels`` fits others.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InputError, reading
from ...formats import files
from ..arrays import Array
from .table import DocumentTable

_DOC_ID = re.compile(r"[0-9a-f]{16}")
FEATURES = tuple(
    str.split(
        "entropy_anchor entropy_other own_mass_anchor own_mass_other expected_gap_other entity_similarity "
        "image_similarity text_similarity"
    )
)


class EvergreenModel(NamedTuple):
    """A fitted logistic regression.

    Attributes:
      weights: one for each of :data:`FEATURES`.
      bias: the intercept.
      provenance: the labels that it was fitted on.
    """

    weights: tuple[float, ...]
    bias: float
    provenance: str

    def to_json(self) -> dict[str, object]:
        """Returns the model as in ``evergreen.json``."""
        weights = dict(zip(FEATURES, self.weights, strict=True))
        return {"weights": weights, "bias": self.bias, "provenance": self.provenance}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "EvergreenModel":
        """Returns the model that :meth:`to_json` wrote."""
        weights = tuple(float(value["weights"][name]) for name in FEATURES)
        return EvergreenModel(weights, float(value["bias"]), str(value["provenance"]))

    def scores(self, features: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the probability in [0, 1] that each pair is a false negative: ``[P, len(FEATURES)]`` → ``[P]``."""
        # Not a matrix product: it may round a row differently in another batch, and the choice of triplets must not
        # depend on the sharding.
        logits = (features * self.weights).sum(axis=1) + self.bias
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -50, 50))))


def pair_features(table: DocumentTable, candidates: Array) -> npt.NDArray[np.float64]:
    """Returns the features of pairs in the order of :data:`FEATURES`; an unknown similarity counts as 0.

    Args:
      table: contains all documents of the pairs.
      candidates: dtype ``CANDIDATE``, ``[P]``.

    Returns:
      float64 ``[P, len(FEATURES)]``.
    """
    anchor, other = table.date_stats(candidates["anchor"]), table.date_stats(candidates["other"])
    dates = np.stack([anchor[:, 0], other[:, 0], anchor[:, 1], other[:, 1], other[:, 2]], axis=1)
    return np.concatenate([dates, np.nan_to_num(candidates["similarity"], nan=0.0)], axis=1).astype(np.float64)


def default_model() -> EvergreenModel:
    """Returns the model that is shipped with the package."""
    return EvergreenModel.from_json(json.loads(files.packaged(__package__, "evergreen_defaults.json")))


def fit_model(features: npt.NDArray[np.float64], labels: Sequence[int], provenance: str) -> EvergreenModel:
    """Fits the regression with balanced classes.

    Args:
      features: float64 ``[pairs, len(FEATURES)]``.
      labels: 1 for a false negative, 0 for a true negative.
      provenance: describes the labels; kept with the weights.

    Raises:
      InputError: if all labels are equal.
    """
    from sklearn.linear_model import LogisticRegression

    check_labels(labels)
    fitted = LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000).fit(features, labels)
    return EvergreenModel(tuple(float(weight) for weight in fitted.coef_[0]), float(fitted.intercept_[0]), provenance)


def check_labels(labels: Collection[int], path: str | None = None) -> None:
    """Checks that a filter can be fitted on labels.

    Args:
      labels: 1 for a false negative, 0 for a true negative.
      path: of their file, for the error.

    Raises:
      InputError: if there are none, or all are equal.
    """
    if len(set(labels)) < 2:
        problem = f"{len(labels)} labels, all equal" if labels else "no labels"
        remedy = "label pairs of both kinds: 1 false negative, 0 true negative"
        raise InputError(problem, path=path, field="--labels", remedy=remedy)


class LabelRow(NamedTuple):
    """One line of a labels file.

    Attributes:
      anchor: document id.
      other: document id.
      label: 1 for a false negative, 0 for a true negative.
      notes: further columns, which ``newsembed label`` fills with provenance.
    """

    anchor: str
    other: str
    label: int
    notes: tuple[str, ...] = ()


def read_label_rows(path: str) -> list[LabelRow]:
    """Reads a TSV file of anchor doc_id, other doc_id, 1 or 0, and notes.

    Empty lines and lines that start with # are skipped.

    Raises:
      InputError: if a line has another form, or the text is not UTF-8.
    """
    with reading(path, "save the file as UTF-8"), files.open_read(path) as source:
        text = source.read().decode("utf-8-sig")
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("\t")]
        anchor, other, label, *notes = parts + [""] * (3 - len(parts))
        with reading(f"{path}:{number}", "write the lines as `newsembed label` does, columns separated by tabs"):
            if label not in {"0", "1"}:
                raise InputError(f"got {line!r}, expected anchor, other and 0 or 1", field="--labels")
            for one in (anchor, other):
                if not _DOC_ID.fullmatch(one):
                    raise InputError(f"got {one!r}, expected a document id of 16 hexadecimal digits", field="--labels")
        rows.append(LabelRow(anchor, other, int(label), tuple(notes)))
    return rows


def read_labels(path: str) -> dict[tuple[str, str], int]:
    """Reads labels by (anchor, other), see :func:`read_label_rows`; of a repeated pair, the last label counts.

    Raises:
      InputError: see :func:`read_label_rows`.
    """
    return {(row.anchor, row.other): row.label for row in read_label_rows(path)}
