"""A byline-date model that predicts the month of an article from its text; evergreen articles are hard to predict.

The model is a multinomial naive Bayes over hashed word n-grams, trained out of fold: an article is scored by a model
that has not seen it. The product of so many dependent likelihoods is overconfident, so the mean log-likelihood ratio is
used, scaled by one number, the sharpness. The sharpness and the smoothing of months towards the whole corpus maximise
the likelihood of the true months of held-out articles.
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
_IMPOSSIBLE = -1e3  # log-likelihood ratio of a month without training articles

Floats = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True, slots=True)
class DateStats:
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
