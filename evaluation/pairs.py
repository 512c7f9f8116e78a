"""Classification of sentence pairs by a supervised head: MRPC and SICK-E.

Protocol (SentEval, Conneau and Kiela 2018). The features of a pair are ``[|u - v|, u * v]`` of its frozen unit vectors;
a logistic regression whose C is chosen by cross-validation on the training part (``classification.py``) is tested on
the test part. MRPC reports accuracy and the F1 of the paraphrases, SICK-E accuracy.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .benchmark import ALL, Score
from .classification import logistic_regression
from .encoders import Document, Embeddings
from .files import read_rows


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    files: tuple[str, str]
    columns: tuple[str, str, str]  # first sentence, second sentence, class
    source: str
    positive: str | None = None


LAYOUTS: Final[Mapping[str, _Layout]] = {
    "mrpc": _Layout(
        ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"),
        ("#1 String", "#2 String", "Quality"),
        "https://www.microsoft.com/en-us/download/details.aspx?id=52398",
        positive="1",
    ),
    "sick_e": _Layout(
        ("SICK_train.txt", "SICK_test_annotated.txt"),
        ("sentence_A", "sentence_B", "entailment_judgment"),
        "https://zenodo.org/records/2787612",
    ),
}


@dataclasses.dataclass(frozen=True)
class PairClassification:
    """MRPC or SICK-E.

    Attributes:
      path: the folder of both files.
      format: a key of ``LAYOUTS``.
      name: the name in tables.
      excluded: sentences to leave out together with their pairs, see ``leakage.py``.
    """

    path: str
    format: str
    name: str
    excluded: frozenset[Document] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of both parts, for the digests in the results manifest."""
        return tuple(os.path.join(self.path, file) for file in LAYOUTS[self.format].files)

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {"suite": self.format, "features": "|u-v|, u*v", "excluded": len(self.excluded)}

    @functools.cached_property
    def _parts(self) -> tuple[list[tuple[str, str, str]], ...]:
        parts = [_read(path, LAYOUTS[self.format]) for path in self.paths]
        return tuple(
            [row for row in part if not {Document("", row[0]), Document("", row[1])} & self.excluded] for part in parts
        )

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        rows = [row for part in self._parts for row in part]
        return [Document("", row[0]) for row in rows] + [Document("", row[1]) for row in rows]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``accuracy`` and, for MRPC, ``F1`` on the test part."""
        from scipy import sparse
        from sklearn.metrics import accuracy_score, f1_score

        labels = np.array([row[2] for part in self._parts for row in part])
        one, two = embeddings[: len(labels)], embeddings[len(labels) :]
        if sparse.issparse(one):
            features = sparse.hstack([abs(one - two), one.multiply(two)]).tocsr()
        else:
            features = np.hstack([np.abs(one - two), one * two])
        train, test = np.split(np.arange(len(labels)), [len(self._parts[0])])
        found = logistic_regression(features, labels, train, test)
        scores = [Score("accuracy", float(accuracy_score(labels[test], found)), ALL, len(test))]
        if positive := LAYOUTS[self.format].positive:
            scores.append(Score("F1", float(f1_score(labels[test], found, pos_label=positive)), ALL, len(test)))
        return scores


def _read(path: str, layout: _Layout) -> list[tuple[str, str, str]]:
    expected = f"{' and '.join(layout.files)}, tab-separated with the columns {', '.join(layout.columns)}"
    remedy = f"get it from {layout.source}; expected: {expected}"
    rows = list(read_rows(path, remedy, delimiter="\t", quoted=False))
    header = rows[0][1] if rows else []
    if missing := set(layout.columns) - set(header):
        raise InputError(f"the header lacks {', '.join(sorted(missing))}", path=path, remedy=remedy)
    places = [header.index(column) for column in layout.columns]
    found = []
    for where, fields in rows[1:]:
        if len(fields) <= max(places):
            raise InputError(f"got {len(fields)} columns, expected {len(header)}", path=where, remedy=remedy)
        first, second, label = (fields[place].strip() for place in places)
        found.append((first, second, label))
    if len({label for *_, label in found}) < 2:
        raise InputError("fewer than two classes", path=path, field=layout.columns[2], remedy=remedy)
    return found
