"""The least margin of each pair of languages: that of the wanted precision when known pairs are mined."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np

from ...errors import InputError
from ...formats import files
from ...tasks.margin import Floats, Numbers, best_pairs, find_neighborhoods, for_precision, one_to_one, thresholds
from ..encoders import embed_unit, opened
from ..shards import Shard
from ..shuffle import Received
from . import readers
from .documents import main_language
from .least import ALL
from .options import BitextOptions
from .pairs import BitextPart
from .search import search_of
from .sentences import SAMPLE, Encoding, received_sample

MARGINS: Final = "_least.json"  # in the workspace: what `read_least` reads
_MOST: Final = SAMPLE // 10  # known pairs of two languages that are used
_FEWEST: Final = 40  # known sentences of two languages from which a margin is taken


def calibrate(
    options: BitextOptions,
    encoding: Encoding,
    languages: Sequence[tuple[str, str]],
    shard: Shard,
    received: Received,
) -> None:
    """Mines the known pairs among sentences of the articles, and writes the least margins as JSON.

    Raises:
      InputError: if there are too few known pairs of the languages that are mined.
    """
    encoder = opened(encoding.opener, encoding.name, shard.workspace)
    facts, everything = {}, []
    for (source, target), pairs in sorted(_read(shard, received.payload, languages).items()):
        sides = []
        for place, language in enumerate((source, target)):
            rows, texts = received_sample(received, shard.workspace, language)
            own = [pair[place] for number, pair in enumerate(pairs) if is_shown(number, place)]
            known = {pair[place] for pair in pairs}
            others = [number for number, text in enumerate(texts) if text not in known]
            vectors = embed_unit(encoder, own, encoding.name)
            sides.append((vectors, rows["vector"][others] if others else vectors[:0]))
        everything.append(judge(sides, len(pairs), options))
        facts[f"{source}-{target}"] = everything[-1].fact(options)
    facts[ALL] = Judged.joined(everything).fact(options) if everything else None
    if facts[ALL] is None:
        sentences, mined = sum(one.paired + one.unpaired for one in everything), map("-".join, languages)
        raise InputError(
            f"got {sentences} known sentences in the languages that are mined ({', '.join(mined)}), "
            f"expected at least {_FEWEST}",
            field="--known_pairs",
            remedy="give a few hundred pairs of these languages as UTF-8, or leave it out to use --min_margin",
        )
    margins = {name: fact for name, fact in facts.items() if fact is not None}
    files.write_whole(f"{shard.workspace}/{MARGINS}", json.dumps(margins, sort_keys=True).encode())


def is_shown(number: int, side: int) -> bool:
    """Whether a side (0 or 1) of a known pair takes part: of every fourth pair only the left, of the next the right."""
    return number % 4 != 3 - side


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """Mined pairs in which a known sentence is, and how many known sentences there are.

    Attributes:
      margins: float32 ``[P]``.
      right: sentences of the pair that have got their translation, 0 or 2, ``[P]``.
      wrong: those that have got another sentence in place of their translation, ``[P]``.
      alone: those that have got a sentence although their translation was left out, ``[P]``.
      paired: number of known sentences whose translation takes part.
      unpaired: number of those whose translation was left out.
    """

    margins: Floats
    right: Numbers
    wrong: Numbers
    alone: Numbers
    paired: int
    unpaired: int

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Returns the pairs of several languages together."""
        return cls(
            np.concatenate([part.margins for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.wrong for part in parts]),
            np.concatenate([part.alone for part in parts]),
            sum(part.paired for part in parts),
            sum(part.unpaired for part in parts),
        )

    def fact(self, options: BitextOptions) -> dict[str, Any] | None:
        """Returns the lowest margin of the wanted precision and what it gives; None if too few pairs are known.

        Known sentences with and without their translation are weighed by --translated_share.
        """
        if self.paired + self.unpaired < _FEWEST:
            return None
        share = options.translated_share
        right, wrong = share * self.right / self.paired, share * self.wrong / self.paired
        found = thresholds(self.margins, right, wrong + (1 - share) * self.alone / self.unpaired, share)
        chosen = for_precision(found, options.precision)
        sentences = {"known_sentences": self.paired + self.unpaired}
        if chosen is None:
            return {"margin": None, "precision": None, "recall": None} | sentences
        rounded = {"precision": round(chosen.precision, 4), "recall": round(chosen.recall, 4)}
        return {"margin": chosen.margin} | rounded | sentences


def judge(sides: Sequence[tuple[Floats, Floats]], count: int, options: BitextOptions) -> Judged:
    """Mines known sentences among others.

    Args:
      sides: embeddings of the known sentences that take part, by pair, and of other sentences, for both languages.
      count: number of known pairs.
      options: number of neighbors and the engine.
    """
    search = search_of(options)
    left, right = (np.concatenate(side) for side in sides)
    mined = best_pairs(find_neighborhoods(left, right, options.neighbors, search))
    mined = mined.take(one_to_one(mined))
    numbers, partnered = [], []
    for side, (known, _) in enumerate(sides):
        shown = np.array([number for number in range(count) if is_shown(number, side)], np.int64)
        rows = mined.left if side == 0 else mined.right
        number = np.where(rows < len(known), np.append(shown, -1)[np.minimum(rows, len(known))], -1)
        numbers.append(number)
        partnered.append((number >= 0) & (number % 4 < 2))
    is_right = (numbers[0] >= 0) & (numbers[0] == numbers[1])
    right_ones = 2 * is_right.astype(np.int64)
    in_pair = sum(one.astype(np.int64) for one in partnered)
    alone = sum(((number >= 0) & (number % 4 >= 2)).astype(np.int64) for number in numbers)
    paired = 2 * sum(1 for number in range(count) if number % 4 < 2)
    unpaired = count - paired // 2
    return Judged(mined.margins, right_ones, in_pair - right_ones, np.asarray(alone), paired, unpaired)


def _read(
    shard: Shard, parts: Sequence[BitextPart], languages: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The known pairs of the languages that are mined, each side once, at most `_MOST` of two languages."""
    found: dict[tuple[str, str], dict[str, str]] = {pair: {} for pair in languages}
    for part in parts:
        for pair in readers.read_pairs(shard, part):
            shard.written()
            tags = _tags(pair.languages)
            texts = tuple(" ".join(text.split()) for text in (pair.source, pair.target))
            for one, other in ((0, 1), (1, 0)):
                kept = found.get((tags[one], tags[other]))
                if kept is not None and len(kept) < _MOST:
                    kept.setdefault(texts[one], texts[other])
    return {languages: list(pairs.items()) for languages, pairs in found.items() if pairs}


def _tags(languages: str) -> tuple[str, str]:
    """The main languages of a pair: ``("zh", "en")`` of ``zh-Hant-en-GB``."""
    first, *others = languages.split("-")
    second = next((one for one in reversed(others) if one.islower() and one.isalpha() and len(one) in (2, 3)), "")
    return main_language(first) or "", second
