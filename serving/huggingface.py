"""Writes a trained model as a Hugging Face folder, for `transformers` and `sentence_transformers`.

The folder holds what ``SentenceTransformer(folder)`` reads: the encoder without heads (config.json, model.safetensors), its tokenizer, and the
modules Transformer, WordWeights (of weighted pooling), Pooling, Dense (our embedding head) and Normalize. ``encode(text)`` then gives the
embedding of a document whose body is the text and whose title is empty. Where place and copies of a token count, too, no module of the library
does it: TextWeights stands for WordWeights, its code lies in the folder, and the library runs it with ``trust_remote_code=True``.
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

import numpy as np

from .. import __version__
from ..errors import InputError
from ..formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from ..models.encoders.news_config import EncoderConfig
from ..models.huggingface import UnsupportedModelError, huggingface_config, write_params
from ..tasks.vocabulary import MAX_BYTES_PER_WORD, Vocabulary
from .checkpoint import MODEL_FILE, SAFETENSORS_FILE, VOCABULARY_FILE, Model

_SENTENCE_MODULES: Final = "sentence_transformers.models"
_OWN_MODULE: Final = "text_weights"  # the file, TextWeights in it
_POOLING_MODES: Final = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
_SPECIAL_NAMES: Final = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_CONTROLS: Final = "[\u0001-\u0008\u000e-\u001f\u007f-\u009f]"
_INVISIBLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0f\uffa0]"
# What NFKC with lower case leaves and case folding does not; the rest are Cherokee, classical Greek and a few phonetic letters.
_FOLDED: Final = (("ß", "ss"), ("ς", "σ"))  # noqa: RUF001
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
      InputError: if no class of `transformers` computes this encoder.
      RuntimeError: if the tokenizer written cuts a text of `TEXTS` otherwise than ours.
    """
    from safetensors.numpy import save_file

    config, params = _with_positions(model)
    try:
        values = huggingface_config(config)
    except UnsupportedModelError as error:
        path = os.path.join(model.folder, MODEL_FILE)
        raise InputError(
            error.problem, path=path, field=error.field, remedy="Export it as savedmodel or safetensors."
        ) from error
    arrays = write_params(values, config, params)
    if values["model_type"] != "modernbert":
        # These classes have a pooler, which no module of ours reads; absent, it would be drawn at random at every loading.
        hidden = config.hidden_size
        arrays |= {
            "pooler.dense.weight": np.zeros((hidden, hidden), np.float32),
            "pooler.dense.bias": np.zeros(hidden, np.float32),
        }
    save_file(arrays, os.path.join(output, SAFETENSORS_FILE), {"format": "pt"})
    facts = {"newsembed": {"version": __version__, "digest": model.digest, "step": model.step}}
    _write_json(output, "config.json", values | {"dtype": "float32"} | facts)
    _write_tokenizer(model, output)
    _write_sentence_modules(model, output)


def _with_positions(model: Model) -> tuple[EncoderConfig, dict[str, Any]]:
    """The model as a class of `transformers` has it: without layers no positions are the same as positions that are all 0."""
    config, params = model.config, dict(model.params)
    if (
        config.num_layers == 0 and config.positions == "rotary" and config.norm != "modern"
    ):  # ModernBERT's class has rotary ones
        config = dataclasses.replace(config, positions="learned")
        params["position_embedding"] = np.zeros((config.max_length, config.hidden_size), np.float32)
    return config, params


