"""What a search is restricted to: byline dates, languages, publishers."""

import dataclasses
from typing import Final

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
