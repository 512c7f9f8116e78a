"""An imported tokenizer: ``tokenizer.json`` run by the `tokenizers` library, its ids moved to ours.

The ids are those of the library for every text, with one exception: a special token that is written in a text, such as
"[SEP]" or "</s>", is text and not the token, as in our own tokenizer. Limits of length and padding in the file are
left out, because the callers cut.

BERT's tokenizers are TensorFlow operations, too (`WordPieceGraph`), for a SavedModel. A ``BertNormalizer`` (with or
without case and accents) treats each character on its own, and a ``BertPreTokenizer`` splits at characters of a class.
Both are asked once about every character of Unicode. The table that they give, and TF-Text's WordPiece for the words,
are exact by construction and need no code of Unicode's own. One rare order of characters is not followed: of two
neighbouring spacing marks of different combining classes (Hangul tone marks, signs of musical notation), which the
normaliser sorts when it strips accents.

So are Unigram tokenizers of SentencePiece, as XLM-R and multilingual E5 have them (`UnigramGraph`): the pieces and
their scores become a model of the SentencePiece library, which TF-Text runs. Both find a segmentation with the highest
score. Where several have the same score, as for "....", they may choose differently.
"""

import base64
import functools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import refusing
from ..formats.vocabulary import (
    CONTINUATION,
    SPECIAL_TOKENS,
    TOKENIZER_FILE,
    UNK_ID,
    WORD_START,
    Family,
    TokenizerFiles,
)