def _write_sentence_modules(model: Model, output: str) -> None:
    from safetensors.numpy import save_file

    config = model.config
    weighing = _weighing_module(config)
    kinds = ["Transformer", *([weighing] if weighing else []), "Pooling", "Dense", "Normalize"]
    folders = {kind: f"{number}_{kind}" if number else "" for number, kind in enumerate(kinds)}
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"{_OWN_MODULE if name == 'TextWeights' else _SENTENCE_MODULES}.{name}",
        }
        for number, (name, path) in enumerate(folders.items())
    ]
    _write_json(output, "modules.json", modules)
    _write_json(output, "sentence_bert_config.json", {"max_seq_length": model.text_length, "do_lower_case": False})
    _write_json(
        output,
        "config_sentence_transformers.json",
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
    if weighing:
        _write_weights(model, weighing, output, os.path.join(output, folders[weighing]))
    chosen = "cls_token" if config.pooling == "cls" else "mean_tokens"
    pooling = {"word_embedding_dimension": config.hidden_size} | {
        f"pooling_mode_{mode}": mode == chosen for mode in _POOLING_MODES
    }
    _write_json(os.path.join(output, folders["Pooling"]), "config.json", pooling)
    dense = {
        "in_features": config.hidden_size,
        "out_features": config.embedding_size,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    _write_json(os.path.join(output, folders["Dense"]), "config.json", dense)
    head = {name: np.asarray(value, np.float32) for name, value in model.params["embedding_head"].items()}
    arrays = {"linear.weight": np.ascontiguousarray(head["kernel"].T), "linear.bias": head["bias"]}
    save_file(arrays, os.path.join(output, folders["Dense"], SAFETENSORS_FILE), {"format": "pt"})
    os.makedirs(os.path.join(output, folders["Normalize"]))


def _weighing_module(config: EncoderConfig) -> str | None:
    """The module that multiplies tokens by their weights, None if they have none."""
    if config.pooling != "weighted":
        return None
    return "TextWeights" if config.lead_length or config.sublinear else "WordWeights"


def _write_weights(model: Model, kind: str, output: str, folder: str) -> None:
    from safetensors.numpy import save_file

    weights = np.exp(np.asarray(model.params["pooling_logits"], np.float32))
    if kind == "WordWeights":
        pieces = Vocabulary.load(model.vocabulary_path).pieces
        values = {
            "vocab": pieces,
            "word_weights": dict(zip(pieces, weights.tolist(), strict=True)),
            "unknown_word_weight": 1.0,
        }
        arrays = {"emb_layer.weight": weights[:, None]}
    else:
        values = {"lead_length": model.config.lead_length, "sublinear": model.config.sublinear}
        arrays = {"weights": weights}
        source = resources.files(__package__).joinpath(f"{_OWN_MODULE}.py.txt").read_text(encoding="utf-8")
        with open(os.path.join(output, f"{_OWN_MODULE}.py"), "w", encoding="utf-8") as file:
            file.write(source)
    _write_json(folder, "config.json", values)
    save_file(arrays, os.path.join(folder, SAFETENSORS_FILE), {"format": "pt"})


def _write_tokenizer(model: Model, output: str) -> None:
    vocabulary = Vocabulary.load(model.vocabulary_path)
    tokenizer = huggingface_tokenizer(vocabulary.pieces)
    _check_same_tokens(tokenizer, vocabulary, model.config.max_length)
    tokenizer.save(os.path.join(output, "tokenizer.json"))
    shutil.copyfile(model.vocabulary_path, os.path.join(output, VOCABULARY_FILE))
    names = dict(zip(_SPECIAL_NAMES, SPECIAL_TOKENS, strict=True))
    _write_json(output, "special_tokens_map.json", names)
    # The general class reads tokenizer.json as it is; BertTokenizer would put its own normaliser in.
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_length,
        "do_lower_case": True,
    }
    _write_json(
        output,
        "tokenizer_config.json",
        names | settings | {"strip_accents": False, "clean_up_tokenization_spaces": False},
    )


def huggingface_tokenizer(pieces: Sequence[str]) -> Any:
    """Our tokenizer as a `tokenizers.Tokenizer`: NFKC, lower case with `_FOLDED`, accents kept, BERT's word rules, WordPiece.

    A pair of texts becomes ``[CLS] first [SEP] second [SEP]``, the title and the body of a document.
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
        special_tokens=[(opening, CLS_ID), (closing, SEP_ID)],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def _check_same_tokens(tokenizer: Any, vocabulary: Vocabulary, max_length: int) -> None:
    for text, expected in zip(TEXTS, vocabulary.encode_documents([""] * len(TEXTS), TEXTS, max_length), strict=True):
        tokenizer.enable_truncation(max_length)
        found = tokenizer.encode(text).ids
        tokenizer.no_truncation()
        if found != expected.tolist():
            raise RuntimeError(
                f"the exported tokenizer cuts {text[:60]!r} into {found[:20]}, expected {expected.tolist()[:20]}"
            )


def _write_json(folder: str, name: str, values: Any) -> None:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(values, file, indent=2, ensure_ascii=False)
        file.write("\n")
