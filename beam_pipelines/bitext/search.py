"""Nearest sentences, exactly or by an index."""

from typing import Any

import numpy as np

from ...tasks.margin import Floats, Numbers, Search, nearest
from ..neighbors.index import Engine, build_index, choose_engine
from .options import BitextOptions


def search_of(options: BitextOptions) -> Search:
    """Returns the search of the options: exact for few sentences, else by an index whose cosines are computed again."""

    def search(left: Any, right: Any, count: int) -> tuple[Numbers, Floats]:
        if choose_engine(options.engine, len(right), options.exact_below, len(left)) is Engine.EXACT:
            return nearest(left, right, count)
        hits, _ = build_index(right, options.engine, options.exact_below, len(left)).search(left, count)
        cosines = np.where(hits >= 0, np.einsum("nd,nkd->nk", left, right[hits], optimize=False), 0)
        order = np.argsort(-cosines, axis=1, kind="stable")
        hits = np.maximum(hits, 0)  # of a missing neighbor, with a cosine of 0
        return np.take_along_axis(hits, order, 1), np.take_along_axis(cosines, order, 1).astype(np.float32)

    return search
