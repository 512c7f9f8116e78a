"""Writes a trained model as a Hugging Face folder, for `transformers` and `sentence_transformers`.

The folder holds what ``SentenceTransformer(folder)`` reads, see `formats.huggingface`: the encoder without its topic
and masked-LM heads, its tokenizer, and the modules Transformer, WordWeights (of weighted pooling), Pooling, Dense (our
embedding head) and Normalize. ``encode(text)`` then gives the embedding of a document whose body is the text and whose
title is empty. An imported tokenizer is written as it came, and the token table has its order. Where position and
copies of a token count, too, the module TextWeights takes the place of WordWeights; its code is in the folder, and the
library runs it with ``trust_remote_code=True``.
"""

from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..errors import InputError
from ..formats.huggingface import HuggingFaceFolder, SentenceModules, Tokenizer
from ..formats.huggingface import write_huggingface as write_folder
from ..formats.model_folder import ModelFolder
from ..formats.tokenizer_files import TokenizerFiles
from ..formats.vocabulary import SPECIAL_TOKENS
from ..models.encoders import Capability, require
from ..models.huggingface.interface import ExportedModel, HuggingFaceArchitecture, UnsupportedModelError
from ..tasks.imported_tokenizer import parse_tokenizer
from ..tasks.own_tokenizer_json import own_tokenizer
from ..tasks.vocabulary import Vocabulary
from .checkpoint import Model

_SPECIAL_NAMES: Final = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
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
    vocabulary = Vocabulary.load(model.vocabulary_path)
    exported = _exported(model, vocabulary.tokenizer)
    tokenizer = _imported(vocabulary.tokenizer, model) if vocabulary.tokenizer else _own(vocabulary, exported, model)
    facts = {"newsembed": {"version": __version__, "digest": model.digest, "step": model.step}}
    folder = HuggingFaceFolder(
        output,
        exported.values | {"dtype": "float32"} | facts,
        exported.arrays,
        tokenizer,
        SentenceModules(**exported.modules, text_length=model.text_length, prompts=model.prompts),
    )
    write_folder(folder, hidden_size=exported.hidden_size)


def _exported(model: Model, tokenizer: TokenizerFiles | None) -> ExportedModel:
    """The arrays, with the rows of word pieces in the order of the tokenizer that is written.

    Raises:
      InputError: if no class of `transformers` computes this model.
    """
    token_ids = None if tokenizer is None else tokenizer.order
    try:
        return cast(HuggingFaceArchitecture, model.config).to_huggingface(model.params, token_ids)
    except UnsupportedModelError as error:
        path = ModelFolder(model.folder).description_file
        raise InputError(error.problem, path=path, field=error.field, remedy=_OTHER_FORMATS) from error


def _own(vocabulary: Vocabulary, exported: ExportedModel, model: Model) -> Tokenizer:
    pieces = [vocabulary.pieces[token] for token in np.argsort(exported.token_ids)]
    tokenizer = own_tokenizer(pieces)
    _check_same_tokens(tokenizer, vocabulary, exported.token_ids, model.config.max_length)
    names = dict(zip(_SPECIAL_NAMES, SPECIAL_TOKENS, strict=True))
    settings = names | _settings(model, do_lower_case=True, strip_accents=False)
    lines = tuple(piece.encode() for piece in pieces)
    return Tokenizer(lines, str(tokenizer.to_str(pretty=True)).encode(), names, settings)


def _imported(files: TokenizerFiles, model: Model) -> Tokenizer:
    """The tokenizer as it was imported, byte for byte."""
    tokenizer = parse_tokenizer(files.content, model.vocabulary_path)
    special_tokens = (str(tokenizer.id_to_token(token)) for token in files.special_ids)
    names = dict(zip(_SPECIAL_NAMES, special_tokens, strict=True))
    # The second text of a pair may have another token type, which the encoder lacks.
    settings = names | _settings(model, model_input_names=["input_ids", "attention_mask"])
    return Tokenizer(None, files.content, names, settings)


def _settings(model: Model, **of_tokenizer: Any) -> dict[str, Any]:
    """Of tokenizer_config.json. The general class keeps the normaliser of tokenizer.json; BertTokenizer replaces it."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_length,
        **of_tokenizer,
        "clean_up_tokenization_spaces": False,
    }


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
