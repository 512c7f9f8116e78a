"""The registry of kinds of pairs: a value of ``--of`` to the file that makes these pairs.

A new kind is one file here: a function as `interface.MakePairs` describes it, and a line in `KINDS`. No kind imports
`options`, which looks up the kinds.
"""

from collections.abc import Mapping
from typing import Final

from .halves import HALVES
from .interface import PairKind
from .links import ANCHORS, POSTS
from .titles import TITLES

KINDS: Final[Mapping[str, PairKind]] = {"posts": POSTS, "anchors": ANCHORS, "titles": TITLES, "halves": HALVES}
