"""Mines the sentences of two languages in a block of days: margins, rules, one translation for each sentence."""

import functools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ...formats import files
from ...formats.arrays import read_npy
from ...formats.records import MinedPair, Rejection
from ...tasks.margin import (
    Candidates,
    Floats,
    Numbers,
    best_pairs,
    find_neighborhoods,
    one_to_one,
    ratio_margins,
    union,
)
from ..arrays import Array, doc_id_of
from ..clean.counting import count_words
from ..clean.languages import probabilities, script_share
from ..entities.tokens import words_of
from ..shards import Shard
from ..shuffle import Received
from .documents import Plan, links_path
from .least import fixed, read_least
from .options import BitextOptions
from .search import search_of
from .sentences import received_sentences

_SCRIPT_SHARE: Final = 0.5  # of the letters of a side must be of its language
_LENGTH_SLACK: Final = 2  # words that are added to both lengths: short sentences vary more


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
        order = np.lexsort((rows["number"], rows["doc_id"])).tolist()
        first: dict[str, int] = {}
        self.texts: list[str] = []
        self.places: dict[int, list[int]] = {}
        chosen = []
        for row in order:
            text = texts[row]
            if text not in first:
                first[text] = len(self.texts)
                self.texts.append(text)
                chosen.append(row)
            self.places.setdefault(int(rows["doc_id"][row]), []).append(first[text])
        self.rows = rows[chosen]
        self.vectors: Floats = np.ascontiguousarray(self.rows["vector"])


def mine_task(options: BitextOptions, plan: Plan, known_margins: str, shard: Shard, received: Received) -> None:
    """Writes the pairs of one task that pass all rules; counts the others by reason.

    Args:
      options: the rules.
      plan: the tasks.
      known_margins: file of the margins that known pairs have chosen; empty for the margin of the options.
      shard: the outputs.
      received: the sentences of the task, see `sentence_rows`; its number is that of the shard.
    """
    task, languages = shard.index, plan.tasks[shard.index]
    rows, texts = received_sentences(received, shard.workspace)
    left, right = (_side(rows, texts, tag) for tag in (languages.source, languages.target))
    shard.tally(f"sentences/{languages.source}", len(left.texts))
    shard.tally(f"sentences/{languages.target}", len(right.texts))
    links = _read_links(shard.workspace, task) if plan.is_linked else None
    pairs = score_pairs(left, right, links, options)
    shard.read(len(pairs))
    margins = read_least(known_margins, options) if known_margins else fixed(options)
    least_margin = margins.of(languages.languages)
    reject = functools.partial(_reject, shard, left, right)
    near = pairs.take(_passing(pairs, reject, lambda pair: _low_margin(pair, least_margin)))
    rules = _Rules(left.texts, right.texts, languages.source, languages.target, options)
    kept = near.take(_passing(near, reject, rules.reason))
    is_kept = one_to_one(kept)
    for number in np.flatnonzero(~is_kept).tolist():
        reject(_pair(kept, number), Rejection.SENTENCE_TAKEN, "a side has a better translation")
    writer = shard.records("_mined", MinedPair)
    for number in np.flatnonzero(is_kept).tolist():
        writer.write(_record(left, right, languages.source, languages.target, _pair(kept, number)))
        shard.written()
    shard.tally(f"pairs/{languages.languages}", int(is_kept.sum()))


def _side(rows: Array, texts: Sequence[str], language: str) -> Side:
    chosen = np.flatnonzero(rows["language"] == language.encode())
    return Side(rows[chosen], [texts[row] for row in chosen.tolist()])


def _read_links(workspace: str, task: int) -> Array:
    path = links_path(workspace, task)
    with files.open_read(path) as source:
        return read_npy(source, path)


def score_pairs(left: Side, right: Side, links: Array | None, options: BitextOptions) -> Candidates:
    """Returns the best candidates of the sentences of both sides, by margin.

    The neighborhoods of the margin are those among all sentences of the task.

    Args:
      left: source sentences.
      right: target sentences.
      links: articles whose sentences may be translations; None for all.
      options: number of neighbors and the engine.
    """
    found = find_neighborhoods(left.vectors, right.vectors, options.neighbors, search_of(options))
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
            parts.append(_best_of_block(own, other, cosines, margins))
    return _best_of_sides(union(parts))


