"""A session of labelling: the labels file, the texts of the articles, and the questions in order.

The labels file has one line for each answer, saved before the next question is shown. Columns, separated by tabs:
anchor doc_id, other doc_id, 1 (false negative) or 0, annotator, UTC time, score, how sampled. Lines that start with #
are comments: the version and the inputs, before the answers to which they apply, and skipped pairs.
"""

import datetime
import enum
import fcntl
import math
import os
import re
from collections.abc import Collection, Sequence
from typing import Any, Final, Self

from ...beam_pipelines.triplets.evergreen import read_label_rows
from ...errors import InputError, refusing
from ...formats.parquet import read_batches, shard_paths
from ...formats.records import Space
from .pairs import Pair, Question

FORMAT: Final = "# newsembed labels 1"
_SKIPPED: Final = "# skipped"
_HEADINGS: Final = "# anchor\tother\tlabel\tannotator\ttime\tscore\tsampled"
_CHARACTERS: Final = 1_600  # of a body: its first paragraphs
_COLUMNS: Final = ("url", "publisher", "title", "body", "byline_date", "language", "image_url")
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Answer(enum.StrEnum):
    """An answer of the annotator."""

    SAME = "same"  # the same story, or the same evergreen piece: a false negative, 1
    DIFFERENT = "different"  # another story: a true negative, 0
    SKIP = "skip"


class LabelFile:
    """The file, open and locked for one annotator. Use as a context manager.

    Args:
      path: a local file; an existing one is continued.
      annotator: name saved with each answer.
      origin: lines about the version and the inputs, written before the first answer to which they apply.
    """

    def __init__(self, path: str, annotator: str, origin: Sequence[str]) -> None:
        if not annotator.strip() or not annotator.isprintable() or annotator.startswith("#"):
            problem = f"got {annotator!r}, expected a name on one line"
            raise InputError(problem, field="--annotator", remedy="give a name without tabs")
        self.path, self._annotator = path, annotator.strip()
        self._header = "".join(f"{line}\n" for line in (FORMAT, *(f"# {line}" for line in origin), _HEADINGS))
        self._ends: list[int] = []  # sizes of the file before each answer of this run
        with refusing("cannot be written:", OSError, path=path, field="--output", remedy="choose another file"):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            # Unbuffered: a failed write must not be retried on closing.
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by __exit__
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        problem, remedy = "another newsembed label is writing this file", "stop that one, or choose another file"
        with refusing(problem, BlockingIOError, path=self.path, field="--output", remedy=remedy):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file.seek(0)
        raw = self._file.read()
        if raw and not raw.endswith(b"\n"):
            if raw.startswith(FORMAT.encode()):  # the answer of an incomplete last line was never confirmed
                raw = raw[: raw.rfind(b"\n") + 1]
                self._file.truncate(len(raw))
            else:  # a file written by hand may lack the last line feed
                self._write("\n")
        self.labels = {frozenset((row.anchor, row.other)): row.label for row in read_label_rows(self.path)}
        text = raw.decode("utf-8")
        lines = [line.split("\t") for line in text.splitlines()]
        self.skipped = {frozenset(parts[1:3]) for parts in lines if parts[0] == _SKIPPED}
        last = text.rfind(FORMAT)
        self._has_header = last >= 0 and text[last:].startswith(self._header)

    def knows(self, both: frozenset[str]) -> bool:
        """Whether the pair is labelled or skipped, in either direction."""
        return both in self.labels or both in self.skipped

    def add(self, question: Question, answer: Answer) -> None:
        """Appends an answer, which is on disk when this returns; the file is unchanged if it cannot be written."""
        pair, label = question.pair, str(int(answer is Answer.SAME))
        columns = [pair.anchor, pair.other, label, self._annotator, f"{datetime.datetime.now(datetime.UTC):{_TIME}}"]
        columns += [f"{pair.score:.4f}", question.sampled]
        if answer is Answer.SKIP:
            columns = [_SKIPPED, *columns[:2], *columns[3:]]
        header = "" if self._has_header else self._header
        before = self._file.seek(0, os.SEEK_END)
        self._write(header + "\t".join(columns) + "\n")
        self._ends.append(before + len(header.encode()))
        self._has_header = True
        if answer is Answer.SKIP:
            self.skipped.add(pair.both)
        else:
            self.labels[pair.both] = int(label)

    def undo(self, question: Question) -> None:
        """Removes the last answer of this session, the one to ``question``, from the file."""
        self._file.truncate(self._ends.pop())
        os.fsync(self._file.fileno())
        self.labels.pop(question.pair.both, None)
        self.skipped.discard(question.pair.both)

    def _write(self, text: str) -> None:
        before = self._file.seek(0, os.SEEK_END)
        rest = text.encode()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(before)
            problem, remedy = f"the answer was not saved: {error.strerror}", "free some disk space and answer again"
            raise InputError(problem, path=self.path, remedy=remedy) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_texts(folder: str, wanted: Collection[str]) -> dict[str, dict[str, Any]]:
    """What is shown of the wanted articles by doc_id, JSON values; ``cut`` means that the body is longer."""
    found = {}
    for path in shard_paths(folder):
        for batch in read_batches(path, ["doc_id", *_COLUMNS]):
            for place, doc_id in enumerate(batch.column("doc_id").to_pylist()):
                if doc_id in wanted:
                    found[doc_id] = _text({name: batch.column(name)[place].as_py() for name in _COLUMNS})
    return found


