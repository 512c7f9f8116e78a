"""Clustering: k-means with the true number of clusters, scored by adjusted Rand index and V-measure (Table 6).

Protocol. The documents of one JSONL file (``events.py``) that have the label (``event`` or ``topic``) are clustered; k
is the number of distinct labels. k-means++ runs once for each seed, on unit vectors, where Euclidean distances rank
pairs as cosines do. Scores are means with standard deviations over seeds. If there are several languages, the documents
of each language are also clustered separately.
"""

import collections
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .benchmark import ALL, PathBenchmark, Score, over_runs
from .encoders import Document, Embeddings
from .events import EventDocument, read_events


@dataclasses.dataclass(frozen=True)
class Clustering(PathBenchmark):
    """The clustering benchmark over one file.

    Attributes:
      path: JSONL file, see ``events.py``.
      name: the name in tables.
      label: "event" or "topic".
      seeds: one k-means run for each.
      min_cluster_size: labels with fewer documents are left out.
      excluded: documents to leave out, see ``leakage.py``.
    """

    path: str
    name: str = "clustering"
    label: str = "event"
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    min_cluster_size: int = 1
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {
            "suite": "clustering",
            "label": self.label,
            "seeds": list(self.seeds),
            "min_cluster_size": self.min_cluster_size,
            "excluded": len(self.excluded),
        }

    @functools.cached_property
    def _rows(self) -> list[EventDocument]:
        if self.label not in {"event", "topic"}:
            raise InputError(
                f"got the label {self.label!r}, expected event or topic", field="label", remedy="choose one of them"
            )
        if not self.seeds:
            raise InputError("no seeds", field="seeds", remedy="give at least one")
        rows = [row for row in read_events(self.path, self.label) if row.document not in self.excluded]
        labels = [getattr(row, self.label) for row in rows]
        sizes = collections.Counter(labels)
        kept = [row for row, label in zip(rows, labels, strict=True) if label and sizes[label] >= self.min_cluster_size]
        if len({getattr(row, self.label) for row in kept}) < 2:
            raise InputError(
                "fewer than two classes",
                path=self.path,
                field=self.label,
                remedy="give documents of at least two classes",
            )
        return kept

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [row.document for row in self._rows]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``ARI`` and ``V`` with their standard deviation over seeds, for all documents and by language."""
        labels = np.array([getattr(row, self.label) for row in self._rows])
        languages = np.array([row.language for row in self._rows])
        scores = cluster_scores(ALL, embeddings, labels, self.seeds)
        if len(set(languages)) > 1:
            for language in sorted(set(languages)):
                members = np.flatnonzero(languages == language)
                if len(set(labels[members])) > 1:
                    scores += cluster_scores(language or "unknown", embeddings[members], labels[members], self.seeds)
        return scores


def cluster_scores(part: str, embeddings: Embeddings, labels: Any, seeds: Sequence[int]) -> list[Score]:
    """Returns ``ARI`` and ``V`` of k-means with the true number of clusters, mean and standard deviation over seeds."""
    from sklearn.metrics import adjusted_rand_score, v_measure_score

    runs = [kmeans(embeddings, len(set(labels)), seed) for seed in seeds]
    return [
        over_runs("ARI", [float(adjusted_rand_score(labels, run)) for run in runs], part, len(labels)),
        over_runs("V", [float(v_measure_score(labels, run)) for run in runs], part, len(labels)),
    ]


def kmeans(embeddings: Embeddings, clusters: int, seed: int) -> Any:
    """Returns cluster numbers ``[N]`` from one k-means++ start.

    With fewer distinct vectors than clusters, some clusters are empty. The scores show it, so scikit-learn's warning is
    silenced.
    """
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # On a busy machine OpenMP threads wait for each other many times longer than they work.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(clusters, n_init=1, random_state=seed).fit_predict(embeddings)
