"""What a kind of pairs is: how the two texts of a pair follow from an article."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...formats.records import Rejection
from ..texts import ArticleText


class Text(NamedTuple):
    """A text as the encoder reads it, ``[CLS] title [SEP] body [SEP]``; either part may be empty."""

    title: str = ""
    body: str = ""


class TextPair(NamedTuple):
    """Two texts that belong together."""

    anchor: Text
    positive: Text


class Refusal(NamedTuple):
    """Why a candidate is not a pair."""

    reason: Rejection
    detail: str = ""


# An article, the texts of the posts that link to it and the options -> a pair or a refusal for every candidate. A kind
# declares the options that it reads: PairsOptions checks the name of the kind, so no kind can import it.
MakePairs = Callable[[ArticleText, Sequence[str], Any], Iterator[TextPair | Refusal]]


@dataclasses.dataclass(frozen=True)
class PairKind:
    """A value of ``--of``.

    Attributes:
      make: yields what `MakePairs` describes; the job counts each as one record that it has read.
      reads_posts: whether the pairs need ``--posts``. Only articles with posts are then read.
      options: the names of options that only this kind reads.
    """

    make: MakePairs
    reads_posts: bool = False
    options: tuple[str, ...] = ()
