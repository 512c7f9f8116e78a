"""Near-duplicate detection: the area under the ROC curve by label level.

Protocol (Okura et al. 2016, Table 1). Each pair of articles has a level: an integer that is higher the more similar
people found them (unrelated, same topic, same event, copy). For every level L above the lowest, pairs of level L or
higher are positive and the others are negative. The predicted score is the cosine; the measure is scikit-learn's ROC
AUC. File: JSONL with ``first`` and ``second`` (objects with ``title`` and ``body``) and ``level``.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats.jsonl import read_jsonl
from .benchmark import PathBenchmark, Score
from .encoders import Document, Embeddings, paired_cosines

_REMEDY: Final = 'each line needs {"first": {"title", "body"}, "second": {"title", "body"}, "level": integer}'


@dataclasses.dataclass(frozen=True)
class NearDuplicates(PathBenchmark):
    """Near-duplicate AUC over one JSONL file of pairs.

    Attributes:
      path: the file.
      name: the name in tables.
      excluded: documents to leave out together with their pairs, see ``leakage.py``.
    """

    path: str
    name: str = "duplicates"
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {"suite": "duplicates", "similarity": "cosine", "excluded": len(self.excluded)}

    @functools.cached_property
    def _pairs(self) -> list[tuple[Document, Document, int]]:
        rows = [_parse(row, where) for where, row in read_jsonl(self.path)]
        kept = [row for row in rows if not {row[0], row[1]} & self.excluded]
        if len({level for *_, level in kept}) < 2:
            raise InputError(
                "fewer than two levels", path=self.path, field="level", remedy="give pairs of at least two levels"
            )
        return kept

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [pair[0] for pair in self._pairs] + [pair[1] for pair in self._pairs]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``AUC`` for each level above the lowest; ``count`` is the number of positive pairs."""
        from sklearn.metrics import roc_auc_score

        count = len(self._pairs)
        cosines = paired_cosines(embeddings[:count], embeddings[count:])
        levels = np.array([level for *_, level in self._pairs])
        scores = []
        for level in sorted(set(levels.tolist()))[1:]:
            positive = levels >= level
            area = float(roc_auc_score(positive, cosines))
            scores.append(Score("AUC", area, f"level ≥ {level}", int(positive.sum())))
        return scores


def _parse(row: Mapping[str, Any], where: str) -> tuple[Document, Document, int]:
    documents = []
    for field in ("first", "second"):
        side = row.get(field)
        if not isinstance(side, dict) or not all(isinstance(side.get(part), str) for part in ("title", "body")):
            raise InputError("expected an object with title and body", path=where, field=field, remedy=_REMEDY)
        documents.append(Document(side["title"], side["body"]))
    level = row.get("level")
    if not isinstance(level, int) or isinstance(level, bool):
        raise InputError(f"got {level!r}, expected an integer", path=where, field="level", remedy=_REMEDY)
    return documents[0], documents[1], level
