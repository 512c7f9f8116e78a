"""Linking posts to articles: how well one threshold on the cosine separates the pairs that belong together.

Protocol (Danovitch 2020). The cosines of every article with every post are pooled; a pair is relevant if the post
links to the article. Over all pairs together:

- ``P@r``: the share of relevant pairs among the r best, for r = 50, 100, 200, 500, 1000, 2000, 3000, 3300 as far as
  there are r relevant pairs, and for r = the number of relevant pairs (``P@R``). Among tied pairs it is the mean over
  orders. This is not the R-precision of ``retrieval.py``, which is a mean over queries.
- ``mRP``: the mean of these precisions. The printed one follows only with P@3300, a row that the print lacks.
- ``AP`` and ``ROC AUC``: scikit-learn's, over all pairs.

Files: JSONL. For ``links``, each line is ``{"title", "body", "post"}``: an article and a post that links to it; lines
with the same title and body are one article. For ``title_links``, each line is an article, whose title is its post and
whose body is the article.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.jsonl import read_jsonl
from .benchmark import PathBenchmark, Score
from .encoders import Document, Embeddings, cosine_similarities

RESAMPLES: Final = 200
DEPTHS: Final = (50, 100, 200, 500, 1000, 2000, 3000, 3300)
_ARTICLES_AT_A_TIME: Final = 256
FloatArray = npt.NDArray[np.floating[Any]]
BoolArray = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class PostLinking(PathBenchmark):
    """The linking benchmark over one JSONL file.

    Attributes:
      path: the file.
      name: the name in tables.
      titles: whether the title of each article is its post, see the module.
      draws: whether AP keeps its values on resamples of the articles, for paired tests.
      excluded: documents to leave out together with their pairs, see ``leakage.py``.
    """

    path: str
    name: str = "links"
    titles: bool = False
    draws: bool = False
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        draws = {"draws": True} if self.draws else {}
        options = {"titles": self.titles, "depths": list(DEPTHS), **draws}
        return {"suite": "links", **options, "excluded": len(self.excluded)}

    @functools.cached_property
    def _pairs(self) -> tuple[list[Document], list[Document], npt.NDArray[np.int64]]:
        """Articles, posts, and the number of the article of each post.

        Raises:
          InputError: for a line without a text, or fewer than two articles.
        """
        articles: dict[Document, int] = {}
        posts: list[Document] = []
        owners: list[int] = []
        for where, row in read_jsonl(self.path):
            article, post = self._parse(row, where)
            if article in self.excluded or post in self.excluded:
                continue
            owners.append(articles.setdefault(article, len(articles)))
            posts.append(post)
        if len(articles) < 2:
            raise InputError(
                "fewer than two articles", path=self.path, remedy="give at least two, or look at what is left out"
            )
        return list(articles), posts, np.array(owners)

    def _parse(self, row: Mapping[str, Any], where: str) -> tuple[Document, Document]:
        fields = ("title", "body") if self.titles else ("title", "body", "post")
        for field in fields:
            may_be_empty = field == "title" and not self.titles
            if not isinstance(row.get(field), str) or not (row[field].strip() or may_be_empty):
                raise InputError(
                    f"got {row.get(field)!r}, expected a string",
                    path=where,
                    field=field,
                    remedy=f"each line needs {', '.join(fields)}",
                )
        if self.titles:
            return Document("", row["body"]), Document(row["title"], "")
        return Document(row["title"], row["body"]), Document(row["post"], "")

    def documents(self) -> Sequence[Document]:
        """Returns the articles and then the posts, in the order in which ``score`` expects their embeddings."""
        articles, posts, _ = self._pairs
        return [*articles, *posts]

    def owners(self) -> npt.NDArray[np.int64]:
        """Returns the number of the article of each post, ``[P]``."""
        return self._pairs[2]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns the pooled measures; ``count`` is the number of relevant pairs."""
        articles, _, owners = self._pairs
        cosines = pooled_cosines(embeddings[: len(articles)], embeddings[len(articles) :])
        relevant = owners[None, :] == np.arange(len(articles))[:, None]
        found = [Score(metric, value, count=len(owners)) for metric, value in link_scores(cosines, relevant).items()]
        if self.draws:
            found[0] = dataclasses.replace(found[0], draws=tuple(resampled_ap(cosines, owners).tolist()))
        return found


