"""Mines the sentences of two languages in a block of days: margins, rules, one translation for each sentence.

The least margin is that of the options, or the one of the wanted precision when known pairs are mined among sentences
of the articles.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.records import MinedPair, Rejection
from ...tasks.margin import (
    Candidates,
    Floats,
    Numbers,
    best_pairs,
    find_neighborhoods,
    for_precision,
    nearest,
    one_to_one,
    ratio_margins,
    thresholds,
    union,
)
from ..arrays import Array, doc_id_of, read_array
from ..clean.rules import count_words, probabilities, script_share
from ..encoders import embed_unit, opened
from ..entities.linking import words_of
from ..graph import Received
from ..neighbors.index import Engine, build_index, choose_engine
from ..shards import Shard
from . import documents
from .documents import SAMPLE, BitextOptions, Plan, Task, links_path, main_language, received_sample, received_sentences
from .readers import BitextPart, read_pairs

_SCRIPT_SHARE: Final = 0.5  # of the letters of a side must be of its language
_LENGTH_SLACK: Final = 2  # words that are added to both lengths: short sentences vary more
_MOST_LENGTH_RATIO: Final = 2.0
_MOST_COPIED: Final = 0.7  # of the words of a side may be on the other side, too
MARGINS: Final = "_least.json"  # in the workspace: what `calibrate` writes
_ALL: Final = ""  # the threshold of all known pairs together, for languages without any
_MOST_KNOWN: Final = SAMPLE // 10  # known pairs of two languages that are used
_FEWEST_KNOWN: Final = 40  # known sentences of two languages from which a margin is taken


class Side:
    """The sentences of one language, each text once.

    Args:
      rows: of sentences, in any order.
      texts: of the rows.

    Attributes:
      rows: of the first sentence with each text, by article and place in it.
      texts: the texts.
      places: rows of sentences by article, for those that an article has.
    """

    def __init__(self, rows: Array, texts: Sequence[str]) -> None:
        first: dict[str, int] = {}
        self.places: dict[int, list[int]] = {}
        chosen = []
        for row in np.lexsort((rows["number"], rows["doc_id"])).tolist():
            if (text := texts[row]) not in first:
                first[text] = len(first)
                chosen.append(row)
            self.places.setdefault(int(rows["doc_id"][row]), []).append(first[text])
        self.texts = list(first)
        self.rows = rows[chosen]
        self.vectors: Floats = np.ascontiguousarray(self.rows["vector"])


def mine_task(shard: Shard, received: Received, plan: Plan) -> None:
    """Writes the pairs of one task that pass all rules; counts the others by reason.

    Args:
      shard: the outputs; its number is that of the task.
      received: the sentences of the task.
      plan: the tasks.
    """
    options, task = plan.options, plan.tasks[shard.index]
    rows, texts = received_sentences(received)
    sides = []
    for language in (task.source, task.target):
        own = np.flatnonzero(rows["language"] == language.encode())
        sides.append(Side(rows[own], [texts[row] for row in own.tolist()]))
        shard.tally(f"sentences/{language}", len(sides[-1].texts))
    links = read_array(links_path(shard.workspace, shard.index)) if plan.is_linked else None
    found = score_pairs(sides[0], sides[1], links, options)
    shard.read(len(found))
    pairs = list(_records(found, sides, task))
    least = _least_margin(shard.workspace, task.languages, plan)
    reasons = [_reason(pair, least, options) for pair in pairs]
    sound = np.flatnonzero([reason is None for reason in reasons])
    for number in sound[~one_to_one(found.take(sound))].tolist():
        reasons[number] = Rejection.SENTENCE_TAKEN, "a side has a better translation"
    writer = shard.records("_mined", MinedPair)
    for pair, reason in zip(pairs, reasons, strict=True):
        if reason is None:
            writer.write(pair)
            shard.written()
        else:
            reject(shard, pair, *reason)
    shard.tally(f"pairs/{task.languages}", reasons.count(None))


def _records(found: Candidates, sides: Sequence[Side], task: Task) -> Iterator[MinedPair]:
    left, right = sides
    numbers = (values.tolist() for values in (found.left, found.right, found.margins, found.cosines))
    for one, other, margin, cosine in zip(*numbers, strict=True):
        texts, places = (left.texts[one], right.texts[other]), (left.rows[one], right.rows[other])
        source, target = (doc_id_of(int(row["doc_id"])) for row in places)
        first, second = (int(row["number"]) for row in places)
        yield MinedPair(task.source, task.target, *texts, margin, cosine, source, target, first, second)


def reject(shard: Shard, pair: MinedPair, reason: Rejection, detail: str) -> None:
    """Counts a pair as rejected; its key is the article and the number of the sentence, of both sides."""
    key = f"{pair.source_doc}:{pair.source_number} {pair.target_doc}:{pair.target_number}"
    shard.reject(key, reason, detail, f"{pair.source[:240]} | {pair.target[:240]}")


def score_pairs(left: Side, right: Side, links: Array | None, options: BitextOptions) -> Candidates:
    """Returns the best candidates of the sentences of both sides, by margin.

    The neighborhoods of the margin are those among all sentences of the task.

    Args:
      left: source sentences.
      right: target sentences.
      links: articles whose sentences may be translations; None for all.
      options: number of neighbors and the engine.
    """
    found = find_neighborhoods(left.vectors, right.vectors, options.neighbors, _search_of(options))
    if links is None:
        return best_pairs(found)
    left_means, right_means = found.means
    parts = []
    for source, target in links.tolist():
        here, there = left.places.get(source), right.places.get(target)
        if here and there:
            own, other = np.unique(here), np.unique(there)
            cosines = np.einsum("nd,md->nm", left.vectors[own], right.vectors[other], optimize=False)
            margins = ratio_margins(cosines, left_means[own][:, None], right_means[other])
            # The best of each row and each column of the block of scores.
            rows = np.concatenate([np.arange(len(own)), np.argmax(margins, axis=0)])
            columns = np.concatenate([np.argmax(margins, axis=1), np.arange(len(other))])
            parts.append(Candidates(own[rows], other[columns], cosines[rows, columns], margins[rows, columns]))
    return _best_of_sides(union(parts))


def _search_of(options: BitextOptions) -> Any:
    """The search of the options: exact for few sentences, else by an index whose cosines are computed again."""

    def search(left: Any, right: Any, count: int) -> tuple[Numbers, Floats]:
        least = documents.EXACT_BELOW
        if choose_engine(options.engine, len(right), least, len(left)) is Engine.EXACT:
            return nearest(left, right, count)
        hits, _ = build_index(right, options.engine, least, len(left)).search(left, count)
        cosines = np.where(hits >= 0, np.einsum("nd,nkd->nk", left, right[hits], optimize=False), 0)
        order = np.argsort(-cosines, axis=1, kind="stable")
        hits = np.maximum(hits, 0)  # of a missing neighbor, with a cosine of 0
        return np.take_along_axis(hits, order, 1), np.take_along_axis(cosines, order, 1).astype(np.float32)

    return search


def _best_of_sides(pairs: Candidates) -> Candidates:
    """Those pairs that are the best of their left or of their right sentence, ties by lower rows."""
    kept = np.zeros(len(pairs), bool)
    order = np.lexsort((pairs.right, pairs.left, -pairs.margins))
    for side in (pairs.left, pairs.right):
        kept[order[np.unique(side[order], return_index=True)[1]]] = True
    return pairs.take(kept)


def _reason(pair: MinedPair, least: float, options: BitextOptions) -> tuple[Rejection, str] | None:
    """Why a pair is no translation: a low margin, or what two sentences with a high one may still be."""
    if pair.margin < least:
        return Rejection.BELOW_MARGIN, f"margin {pair.margin:.4f}, least {least:.4f}"
    texts = pair.source, pair.target
    if (share := copied_share(*texts)) > _MOST_COPIED:
        return Rejection.COPIED_TEXT, f"{share:.2f} of the words are on both sides"
    if (ratio := length_ratio(*texts)) > _MOST_LENGTH_RATIO:
        return Rejection.LENGTH_RATIO, f"one side is {ratio:.2f} times as long"
    for text, language in zip(texts, (pair.source_language, pair.target_language), strict=True):
        if is_in_other_language(text, language, options.min_language_probability):
            return Rejection.WRONG_LANGUAGE, f"not in {language}"
    return None


def copied_share(left: str, right: str) -> float:
    """Returns the share of the words of the side with fewer that the other side has, too, in [0, 1]; case is ignored.

    >>> copied_share("Rome, 3 May: the end", "ROME 3 MAY"), copied_share("one", "eins")
    (1.0, 0.0)
    """
    words = [{word.casefold() for word in words_of(text)} for text in (left, right)]
    fewest = min(map(len, words))
    return len(words[0] & words[1]) / fewest if fewest else float(left.casefold() == right.casefold())


def length_ratio(left: str, right: str) -> float:
    """Returns the words of the longer side to those of the shorter, at least 1; see ``clean.rules.count_words``."""
    short, long = sorted(count_words(text) + _LENGTH_SLACK for text in (left, right))
    return long / short


def is_in_other_language(text: str, language: str, least: float) -> bool:
    """Returns whether a text is hardly in a language: by its script, or by a probability below ``least``."""
    if not least:
        return False
    return script_share(text, language) < _SCRIPT_SHARE or probabilities(text).get(language, 0.0) < least


# The least margin


def _least_margin(workspace: str, languages: str, plan: Plan) -> float:
    """The least margin of a pair of languages: infinite where none has the precision."""
    facts = files.read_json(f"{workspace}/{MARGINS}") if plan.has_known_pairs else {}
    margin = facts.get(languages, facts.get(_ALL, {"margin": plan.options.min_margin}))["margin"]
    return float("inf") if margin is None else float(margin)


def calibrate(shard: Shard, received: Received, plan: Plan) -> None:
    """Mines the known pairs among sentences of the articles, and writes the least margins as JSON.

    Args:
      shard: the only one.
      received: a sample of the sentences; the payload has the parts of the known pairs.
      plan: of the job.

    Raises:
      InputError: if there are too few known pairs of the languages that are mined.
    """
    encoder = opened(plan.encoder, shard.workspace)
    languages = sorted({(task.source, task.target) for task in plan.tasks})
    judged = {}
    for (source, target), pairs in sorted(_read_known(shard, received.payload, languages).items()):
        sides = []
        for place, language in enumerate((source, target)):
            rows, texts = received_sample(received, language)
            own = [pair[place] for number, pair in enumerate(pairs) if is_shown(number, place)]
            known = {pair[place] for pair in pairs}
            others = [number for number, text in enumerate(texts) if text not in known]
            vectors = embed_unit(encoder, own, plan.encoder)
            sides.append((vectors, rows["vector"][others] if others else vectors[:0]))
        judged[f"{source}-{target}"] = judge(sides, len(pairs), plan.options)
    parts = list(judged.values()) or [(np.zeros((0, 4)), np.zeros(2, np.int64))]
    judged[_ALL] = np.concatenate([part[0] for part in parts]), np.sum([part[1] for part in parts], axis=0)
    facts = {name: fact for name, found in judged.items() if (fact := margin_of(*found, plan.options))}
    if _ALL not in facts:
        sentences, mined = int(judged[_ALL][1].sum()), ", ".join(map("-".join, languages))
        problem = f"got {sentences} known sentences in the languages that are mined ({mined})"
        remedy = "give a few hundred pairs of these languages as UTF-8, or leave it out to use --min_margin"
        expected = f"expected at least {_FEWEST_KNOWN}"
        raise InputError(f"{problem}, {expected}", field="--known_pairs", remedy=remedy)
    files.write_whole(f"{shard.workspace}/{MARGINS}", json.dumps(facts, sort_keys=True).encode())


def is_shown(number: int, side: int) -> bool:
    """Whether a side (0 or 1) of a known pair takes part: of every fourth pair only the left, of the next the right."""
    return number % 4 != 3 - side


def judge(sides: Sequence[tuple[Floats, Floats]], count: int, options: BitextOptions) -> tuple[Array, Array]:
    """Mines known sentences among others.

    Args:
      sides: embeddings of the known sentences that take part, by pair, and of other sentences, for both languages.
      count: number of known pairs.
      options: number of neighbors and the engine.

    Returns:
      float64 ``[P, 4]``: the margin of each mined pair, and the number of its sentences that have got their
      translation, another sentence in place of it, and a sentence although their translation was left out; and the
      number of known sentences whose translation takes part, and of the others, int64 ``[2]``.
    """
    left, right = (np.concatenate(side) for side in sides)
    mined = best_pairs(find_neighborhoods(left, right, options.neighbors, _search_of(options)))
    mined = mined.take(one_to_one(mined))
    shown = [[number for number in range(count) if is_shown(number, side)] for side in (0, 1)]
    # The number of the known pair of each sentence, -1 for another sentence.
    found = zip(shown, (mined.left, mined.right), strict=True)
    known = np.stack([np.append(own, -1).astype(np.int64)[np.minimum(rows, len(own))] for own, rows in found])
    right_ones = 2 * ((known[0] >= 0) & (known[0] == known[1]))
    paired = ((known >= 0) & (known % 4 < 2)).sum(axis=0)
    alone = ((known >= 0) & (known % 4 >= 2)).sum(axis=0)
    whole = sum(number % 4 < 2 for number in range(count))
    columns = (mined.margins.astype(np.float64), right_ones, paired - right_ones, alone)
    return np.stack(columns, axis=1), np.array([2 * whole, count - whole])


def margin_of(found: Array, known: Array, options: BitextOptions) -> dict[str, Any] | None:
    """Returns the lowest margin of the wanted precision and what it gives; None if too few pairs are known.

    Known sentences with and without their translation are weighed by --translated_share.

    Args:
      found: see :func:`judge`.
      known: see :func:`judge`.
      options: of the job.
    """
    if known.sum() < _FEWEST_KNOWN:
        return None
    margins, right, wrong, alone = found.T
    share, (paired, unpaired) = options.translated_share, known.tolist()
    false = share * wrong / paired + (1 - share) * alone / unpaired
    chosen = for_precision(thresholds(margins, share * right / paired, false, share), options.precision)
    given: tuple[float | None, ...] = (None, None, None)
    if chosen is not None:
        given = (chosen.margin, round(chosen.precision, 4), round(chosen.recall, 4))
    return dict(zip(("margin", "precision", "recall"), given, strict=True)) | {"known_sentences": int(known.sum())}


def _read_known(
    shard: Shard, parts: Sequence[BitextPart], languages: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The known pairs of the languages that are mined, each side once, at most `_MOST_KNOWN` of two languages."""
    found: dict[tuple[str, str], dict[str, str]] = {pair: {} for pair in languages}
    for part in parts:
        for pair in read_pairs(shard, part):
            shard.written()
            tags = [main_language(tag) for tag in (pair.source_language, pair.target_language)]
            texts = [" ".join(text.split()) for text in (pair.source, pair.target)]
            for one, other in ((0, 1), (1, 0)):
                kept = found.get((tags[one], tags[other]))
                if kept is not None and len(kept) < _MOST_KNOWN:
                    kept.setdefault(texts[one], texts[other])
    return {pair: list(kept.items()) for pair, kept in found.items() if kept}
