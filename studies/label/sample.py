"""The order of the questions: the pairs of which the filter is least certain, with random pairs between them.

Uncertain pairs improve the regression most, but do not measure the pairs of which the filter is certain; random pairs
do. False negatives are so rare among the kept pairs that half of the random pairs come from the few that the filter
drops.
"""

import collections
import dataclasses
import enum
import hashlib
from collections.abc import Iterator, Sequence

from .pairs import Pair

_PER_ARTICLE = 2  # uncertain pairs; otherwise twenty editions of one guide would be twenty questions


class Sampled(enum.StrEnum):
    """How a pair was sampled."""

    UNCERTAIN = "uncertain"  # its score is close to the threshold
    DROPPED = "dropped"  # at random from the pairs that the filter drops
    KEPT = "kept"  # at random from the pairs that it keeps


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A pair to label and why it was chosen."""

    pair: Pair
    sampled: Sampled


def questions(pairs: Sequence[Pair], threshold: float, seed: int, random_share: float) -> Iterator[Question]:
    """All pairs as questions, each once whatever its direction; the order depends on the arguments only.

    Args:
      pairs: the candidates, in any order.
      threshold: the score above which the filter drops a pair.
      seed: of the random draws.
      random_share: share of random questions, in every part of the order.
    """
    shuffled = sorted(
        pairs, key=lambda pair: hashlib.blake2b(f"{seed} {pair.anchor} {pair.other}".encode(), digest_size=8).digest()
    )
    asked: set[frozenset[str]] = set()
    uncertain = _uncertain(sorted(shuffled, key=lambda pair: abs(pair.score - threshold)), asked)
    dropped = (
        Question(pair, Sampled.DROPPED) for pair in shuffled if pair.score > threshold and pair.both not in asked
    )
    kept = (Question(pair, Sampled.KEPT) for pair in shuffled if pair.score <= threshold and pair.both not in asked)
    turns = [dropped, kept]
    credit = 0.0
    while True:
        credit += random_share
        order = [*turns, uncertain] if credit >= 1 else [uncertain, *turns]
        if credit >= 1:
            credit -= 1
            turns.reverse()
        question = next((one for source in order if (one := next(source, None))), None)
        if question is None:
            return
        asked.add(question.pair.both)
        yield question


def _uncertain(ordered: Sequence[Pair], asked: set[frozenset[str]]) -> Iterator[Question]:
    uses: collections.Counter[str] = collections.Counter()
    for pair in ordered:
        if pair.both not in asked and all(uses[doc_id] < _PER_ARTICLE for doc_id in pair.both):
            uses.update(pair.both)
            yield Question(pair, Sampled.UNCERTAIN)
