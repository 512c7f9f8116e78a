"""Writes a trained model as a Hugging Face folder, for `transformers` and `sentence_transformers`.

The folder holds what ``SentenceTransformer(folder)`` reads, see `formats.huggingface`: the encoder without its topic
and masked-LM heads, its tokenizer, and the modules Transformer, WordWeights (of weighted pooling), Pooling, Dense (our
embedding head) and Normalize. ``encode(text)`` then gives the embedding of a document whose body is the text and whose
title is empty. Where position and copies of a token count, too, the module TextWeights takes the place of WordWeights;
its code is in the folder, and the library runs it with ``trust_remote_code=True``.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..errors import InputError
from ..formats.huggingface import HuggingFaceFolder, SentenceModules, Tokenizer
from ..formats.huggingface import write_huggingface as write_folder
from ..formats.model_folder import ModelFolder
from ..formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from ..models.encoders import Capability, require
from ..models.huggingface.interface import HuggingFaceArchitecture, UnsupportedModelError
from ..tasks.vocabulary import MAX_BYTES_PER_WORD, Vocabulary
from .checkpoint import Model

_SPECIAL_NAMES: Final = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_CONTROLS: Final = "[\u0001-\u0008\u000e-\u001f\u007f-\u009f]"
_INVISIBLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0f\uffa0]"
# Letters that case folding changes and NFKC with lower case does not; the others are Cherokee, classical Greek and a
# few phonetic letters.
_FOLDED: Final = (("ß", "ss"), ("ς", "σ"))  # noqa: RUF001
_OTHER_FORMATS: Final = "Export it as savedmodel or safetensors."
TEXTS: Final = (
    "",
    "Storm reaches the coast: 1,200 homes lost",
    "Ein Sturm erreicht die Küste, GROẞE Straßen ﬁnden; ｆｕｌｌ　ｗｉｄｔｈ.",  # noqa: RUF001
    "ΟΔΥΣΣΕΥΣ εἶπεν. İstanbul'da yağmur… naïve café — №5 ½",
    "東京で地震、被害なし。서울 날씨 สวัสดีชาวโลก نص عربي हिन्दी\tpiece\x85end",
    "The house voted late. " * 400,  # longer than any limit
)  # on which both tokenizers must agree before a folder is published


def write_huggingface(model: Model, output: str) -> None:
    """Writes the folder's files.

    Args:
      model: from `checkpoint.load_model`.
      output: an existing, empty folder.

    Raises:
      InputError: if no class of `transformers` computes this model.
      RuntimeError: if the tokenizer written splits a text of `TEXTS` differently from ours.
    """
    require(model.config, Capability.HUGGING_FACE, by="the Hugging Face export", remedy=_OTHER_FORMATS)
    try:
        exported = cast(HuggingFaceArchitecture, model.config).to_huggingface(model.params)
    except UnsupportedModelError as error:
        path = ModelFolder(model.folder).description_file
        raise InputError(error.problem, path=path, field=error.field, remedy=_OTHER_FORMATS) from error
    vocabulary = Vocabulary.load(model.vocabulary_path)
    pieces = [vocabulary.pieces[token] for token in np.argsort(exported.token_ids)]
    tokenizer = huggingface_tokenizer(pieces)
    _check_same_tokens(tokenizer, vocabulary, exported.token_ids, model.config.max_length)
    names = dict(zip(_SPECIAL_NAMES, SPECIAL_TOKENS, strict=True))
    facts = {"newsembed": {"version": __version__, "digest": model.digest, "step": model.step}}
    folder = HuggingFaceFolder(
        output,
        exported.values | {"dtype": "float32"} | facts,
        exported.arrays,
        Tokenizer(tuple(piece.encode() for piece in pieces), settings=names | _settings(model)),
        SentenceModules(**exported.modules, text_length=model.text_length, prompts=model.prompts),
    )
    text = tokenizer.to_str(pretty=True)
    write_folder(folder, tokenizer_json=text, special_tokens=names, hidden_size=exported.hidden_size)


def _settings(model: Model) -> dict[str, Any]:
    """Of tokenizer_config.json. The general class keeps the normaliser of tokenizer.json; BertTokenizer replaces it."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_length,
        "do_lower_case": True,
        "strip_accents": False,
        "clean_up_tokenization_spaces": False,
    }


def huggingface_tokenizer(pieces: Sequence[str]) -> Any:
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


def _check_same_tokens(
    tokenizer: Any, vocabulary: Vocabulary, token_ids: npt.NDArray[np.int64], max_length: int
) -> None:
    for text, expected in zip(TEXTS, vocabulary.encode_documents([""] * len(TEXTS), TEXTS, max_length), strict=True):
        tokenizer.enable_truncation(max_length)
        found = tokenizer.encode(text).ids
        tokenizer.no_truncation()
        wanted = token_ids[expected].tolist()
        if found != wanted:
            raise RuntimeError(f"the exported tokenizer splits {text[:60]!r} into {found[:20]}, expected {wanted[:20]}")
