"""Rows of tokens of XTREME's examples, and predictions from the logits of rows.

Pairs are cut token by token, the longer sentence first. A sentence of words that is longer than a row becomes several
rows, so that every word has a label, as XTREME's ``utils_preprocess.py`` does; a word's label is at its first piece.
The context of a question is read in windows that begin every `STRIDE` tokens. Of the best 20 first and 20 last tokens
of each window, the pair with the highest sum of logits is the answer, among those of at most 30 tokens whose first
token is not better placed in another window (``run_squad.py``).
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...evaluation.xtreme import Gold, Pair, Part, Question, Words, XtremeTask
from ...formats.vocabulary import CLS_ID, SEP_ID, UNK_ID
from ...serving.rows import batches, by_bucket, length_buckets
from ...tasks.vocabulary import Vocabulary, join_document

STRIDE: Final = 128
TASK_OF_HEAD: Final = {"pair": "pair_classification", "word": "token_classification", "span": "question_answering"}
_QUESTION_LENGTH: Final = 64
_BEST: Final = 20
_LONGEST_ANSWER: Final = 30
_TEXTS: Final = 4_096  # tokenized at a time

Ints = npt.NDArray[np.int32]
Apply = Callable[[Ints], npt.NDArray[np.float32]]  # rows [B, L] to logits


class Row(NamedTuple):
    """A row.

    Attributes:
      tokens: int32 [L].
      labels: the other features of its task, by name.
      example: the number of its example.
      places: of words, the first piece of each; of a context, the characters of each token [n, 2], of which the first
        token is at `first`.
      first: see above.
      is_best: of a context, bool [n]: no other window has the token with more context at both sides.
    """

    tokens: Ints
    labels: dict[str, Any]
    example: int
    places: Ints
    first: int = 0
    is_best: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)


@dataclasses.dataclass(frozen=True)
class RowMaker:
    """Makes the rows of a task.

    Attributes:
      task: of XTREME.
      vocabulary: of the model.
      length: of a row.
    """

    task: XtremeTask
    vocabulary: Vocabulary
    length: int

    def __call__(self, part: Part) -> Iterator[Row]:
        """Yields the rows of a part in order, with labels where it has some."""
        makers: dict[str, Callable[[Any, Gold], Iterator[Row]]]
        makers = {"pair": self._pairs, "word": self._words, "span": self._questions}
        rows_of = makers[self.task.head]
        for start in range(0, len(part.examples), _TEXTS):
            chosen = slice(start, start + _TEXTS)
            gold = None if part.gold is None or self.task.head == "span" else part.gold[chosen]
            for row in rows_of(part.examples[chosen], gold):
                yield row._replace(example=start + row.example)

    def _number(self, label: str) -> int:
        return 1 + self.task.labels.index(label)

    def _pairs(self, pairs: Sequence[Pair], gold: Gold) -> Iterator[Row]:
        ids = self.vocabulary.encode_texts([text for pair in pairs for text in pair])
        for number, (one, two) in enumerate(zip(ids[::2], ids[1::2], strict=True)):
            room = self.length - 3
            last = min(len(two), max(room // 2, room - len(one)))
            tokens = join_document(one[: room - last], two[:last], self.length)
            labels = {} if gold is None else {"label": self._number(gold[number])}
            yield Row(tokens, labels, number, np.zeros(0, np.int32))

    def _words(self, sentences: Sequence[Words], gold: Gold) -> Iterator[Row]:
        ids = iter(self.vocabulary.encode_texts([word for words in sentences for word in words]))
        room, unknown = self.length - 2, np.array([UNK_ID], np.int32)
        for number, words in enumerate(sentences):
            pieces = [own if 0 < len(own) <= room else unknown for own in itertools.islice(ids, len(words))]
            start = 0
            while start < len(words):
                ends = np.cumsum([len(own) for own in pieces[start:]])
                count = int(np.searchsorted(ends, room, side="right"))
                places = 1 + np.concatenate([[0], ends[: count - 1]]).astype(np.int32)
                inside = np.concatenate(pieces[start : start + count])
                tokens = np.concatenate([[CLS_ID], inside, [SEP_ID]]).astype(np.int32)
                label = np.zeros(len(tokens), np.int32)
                if gold is not None:
                    label[places] = [self._number(one) for one in gold[number][start : start + count]]
                yield Row(tokens, {} if gold is None else {"label": label}, number, places)
                start += count

    def _questions(self, questions: Sequence[Question], _gold: Gold) -> Iterator[Row]:
        asked = self.vocabulary.encode_texts([one.question for one in questions])
        contexts = dict.fromkeys(one.context for one in questions)
        read = dict(zip(contexts, self.vocabulary.encode_with_places(list(contexts)), strict=True))
        for number, (one, question) in enumerate(zip(questions, asked, strict=True)):
            ids, places = read[one.context]
            question = question[: min(_QUESTION_LENGTH, self.length // 2)]  # noqa: PLW2901 - as XTREME cuts it
            opening = np.concatenate([[CLS_ID], question, [SEP_ID]]).astype(np.int32)
            room = self.length - len(opening) - 1
            stride = min(STRIDE, room)
            starts = np.arange(0, max(1, len(ids) - room + stride), stride, dtype=np.int32)
            best = _best_windows(starts, np.minimum(room, len(ids) - starts), len(ids))
            # The first and the last token of the answer.
            inside = np.flatnonzero((places[:, 1] > one.start) & (places[:, 0] < one.end))
            for window, start in enumerate(starts):
                own = ids[start : start + room]
                tokens = np.concatenate([opening, own, [SEP_ID]]).astype(np.int32)
                is_here = len(inside) > 0 and start <= inside[0] and inside[-1] < start + len(own)
                ends = len(opening) - start + inside[[0, -1]] if is_here else np.zeros(2, np.int32)
                labels = {"start": int(ends[0]), "end": int(ends[1])} if one.end else {}
                is_best = best[start : start + room] == window
                yield Row(tokens, labels, number, places[start : start + room], len(opening), is_best)

    def predictions(self, part: Part, apply: Apply, *, tokens_per_batch: int = 16_384, multiple: int = 1) -> Gold:
        """The predicted labels or answers of a part, in the form of its labels; one answer to each question.

        Args:
          part: of the task.
          apply: rows int32 [B, L] to logits [B, ...].
          tokens_per_batch: cells of a batch.
          multiple: of the rows of a batch.
        """
        rows = list(self(part))
        planned = by_bucket(
            [len(row.tokens) for row in rows], length_buckets(self.length), tokens_per_batch, multiple=multiple
        )
        found: list[Any] = [None] * len(rows)
        for numbers, tokens in batches([row.tokens for row in rows], planned):
            logits = apply(tokens)
            for number, own in zip(numbers, logits, strict=False):
                found[number] = self._read(rows[number], own)
        if self.task.head == "pair":
            return [self.task.labels[label] for label in found]
        joined: list[list[Any]] = [[] for _ in part.examples]
        for row, own in zip(rows, found, strict=True):
            joined[row.example] += own
        if self.task.head == "word":
            return [[self.task.labels[label] for label in own] for own in joined]
        best = (max(own, default=(0.0, 0, 0), key=lambda answer: answer[0]) for own in joined)
        questions: Any = part.examples
        return {one.key: one.context[first:last] for one, (_, first, last) in zip(questions, best, strict=True)}

    def _read(self, row: Row, logits: npt.NDArray[np.float32]) -> Any:
        """The label of a pair, those of the words of a row, or the best answer in a window with its score."""
        if self.task.head == "pair":
            return int(np.argmax(logits))
        if self.task.head == "word":
            return np.argmax(logits[row.places], axis=-1).tolist()
        return [answer] if (answer := _best_answer(row, logits)) else []


def _best_windows(starts: Ints, lengths: Ints, count: int) -> npt.NDArray[np.int64]:
    """The window in which each of `count` tokens has the most context at its poorer side, int64 [count]."""
    tokens = np.arange(count)
    left, right = tokens[:, None] - starts, starts + lengths - 1 - tokens[:, None]
    context = np.minimum(left, right) + 0.01 * lengths
    return np.argmax(np.where((left >= 0) & (right >= 0), context, -1.0), axis=1)


def _best_answer(row: Row, logits: npt.NDArray[np.float32]) -> tuple[float, int, int] | None:
    """The sum of the logits of the best answer in a window, its first character and the one after it; None if none."""
    firsts, lasts = (np.argsort(-logits[:, end], kind="stable")[:_BEST] for end in (0, 1))
    one, two = firsts[:, None], lasts[None]
    is_context = np.zeros(len(logits), bool)
    is_context[row.first : row.first + len(row.places)] = True
    is_first = np.zeros(len(logits), bool)
    is_first[row.first : row.first + len(row.places)] = row.is_best
    allowed = is_first[one] & is_context[two] & (two >= one) & (two - one < _LONGEST_ANSWER)
    if not allowed.any():
        return None
    totals = np.where(allowed, logits[one, 0] + logits[two, 1], -np.inf)
    place, other = np.unravel_index(np.argmax(totals), totals.shape)
    first, last = row.places[firsts[place] - row.first, 0], row.places[lasts[other] - row.first, 1]
    return float(totals[place, other]), int(first), int(last)
