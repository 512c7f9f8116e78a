"""The vocabulary file ``vocab.txt``, and the files of an imported tokenizer next to it.

``vocab.txt`` is UTF-8, one word piece a line, the special tokens first; a file is identified by its digest. An imported
tokenizer adds ``tokenizer.json``, the file of the `tokenizers` library, byte for byte as its authors wrote it, and
``tokenizer_ids.json``, which says how its ids become ours, and holds the digests of both other files::

    {"family": "wordpiece" | "metaspace" | "byte_level",    how a piece shows that it begins a word
     "size": 30522,                                         V, the rows of the token table
     "special_ids": [0, 100, 101, 102, 103],                its ids of [PAD], [UNK], [CLS], [SEP] and [MASK]
     "vocabulary_sha256": "…", "tokenizer_sha256": "…"}

The special tokens have our ids 0 to 4; the other pieces follow in the order of their ids in ``tokenizer.json``. A
``vocab.txt`` without ``tokenizer_ids.json`` next to it is a vocabulary of our own tokenizer, whatever else is there.
"""

import dataclasses
import enum
import functools
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError, reading
from .files import exists, file_digest, read_bytes

VOCABULARY_FILE: Final = "vocab.txt"
# Positions in every vocabulary file; a file that differs is refused.
PAD_ID: Final = 0
UNK_ID: Final = 1
CLS_ID: Final = 2
SEP_ID: Final = 3
MASK_ID: Final = 4
SPECIAL_TOKENS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_REMEDY: Final = "write the file by `newsembed vocabulary`, or use the vocabulary the model was trained with"
TOKENIZER_FILE: Final = "tokenizer.json"
TOKENIZER_IDS_FILE: Final = "tokenizer_ids.json"
CONTINUATION: Final = "##"  # begins a piece that continues a word, of the family WORDPIECE
WORD_START: Final = "▁"  # begins a piece that begins a word, of the family METASPACE
BYTE_LEVEL_SPACE: Final = "Ġ"  # the same, of the family BYTE_LEVEL
# Scripts that put no spaces between words: each of their letters may begin one.
_WITHOUT_SPACES: Final = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Myanmar; Khmer
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Chinese characters
)
_TOGETHER: Final = (
    f"keep {VOCABULARY_FILE}, {TOKENIZER_FILE} and {TOKENIZER_IDS_FILE} together as `newsembed import-hf` wrote them"
)


class Family(enum.StrEnum):
    """How the pieces of a tokenizer show where words begin."""

    WORDPIECE = "wordpiece"  # "##" begins a piece that continues a word
    METASPACE = "metaspace"  # "▁" begins a piece that begins a word: SentencePiece
    BYTE_LEVEL = "byte_level"  # "Ġ" does so, and every other character stands for a byte of UTF-8


@dataclasses.dataclass(frozen=True)
class TokenizerFiles:
    """An imported tokenizer as it is on disk.

    Attributes:
      content: the whole of ``tokenizer.json``.
      family: of its pieces.
      special_ids: its ids of [PAD], [UNK], [CLS], [SEP] and [MASK].
      size: V, the ids of the model that it belongs to; may be more than the tokenizer has.
    """

    content: bytes
    family: Family
    special_ids: tuple[int, ...]
    size: int

    @functools.cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """Its id of each of our tokens, int64 [V]."""
        return token_order(self.special_ids, self.size)

    def description(self, vocabulary: bytes) -> bytes:
        """The content of ``tokenizer_ids.json`` next to this ``vocab.txt``; its digest identifies all three files."""
        values = {
            "family": str(self.family),
            "size": self.size,
            "special_ids": list(self.special_ids),
            "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
            "tokenizer_sha256": hashlib.sha256(self.content).hexdigest(),
        }
        return (json.dumps(values, indent=2) + "\n").encode()

    @classmethod
    def from_description(cls, description: bytes, content: bytes, vocabulary: bytes, path: str) -> Self:
        """Inverse of `description`.

        Args:
          description: of ``tokenizer_ids.json``.
          content: of ``tokenizer.json``.
          vocabulary: of ``vocab.txt``.
          path: of ``tokenizer_ids.json``, to name in errors.

        Raises:
          InputError: for a description that is broken, or of other files.
        """
        with reading(path, _TOGETHER):
            values = json.loads(description)
            family, size = Family(values["family"]), int(values["size"])
            files = cls(content, family, tuple(int(one) for one in values["special_ids"]), size)
            if len(files.special_ids) != len(SPECIAL_TOKENS) or len(files.order) != files.size:
                problem = f"got {len(files.special_ids)} special tokens, expected {len(SPECIAL_TOKENS)}"
                raise InputError(problem, field="special_ids")
            for name, file, raw in (
                ("vocabulary", VOCABULARY_FILE, vocabulary),
                ("tokenizer", TOKENIZER_FILE, content),
            ):
                digest = hashlib.sha256(raw).hexdigest()
                if values[f"{name}_sha256"] != digest:
                    problem = f"the SHA-256 of {file} is {digest[:12]}…, this file names another one"
                    raise InputError(problem, field=f"{name}_sha256")
        return files


def token_order(special_ids: Sequence[int], vocab_size: int) -> npt.NDArray[np.int64]:
    """Their id of each of our tokens: the special ones first, the others in their order.

    Args:
      special_ids: their ids of [PAD], [UNK], [CLS], [SEP] and [MASK].
      vocab_size: V.

    Returns:
      int64 [V].

    Raises:
      ValueError: if an id is repeated or outside the vocabulary.
    """
    if len(set(special_ids)) != len(special_ids) or not all(0 <= token < vocab_size for token in special_ids):
        raise ValueError(f"got the special tokens' ids {list(special_ids)}, expected different ones below {vocab_size}")
    return np.concatenate([np.asarray(special_ids, np.int64), np.setdiff1d(np.arange(vocab_size), special_ids)])


