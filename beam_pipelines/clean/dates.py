"""The rules for the byline date: it exists, it is plausible, and the other dates of the article agree with it.

Each rule returns a description of the problem, or ``None`` if the article passes.
"""

import datetime

from ...formats.records import Article
from ..extract.dates import day_in_url
from .options import CleanOptions

# A page fetched in one time zone may be dated tomorrow in another.
_GRACE = datetime.timedelta(days=1)


def without_date(article: Article, options: CleanOptions) -> str | None:
    """Rejects articles without a byline date."""
    return "" if options.require_byline_date and article.byline_date is None else None


def too_early(article: Article, options: CleanOptions) -> str | None:
    """Rejects dates before news was published online: they are defaults of the page's software."""
    date = article.byline_date
    return _dated(article) if date is not None and date < options.earliest_date else None


def in_future(article: Article, options: CleanOptions) -> str | None:
    """Rejects dates after the day of the fetch, or after the latest date in the options."""
    date = article.byline_date
    if date is None:
        return None
    if options.latest_date is not None and date > options.latest_date:
        return f"{_dated(article)}, after {options.latest_date}"
    if article.fetched_at is not None and date > article.fetched_at.date() + _GRACE:
        return f"{_dated(article)}, fetched on {article.fetched_at.date()}"
    return None


def disagreeing(article: Article, options: CleanOptions) -> str | None:
    """Rejects dates that differ from the day in the URL, or are later than the last modification."""
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
