"""Our own tokenizer as a ``tokenizer.json`` of the `tokenizers` library."""

import json
from collections.abc import Sequence
from typing import Any, Final

from ..formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from .vocabulary import MAX_BYTES_PER_WORD

_CONTROLS: Final = "[\u0001-\u0008\u000e-\u001f\u007f-\u009f]"
_INVISIBLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0f\uffa0]"
# Letters that case folding changes and NFKC with lower case does not; the others are Cherokee, classical Greek and a
# few phonetic letters.
_FOLDED: Final = (("ß", "ss"), ("ς", "σ"))  # noqa: RUF001


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
