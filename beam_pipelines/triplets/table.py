"""The fields of every document that pairing needs, as arrays with lookup by id: 28 bytes per document.

Each shard of articles writes a table of its own by :func:`write_part`; :func:`write_table` merges them.

A byline-date model that predicts the month of an article from its text; evergreen articles are hard to predict.

The model is a multinomial naive Bayes over hashed word n-grams, trained out of fold: an article is scored by a model
that has not seen it. The product of so many dependent likelihoods is overconfident, so the mean log-likelihood ratio is
used, scaled by one number, the sharpness. The sharpness and the smoothing of months towards the whole corpus maximise
the likelihood of the true months of held-out articles.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from ...formats import files
from ...formats.arrays import read_arrays, write_arrays
from ...formats.records import Article
from ..arrays import Array, Floats, Ids, Places, doc_id_of, find, find_one, lowest_connected, map_arrays
from ..graph import Rows, send
from ..shards import Shard, shard_numbers

FEATURES = 1 << 15
FOLDS = 2
_WORDS = 300
_SMOOTHING = 0.5
_PRIOR_MONTHS = (0.1, 1.0, 4.0, 16.0, 64.0)
_SHARPNESS = tuple(2.0**power for power in range(12))
_IMPOSSIBLE = -1e3  # log-likelihood ratio of a month without training articles


class DateStats(NamedTuple):
    """How well the date of an article can be predicted, and the fields that the pairing rules need.

    Attributes:
      doc_id: 16 hex digits.
      publisher: publisher of the article.
      language: BCP-47 tag.
      entropy: entropy of the predicted distribution over months, divided by its maximum; 1 is a uniform distribution.
      own_mass: predicted probability of the article's month and the two adjacent months.
      expected_gap: |expected month - own month|, as a share of the number of months.
    """

    doc_id: str
    publisher: str
    language: str
    entropy: float
    own_mass: float
    expected_gap: float


def month_of(article: Article) -> int:
    """Returns the months since year 0 of an article with a byline date."""
    assert article.byline_date is not None
    return article.byline_date.year * 12 + article.byline_date.month - 1


def fold_of(doc_id: str) -> int:
    """Returns the fold of an article; it is scored by a model trained on the other folds."""
    return hashlib.blake2b(doc_id.encode(), digest_size=1).digest()[0] % FOLDS


def with_read_words(article: Article) -> Article:
    """Returns an article whose body has only the words that :func:`ngram_counts` reads."""
    return dataclasses.replace(article, body=" ".join(article.body.split(maxsplit=_WORDS)[:_WORDS]))


def ngram_counts(articles: Sequence[Article]) -> Any:
    """Counts hashed unigrams and bigrams of title and lead: CSR float32 ``[len(articles), FEATURES]``."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=FEATURES, ngram_range=(1, 2), alternate_sign=False, norm=None, dtype=np.float32
    )
    return vectorizer.transform(" ".join(f"{article.title} {article.body}".split()[:_WORDS]) for article in articles)


def count_by_month(articles: Sequence[Article], first_month: int, months: int) -> Floats:
    """Counts n-grams by fold and month: float32 ``[FOLDS, months, FEATURES]``.

    Args:
      articles: one or more, with a byline date.
      first_month: month of column 0, see :func:`month_of`.
      months: number of months.
    """
    import scipy.sparse

    counts = np.zeros((FOLDS, months, FEATURES), np.float32)
    grams = ngram_counts(articles)
    for fold in range(FOLDS):
        rows = [row for row, article in enumerate(articles) if fold_of(article.doc_id) == fold]
        places = ([month_of(articles[row]) - first_month for row in rows], rows)
        chosen = scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), places), shape=(months, len(articles)))
        counts[fold] = (chosen @ grams).toarray()
    return counts