def _text(row: dict[str, Any]) -> dict[str, Any]:
    body = row.pop("body")
    cut = len(body) > _CHARACTERS
    shown = body[:_CHARACTERS].rpartition(" ")[0] or body[:_CHARACTERS] if cut else body
    row |= {name: _CONTROL.sub(" ", row[name]) for name in ("publisher", "title")}
    paragraphs = [part.strip() for part in _CONTROL.sub(" ", shown).split("\n") if part.strip()]
    return row | {"paragraphs": paragraphs, "cut": cut, "byline_date": str(row["byline_date"] or "no date")}


class Session:
    """Asks until the file has ``wanted`` labels or no question is left.

    Args:
      questions: in order; none is answered in the file.
      texts: of their articles, by doc_id.
      file: receives the answers.
      wanted: number of labels in the file, including those of earlier sessions.
    """

    def __init__(
        self, questions: Sequence[Question], texts: dict[str, dict[str, Any]], file: LabelFile, wanted: int
    ) -> None:
        self.questions = [one for one in questions if one.pair.both <= texts.keys()]
        self._texts, self._file, self._wanted, self._next = texts, file, wanted, 0

    @property
    def question(self) -> Question | None:
        """The current question; None if the session is finished."""
        if len(self._file.labels) >= self._wanted or self._next >= len(self.questions):
            return None
        return self.questions[self._next]

    def answer(self, answer: Answer) -> None:
        """Saves the answer to the current question."""
        self._file.add(self.questions[self._next], answer)
        self._next += 1

    def undo(self) -> bool:
        """Removes the last answer of this session and asks its question again; false if there is none."""
        if not self._next:
            return False
        self._next -= 1
        self._file.undo(self.questions[self._next])
        return True

    def state(self) -> dict[str, Any]:
        """Progress, which counts the whole file and the answers that can be undone, and question, as JSON values."""
        same = sum(self._file.labels.values())
        progress = {
            "labels": len(self._file.labels),
            "wanted": self._wanted,
            "same": same,
            "different": len(self._file.labels) - same,
            "skipped": len(self._file.skipped),
            "answered": self._next,
        }
        # Without the score, which would influence the annotator.
        return {"progress": progress, "question": self.question and self._shown(self.question.pair)}

    def _shown(self, pair: Pair) -> dict[str, Any]:
        """A pair with its texts."""
        similarities = {
            str(space): None if math.isnan(value) else round(value, 3)
            for space, value in zip(Space, pair.similarities, strict=True)
        }
        sides = [self._texts[doc_id] for doc_id in (pair.anchor, pair.other)]
        if similarities[Space.IMAGE] is None:  # pictures are shown where the articles are near by their thumbnails
            sides = [side | {"image_url": ""} for side in sides]
        both = (pair.anchor, pair.other)
        return {"pair": both, "sides": sides, "day_gap": abs(pair.day_gap), "similarities": similarities}
