"""What a search is restricted to: byline dates, languages, publishers."""

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Final

from ..errors import InputError
from .dates import ALL_DATES, DateRange


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """What the documents of an answer must be.

    Attributes:
      dates: their byline dates.
      languages: their languages without script and region, in lower case; none for all.
      publishers: their publishers in lower case; none for all.
    """

    dates: DateRange = ALL_DATES
    languages: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()


NO_FILTERS: Final = Filters()
_SHOWN: Final = 5  # values in an error


def as_filters(given: DateRange | Filters) -> Filters:
    """Dates as filters; filters as they are."""
    return Filters(dates=given) if isinstance(given, DateRange) else given


def known_value(given: str, known: Iterable[str], field: str) -> str:
    """A value of a filter that documents have.

    Args:
      given: in any case.
      known: the values of the documents, in lower case.
      field: "language" or "publisher".

    Raises:
      InputError: if no document has it; it names the nearest values.
    """
    values = sorted(set(known) - {""})
    value = given.strip().lower()
    if value in values:
        return value
    near = difflib.get_close_matches(value, values, n=3, cutoff=0.6) or values[:_SHOWN]
    more = f" and {len(values) - len(near)} more" if len(near) < len(values) else ""
    remedy = f"the index has {', '.join(near)}{more}" if near else f"no article of the index has a {field}"
    raise InputError(f"no article of the index has the {field} {given!r}", field=field, remedy=remedy)
