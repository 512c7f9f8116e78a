"""The vocabulary file ``vocab.txt``: UTF-8, one word piece a line, the special tokens first.

The format has one version, and every line is a piece; a file is identified by its digest. Next to the vocabulary of an
imported tokenizer are ``tokenizer.json`` and ``tokenizer_ids.json``, see `tokenizer_files`. They are read with it, and
the digest covers all three.
"""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Final

from ..errors import InputError
from .tokenizer_files import (
    BYTE_LEVEL_SPACE,
    CONTINUATION,
    TOKENIZER_FILE,
    TOKENIZER_IDS_FILE,
    WORD_START,
    Family,
    TokenizerFiles,
    continues_word,
)

__all__ = [
    "CLS_ID",
    "CONTINUATION",
    "MASK_ID",
    "PAD_ID",
    "SEP_ID",
    "SPECIAL_TOKENS",
    "UNK_ID",
    "VOCABULARY_FILE",
    "VocabularyFile",
    "continues_word",
    "read_vocabulary",
    "vocabulary_bytes",
    "vocabulary_digest",
    "vocabulary_names",
]

VOCABULARY_FILE: Final = "vocab.txt"
# Positions in every vocabulary file; a file that differs is refused.
PAD_ID: Final = 0
UNK_ID: Final = 1
CLS_ID: Final = 2
SEP_ID: Final = 3
MASK_ID: Final = 4
SPECIAL_TOKENS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_S3: Final = "s3://"  # which TensorFlow cannot read
_LARGEST_FOREIGN_SHARE: Final = 0.05
_LEAST_FOREIGN_PIECES: Final = 20
_TOGETHER: Final = (
    f"keep {VOCABULARY_FILE}, {TOKENIZER_FILE} and {TOKENIZER_IDS_FILE} together as `newsembed import-hf` wrote them"
)
_REMEDY: Final = "write the file by `newsembed vocabulary`, or use the vocabulary the model was trained with"


@dataclasses.dataclass(frozen=True)
class VocabularyFile:
    """A vocabulary as it is on disk.

    Attributes:
      path: where it was read.
      content: the whole file.
      size: number of pieces, one per line.
      tokenizer: the imported tokenizer that makes the pieces; None for our own.
    """

    path: str
    content: bytes
    size: int
    tokenizer: TokenizerFiles | None = None

    @property
    def sha256(self) -> str:
        """Hex digest of the file or, with an imported tokenizer, of ``tokenizer_ids.json``, which covers all files."""
        identity = self.content if self.tokenizer is None else self.tokenizer.description(self.content)
        return hashlib.sha256(identity).hexdigest()

    @property
    def files(self) -> dict[str, bytes]:
        """The content of the files by their names; ``tokenizer_ids.json``, if there is one, comes last."""
        files = {VOCABULARY_FILE: self.content}
        if self.tokenizer is not None:
            files[TOKENIZER_FILE] = self.tokenizer.content
            files[TOKENIZER_IDS_FILE] = self.tokenizer.description(self.content)
        return files

    @property
    def continuations(self) -> tuple[bool, ...]:
        """Whether each piece continues a word, by id."""
        family = Family.WORDPIECE if self.tokenizer is None else self.tokenizer.family
        return tuple(continues_word(piece, family) for piece in self.pieces)

    @functools.cached_property
    def pieces(self) -> tuple[str, ...]:
        """The pieces in the order of their ids."""
        return tuple(self.content.decode("utf-8").removesuffix("\n").split("\n"))


def read_vocabulary(path: str) -> VocabularyFile:
    """Reads and checks a vocabulary file.

    Args:
      path: local path, one of ``s3://`` (read by Beam), or one that TensorFlow's file system knows (``gs://…``).

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
    tokenizer = _read_tokenizer(path, content)
    if tokenizer is None:
        _check_own(pieces, path)
    elif tokenizer.size != len(pieces):
        problem = f"got {len(pieces)} pieces, {TOKENIZER_IDS_FILE} names {tokenizer.size}"
        raise InputError(problem, path=path, remedy=_TOGETHER)
    return VocabularyFile(path, content, len(pieces), tokenizer)


def vocabulary_digest(path: str) -> str:
    """`VocabularyFile.sha256` of the file at `path`, without a check of its pieces.

    Raises:
      InputError: if it cannot be read, or its tokenizer is incomplete or another one.
    """
    content = _read_bytes(path)
    return VocabularyFile(path, content, 0, _read_tokenizer(path, content)).sha256


def vocabulary_names(path: str) -> dict[str, str]:
    """The paths, by their names, of a vocabulary file and of what belongs to it.

    Args:
      path: of ``vocab.txt``.
    """
    found = {VOCABULARY_FILE: path}
    if _exists(_next_to(path, TOKENIZER_IDS_FILE)):
        found |= {name: _next_to(path, name) for name in (TOKENIZER_FILE, TOKENIZER_IDS_FILE)}
    return found


def vocabulary_bytes(pieces: Iterable[str]) -> bytes:
    """The content of a vocabulary file."""
    return "".join(f"{piece}\n" for piece in pieces).encode("utf-8")


def _next_to(path: str, name: str) -> str:
    return path[: path.rfind("/") + 1] + name


def _read_tokenizer(path: str, vocabulary: bytes) -> TokenizerFiles | None:
    ids = _next_to(path, TOKENIZER_IDS_FILE)
    if not _exists(ids):
        return None
    return TokenizerFiles.from_description(
        _read_bytes(ids), _read_bytes(_next_to(path, TOKENIZER_FILE)), vocabulary, ids
    )


def _check_own(pieces: Sequence[str], path: str) -> None:
    """Refuses the pieces of another tokenizer: with them, ours would make most words [UNK].

    Raises:
      InputError: if many pieces are such as our tokenizer never makes.
    """
    others = pieces[len(SPECIAL_TOKENS) :]
    foreign = sum(
        (len(piece) > 1 and piece[0] in (WORD_START, BYTE_LEVEL_SPACE)) or piece.lower() != piece for piece in others
    )
    if foreign > max(_LEAST_FOREIGN_PIECES, _LARGEST_FOREIGN_SHARE * len(others)):
        problem = (
            f"{foreign} of {len(others)} pieces have upper case, {WORD_START} or {BYTE_LEVEL_SPACE}: they belong to "
            f"another tokenizer, and there is no {TOKENIZER_IDS_FILE} next to the file"
        )
        raise InputError(problem, path=path, remedy=_TOGETHER)


def _exists(path: str) -> bool:
    if "://" not in path:
        return os.path.exists(path)
    if path.startswith(_S3):
        from . import files

        return files.exists(path)
    import tensorflow as tf

    return bool(tf.io.gfile.exists(path))


def _read_bytes(path: str) -> bytes:
    if path.startswith(_S3):
        from . import files

        with files.open_read(path) as source:
            return source.read()
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
