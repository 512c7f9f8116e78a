"""Reads word vectors in the text formats of GloVe and word2vec, ``.gz`` too, a line at a time."""

import contextlib
import gzip
from collections.abc import Collection, Iterator
from typing import IO, Final, cast

import numpy as np
import numpy.typing as npt

from ..errors import InputError

REMEDY: Final = (
    "give a text file of word vectors: `word v1 v2 … vD` on each line, as GloVe and word2vec distribute them"
)


class WordVectorFile:
    """A file of word vectors.

    Attributes:
      path: of the file.
      dimensions: D.

    Raises:
      InputError: from the constructor, if the first lines are not word vectors.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with _opened(path) as file:
            self._header, self.dimensions = _width(path, file.readline(), file.readline())

    def read(self, wanted: Collection[str]) -> dict[str, npt.NDArray[np.float32]]:
        """Returns the vectors of the wanted words that the file has; only these are held in memory.

        Args:
          wanted: the words.

        Raises:
          InputError: for a line of a wanted word that is broken.
        """  # noqa: DOC501 - _broken makes an InputError
        table: dict[str, npt.NDArray[np.float32]] = {}
        keys = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
        with _opened(self.path) as file:
            for number, line in enumerate(file, 1):
                # Tokens of GloVe's largest file may contain spaces; they match none of our words.
                if (number == 1 and self._header) or line.partition(b" ")[0] not in keys:
                    continue
                word, *values = line.rstrip().rsplit(b" ", self.dimensions)
                if word not in keys:
                    continue
                try:
                    table[keys[word]] = np.array(values, np.float32)
                except ValueError as error:
                    raise InputError(
                        f"not a vector: {error}", path=f"{self.path}:{number}", remedy="give the text format"
                    ) from error
                if len(values) != self.dimensions:
                    raise _broken(self.path, number, len(values), self.dimensions)
        return table


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            yield cast("IO[bytes]", file)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", path=path, remedy=REMEDY) from error


def _width(path: str, first: bytes, second: bytes) -> tuple[bool, int]:
    """Returns (whether the first line is word2vec's header ``words D``, D).

    Raises:
      InputError: if the lines are not word vectors.
    """
    fields = first.split()
    header = len(fields) == 2 and all(field.isdigit() for field in fields)
    width = int(fields[1]) if header else len(fields) - 1
    sample = (second if header else first).split()
    try:
        np.array(sample[-width:], np.float32)
    except ValueError:
        width = 0
    if width < 1 or len(sample) <= width:
        raise InputError(
            "the first lines contain no word vector",
            path=path,
            remedy=f"{REMEDY}; binary word2vec files are not read",
        )
    return header, width


def _broken(path: str, line: int, found: int, expected: int) -> InputError:
    return InputError(
        f"got {found} numbers, expected {expected}",
        path=f"{path}:{line}",
        remedy="the file may be truncated: download it again",
    )