_BATCH_TEXTS: Final = 4_096  # bounds the memory of the library's results
_BYTES_PER_CHARACTER: Final = 4  # at most, in UTF-8
_SURROGATES: Final = range(0xD800, 0xE000)
_NORMALIZER: Final = "BertNormalizer"
_PRE_TOKENIZER: Final = "BertPreTokenizer"
_PROBE: Final = "a"  # a letter, which every normaliser keeps
_SEPARATOR: Final = "§"  # no normaliser changes it, and it forms no character with its neighbours
_BATCH_CHARACTERS: Final = 1 << 14
_NORMAL_FORMS: Final = ("NFC", "NFD", "NFKC", "NFKD")
_CHARACTERS_MAP: Final = "Precompiled"  # SentencePiece's own map of characters
# These two do what SentencePiece does by itself: one space between words, none at the end.
_SPACES: Final = [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": space} for space in (" ", WORD_START)]
_STRIP: Final = "Strip"
# Unicode's White_Space, at which WhitespaceSplit splits.
_WHITE_SPACE: Final = "\t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_NOTHING: Final = "[nothing spells this]"


class ImportedTokenizer:
    """The tokenizer of ``tokenizer.json`` with our ids.

    Args:
      files: as read from disk.
    """

    def __init__(self, files: TokenizerFiles) -> None:
        self._files = files

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Our ids of every text, without special tokens: int32 ``[number of pieces]`` each; runs on all cores.

        Args:
          texts: without halves of surrogate pairs.
        """
        rows: list[np.ndarray] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = list(texts[start : start + _BATCH_TEXTS])
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            rows += [self._ours[np.asarray(encoding.ids, np.int64)] for encoding in encodings]
        return rows

    def encode_with_places(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """The ids of `encode`, and where their characters are: int32 ``[number of pieces, 2]``, start and end.

        White space before a piece is not part of it.
        """
        rows = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = list(texts[start : start + _BATCH_TEXTS])
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for text, encoding in zip(batch, encodings, strict=True):
                places = [(last - len(text[first:last].lstrip()), last) for first, last in encoding.offsets]
                ids = self._ours[np.asarray(encoding.ids, np.int64)]
                rows.append((ids, np.array(places, np.int32).reshape(-1, 2)))
        return rows

    def decode(self, ids: Sequence[int]) -> str:
        """Text of our ids, as the library joins it, without special tokens other than the unknown one."""
        kept = [token for token in ids if token >= len(SPECIAL_TOKENS) or token == UNK_ID]
        return str(self._tokenizer.decode(self._files.order[kept].tolist(), skip_special_tokens=False))

    @functools.cached_property
    def _tokenizer(self) -> Any:
        tokenizer = parse_tokenizer(self._files.content, TOKENIZER_FILE)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        return tokenizer

    @property
    def shares(self) -> np.ndarray:
        """Of each piece among all that a Unigram model was learned from, float64 [V]; 0 if the file does not tell."""
        shares, model = np.zeros(self._files.size), json.loads(self._files.content)["model"]
        if model.get("type") == "Unigram":  # old files do not name the type of others
            shares[: len(model["vocab"])] = np.exp([score for _, score in model["vocab"]])
        shares[list(self._files.special_ids)] = 0
        return shares[self._files.order]

    @functools.cached_property
    def _ours(self) -> np.ndarray:
        return _our_ids(self._files)


def _our_ids(files: TokenizerFiles) -> np.ndarray:
    """Our id of each of its ids, int32 [V]; special tokens in a text are unknown, the pieces that spell them known.

    A unigram model takes "</s>" in a text for its piece of that name.
    """
    ours = np.empty(files.size, np.int32)
    ours[files.order] = np.arange(files.size, dtype=np.int32)
    ours[list(files.special_ids)] = UNK_ID
    return ours


def parse_tokenizer(content: bytes, path: str) -> Any:
    """A `tokenizers.Tokenizer` of the content of a ``tokenizer.json``.

    Raises:
      InputError: naming `path`, if the content is not a tokenizer.
    """
    from tokenizers import Tokenizer

    problem, remedy = "got no tokenizer of the tokenizers library:", "Save the tokenizer again as tokenizer.json."
    with refusing(problem, Exception, path=path, remedy=remedy):  # the library raises bare Exception
        return Tokenizer.from_buffer(content)


def parts(values: Any, inner: str) -> Iterator[Mapping[str, Any]]:
    """A part of a ``tokenizer.json`` and all parts inside it.

    Args:
      values: of the part, or None.
      inner: the key of a sequence's parts.
    """
    for part in values if isinstance(values, list) else [values] if values else []:
        yield part
        yield from parts(part.get(inner), inner)


def _steps(values: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The normalizers and the pre-tokenizers of a ``tokenizer.json``, in the order in which they run."""
    found = (parts(values.get("normalizer"), "normalizers"), parts(values.get("pre_tokenizer"), "pretokenizers"))
    normalizers, pre_tokenizers = ([part for part in some if part["type"] != "Sequence"] for some in found)
    return normalizers, pre_tokenizers


def why_not_in_graph(files: TokenizerFiles) -> str | None:
    """Why TensorFlow's operations cannot do what this tokenizer does; None if they can."""
    values = json.loads(files.content)
    kind = values["model"].get("type")
    if files.family is Family.WORDPIECE:
        reason = _why_not_wordpiece(values)
    elif kind == "Unigram":
        reason = _why_not_unigram(values)
    else:
        return f"TensorFlow has no operation with the ids of a {kind} tokenizer.json"
    others = [token["content"] for token in values.get("added_tokens") or [] if token["id"] not in files.special_ids]
    if reason is None and others:
        return f"tokenizer.json has added tokens besides the special ones, such as {others[0]!r}"
    return reason


def _why_not_wordpiece(values: Mapping[str, Any]) -> str | None:
    for part, expected in (("normalizer", _NORMALIZER), ("pre_tokenizer", _PRE_TOKENIZER)):
        found = (values.get(part) or {}).get("type")
        if found != expected:
            return f"the {part} of tokenizer.json is {found}, and only {expected} has a form in TensorFlow"
    if values["model"].get("continuing_subword_prefix") != CONTINUATION:
        return f"the pieces that continue a word do not begin with {CONTINUATION}"
    return None


def _why_not_unigram(values: Mapping[str, Any]) -> str | None:
    normalizers, pre_tokenizers = _steps(values)
    if values["model"].get("byte_fallback"):
        return "tokenizer.json has pieces of bytes for unknown characters"
    for part in [*normalizers, *pre_tokenizers]:
        kind = part["type"]
        if kind not in (*_NORMAL_FORMS, _CHARACTERS_MAP, "Replace", _STRIP, "Metaspace", "WhitespaceSplit"):
            return f"tokenizer.json has the step {kind}, which has no form in TensorFlow"
        if kind == "Metaspace" and not (part.get("add_prefix_space") or part.get("prepend_scheme") == "always"):
            return "the first word of a text has no space before it in tokenizer.json"
    kinds = [part["type"] for part in normalizers if part not in _SPACES and part["type"] != _STRIP]
    if _CHARACTERS_MAP in kinds[:-1]:
        return f"tokenizer.json changes texts after {_CHARACTERS_MAP}"
    splits = any(part["type"] == "WhitespaceSplit" for part in pre_tokenizers)
    if not splits and not (any(part in _SPACES for part in normalizers) and any(_strips(one) for one in normalizers)):
        return "tokenizer.json keeps several spaces, or the spaces at the end"
    return None


def _strips(part: Mapping[str, Any]) -> bool:
    return part["type"] == _STRIP and bool(part.get("strip_right"))


class WordPieceGraph:
    """A BERT tokenizer as TensorFlow operations.

    Args:
      files: of a tokenizer for which `why_not_in_graph` gives None.
      pieces: in the order of our ids.
    """

    def __init__(self, files: TokenizerFiles, pieces: Sequence[str]) -> None:
        import tensorflow as tf
        import tensorflow_text

        values = json.loads(files.content)["model"]
        self._longest = int(values["max_input_chars_per_word"])
        self._splits, self._characters = character_table(files.content)
        with tf.init_scope():  # the model buffer must outlive the graph in which it is first used
            self._pieces = tensorflow_text.FastWordpieceTokenizer(
                vocab=list(pieces),
                suffix_indicator=CONTINUATION,
                max_bytes_per_word=_BYTES_PER_CHARACTER * self._longest,
                token_out_type=tf.int32,
                unknown_token=SPECIAL_TOKENS[UNK_ID],
                no_pretokenization=True,
            )

    def __call__(self, texts: Any) -> Any:
        """tf.RaggedTensor int32 ``[batch, (pieces)]`` of tf.string ``[batch]``."""
        import tensorflow as tf

        words = tf.strings.split(self._spaced(texts), " ")
        words = tf.ragged.boolean_mask(words, words != "")
        is_long = tf.strings.length(words.values, unit="UTF8_CHAR") > self._longest
        # No vocabulary has a piece for this character, so the word becomes [UNK].
        kept = tf.where(is_long, tf.constant("\U0010ffff"), words.values)
        return words.with_values(self._pieces.tokenize(kept)).merge_dims(1, 2)

    def _spaced(self, texts: Any) -> Any:
        """The normalised texts with spaces around every word, tf.string ``[batch]``."""
        import tensorflow as tf

        codes = tf.strings.unicode_decode(texts, "UTF-8")
        splits, characters = tf.constant(self._splits), tf.constant(self._characters)
        starts, limits = tf.gather(splits, codes.values), tf.gather(splits, codes.values + 1)
        spelled = tf.gather(characters, tf.ragged.range(starts, limits).values)
        ends = tf.gather(tf.concat([[0], tf.cumsum(tf.cast(limits - starts, tf.int64))], 0), codes.row_splits)
        return tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(spelled, ends, validate=False), "UTF-8")