def fit(counts: Floats, prior_months: float) -> Floats:
    """Returns log-likelihood ratios log p(n-gram | month) / p(n-gram) for each fold, trained on the other folds.

    Args:
      counts: float32 ``[FOLDS, months, FEATURES]``, see :func:`count_by_month`.
      prior_months: weight of the whole corpus in the distribution of each month, as a multiple of the mean month.
        It keeps a month with few articles from looking likely or unlikely by chance.

    Returns:
      float32 ``[FOLDS, months, FEATURES]``; very low for months that have no article in the other folds.
    """
    models = np.zeros_like(counts)
    for fold in range(FOLDS):
        others = counts.sum(0) - counts[fold]
        totals = others.sum(1, keepdims=True)
        overall = (others.sum(0) + _SMOOTHING) / (others.sum() + _SMOOTHING * FEATURES)
        strength = prior_months * max(1.0, float(totals.sum() / max(1, np.count_nonzero(totals))))
        models[fold] = np.log((others + strength * overall) / (totals + strength) / overall)
        models[fold][totals[:, 0] == 0] = _IMPOSSIBLE
    return models


def log_ratios(articles: Sequence[Article], models: Floats) -> Floats:
    """Returns the mean log-likelihood ratio of each month over an article's n-grams, by the model of its fold.

    Args:
      articles: articles of any folds.
      models: float32 ``[FOLDS, months, FEATURES]``, see :func:`fit`.

    Returns:
      float32 ``[len(articles), months]``.
    """
    grams = ngram_counts(articles)
    folds = np.array([fold_of(article.doc_id) for article in articles])
    ratios = np.zeros((len(articles), models.shape[1]), np.float32)
    for fold in range(FOLDS):
        # One product per fold, because scipy copies the whole model for each product.
        ratios[folds == fold] = grams[folds == fold] @ models[fold].T
    return ratios / np.maximum(np.asarray(grams.sum(1)), 1)


def distributions(ratios: Floats, sharpness: float) -> Floats:
    """Returns probabilities over months, the softmax of ``sharpness * ratios``: float32, shaped like ``ratios``."""
    logits = sharpness * ratios
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def fit_model(articles: Sequence[Article], counts: Floats, first_month: int) -> tuple[Floats, float]:
    """Returns the models and the sharpness that maximise the likelihood of the articles' own months.

    Each article is scored by the model of its fold, which has not seen it.

    Args:
      articles: a sample of the corpus, not empty.
      counts: counts of the whole corpus, see :func:`count_by_month`.
      first_month: month of column 0 of the counts.

    Returns:
      Models, float32 ``[FOLDS, months, FEATURES]``, and the sharpness.
    """
    own = np.array([month_of(article) - first_month for article in articles])

    def candidates() -> Iterator[tuple[float, float, float]]:
        """Yields (log likelihood of the own months, -prior, sharpness) of each choice."""
        for prior in _PRIOR_MONTHS:
            ratios = log_ratios(articles, fit(counts, prior))
            for sharpness in _SHARPNESS:
                likely = distributions(ratios, sharpness)[np.arange(len(own)), own]
                yield float(np.log(likely + 1e-9).mean()), -prior, sharpness

    _, prior, sharpness = max(candidates())
    return fit(counts, -prior), sharpness


def date_stats(articles: Sequence[Article], models: Floats, sharpness: float, first_month: int) -> Iterable[DateStats]:
    """Yields the statistics of each article.

    Args:
      articles: one or more, with a byline date.
      models: see :func:`fit`.
      sharpness: see :func:`distributions`.
      first_month: month of column 0 of the models.
    """
    months = models.shape[1]
    scale, numbers = np.log(max(months, 2)), np.arange(months)
    for article, row in zip(articles, distributions(log_ratios(articles, models), sharpness), strict=True):
        own = month_of(article) - first_month
        entropy = float(-(row * np.log(row + 1e-12)).sum() / scale)
        mass = float(row[max(0, own - 1) : own + 2].sum())
        gap = float(abs((row * numbers).sum() - own) / months)
        yield DateStats(article.doc_id, article.publisher, article.language, entropy, mass, gap)


