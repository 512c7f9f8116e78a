"""The labels file: one line for each answer, saved before the next question is shown.

Columns, separated by tabs: anchor doc_id, other doc_id, 1 (false negative) or 0, annotator, UTC time, score, how
sampled. Lines that start with # are comments: the version and the inputs, before the answers to which they apply, and
skipped pairs.
"""

import datetime
import enum
import fcntl
import os
import types
from collections.abc import Sequence
from typing import Self

from ...beam_pipelines.triplets.evergreen import read_label_rows
from ...errors import InputError
from .sample import Question

FORMAT = "# newsembed labels 1"
_SKIPPED = "# skipped"
_COLUMNS = "# anchor\tother\tlabel\tannotator\ttime\tscore\tsampled"


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

    Raises:
      InputError: if the file cannot be written, is in use, or has an invalid line.
    """

    def __init__(self, path: str, annotator: str, origin: Sequence[str]) -> None:
        if "://" in path:
            raise InputError(
                f"got {path}, expected a local file", field="--output", remedy="label into a local file and copy it"
            )
        if not annotator.strip() or not annotator.isprintable() or annotator.startswith("#"):
            raise InputError(
                f"got {annotator!r}, expected a name on one line",
                field="--annotator",
                remedy="give a name without tabs",
            )
        self.path = path
        self._annotator = annotator.strip()
        self._header = "".join(f"{line}\n" for line in (FORMAT, *(f"# {line}" for line in origin), _COLUMNS))
        self._ends: list[int] = []  # sizes of the file before each answer of this run
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            # Unbuffered: a failed write must not be retried on closing.
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}", path=path, field="--output", remedy="choose another file"
            ) from error
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                "another newsembed label is writing this file",
                path=self.path,
                field="--output",
                remedy="stop that one, or choose another file",
            ) from error
        self._drop_incomplete_line()
        rows = read_label_rows(self.path)
        self.labels = {frozenset((row.anchor, row.other)): row.label for row in rows}
        text = self._raw().decode("utf-8")
        skips = [line.split("\t") for line in text.splitlines() if line.startswith(f"{_SKIPPED}\t")]
        self.skipped = {frozenset(parts[1:3]) for parts in skips}
        last = text.rfind(FORMAT)
        self._has_header = last >= 0 and text[last:].startswith(self._header)

    def _drop_incomplete_line(self) -> None:
        """Removes an incomplete last line: its answer was never confirmed."""
        raw = self._raw()
        if raw and not raw.endswith(b"\n"):
            if raw.startswith(FORMAT.encode()):
                self._file.truncate(raw.rfind(b"\n") + 1)
            else:  # a file written by hand may lack the last line feed
                self._write("\n")

    def _raw(self) -> bytes:
        self._file.seek(0)
        return self._file.read()

    def knows(self, both: frozenset[str]) -> bool:
        """Whether the pair is labelled or skipped, in either direction."""
        return both in self.labels or both in self.skipped

    def add(self, question: Question, answer: Answer) -> None:
        """Appends an answer, which is on disk when this returns.

        Raises:
          InputError: if it cannot be written; the file is then unchanged.
        """
        pair = question.pair
        time = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        source = [self._annotator, time, f"{pair.score:.4f}", question.sampled]
        if answer is Answer.SKIP:
            columns = [_SKIPPED, pair.anchor, pair.other, *source]
        else:
            columns = [pair.anchor, pair.other, str(int(answer is Answer.SAME)), *source]
        before = self._file.seek(0, os.SEEK_END)
        self._write(("" if self._has_header else self._header) + "\t".join(columns) + "\n")
        self._ends.append(before if self._has_header else before + len(self._header.encode()))
        self._has_header = True
        if answer is Answer.SKIP:
            self.skipped.add(pair.both)
        else:
            self.labels[pair.both] = int(answer is Answer.SAME)

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
            raise InputError(
                f"the answer was not saved: {error.strerror}",
                path=self.path,
                remedy="free some disk space and answer again",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: types.TracebackType | None
    ) -> None:
        self._file.close()
