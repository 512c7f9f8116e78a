"""Cross-lingual topic classification: train on language X, test on language Y.

Protocol (T-MDE; MLDoc and MasakhaNEWS). For every ordered pair of languages a logistic regression
(``classification.py``) is trained on frozen embeddings of the training part of X and tested on the test part of Y, over
the classes that both parts have. ``accuracy X→Y`` is one cell; ``Same`` is the mean over X = Y, ``Cross`` over X ≠ Y,
``All`` over all cells. Paired t-tests over the cells compare encoders (``compare.py``). A language is a folder
(MasakhaNEWS) or a prefix of file names (MLDoc).
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .benchmark import PathBenchmark, Score
from .classification import Labels, logistic_regression
from .encoders import Document, Embeddings
from .files import folder_entries
from .labelled import FORMATS, Split

_MARKERS: Final = {"masakhanews": "test.tsv", "mldoc": ".test"}
_Rows = npt.NDArray[np.int64]  # numbers of documents
ARROW: Final = "→"
AVERAGES: Final = ("Same", "Cross", "All")


@dataclasses.dataclass(frozen=True)
class CrossLingual(PathBenchmark):
    """Cross-lingual classification over the languages under one folder.

    Attributes:
      path: folder of languages.
      format: "masakhanews" or "mldoc".
      name: the name in tables.
      excluded: documents to leave out, see ``leakage.py``.
    """

    path: str
    format: str
    name: str
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {"suite": f"{self.format} X→Y", "classes": "those of both parts", "excluded": len(self.excluded)}

    @functools.cached_property
    def _splits(self) -> dict[str, Split]:
        splits = {
            name: FORMATS[self.format].read(os.path.join(self.path, name)) for name in languages(self.path, self.format)
        }
        if len(splits) < 2:
            form = FORMATS[self.format]
            raise InputError(
                f"found {len(splits)} languages, expected at least 2",
                path=self.path,
                remedy=f"get it from {form.source}; expected for each language: {form.layout}",
            )
        return {name: split.without(self.excluded) for name, split in splits.items()}

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [row.document for split in self._splits.values() for row in split.all]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``accuracy`` of the averages Same, Cross and All, and of every cell.

        Raises:
          InputError: if two languages share fewer than two classes.
        """
        rows = [row for split in self._splits.values() for row in split.all]
        labels = np.array([row.label for row in rows])
        places, start = {}, 0
        for name, split in self._splits.items():
            middle, end = start + len(split.train), start + len(split.all)
            places[name] = (np.arange(start, middle), np.arange(middle, end))
            start = end
        cells = {
            (source, target): _cell(
                embeddings, labels, places[source][0], places[target][1], f"{source}{ARROW}{target}"
            )
            for source in places
            for target in places
        }
        groups = {
            "Same": [cell.value for (source, target), cell in cells.items() if source == target],
            "Cross": [cell.value for (source, target), cell in cells.items() if source != target],
            "All": [cell.value for cell in cells.values()],
        }
        averages = [Score("accuracy", float(np.mean(values)), group, len(values)) for group, values in groups.items()]
        return averages + list(cells.values())


def languages(path: str, form: str) -> list[str]:
    """Returns the languages in the folder ``path``: folders with a test part, or the prefixes of ``LANGUAGE.test``.

    Raises:
      InputError: if there is no such folder.
    """
    remedy = f"get it from {FORMATS[form].source}; expected for each language: {FORMATS[form].layout}"
    marker = _MARKERS[form]
    if marker.startswith("."):
        return [name.removesuffix(marker) for name in folder_entries(path, remedy) if name.endswith(marker)]
    return [name for name in folder_entries(path, remedy) if os.path.exists(os.path.join(path, name, marker))]


def _cell(embeddings: Embeddings, labels: Labels, train: _Rows, test: _Rows, part: str) -> Score:
    from sklearn.metrics import accuracy_score

    shared = np.intersect1d(labels[train], labels[test])
    if len(shared) < 2:
        raise InputError(
            f"{part}: {len(shared)} shared classes, expected at least 2", remedy="give languages with the same classes"
        )
    train, test = train[np.isin(labels[train], shared)], test[np.isin(labels[test], shared)]
    found = logistic_regression(embeddings, labels, train, test)
    return Score("accuracy", float(accuracy_score(labels[test], found)), part, len(test))