TABLE: Final = "documents/table.npz"
ANCHORS: Final = Rows("_anchors", np.dtype("<u8"))  # ids of documents, sent to the shards of the anchors
_PARTS: Final = "_documents"
_NAMED: Final = {"publishers": "publisher", "languages": "language"}  # columns of codes: fields of DateStats
STORIES: Final = "documents/stories.npz"  # in the folder of ``triplets``


class DocumentTable:
    """A table of documents, looked up by document id as a number.

    Attributes:
      ids: uint64 ``[N]``, sorted.
    """

    def __init__(self, arrays: Any) -> None:
        self.ids: Ids = arrays["ids"]
        self._numbers = arrays["numbers"]
        self._codes = arrays["codes"]
        self._languages = arrays["languages"].tolist()

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, ids: Ids) -> Places:
        """Returns the row of each document, int64 ``[P]``; -1 if it is not in the table."""
        return find(self.ids, ids)

    def has(self, pairs: Array) -> Array:
        """Returns whether both documents of each pair, dtype ``CANDIDATE``, are in the table: bool ``[P]``."""
        return (self.places(pairs["anchor"]) >= 0) & (self.places(pairs["other"]) >= 0)

    def publishers(self, ids: Ids) -> Array:
        """Returns the publisher code of each document, int32 ``[P]``; all documents must be in the table."""
        return self._codes[self.places(ids), 0]

    def language(self, number: int) -> str:
        """Returns the language of the document in a row."""
        return str(self._languages[self._codes[number, 1]])

    def date_stats(self, ids: Ids) -> Floats:
        """Returns entropy, own mass and expected gap of each document (see ``DateStats``): float32 ``[P, 3]``.

        Entropy and own mass are ranks within the corpus, from 0 to 1, because their scale depends on how well the
        articles of a corpus can be dated. All documents must be in the table.
        """
        return self._numbers[self.places(ids)]


def write_part(shard: Shard, stats: Sequence[DateStats], anchor_shards: int) -> None:
    """Writes the table of the documents of a shard, and sends their ids to the shards of the anchors."""
    ids = np.array([int(one.doc_id, 16) for one in stats], np.uint64)
    arrays = {"ids": ids, "codes": np.zeros((len(stats), 2), "<i4")}
    for column, (name, field) in enumerate(_NAMED.items()):
        names = np.array([getattr(one, field) for one in stats], str)
        arrays[name], arrays["codes"][:, column] = np.unique(names, return_inverse=True)
    numbers = [(one.entropy, one.own_mass, one.expected_gap) for one in stats]
    arrays["numbers"] = np.array(numbers, np.float32).reshape(-1, 3)
    write_arrays(shard.path(_PARTS, "npz"), arrays)
    send(shard, ANCHORS.stream, ids, shard_numbers(ids, anchor_shards))


def write_table(shard: Shard, _: None) -> None:
    """Merges the tables of all shards. One worker can hold them: about 120 bytes a document."""
    from scipy.stats import rankdata

    parts = [read_arrays(path) for path in files.list_files(f"{_PARTS}/part-*.npz", shard.workspace)]
    ids, numbers, codes = (np.concatenate([part[name] for part in parts]) for name in ("ids", "numbers", "codes"))
    names = {}
    for column, name in enumerate(_NAMED):
        names[name] = np.unique(np.concatenate([part[name] for part in parts]))  # sorted: the place of one is its code
        new = [np.searchsorted(names[name], part[name])[part["codes"][:, column]] for part in parts]
        codes[:, column] = np.concatenate(new)
    del parts
    for column in (0, 1):
        # Mid-ranks scaled to (0, 1): the share of smaller values plus half the share of equal values.
        numbers[:, column] = (rankdata(numbers[:, column]) - 0.5) / max(1, len(ids))
    order = np.argsort(ids)
    rows = {"ids": ids[order], "numbers": numbers[order], "codes": codes[order]}
    write_arrays(f"{shard.workspace}/{TABLE}", rows | names)


@lru_cache(maxsize=2)
def read_table(path: str) -> DocumentTable:
    """Maps the table, once per process."""
    return DocumentTable(map_arrays(path))


