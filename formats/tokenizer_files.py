"""An imported tokenizer next to ``vocab.txt``: the files ``tokenizer.json`` and ``tokenizer_ids.json``.

``tokenizer.json`` is the file of the `tokenizers` library, byte for byte as its authors wrote it.
``tokenizer_ids.json`` says how its ids become ours, and holds the digests of both other files::

    {"format_version": 1,
     "family": "wordpiece" | "metaspace" | "byte_level",    how a piece shows that it begins a word
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
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError

TOKENIZER_FILE: Final = "tokenizer.json"
TOKENIZER_IDS_FILE: Final = "tokenizer_ids.json"
FORMAT_VERSION: Final = 1
CONTINUATION: Final = "##"  # begins a piece that continues a word, of the family WORDPIECE
WORD_START: Final = "▁"  # begins a piece that begins a word, of the family METASPACE
BYTE_LEVEL_SPACE: Final = "Ġ"  # the same, of the family BYTE_LEVEL
_SPECIAL_COUNT: Final = 5
_REMEDY: Final = (
    f"Keep vocab.txt, {TOKENIZER_FILE} and {TOKENIZER_IDS_FILE} together as `newsembed import-hf` wrote them."
)
# Scripts that put no spaces between words: each of their letters may begin one.
_WITHOUT_SPACES: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),  # Chinese characters
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # kana of half width
    (0x20000, 0x3FFFF),
)
_LATIN_BYTE: Final = 0xA0  # stands for the bytes that a piece lacks of its first character


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
            "format_version": FORMAT_VERSION,
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
          InputError: for a description that is broken or of a later version, or of other files.
        """
        values = _described(description, path)
        for name, file, found in (("vocabulary", "vocab.txt", vocabulary), ("tokenizer", TOKENIZER_FILE, content)):
            digest = hashlib.sha256(found).hexdigest()
            if values.get(f"{name}_sha256") != digest:
                problem = f"the SHA-256 of {file} is {digest[:12]}…, this file names another one"
                raise InputError(problem, path=path, field=f"{name}_sha256", remedy=_REMEDY)
        try:
            family = Family(values["family"])
            special_ids = tuple(int(one) for one in values["special_ids"])
            files = cls(content, family, special_ids, int(values["size"]))
            is_whole = len(special_ids) == _SPECIAL_COUNT and len(files.order) == files.size
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"got no description of a tokenizer: {error}", path=path, remedy=_REMEDY) from error
        if not is_whole:
            problem = f"got {len(special_ids)} special tokens, expected {_SPECIAL_COUNT}"
            raise InputError(problem, path=path, field="special_ids", remedy=_REMEDY)
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
    others = np.setdiff1d(np.arange(vocab_size), special_ids)
    return np.concatenate([np.asarray(special_ids, np.int64), others])


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
    kind, code = unicodedata.category(character)[0], ord(character)
    if kind in "LN":
        return not any(first <= code <= last for first, last in _WITHOUT_SPACES)
    return kind == "M"


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
    # The bytes that are cut off do not change the script.
    whole = raw[:length] + bytes([_LATIN_BYTE]) * (length - len(raw[:length]))
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


def _described(description: bytes, path: str) -> dict[str, Any]:
    try:
        values = json.loads(description)
    except ValueError as error:
        raise InputError(f"got no JSON: {error}", path=path, remedy=_REMEDY) from error
    version = values.get("format_version") if isinstance(values, dict) else None
    if not isinstance(values, dict) or version != FORMAT_VERSION:
        problem = f"got a description of version {version}, expected {FORMAT_VERSION}"
        raise InputError(problem, path=path, field="format_version", remedy="Use a newer newsembed.")
    return values
