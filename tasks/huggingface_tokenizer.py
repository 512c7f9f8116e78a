"""The tokenizer of a Hugging Face folder with our order of tokens.

The ids are those of ``tokenizer.json``. A folder that has ``vocab.txt`` only is read as BERT's tokenizer, as
`transformers` reads it. A folder that newsembed exported has our own tokenizer, and keeps it.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError, refusing
from ..formats.huggingface import HuggingFaceFolder
from ..formats.vocabulary import (
    CLS_ID,
    CONTINUATION,
    SEP_ID,
    SPECIAL_TOKENS,
    Family,
    TokenizerFiles,
    VocabularyFile,
    token_order,
    vocabulary_bytes,
)
from .imported_tokenizer import parse_tokenizer, parts
from .vocabulary import MAX_BYTES_PER_WORD

# The keys of special_tokens_map.json and tokenizer_config.json, and the names in vocabularies, in our order.
_SPECIAL_KEYS: Final = (
    ("pad_token",),
    ("unk_token",),
    ("cls_token", "bos_token"),
    ("sep_token", "eos_token"),
    ("mask_token",),
)
_OTHER_SPECIALS: Final = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
_BERT_SETTINGS: Final = (
    ("do_lower_case", "lowercase"),
    ("strip_accents", "strip_accents"),
    ("tokenize_chinese_chars", "handle_chinese_chars"),
)
_CONTROLS: Final = "[\u0001-\u0008\u000e-\u001f\u007f-\u009f]"
_INVISIBLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0f\uffa0]"
# Letters that case folding changes and NFKC with lower case does not; the others are Cherokee, classical Greek and a
# few phonetic letters.
_FOLDED: Final = (("ß", "ss"), ("ς", "σ"))  # noqa: RUF001
_SAMPLES: Final = (
    "",
    "Storm reaches the Coast: 1,200 homes lost",
    "İstanbul'da yağmur… naïve café — 東京で地震 서울 날씨",
)


@dataclasses.dataclass(frozen=True)
class ImportedVocabulary:
    """The vocabulary of a folder.

    Attributes:
      file: our vocabulary, with the folder's tokenizer unless that is our own.
      order: int64 [V], the folder's id of each of our tokens.
      differences: how ids for texts differ from those of the folder's libraries; a line each.
    """

    file: VocabularyFile
    order: np.ndarray
    differences: tuple[str, ...]


def import_vocabulary(source: HuggingFaceFolder, size: int) -> ImportedVocabulary:
    """Reads the tokenizer of a folder.

    Args:
      source: the folder.
      size: V, the rows of its token table.

    Raises:
      InputError: for a tokenizer that is broken, has more ids than the table has rows, lacks a special token, does not
        put [CLS] before a text and [SEP] after it, or whose pieces do not show where words begin.
    """
    path, lines = source.vocabulary_file, list[str]()
    content = source.tokenizer.content
    if content is None:
        content = _bert_tokenizer(source, size)
        lines.append("there is no tokenizer.json; it was made from vocab.txt and tokenizer_config.json by BERT's rules")
    tokenizer = parse_tokenizer(content, path)
    names = _names(tokenizer, size, path)
    special_ids = _special_ids(source, tokenizer)
    with refusing("", ValueError, path=path, remedy="The five special tokens must be different ones."):
        order = token_order(special_ids, size)
    pieces = _pieces([names[token] for token in order])
    if is_own_tokenizer(content):
        return ImportedVocabulary(VocabularyFile(path, vocabulary_bytes(pieces), size), order, ())
    values = json.loads(content)
    family = _family(values, path)
    _check_closing(source, tokenizer, special_ids)
    files = TokenizerFiles(content, family, special_ids, size)
    lines += _differences(source, values, names, special_ids, tokenizer)
    return ImportedVocabulary(VocabularyFile(path, vocabulary_bytes(pieces), size, files), order, tuple(lines))


def _bert_tokenizer(source: HuggingFaceFolder, size: int) -> bytes:
    """The tokenizer.json of BERT's tokenizer for vocab.txt."""
    from tokenizers.implementations import BertWordPieceTokenizer

    pieces, path = source.tokenizer.pieces or (), source.vocabulary_file
    if len(pieces) != size:
        remedy = "Give the vocabulary that the model was trained with."
        raise InputError(f"got {len(pieces)} pieces, config.json has vocab_size = {size}", path=path, remedy=remedy)
    ids = {piece.decode("utf-8", "replace"): token for token, piece in enumerate(pieces)}
    _check_special(SPECIAL_TOKENS, ids, path)
    settings = source.tokenizer.settings
    tokenizer = BertWordPieceTokenizer(
        ids,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    return str(tokenizer.to_str()).encode()


def _names(tokenizer: Any, size: int, path: str) -> list[str | None]:
    """The pieces by the folder's ids, None for ids without one.

    Raises:
      InputError: for an id outside the token table.
    """
    names: list[str | None] = [None] * size
    for piece, token in tokenizer.get_vocab(with_added_tokens=True).items():
        if token >= size:
            problem = f"{piece!r} has the id {token}, config.json has vocab_size = {size}"
            raise InputError(problem, path=path, remedy="Bring the tokenizer that the model was trained with.")
        names[token] = piece
    return names


def _special_ids(source: HuggingFaceFolder, tokenizer: Any) -> tuple[int, ...]:
    """The folder's ids of our special tokens, found by the names in its settings, else by the usual names.

    Raises:
      InputError: if one is missing.
    """
    named, ids, chosen = source.tokenizer.special_tokens, tokenizer.get_vocab(with_added_tokens=True), list[str]()
    for keys, *usual in zip(_SPECIAL_KEYS, SPECIAL_TOKENS, _OTHER_SPECIALS, strict=True):
        candidates = [*(named[key] for key in keys if key in named), *usual]
        chosen.append(next((name for name in candidates if name in ids), candidates[0]))
    _check_special(chosen, ids, source.vocabulary_file)
    return tuple(ids[name] for name in chosen)


def _check_special(names: Sequence[str], ids: Mapping[str, int], path: str) -> None:
    """Refuses a vocabulary without a special token."""
    if missing := [name for name in names if name not in ids]:
        raise InputError(
            f"the special tokens {', '.join(missing)} are not in it",
            path=path,
            remedy="The vocabulary must have a padding, an unknown, a first, a last and a mask token, anywhere.",
        )


def _pieces(names: Sequence[str | None]) -> list[str]:
    """The lines of vocab.txt; a piece that no line can hold gets a name by its number."""
    result, seen = list(SPECIAL_TOKENS), set(SPECIAL_TOKENS)
    for number, name in enumerate(names[len(SPECIAL_TOKENS) :], len(SPECIAL_TOKENS)):
        is_fine = name is not None and len(name.split()) == 1 and name == name.strip() and name not in seen
        result.append(name if name is not None and is_fine else f"[token{number}]")
        seen.add(result[-1])
    return result


def _family(values: Mapping[str, Any], path: str) -> Family:
    steps = (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers"), ("decoder", "decoders"))
    kinds = {part["type"] for step, inner in steps for part in parts(values.get(step), inner)}
    model = values["model"].get("type")
    if model == "WordPiece" and values["model"].get("continuing_subword_prefix") == CONTINUATION:
        return Family.WORDPIECE
    if "ByteLevel" in kinds:
        return Family.BYTE_LEVEL
    if "Metaspace" in kinds:
        return Family.METASPACE
    raise InputError(
        f"got a {model} model whose pieces do not show where words begin",
        path=path,
        remedy=f"newsembed reads WordPiece with {CONTINUATION}, SentencePiece (Metaspace) and byte-level BPE.",
    )


def _check_closing(source: HuggingFaceFolder, tokenizer: Any, special_ids: Sequence[int]) -> None:
    """Refuses a tokenizer that does not make ``[CLS] text [SEP]``, or whose library lowers texts that it keeps.

    Raises:
      InputError: naming the text.
    """
    path, (_, _, opening, closing, _) = source.vocabulary_file, special_ids
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for text in _SAMPLES:
        inside = tokenizer.encode(text, add_special_tokens=False).ids
        found = tokenizer.encode(text).ids
        if found != [opening, *inside, closing]:
            problem = f"{text!r} becomes {found[:3]} … {found[-2:]}, expected {opening} first and {closing} last"
            raise InputError(problem, path=path, remedy="newsembed reads models whose texts are [CLS] … [SEP].")
        if source.tokenizer.lowers_first and tokenizer.encode(text.lower(), add_special_tokens=False).ids != inside:
            problem = "sentence_bert_config.json has do_lower_case = true, and the tokenizer keeps upper case"
            raise InputError(problem, path=path, remedy="Put a Lowercase normalizer into tokenizer.json.")


def _differences(
    source: HuggingFaceFolder,
    values: Mapping[str, Any],
    names: Sequence[str | None],
    special_ids: Sequence[int],
    tokenizer: Any,
) -> Iterator[str]:
    yield "a special token that is written in a text, such as [SEP] or </s>, is text, not the token"
    if tokenizer.encode("a", "b").ids.count(special_ids[3]) > 2:
        yield "title and body have one end token between them; pairs of texts have more in the model's own tokenizer"
    if source.tokenizer.content is not None:
        normalizer, settings = values.get("normalizer") or {}, source.tokenizer.settings
        for key, name in _BERT_SETTINGS if normalizer.get("type") == "BertNormalizer" else ():
            if settings.get(key, normalizer[name]) != normalizer[name]:
                yield f"tokenizer_config.json has another {key} than tokenizer.json, which counts"
        pieces = source.tokenizer.pieces
        if pieces is not None and [(name or "").encode() for name in names[: len(pieces)]] != list(pieces):
            yield "vocab.txt and tokenizer.json have different pieces; tokenizer.json is used"
    if unnamed := sum(name is None for name in names):
        yield f"rows of the token table without a piece: {unnamed}"


def own_tokenizer(pieces: Sequence[str]) -> Any:
    """Our tokenizer as a `tokenizers.Tokenizer`.

    NFKC, lower case with `_FOLDED`, accents kept, BERT's word rules, WordPiece. A pair of texts becomes ``[CLS] first
    [SEP] second [SEP]``, the title and the body of a document.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {piece: token for token, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        models.WordPiece(ids, unk_token=SPECIAL_TOKENS[1], max_input_chars_per_word=MAX_BYTES_PER_WORD)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_CONTROLS), " "),
            normalizers.Replace(Regex(_INVISIBLE), ""),
            normalizers.NFKC(),
            normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=True),
            *(normalizers.Replace(found, folded) for found, folded in _FOLDED),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    opening, closing = SPECIAL_TOKENS[CLS_ID], SPECIAL_TOKENS[SEP_ID]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{opening} $A {closing}",
        pair=f"{opening} $A {closing} $B {closing}",  # one token type: the encoder has no other
        special_tokens=[(opening, ids[opening]), (closing, ids[closing])],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def is_own_tokenizer(content: bytes) -> bool:
    """Whether a ``tokenizer.json`` cuts texts by our own rules, with any pieces."""
    found, ours = json.loads(content), json.loads(own_tokenizer(SPECIAL_TOKENS).to_str())
    for values in (found, ours):
        values["model"].pop("vocab", None)
    return all(found.get(part) == ours[part] for part in ("normalizer", "pre_tokenizer", "model"))
