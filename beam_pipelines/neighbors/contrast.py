"""How near documents are to others some weeks apart: the contrast by which `triplets` judges how rare a pair is.

A subject that the news has for weeks makes pairs of one day similar, although each report is of another event. Then the
reports of other weeks are as similar, so they say what a similarity is worth for a document.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ...formats.records import Space
from ..arrays import Array, Ids
from ..entities.tables import Floats
from ..lookup import Lookup
from .index import queries_at_once
from .rows import Rows

CONTRASTS: Final = "contrasts"  # the stream, see `lookup`
CONTRAST: Final = np.dtype([("id", "<u8"), ("contrast", "<f4", (len(Space),))])
LEAST_DAYS: Final = 8
MOST_DAYS: Final = 28
NEAREST_SHARE: Final = 1 / 300  # of the documents some weeks apart
_LEAST_DOCUMENTS: Final = 300  # with fewer, the share is less than one document, and its mean the greatest of few
_MOST_DOCUMENTS: Final = 4_000  # some weeks apart from one day, so that the time is linear in the documents


def contrasts(rows: Rows, first_day: int, last_day: int, part: int, parts: int) -> Iterator[Array]:
    """Yields the contrasts of the documents from ``first_day`` to ``last_day`` (inclusive), one day at a time.

    The contrast of a document in a space is its mean cosine with the nearest 1 / 300 of the documents 8 to 28 days
    before or after it, or of a sample of 4,000 of them. It is NaN without a vector, or with fewer than 300.

    Args:
      rows: documents of these days and of 28 days before and after.
      first_day: first day of the documents that are asked.
      last_day: the last one.
      part: only of the documents with ``id % parts == part``.
      parts: number of parts.

    Yields:
      dtype :data:`CONTRAST`, sorted by id.
    """
    asked = (rows.days >= first_day) & (rows.days <= last_day) & (rows.ids % np.uint64(parts) == part)
    for day in np.unique(rows.days[asked]):
        numbers = np.flatnonzero(asked & (rows.days == day))
        gaps = np.abs(rows.days - day)
        # Ids are digests, so the smallest ones are a random sample, which does not depend on the shards.
        others = np.flatnonzero((gaps >= LEAST_DAYS) & (gaps <= MOST_DAYS))[:_MOST_DOCUMENTS]
        found = np.zeros(len(numbers), CONTRAST)
        found["id"] = rows.ids[numbers]
        for column, space in enumerate(Space):
            found["contrast"][:, column] = _contrasts_in(rows, numbers, others, space)
        yield found


def _contrasts_in(rows: Rows, numbers: Any, others: Any, space: Space) -> Floats:
    found = np.full(len(numbers), np.nan, np.float32)
    present = rows.present[space]
    asked, others = np.flatnonzero(present[numbers]), others[present[others]]
    if len(others) < _LEAST_DOCUMENTS:
        return found
    vectors = rows.vectors[space]
    candidates, below = vectors[others].T, len(others) - int(np.ceil(len(others) * NEAREST_SHARE))
    step = queries_at_once(len(others))
    for start in range(0, len(asked), step):
        places = asked[start : start + step]
        cosines = vectors[numbers[places]] @ candidates
        # The last digits of a product depend on the processor.
        found[places] = np.round(np.partition(cosines, below, axis=1)[:, below:].mean(axis=1), 4)
    return found


def contrasts_of(known: Lookup, ids: Ids) -> Floats:
    """Returns the contrasts of documents, float32 ``[P, spaces]``; NaN for a document that is not known.

    Args:
      known: the stream.
      ids: uint64 ``[P]``.
    """
    found = np.full((len(ids), len(Space)), np.nan, np.float32)
    for numbers, rows in known.rows(ids):
        found[numbers] = rows["contrast"]
    return found


def of_pairs(left: Floats, right: Floats) -> Floats:
    """Returns the contrast of pairs: the mean of both documents, or the known one; NaN if neither is."""
    return np.asarray((np.where(np.isnan(left), right, left) + np.where(np.isnan(right), left, right)) / 2)