class UnigramGraph:
    """A Unigram tokenizer as TensorFlow operations.

    Args:
      files: of a tokenizer for which `why_not_in_graph` gives None.

    Attributes:
      pieces: TF-Text's tokenizer; a tf.Module that uses the graph must hold it, to be saved with it.
    """

    def __init__(self, files: TokenizerFiles) -> None:
        import tensorflow as tf
        import tensorflow_text
        from sentencepiece import sentencepiece_model_pb2

        proto: Any = sentencepiece_model_pb2  # its classes are made at run time
        values = json.loads(files.content)
        normalizers, pre_tokenizers = _steps(values)
        self._changes = [part for part in normalizers if part not in _SPACES and part["type"] != _STRIP]
        normalizer = parse_tokenizer(files.content, TOKENIZER_FILE).normalizer
        normalized = normalizer.normalize_str if normalizer else str
        if any(part["type"] == "WhitespaceSplit" for part in pre_tokenizers):
            spaces = [character for character in _WHITE_SPACE if normalized(character) == character]
            found = "".join(f"\\x{{{ord(character):x}}}" for character in spaces)
            self._changes.insert(0, {"type": "Replace", "pattern": {"Regex": f"[{found}]"}, "content": " "})
        model = proto.ModelProto()
        types = model.SentencePiece
        for piece, score in values["model"]["vocab"]:
            model.pieces.add(piece=piece, score=score, type=types.NORMAL)
        # One more for what no piece spells: as in `tokenizers`, the name of the unknown piece in a text is that piece.
        model.pieces.add(piece=_NOTHING, type=types.UNKNOWN)
        model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
        model.normalizer_spec.name = "identity"
        if self._changes and self._changes[-1]["type"] == _CHARACTERS_MAP:
            content = self._changes.pop()["precompiled_charsmap"]
            model.normalizer_spec.precompiled_charsmap = base64.b64decode(content)
        self._ours = np.append(_our_ids(files)[: len(values["model"]["vocab"])], np.int32(UNK_ID))
        with tf.init_scope():
            self.pieces = tensorflow_text.SentencepieceTokenizer(model.SerializeToString(), out_type=tf.int32)

    def __call__(self, texts: Any) -> Any:
        """tf.RaggedTensor int32 ``[batch, (pieces)]`` of tf.string ``[batch]``."""
        import tensorflow as tf
        import tensorflow_text

        for part in self._changes:
            if part["type"] == "Replace":
                pattern = part["pattern"].get("Regex") or re.escape(part["pattern"]["String"])
                texts = tf.strings.regex_replace(texts, pattern, part["content"].replace("\\", r"\\"))
            else:
                texts = tensorflow_text.normalize_utf8(texts, part["type"])
        ids = self.pieces.tokenize(texts)
        return ids.with_values(tf.gather(tf.constant(self._ours), ids.values))