def continues_word(piece: str, family: Family = Family.WORDPIECE) -> bool:
    """Whether a piece continues a word, such as "##ing".

    Without the mark of a word's beginning, a piece of the other families continues a word if its first character is a
    letter, digit or accent. Punctuation begins a word, and so does a letter of a script without spaces, such as Chinese
    or Thai; otherwise a whole sentence would be one word.

    >>> [continues_word(piece) for piece in ("ing", "##ing", "##")]
    [False, True, False]
    >>> [continues_word(piece, Family.METASPACE) for piece in ("▁flood", "ing", ",", "中")]
    [False, True, False, False]
    """
    if family is Family.WORDPIECE:
        return piece.startswith(CONTINUATION) and piece != CONTINUATION
    if family is Family.METASPACE:
        return not piece.startswith(WORD_START) and _is_inside_word(piece[0])
    return not piece.startswith(BYTE_LEVEL_SPACE) and _bytes_are_inside_word(piece)


def _is_inside_word(character: str) -> bool:
    kind = unicodedata.category(character)[0]
    return kind == "M" or (kind in "LN" and not _WITHOUT_SPACES.match(character))


def _bytes_are_inside_word(piece: str) -> bool:
    """Whether the first character of a byte-level piece goes on inside a word; it may be cut."""
    table = _byte_of_character()
    raw = bytes(table[character] for character in piece if character in table)
    if len(raw) < len(piece):
        return False  # an added token, such as <|endoftext|> with a character that stands for no byte
    lead = raw[0]
    if lead < 0x80:
        return _is_inside_word(chr(lead))
    if lead < 0xC0:
        return True  # from the middle of a character
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    whole = raw[:length].ljust(length, b"\xa0")  # the bytes that are cut off do not change the script
    try:
        return _is_inside_word(whole.decode("utf-8"))
    except UnicodeDecodeError:
        return True


@functools.cache
def _byte_of_character() -> dict[str, int]:
    """The byte that each character of a byte-level piece stands for (GPT-2's table).

    Printable characters of Latin-1 stand for themselves; the other bytes follow from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


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
      path: local, or in an object store.

    Raises:
      InputError: naming the line, if the file is missing, is not UTF-8, lacks a special token in its place, or has an
        empty, repeated or broken piece.
    """
    content = read_bytes(path, _REMEDY)
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
    """`VocabularyFile.sha256` of the file at `path`, without a check of its pieces."""
    content = read_bytes(path, _REMEDY)
    return VocabularyFile(path, content, 0, _read_tokenizer(path, content)).sha256


def vocabulary_names(path: str) -> dict[str, str]:
    """The paths, by their names, of a vocabulary file and of what belongs to it.

    Args:
      path: of ``vocab.txt``.
    """
    found = {VOCABULARY_FILE: path}
    if exists(_next_to(path, TOKENIZER_IDS_FILE)):
        found |= {name: _next_to(path, name) for name in (TOKENIZER_FILE, TOKENIZER_IDS_FILE)}
    return found


def input_digest(path: str) -> str:
    """What the manifest of a job has of the vocabulary at `path`, for its tokenizer's files, too."""
    return " ".join(file_digest(file) for file in vocabulary_names(path).values())


def vocabulary_bytes(pieces: Iterable[str]) -> bytes:
    """The content of a vocabulary file."""
    return "".join(f"{piece}\n" for piece in pieces).encode("utf-8")


def _next_to(path: str, name: str) -> str:
    return path[: path.rfind("/") + 1] + name


def _read_tokenizer(path: str, vocabulary: bytes) -> TokenizerFiles | None:
    ids = _next_to(path, TOKENIZER_IDS_FILE)
    if not exists(ids):
        return None
    return TokenizerFiles.from_description(
        read_bytes(ids, _TOGETHER), read_bytes(_next_to(path, TOKENIZER_FILE), _TOGETHER), vocabulary, ids
    )


def _check_own(pieces: Sequence[str], path: str) -> None:
    """Refuses the pieces of another tokenizer: with them, ours would make most words [UNK]."""
    others = pieces[len(SPECIAL_TOKENS) :]
    foreign = sum(
        (len(piece) > 1 and piece[0] in (WORD_START, BYTE_LEVEL_SPACE)) or piece.lower() != piece for piece in others
    )
    if foreign > max(20, 0.05 * len(others)):
        problem = (
            f"{foreign} of {len(others)} pieces have upper case, {WORD_START} or {BYTE_LEVEL_SPACE}: they belong to "
            f"another tokenizer, and there is no {TOKENIZER_IDS_FILE} next to the file"
        )
        raise InputError(problem, path=path, remedy=_TOGETHER)


def _check_pieces(pieces: Sequence[str], path: str) -> None:
    def refused(problem: str, line: int) -> InputError:
        return InputError(problem, path=path, field=f"line {line}", remedy=_REMEDY)

    for line, special in enumerate(SPECIAL_TOKENS, 1):
        found = repr(pieces[line - 1][:40]) if line <= len(pieces) else "the end of the file"
        if found != repr(special):
            raise refused(f"got {found}, expected {special!r}", line)
    seen: dict[str, int] = {}
    for line, piece in enumerate(pieces, 1):
        if not piece or piece != piece.strip() or len(piece.split()) != 1:
            raise refused(f"got {piece[:40]!r}, expected one piece without spaces", line)
        if piece in seen:
            raise refused(f"{piece!r} is also on line {seen[piece]}", line)
        seen[piece] = line