def pooled_cosines(articles: Embeddings, posts: Embeddings) -> npt.NDArray[np.float32]:
    """Returns the cosine of each article with each post, float32 ``[A, P]``.

    Args:
      articles: normalised, ``[A, D]``.
      posts: normalised, ``[P, D]``.
    """
    return np.concatenate([cosine_similarities(rows, posts).astype(np.float32) for rows in _blocks(articles)])


def _blocks(rows: Embeddings) -> Iterator[Embeddings]:
    for start in range(0, rows.shape[0], _ARTICLES_AT_A_TIME):
        yield rows[start : start + _ARTICLES_AT_A_TIME]


def link_scores(cosines: FloatArray, relevant: BoolArray) -> dict[str, float]:
    """Returns AP, ROC AUC, mRP and the precisions of pooled pairs, by name.

    Args:
      cosines: of all pairs, of any shape.
      relevant: which pairs belong together, of the same shape; some do and some do not.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    scores, truth = cosines.ravel(), relevant.ravel()
    total = int(truth.sum())
    depths = {f"P@{depth}": depth for depth in DEPTHS if depth <= total} | {"P@R": total}
    precisions = precisions_at(scores, truth, list(depths.values()))
    return {
        "AP": float(average_precision_score(truth, scores)),
        "ROC AUC": float(roc_auc_score(truth, scores)),
        "mRP": float(np.mean([precisions[depth] for depth in set(depths.values())])),
        **{name: precisions[depth] for name, depth in depths.items()},
    }


def precisions_at(scores: FloatArray, relevant: BoolArray, depths: Sequence[int]) -> dict[int, float]:
    """Returns the share of relevant pairs among the best, by their number; tied pairs count in their mean order.

    Args:
      scores: ``[N]``.
      relevant: ``[N]``.
      depths: numbers of pairs, each from 1 to N.
    """
    deepest = max(depths)
    bar = np.partition(scores, len(scores) - deepest)[len(scores) - deepest]
    kept = scores >= bar  # with all that tie for the last place
    order = np.argsort(-scores[kept], kind="stable")
    ranked, hits = scores[kept][order], relevant[kept][order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    ends = np.r_[starts[1:], len(ranked)]
    before = np.r_[0, np.cumsum(hits)]
    found = {}
    for depth in depths:
        tie = int(np.searchsorted(ends, depth))  # the ties that the last place is among
        start, end = int(starts[tie]), int(ends[tie])
        inside = (before[end] - before[start]) * (depth - start) / (end - start)
        found[depth] = float((before[start] + inside) / depth)
    return found


def resampled_ap(
    cosines: FloatArray, owners: npt.NDArray[np.int64], *, resamples: int = RESAMPLES, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Returns the pooled AP on each resample of the articles, ``[resamples]``.

    The articles of a resample depend on their number and ``seed`` alone, so that differences between encoders are
    paired.

    Args:
      cosines: ``[A, P]``.
      owners: the number of the article of each post, ``[P]``.
      resamples: number of draws.
      seed: of the draws.
    """
    articles = cosines.shape[0]
    times = np.random.default_rng(seed).multinomial(articles, np.full(articles, 1 / articles), resamples)
    return _weighted_ap(cosines, owners, times)


def _weighted_ap(
    cosines: FloatArray, owners: npt.NDArray[np.int64], times: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Returns the AP of all pairs for each row of ``times``, in which a pair counts as often as both of its articles.

    Pairs are sorted once. Tied pairs are taken together, as scikit-learn takes them.
    """
    scores = cosines.ravel()
    order = np.argsort(-scores, kind="stable")
    article, post = np.unravel_index(order, cosines.shape)
    owner = owners[post]
    relevant = article == owner
    ranked = scores[order]
    ends = np.flatnonzero(np.r_[ranked[1:] != ranked[:-1], True])
    values = []
    for counts in times:
        weights = (counts[article] * counts[owner]).astype(np.float64)
        taken = np.cumsum(weights)[ends]
        hits = np.cumsum(np.where(relevant, weights, 0.0))[ends]
        precision = np.divide(hits, taken, out=np.zeros_like(hits), where=taken > 0)
        values.append(float(np.sum(np.diff(hits, prepend=0.0) * precision) / hits[-1]))
    return np.array(values)
