"""The visits of a site that are still to come, in their order."""

import dataclasses
import heapq
import itertools
from collections import deque

from .state import UrlRecord

_LISTING = ("feed", "sitemap", "index")  # kinds of responses that list new pages, also where they are known


@dataclasses.dataclass(frozen=True)
class Visit:
    """A URL to fetch.

    Attributes:
      url: the URL, without a fragment once it is scheduled.
      depth: number of links from a seed.
      kind: expected kind of response: "page", "sitemap" or "image".
      attempt: number of the attempt, from 1.
    """

    url: str
    depth: int = 0
    kind: str = "page"
    attempt: int = 1


class Frontier:
    """The visits to come.

    Pages are in breadth-first order. At each depth, those come first that earlier crawls did not fetch, and feeds,
    so that a limit on the pages of a site is not spent on what is known. Pages precede sitemaps: the pages of one
    sitemap are fetched before the next is read, which bounds the memory. Known pages that hardly list anything new come
    last; the one that was requested longest ago is first among them.
    """

    def __init__(self) -> None:
        self._pages: list[tuple[int, bool, int, Visit]] = []
        self._sitemaps: deque[Visit] = deque()
        self._repeats: list[tuple[int, int, Visit]] = []
        self._numbers = itertools.count()

    def __bool__(self) -> bool:
        """Returns whether a visit is left."""
        return bool(self._pages or self._sitemaps or self._repeats)

    def add(self, visit: Visit, known: UrlRecord | None = None, *, last: bool = False) -> None:
        """Adds a visit.

        Args:
          visit: the visit.
          known: record of an earlier crawl of its URL.
          last: whether a known page hardly lists anything new: it is an entry of a feed or a sitemap, so an article,
            or its links are not followed.
        """
        if visit.kind == "sitemap":
            self._sitemaps.append(visit)
            return
        if known is not None and known.kind in _LISTING:
            known = None
        if known is None or not last:
            heapq.heappush(self._pages, (visit.depth, known is not None, next(self._numbers), visit))
        else:
            heapq.heappush(self._repeats, (known.requested.toordinal(), next(self._numbers), visit))

    def pop(self) -> Visit:
        """Removes the next visit and returns it.

        Raises:
          IndexError: if none is left.
        """
        if self._pages:
            return heapq.heappop(self._pages)[-1]
        if self._sitemaps:
            return self._sitemaps.popleft()
        return heapq.heappop(self._repeats)[-1]
