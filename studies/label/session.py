"""A session of labelling, for the page and the terminal: questions in order, answers, undo and progress."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from ...formats.records import Space
from .sample import Question
from .store import Answer, LabelFile
from .texts import Segments, Text, common_words, segments, shared_words


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One of the two articles as it is shown; texts are in segments, with the shared words marked.

    ``image_url`` is "" unless the two articles are near each other by their thumbnails.
    """

    url: str
    publisher: str
    byline_date: str
    language: str
    title: Segments
    paragraphs: list[Segments]
    cut: bool
    image_url: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """A question as it is shown; without the score, which would influence the annotator."""

    pair: tuple[str, str]
    sides: tuple[Side, Side]
    day_gap: int
    similarities: dict[str, float | None]


class Session:
    """Asks until the file has ``wanted`` labels or no question is left.

    Args:
      questions: in order; none is answered in the file.
      texts: of their articles, by doc_id.
      file: receives the answers.
      wanted: number of labels in the file, including those of earlier sessions.
    """

    def __init__(self, questions: Sequence[Question], texts: dict[str, Text], file: LabelFile, wanted: int) -> None:
        self._questions = [one for one in questions if one.pair.anchor in texts and one.pair.other in texts]
        self._texts = texts
        self._common = common_words(texts.values())
        self._file = file
        self._wanted = wanted
        self._next = 0

    @property
    def question(self) -> Question | None:
        """The current question; None if the session is finished."""
        if len(self._file.labels) >= self._wanted or self._next >= len(self._questions):
            return None
        return self._questions[self._next]

    def answer(self, answer: Answer) -> None:
        """Saves the answer to the current question.

        Raises:
          InputError: if it cannot be saved.
          IndexError: if there is no question.
        """
        question = self.question
        if question is None:
            raise IndexError("no question is left")
        self._file.add(question, answer)
        self._next += 1

    def undo(self) -> bool:
        """Removes the last answer of this session and asks its question again; false if there is none."""
        if not self._next:
            return False
        self._next -= 1
        self._file.undo(self._questions[self._next])
        return True

    def progress(self) -> dict[str, int]:
        """Counts of the whole file, and the number of answers of this session, which can be undone."""
        same = sum(self._file.labels.values())
        return {
            "labels": len(self._file.labels),
            "wanted": self._wanted,
            "same": same,
            "different": len(self._file.labels) - same,
            "skipped": len(self._file.skipped),
            "answered": self._next,
        }

    def shown(self) -> Shown | None:
        """The current question with its texts; None if there is none."""
        if (question := self.question) is None:
            return None
        pair = question.pair
        left, right = self._texts[pair.anchor], self._texts[pair.other]
        shared = shared_words(left, right, self._common)
        similarities = {
            str(space): None if math.isnan(value) else round(value, 3)
            for space, value in zip(Space, pair.similarities, strict=True)
        }
        pictures = similarities[Space.IMAGE] is not None
        return Shown(
            (pair.anchor, pair.other),
            (_side(left, shared, pictures), _side(right, shared, pictures)),
            abs(pair.day_gap),
            similarities,
        )

    def state(self) -> dict[str, Any]:
        """Progress and question as JSON values."""
        shown = self.shown()
        return {"progress": self.progress(), "question": dataclasses.asdict(shown) if shown else None}


def _side(text: Text, shared: set[str], pictures: bool) -> Side:
    return Side(
        text.url,
        text.publisher,
        text.byline_date,
        text.language,
        segments(text.title, shared),
        [segments(paragraph, shared) for paragraph in text.paragraphs],
        text.cut,
        text.image_url if pictures else "",
    )