def _best_of_block(left: Numbers, right: Numbers, cosines: Floats, margins: Floats) -> Candidates:
    """The best of each row and each column of a block of scores."""
    rows = np.concatenate([np.arange(len(left)), np.argmax(margins, axis=0)])
    columns = np.concatenate([np.argmax(margins, axis=1), np.arange(len(right))])
    return Candidates(left[rows], right[columns], cosines[rows, columns], margins[rows, columns])


def _best_of_sides(pairs: Candidates) -> Candidates:
    """Those pairs that are the best of their left or of their right sentence, ties by lower rows."""
    kept = np.zeros(len(pairs), bool)
    for side in (pairs.left, pairs.right):
        order = np.lexsort((pairs.right, pairs.left, -pairs.margins, side))
        is_first = np.ones(len(pairs), bool)
        is_first[1:] = side[order][1:] != side[order][:-1]
        kept[order[is_first]] = True
    return pairs.take(kept)


_Pair = tuple[int, int, float, float]  # rows of both sides, cosine, margin
_Reason = tuple[Rejection, str] | None


def _pair(pairs: Candidates, number: int) -> _Pair:
    return (
        int(pairs.left[number]),
        int(pairs.right[number]),
        float(pairs.cosines[number]),
        float(pairs.margins[number]),
    )


def _passing(
    pairs: Candidates, reject: Callable[[_Pair, Rejection, str], None], reason: Callable[[_Pair], _Reason]
) -> list[int]:
    """The numbers of the pairs without a reason against them; counts the others."""
    kept = []
    for number in range(len(pairs)):
        pair = _pair(pairs, number)
        found = reason(pair)
        if found is None:
            kept.append(number)
        else:
            reject(pair, *found)
    return kept


def _low_margin(pair: _Pair, least: float) -> _Reason:
    return (Rejection.BELOW_MARGIN, f"margin {pair[3]:.4f}, least {least:.4f}") if pair[3] < least else None


class _Rules:
    """What two sentences with a high margin may still not be: copies, of other lengths, in another language."""

    def __init__(
        self, left: Sequence[str], right: Sequence[str], source: str, target: str, options: BitextOptions
    ) -> None:
        self._texts = left, right
        self._languages = source, target
        self._options = options

    def reason(self, pair: _Pair) -> _Reason:
        texts = self._texts[0][pair[0]], self._texts[1][pair[1]]
        share = copied_share(*texts)
        if share > self._options.max_copied:
            return Rejection.COPIED_TEXT, f"{share:.2f} of the words are on both sides"
        ratio = length_ratio(*texts)
        if ratio > self._options.max_length_ratio:
            return Rejection.LENGTH_RATIO, f"one side is {ratio:.2f} times as long"
        for text, language in zip(texts, self._languages, strict=True):
            if is_in_other_language(text, language, self._options.min_language_probability):
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
    """Returns the words of the longer side to those of the shorter, at least 1; see ``clean.counting.count_words``."""
    short, long = sorted(count_words(text) + _LENGTH_SLACK for text in (left, right))
    return long / short


def is_in_other_language(text: str, language: str, least: float) -> bool:
    """Returns whether a text is hardly in a language: by its script, or by a probability below ``least``."""
    if not least:
        return False
    return script_share(text, language) < _SCRIPT_SHARE or probabilities(text).get(language, 0.0) < least


def _reject(shard: Shard, left: Side, right: Side, pair: _Pair, reason: Rejection, detail: str) -> None:
    shard.reject(_key(left, right, pair), reason, detail, f"{left.texts[pair[0]][:240]} | {right.texts[pair[1]][:240]}")


def _key(left: Side, right: Side, pair: _Pair) -> str:
    """The article and the number of the sentence, of both sides."""
    rows = left.rows[pair[0]], right.rows[pair[1]]
    return " ".join(f"{doc_id_of(int(row['doc_id']))}:{row['number']}" for row in rows)


def _record(left: Side, right: Side, source: str, target: str, pair: _Pair) -> MinedPair:
    one, other = left.rows[pair[0]], right.rows[pair[1]]
    texts = left.texts[pair[0]], right.texts[pair[1]]
    ids = doc_id_of(int(one["doc_id"])), doc_id_of(int(other["doc_id"]))
    return MinedPair(source, target, *texts, pair[3], pair[2], *ids, int(one["number"]), int(other["number"]))
