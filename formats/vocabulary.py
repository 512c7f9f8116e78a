"""The vocabulary file ``vocab.txt``: UTF-8, one word piece a line, the special tokens first.

The format has one version, and a line of its own for nothing but pieces; what identifies a file is its digest.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from ..errors import InputError

VOCABULARY_FILE: Final = "vocab.txt"
# Positions in every vocabulary file; a file that differs is refused.
PAD_ID: Final = 0
UNK_ID: Final = 1
CLS_ID: Final = 2
SEP_ID: Final = 3
MASK_ID: Final = 4
SPECIAL_TOKENS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION: Final = "##"  # begins a piece that continues a word
_REMEDY: Final = "write the file by `newsembed vocabulary`, or use the vocabulary the model was trained with"


@dataclasses.dataclass(frozen=True)
class VocabularyFile:
    """A vocabulary as it is on disk.

    Attributes:
      path: where it was read.
      content: the whole file.
      size: number of pieces, one a line.
    """

    path: str
    content: bytes
    size: int

    @property
    def sha256(self) -> str:
        """Hex digest of the file."""
        return hashlib.sha256(self.content).hexdigest()

    @functools.cached_property
    def pieces(self) -> tuple[str, ...]:
        """The pieces in the order of their ids."""
        return tuple(self.content.decode("utf-8").removesuffix("\n").split("\n"))


def read_vocabulary(path: str) -> VocabularyFile:
    """Reads and checks a vocabulary file.

    Args:
      path: local path, or one that TensorFlow's file system knows (``gs://…``).

    Raises:
      InputError: naming the line, if the file is missing, is not UTF-8, lacks a special token in its place, or has an
        empty, repeated or broken piece.
    """
    content = _read_bytes(path)
    try:
        pieces = content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"not valid UTF-8: {error.reason}", path=path, field=f"line {line}", remedy=_REMEDY) from error
    _check_pieces(pieces, path)
    return VocabularyFile(path, content, len(pieces))


def vocabulary_bytes(pieces: Iterable[str]) -> bytes:
    """The content of a vocabulary file."""
    return "".join(f"{piece}\n" for piece in pieces).encode("utf-8")


def continues_word(piece: str) -> bool:
    """Whether a piece continues a word, such as "##ing".

    >>> [continues_word(piece) for piece in ("ing", "##ing", "##")]
    [False, True, False]
    """
    return piece.startswith(CONTINUATION) and piece != CONTINUATION


def _read_bytes(path: str) -> bytes:
    if "://" in path:
        import tensorflow as tf

        if not tf.io.gfile.exists(path):
            raise InputError("no such file", path=path, remedy=_REMEDY)
        with tf.io.gfile.GFile(path, "rb") as source:
            return bytes(source.read())
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy=_REMEDY) from error


def _check_pieces(pieces: Sequence[str], path: str) -> None:
    for index, special in enumerate(SPECIAL_TOKENS):
        found = pieces[index] if index < len(pieces) else None
        if found != special:
            shown = "the end of the file" if found is None else repr(found)
            raise InputError(f"got {shown}, expected {special!r}", path=path, field=f"line {index + 1}", remedy=_REMEDY)
    seen: dict[str, int] = {}
    for line, piece in enumerate(pieces, start=1):
        if not piece or piece != piece.strip() or len(piece.split()) != 1:
            raise InputError(
                f"got {piece!r}, expected one piece without spaces", path=path, field=f"line {line}", remedy=_REMEDY
            )
        if piece in seen:
            raise InputError(
                f"{piece!r} is also on line {seen[piece]}", path=path, field=f"line {line}", remedy=_REMEDY
            )
        seen[piece] = line
