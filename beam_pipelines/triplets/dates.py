"""A byline-date model: which month was this written in? An article that could have been written in any is evergreen.

Multinomial naive Bayes over hashed word n-grams, trained out of fold: an article is scored by a model that has not seen it.
The product of so many dependent likelihoods is far too sure of itself, so their mean is taken and sharpened by one number
that is fitted to held-out articles.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..records import Article

FEATURES = 1 << 15
FOLDS = 2
_WORDS = 300
_SMOOTHING = 0.5
_SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

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

    vectorizer = HashingVectorizer(n_features=FEATURES, ngram_range=(1, 2), alternate_sign=False, norm=None, dtype=np.float32)
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
            chosen = scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), (months_of, rows)), shape=(months, len(articles)))
            counts[fold] = (chosen @ grams).toarray()
    return counts


def fit(counts: Floats) -> Floats:
    """Log-likelihood ratios log p(n-gram | month) / p(n-gram), one model a fold, trained on the other folds.

    Args:
      counts: float32 ``[FOLDS, months, FEATURES]``.

    Returns:
      float32 ``[FOLDS, months, FEATURES]``; a month without articles has ratios of 0.
    """
    models = np.zeros_like(counts)
    for fold in range(FOLDS):
        others = counts.sum(0) - counts[fold]
        overall = (others.sum(0) + _SMOOTHING) / (others.sum() + _SMOOTHING * FEATURES)
        # Smoothed towards the overall distribution: a rare month must not look likely for what it never said.
        strength = 1000.0
        by_month = (others + strength * overall) / (others.sum(1, keepdims=True) + strength)
        models[fold] = np.log(by_month / overall)
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


def fit_sharpness(articles: Sequence[Article], models: Floats, first_month: int) -> float:
    """The sharpness under which the articles' own months are most likely."""
    if not articles:
        return _SHARPNESS[0]
    own = np.array([month_of(article) - first_month for article in articles])
    ratios = log_ratios(articles, models)

    def likelihood(sharpness: float) -> float:
        return float(np.log(distributions(ratios, sharpness)[np.arange(len(own)), own] + 1e-9).mean())

    return max(_SHARPNESS, key=likelihood)


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