# Events and stories
#
# So that a big story does not flood the training set, `crowded_out` limits the anchors of one event, found by leader
# clustering: documents are visited by falling number of positives, and each takes those of its positives that no
# earlier document has taken. Unlike components, this does not merge stories that pass into each other day by day.
#
# `stories_of` gives connected components, so that two reports are found to belong together although only a third one
# links them. Such a story may last for weeks; whether two documents report one event depends on their days, too.


def events_of(pairs: Array) -> tuple[Ids, Ids]:
    """Groups the documents of positive pairs into events.

    Args:
      pairs: uint64 ``[P, 2]``, document ids as numbers; the direction does not matter.

    Returns:
      The documents, uint64 ``[N]``, sorted, and the leader of the event of each, uint64 ``[N]``.
    """
    documents, numbers = np.unique(pairs, return_inverse=True)
    links = np.unique(np.concatenate([numbers.reshape(-1, 2), numbers.reshape(-1, 2)[:, ::-1]]), axis=0)
    starts = np.searchsorted(links[:, 0], np.arange(len(documents) + 1))
    leaders = np.full(len(documents), -1)
    for leader in np.lexsort((documents, -np.diff(starts))).tolist():
        if leaders[leader] < 0:
            others = links[starts[leader] : starts[leader + 1], 1]
            leaders[others[leaders[others] < 0]] = leader
            leaders[leader] = leader
    return documents, documents[leaders]


def crowded_out(anchors: Ids, pairs: Array, most: int) -> Ids:
    """Returns the anchors beyond the first ``most`` of their event, in an order drawn by digest; sorted.

    Args:
      anchors: uint64 ``[A]``, all in the pairs.
      pairs: uint64 ``[P, 2]``, see :func:`events_of`.
      most: largest number of anchors of one event.
    """
    documents, leaders = events_of(pairs)
    leader = leaders[np.searchsorted(documents, anchors)]
    ids = (doc_id_of(anchor).encode() for anchor in anchors.tolist())
    keys = np.array([hashlib.blake2b(one, digest_size=8).digest() for one in ids], "S8")
    order = np.lexsort((anchors, keys, leader))
    ordered = leader[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.sort(anchors[order[rank >= most]])


def stories_of(pairs: Array) -> tuple[Ids, Ids]:
    """Groups documents into the connected components of pairs.

    Args:
      pairs: uint64 ``[P, 2]``, document ids as numbers; the direction does not matter.

    Returns:
      The documents, uint64 ``[N]``, sorted, and the smallest document id in the component of each, uint64 ``[N]``.
    """
    documents, numbers = np.unique(pairs, return_inverse=True)
    left, right = numbers.reshape(-1, 2).T
    return documents, documents[lowest_connected(left, right, len(documents))]


def links_of(pairs: Array) -> Array:
    """Returns pairs with the same connected components, one less than documents in each: of some pairs or all.

    Args:
      pairs: uint64 ``[P, 2]``, see :func:`stories_of`; the documents of a pair differ.
    """
    links = np.stack(stories_of(pairs), axis=1)
    return links[links[:, 0] != links[:, 1]]


def write_stories(path: str, documents: Ids, stories: Ids) -> None:
    """Writes the result of :func:`stories_of`."""
    write_arrays(path, {"documents": documents, "stories": stories})


class Stories:
    """The story of each document, looked up by document id as a number.

    Args:
      path: of what :func:`write_stories` wrote; triplets of ``categories`` have no such file, and no stories.
    """

    def __init__(self, path: str) -> None:
        arrays = map_arrays(path) if files.exists(path) else {}
        self._documents, self._stories = (arrays.get(name, np.zeros(0, np.uint64)) for name in ("documents", "stories"))

    def of(self, doc_id: int) -> int:
        """Returns the story of a document, 0 if it has none."""
        place = find_one(self._documents, doc_id)
        return int(self._stories[place]) if place >= 0 else 0


read_stories = lru_cache(maxsize=2)(Stories)  # once per process
