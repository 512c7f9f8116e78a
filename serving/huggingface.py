"""Writes a trained model as a Hugging Face folder, for `transformers` and `sentence_transformers`.

The folder holds what ``SentenceTransformer(folder)`` reads, see `formats.huggingface`: the encoder without its topic
and masked-LM heads, its tokenizer, and the modules Transformer, WordWeights (of weighted pooling), Pooling, Dense (our
embedding head) and Normalize. ``encode(text)`` then gives the embedding of a document whose body is the text and whose
title is empty. An imported tokenizer is written as it came, and the token table has its order. Where position and
copies of a token count, too, the module TextWeights takes the place of WordWeights; its code is in the folder, and the
library runs it with ``trust_remote_code=True``.
"""

import os
import re
from typing import Any, Final

import numpy as np

from .. import __version__
from ..errors import InputError, visible
from ..formats.files import packaged, write_whole
from ..formats.huggingface import HuggingFaceFolder, SentenceModules, Tokenizer
from ..formats.huggingface import write_huggingface as write_folder
from ..formats.model_folder import ModelFolder
from ..formats.vocabulary import SPECIAL_TOKENS
from ..models.encoders import Capability, named_kind, require
from ..models.huggingface import export_model
from ..models.huggingface.interface import ExportedModel, UnsupportedModelError
from ..tasks.huggingface_tokenizer import own_tokenizer
from ..tasks.imported_tokenizer import parse_tokenizer
from ..tasks.vocabulary import Vocabulary
from .model import Model

_SPECIAL_NAMES: Final = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_OTHER_FORMATS: Final = "Export it as savedmodel or safetensors. Of a lift, `layers` has this form."
TEXTS: Final = (
    "",
    "Storm reaches the coast: 1,200 homes lost",
    "Ein Sturm erreicht die Küste, GROẞE Straßen ﬁnden; ｆｕｌｌ　ｗｉｄｔｈ.",  # noqa: RUF001
    "ΟΔΥΣΣΕΥΣ εἶπεν. İstanbul'da yağmur… naïve café — №5 ½",
    "東京で地震、被害なし。서울 날씨 สวัสดีชาวโลก نص عربي हिन्दी\tpiece\x85end",
    "The house voted late. " * 400,  # longer than any limit
)  # on which both tokenizers must agree before a folder is published
CARD: Final = "README.md"


def write_huggingface(model: Model, output: str, name: str) -> None:
    """Writes the folder's files.

    Args:
      model: from `load_model`.
      output: an existing, empty folder.
      name: of the folder, in the example of its model card.

    Raises:
      InputError: if no class of `transformers` computes this model.
      RuntimeError: if the tokenizer written splits a text of `TEXTS` differently from ours.
    """
    require(model.config, Capability.HUGGING_FACE, by="the Hugging Face export", remedy=_OTHER_FORMATS)
    vocabulary = Vocabulary.load(model.vocabulary_path)
    order = None if vocabulary.tokenizer is None else vocabulary.tokenizer.order
    try:
        exported = export_model(model.config, model.params, order)
    except UnsupportedModelError as error:
        path = ModelFolder(model.folder).description_file
        raise InputError(error.problem, path=path, field=error.field, remedy=_OTHER_FORMATS) from error
    facts = {"version": __version__, "digest": model.digest, "step": model.step}
    values = exported.values | {"dtype": "float32", "newsembed": facts}
    modules = SentenceModules(**exported.modules, text_length=model.text_length, prompts=model.prompts)
    folder = HuggingFaceFolder(output, values, exported.arrays, _tokenizer(model, vocabulary, exported), modules)
    write_folder(folder, hidden_size=exported.hidden_size)
    card = _card(model, name, needs_code=os.path.exists(os.path.join(output, "text_weights.py")))
    write_whole(os.path.join(output, CARD), card.encode())


def _card(model: Model, name: str, *, needs_code: bool) -> str:
    config = model.config.to_dict()
    prompts = {"documents": model.prompts.document, "queries": model.prompts.query}
    said = [f"`{_quoted(text)}` before {kind}" for kind, text in prompts.items() if text]
    return packaged(__package__, "model_card.md").format(
        name=re.sub(r"[^\w .-]", "_", name),
        version=__version__,
        dimensions=config["embedding_size"],
        kind=named_kind(model.config) or "news",
        layers=config["num_layers"],
        width=config["hidden_size"],
        pieces=config["vocab_size"],
        length=model.text_length,
        step=model.step,
        digest=model.digest[:16],
        trust=", trust_remote_code=True" if needs_code else "",
        prompts=f" It wants {' and '.join(said)}." if said else "",
    )


def _quoted(text: str) -> str:
    """Text that somebody else wrote, as it may be between backticks."""
    return visible(text.replace("`", "'").replace("\n", " "))


def _tokenizer(model: Model, vocabulary: Vocabulary, exported: ExportedModel) -> Tokenizer:
    """The tokenizer as it was imported, byte for byte, or ours with its pieces in the order of the exported table."""
    files, length, lines = vocabulary.tokenizer, model.config.max_length, None
    if files:
        parsed, content = parse_tokenizer(files.content, model.vocabulary_path), files.content
        special = tuple(str(parsed.id_to_token(token)) for token in files.special_ids)
        # The second text of a pair may have another token type, which the encoder lacks.
        own: dict[str, Any] = {"model_input_names": ["input_ids", "attention_mask"]}
    else:
        pieces = [vocabulary.pieces[token] for token in np.argsort(exported.token_ids)]
        made, special, own = own_tokenizer(pieces), SPECIAL_TOKENS, {"do_lower_case": True, "strip_accents": False}
        lines, content = tuple(piece.encode() for piece in pieces), str(made.to_str(pretty=True)).encode()
        made.enable_truncation(length)
        for text, tokens in zip(TEXTS, vocabulary.encode_documents([""] * len(TEXTS), TEXTS, length), strict=True):
            found, wanted = made.encode(text).ids, exported.token_ids[tokens].tolist()
            if found != wanted:
                shown = f"{text[:60]!r} into {found[:20]}, expected {wanted[:20]}"
                raise RuntimeError(f"the exported tokenizer splits {shown}")
    names = dict(zip(_SPECIAL_NAMES, special, strict=True))
    # Of tokenizer_config.json. The general class keeps the normaliser of tokenizer.json; BertTokenizer replaces it.
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": length}
    return Tokenizer(lines, content, names, {**names, **kind, **own, "clean_up_tokenization_spaces": False})