@functools.lru_cache(maxsize=4)
def character_table(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """What a tokenizer makes of each character before it looks up pieces.

    Returns:
      ``(splits, characters)``: int32 [0x110001] and int32 [all]; the code points of character c are
      ``characters[splits[c]:splits[c + 1]]``. Punctuation has spaces around it, white space is one space.
    """
    tokenizer = parse_tokenizer(content, TOKENIZER_FILE)
    everything = [chr(code) for code in range(sys.maxunicode + 1) if code not in _SURROGATES]
    normalized = [text for batch in _batches(everything) for text in _normalized(tokenizer.normalizer, batch)]
    made = sorted(set("".join(normalized)))
    spaced = dict(pair for batch in _batches(made) for pair in _separated(tokenizer.pre_tokenizer, batch))
    spelled = dict(zip(everything, normalized, strict=True))
    lines = [spelled.get(chr(code), "").translate(spaced) for code in range(sys.maxunicode + 1)]
    splits = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int32)
    return splits, np.array([ord(character) for character in "".join(lines)], np.int32)


def _batches(characters: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(characters), _BATCH_CHARACTERS):
        yield characters[start : start + _BATCH_CHARACTERS]


def _normalized(normalizer: Any, characters: Sequence[str]) -> list[str]:
    """Each character normalised on its own, all in one call: the separator keeps them apart and stays as it is."""
    others = [character if character != _SEPARATOR else _PROBE for character in characters]
    found = str(normalizer.normalize_str(_SEPARATOR.join(others))).split(_SEPARATOR)
    pairs = zip(characters, found, strict=True)
    return [normalizer.normalize_str(character) if character == _SEPARATOR else text for character, text in pairs]


def _separated(pre_tokenizer: Any, characters: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(code point, what it becomes) for characters that end a word: white space, and punctuation with spaces around."""
    text = _PROBE + "".join(character + _PROBE for character in characters)
    words = [place for _, place in pre_tokenizer.pre_tokenize_str(text)]
    inside = np.zeros(len(text), bool)
    alone = np.zeros(len(text), bool)
    for start, end in words:
        inside[start:end] = True
        alone[start] = end == start + 1
    for place, character in enumerate(characters):
        at = 2 * place + 1  # between two probes
        if not inside[at]:
            yield ord(character), " "
        elif alone[at]:
            yield ord(character), f" {character} "
