"""A byline-date model: which month was this written in? An article that could have been written in any is evergreen.

Multinomial naive Bayes over hashed word n-grams, trained out of fold: an article is scored by a model that has not seen it.
The product of so many dependent likelihoods is far too sure of itself, so their mean is taken and sharpened by one number. This number and
the smoothing of the months towards the whole corpus are those under which held-out articles' own months are most likely.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...formats.records import Article

FEATURES = 1 << 15
FOLDS = 2
_WORDS = 300
_SMOOTHING = 0.5
_PRIOR_MONTHS = (0.1, 1.0, 4.0, 16.0, 64.0)
_SHARPNESS = tuple(2.0**power for power in range(12))
_IMPOSSIBLE = -1e3  # log-likelihood ratio of a month that nothing is known of

Floats = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True, slots=True)
class DateStats:
    """How well an article's date can be told from its text, with what the pairing rules need to know of it.

    Attributes:
      entropy: of the predicted distribution over months, over its maximum: 1 is no idea at all.
      own_mass: probability of the article's own month and its neighbors.
      expected_gap: |expected month - own month|, as a share of all months.
    """

    doc_id: str
    publisher: str
    language: str
    entropy: float
    own_mass: float
    expected_gap: float


def month_of(article: Article) -> int:
    """Months since year 0."""
    if article.byline_date is None:
        raise ValueError(f"article {article.doc_id} has no byline date")
    return article.byline_date.year * 12 + article.byline_date.month - 1


def fold_of(doc_id: str) -> int:
    """The fold an article belongs to; models of the other folds score it."""
    return hashlib.blake2b(doc_id.encode(), digest_size=1).digest()[0] % FOLDS


def ngram_counts(articles: Sequence[Article]) -> Any:
    """Hashed uni- and bigrams of title and lead, CSR float32 ``[len(articles), FEATURES]``."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=FEATURES, ngram_range=(1, 2), alternate_sign=False, norm=None, dtype=np.float32
    )
    return vectorizer.transform(" ".join(f"{article.title} {article.body}".split()[:_WORDS]) for article in articles)


def count_by_month(articles: Sequence[Article], first_month: int, months: int) -> Floats:
    """N-gram counts by fold and month, float32 ``[FOLDS, months, FEATURES]``."""
    import scipy.sparse

    counts = np.zeros((FOLDS, months, FEATURES), np.float32)
    if articles:
        grams = ngram_counts(articles)
        for fold in range(FOLDS):
            rows = [row for row, article in enumerate(articles) if fold_of(article.doc_id) == fold]
            months_of = [month_of(articles[row]) - first_month for row in rows]
            chosen = scipy.sparse.csr_matrix(
                (np.ones(len(rows), np.float32), (months_of, rows)), shape=(months, len(articles))
            )
            counts[fold] = (chosen @ grams).toarray()
    return counts


def fit(counts: Floats, prior_months: float) -> Floats:
    """Log-likelihood ratios log p(n-gram | month) / p(n-gram), one model a fold, trained on the other folds.

    Args:
      counts: float32 ``[FOLDS, months, FEATURES]``.
      prior_months: weight of the whole corpus in each month's distribution, as a multiple of the mean month: a month with few articles must not
        look likely, or unlikely, by chance.

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
    """Mean log-likelihood ratio of each month over an article's n-grams, by the model of its fold: float32 ``[len(articles), months]``."""
    grams = ngram_counts(articles)
    folds = np.array([fold_of(article.doc_id) for article in articles])
    ratios = np.zeros((len(articles), models.shape[1]), np.float32)
    for fold in range(FOLDS):
        # One product a fold: scipy copies the whole model for each.
        ratios[folds == fold] = grams[folds == fold] @ models[fold].T
    return ratios / np.maximum(np.asarray(grams.sum(1)), 1)


def distributions(ratios: Floats, sharpness: float) -> Floats:
    """Probabilities over months, float32 like ``ratios``."""
    logits = sharpness * ratios
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def fit_model(articles: Sequence[Article], counts: Floats, first_month: int) -> tuple[Floats, float]:
    """The model and the sharpness under which the articles' own months are most likely, each article judged by the model of its fold.

    Args:
      articles: a sample of the corpus.
      counts: of the whole corpus, see :func:`count_by_month`.
      first_month: that column 0 of the counts stands for.
    """
    if not articles:
        return fit(counts, _PRIOR_MONTHS[0]), _SHARPNESS[0]
    own = np.array([month_of(article) - first_month for article in articles])

    def candidates() -> Iterator[tuple[float, float, float]]:
        for prior in _PRIOR_MONTHS:
            ratios = log_ratios(articles, fit(counts, prior))
            for sharpness in _SHARPNESS:
                likely = distributions(ratios, sharpness)[np.arange(len(own)), own]
                yield float(np.log(likely + 1e-9).mean()), -prior, sharpness

    _, prior, sharpness = max(candidates())
    return fit(counts, -prior), sharpness


def date_stats(articles: Sequence[Article], models: Floats, sharpness: float, first_month: int) -> Iterable[DateStats]:
    """The statistics of each article."""
    if not articles:
        return
    months = models.shape[1]
    scale = np.log(months) if months > 1 else 1.0
    numbers = np.arange(months)
    for article, row in zip(articles, distributions(log_ratios(articles, models), sharpness), strict=True):
        own = month_of(article) - first_month
        entropy = float(-(row * np.log(row + 1e-12)).sum() / scale)
        mass = float(row[max(0, own - 1) : own + 2].sum())
        gap = float(abs((row * numbers).sum() - own) / months)
        yield DateStats(article.doc_id, article.publisher, article.language, entropy, mass, gap)
