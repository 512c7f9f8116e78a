"""The rules for the byline date: it stands there, it is plausible, and the article's other dates agree with it."""

import datetime

from ...formats.records import Article
from ..extract.dates import day_in_url
from .options import CleanOptions

# A page fetched in one time zone may be dated tomorrow in another.
_GRACE = datetime.timedelta(days=1)


def without_date(article: Article, options: CleanOptions) -> str | None:
    """No byline date."""
    return "" if options.require_byline_date and article.byline_date is None else None


def too_early(article: Article, options: CleanOptions) -> str | None:
    """Dated before news went online: a default of the page's software."""
    date = article.byline_date
    return _dated(article) if date is not None and date < options.earliest_date else None


def in_future(article: Article, options: CleanOptions) -> str | None:
    """Dated after it was fetched, or after the last day that was asked for."""
    date = article.byline_date
    if date is None:
        return None
    if options.latest_date is not None and date > options.latest_date:
        return f"{_dated(article)}, after {options.latest_date}"
    if article.fetched_at is not None and date > article.fetched_at.date() + _GRACE:
        return f"{_dated(article)}, fetched on {article.fetched_at.date()}"
    return None


def disagreeing(article: Article, options: CleanOptions) -> str | None:
    """Dated otherwise than its URL says, or changed before it was published."""
    date, most = article.byline_date, options.max_date_disagreement_days
    if date is None or most < 0:
        return None
    in_url = day_in_url(article.url)
    if in_url is not None and abs((in_url - date).days) > most:
        return f"{_dated(article)}, {in_url} by the URL"
    if article.modified_date is not None and (date - article.modified_date).days > most:
        return f"{_dated(article)}, modified on {article.modified_date}"
    return None


def _dated(article: Article) -> str:
    return f"{article.byline_date} by {article.date_source or 'an unnamed source'}"
