"""Folders of Hugging Face and sentence-transformers: what they hold, read and written; neither library is needed.

A folder holds config.json, model.safetensors (or its shards and their index), the tokenizer (vocab.txt, tokenizer.json,
tokenizer_config.json, special_tokens_map.json) and, where sentence-transformers wrote it, modules.json with a folder
for each module: WordWeights (or our TextWeights), Pooling, Dense and Normalize. A module, pooling, activation or option
that nothing here computes is refused by name.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final, Self

import numpy as np

from ..errors import InputError, reading
from .arrays import Array, read_safetensors, write_safetensors
from .digests import check_fetched, check_sums
from .files import read_bytes, read_json, write_whole
from .vocabulary import TOKENIZER_FILE, VOCABULARY_FILE

CONFIG_FILE: Final = "config.json"
_WEIGHTS: Final = "model.safetensors"
_SHARDS: Final = "model.safetensors.index.json"
_TOKENIZER_CONFIG: Final = "tokenizer_config.json"
_SPECIAL_TOKENS: Final = "special_tokens_map.json"
MODULES_FILE: Final = "modules.json"
# The library once named the file after the kind of model; the first one that is there counts.
_SENTENCES: Final = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
_SENTENCE: Final = _SENTENCES[0]
_TRANSFORMERS: Final = ("BERT", "RoBERTa", "DistilBERT", "CamemBERT", "ALBERT", "XLMRoBERTa", "XLNet", "MPNet")
_SENTENCE_TRANSFORMERS: Final = "config_sentence_transformers.json"
_WORD_WEIGHTS: Final = "WordWeights"
_TEXT_WEIGHTS: Final = "TextWeights"  # ours: its code is in the folder, in the file text_weights.py
_TEXT_WEIGHTS_CODE: Final = "text_weights"
_LIBRARY: Final = "sentence_transformers.models"
# The modules in the order that they must have.
_ORDER: Final = {"Transformer": 0, _WORD_WEIGHTS: 1, _TEXT_WEIGHTS: 1, "Pooling": 2, "Dense": 3, "Normalize": 4}
# What the library calls each of our poolings: in newer files, and in flags of older ones.
_POOLINGS: Final = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
_POOLING_OF: Final = {theirs: ours for ours, flag in _POOLINGS.items() for theirs in (ours, flag) if theirs != "last"}
# Older libraries know these only; they ignore the others.
_POOLING_FLAGS: Final = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
_ACTIVATIONS: Final = {"identity": "torch.nn.modules.linear.Identity", "tanh": "torch.nn.modules.activation.Tanh"}
_VECTOR: Final = "sentence_embedding"
# What the library writes for a text model; another value means that the vectors are made in another way.
_SENTENCE_VALUES: Final[Mapping[str, Any]] = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
_REMEDY: Final = "Give a folder that transformers' save_pretrained wrote."
_WEIGHTS_REMEDY: Final = (
    "Fetch the file again, or save the model with safe_serialization=True; pytorch_model.bin is not read, because it "
    "can run code."
)


@dataclasses.dataclass(frozen=True)
class Prompts:
    """The prompts of a model.

    Attributes:
      texts: by name, such as {"query": "query: ", "passage": "passage: "}.
      default: the name of the prompt of texts that no other prompt is for; None: they have none.

    >>> prompts = Prompts({"query": "query: ", "document": "", "passage": "passage: "})
    >>> prompts.query, prompts.document
    ('query: ', 'passage: ')
    """

    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default: str | None = None

    @property
    def query(self) -> str:
        """The text before a query: of the prompt "query", else of the default."""
        return self.texts.get("query", self._default_text)

    @property
    def document(self) -> str:
        """The text before a document: the first of "document", "passage" and "corpus" that has a text.

        Where all of them that are there are empty, it is empty, and where none is there, the default's. (The library
        itself adds an empty "document" when it saves a model.)
        """
        named = [self.texts[name] for name in ("document", "passage", "corpus") if name in self.texts]
        return next(filter(None, named), "") if named else self._default_text

    @property
    def _default_text(self) -> str:
        return "" if self.default is None else self.texts[self.default]

    def to_dict(self) -> dict[str, Any]:
        """JSON values by their keys in a description, without those that say nothing."""
        values: dict[str, Any] = {"prompts": dict(self.texts)} if self.texts else {}
        return values if self.default is None else values | {"default_prompt_name": self.default}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], path: str) -> Self:
        """Reads the keys of a description; `path` is the file to name."""
        texts, default = values.get("prompts") or {}, values.get("default_prompt_name")
        remedy = 'Prompts are strings by name, such as {"query": "query: "}.'
        if not isinstance(texts, dict) or not all(text is None or isinstance(text, str) for text in texts.values()):
            raise InputError(f"got {texts!r}, expected strings by name", path=path, field="prompts", remedy=remedy)
        if default is not None and default not in list(texts):
            problem = f"got {default!r}, expected one of the prompts {', '.join(texts) or '(there are none)'}"
            raise InputError(problem, path=path, field="default_prompt_name", remedy=remedy)
        return cls({name: text or "" for name, text in texts.items()}, default)


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A tokenizer's files, as far as they are read.

    Attributes:
      pieces: of vocab.txt in the order of their ids, UTF-8; None where there is no such file.
      content: the whole of tokenizer.json; None where there is no such file.
      special_tokens: of special_tokens_map.json and tokenizer_config.json, such as {"pad_token": "[PAD]"}.
      settings: of tokenizer_config.json; empty without the file.
      lowers_first: whether sentence-transformers lowers texts before they reach the tokenizer.
    """

    pieces: tuple[bytes, ...] | None
    content: bytes | None = None
    special_tokens: Mapping[str, str] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    lowers_first: bool = False


@dataclasses.dataclass(frozen=True)
class SentenceModules:
    """The modules of sentence-transformers, which make one vector of the vectors of the tokens.

    Attributes:
      pooling: "cls", the first token's, "mean", "max", the largest value of each unit, or "last", the last token's.
      token_weights: float32 [V], positive, by the folder's token ids: how much a token counts in the mean; None: all
        the same.
      lead_length: a token at position p counts 1 / (1 + p / lead_length) in the mean; 0: all the same.
      sublinear: the copies of a token that would count s together count ln(1 + s).
      kernel: float32 [H, D], the dense layer after pooling; None without one.
      bias: float32 [D], of that layer.
      activation: on what that layer returns, "identity" or "tanh".
      is_normalized: whether the embeddings of the folder have length 1; ours do.
      text_length: tokens of a text that are read; None where the folder does not say.
      prompts: the texts before documents and queries.
    """

    pooling: str = "cls"
    token_weights: Array | None = None
    lead_length: int = 0
    sublinear: bool = False
    kernel: Array | None = None
    bias: Array | None = None
    activation: str = "identity"
    is_normalized: bool = True
    text_length: int | None = None
    prompts: Prompts = dataclasses.field(default_factory=Prompts)


@dataclasses.dataclass(frozen=True)
class HuggingFaceFolder:
    """A folder's content.

    Attributes:
      path: the folder.
      config: of config.json.
      arrays: the weights by name.
      tokenizer: its files.
      modules: of sentence-transformers; the defaults where the folder has none.
    """

    path: str
    config: Mapping[str, Any]
    arrays: Mapping[str, Array]
    tokenizer: Tokenizer
    modules: SentenceModules = dataclasses.field(default_factory=SentenceModules)

    @property
    def config_file(self) -> str:
        """config.json, to name in errors."""
        return os.path.join(self.path, CONFIG_FILE)

    @property
    def weights_file(self) -> str:
        """The weights, or the index of their shards, to name in errors."""
        whole, shards = os.path.join(self.path, _WEIGHTS), os.path.join(self.path, _SHARDS)
        return shards if os.path.exists(shards) and not os.path.exists(whole) else whole

    @property
    def vocabulary_file(self) -> str:
        """tokenizer.json or, without one, vocab.txt, to name in errors."""
        return os.path.join(self.path, VOCABULARY_FILE if self.tokenizer.content is None else TOKENIZER_FILE)


def read_huggingface(folder: str) -> HuggingFaceFolder:
    """Reads a folder that `transformers` or `sentence_transformers` saved.

    Raises:
      InputError: for a file that is missing, broken or not as `SHA256SUMS` lists it, or a module of
        sentence-transformers that has no counterpart here.
    """
    check_fetched(folder)
    signs = [name for name in (_SENTENCE_TRANSFORMERS, "1_Pooling", *_SENTENCES) if _is_in(folder, name)]
    if signs and not _is_in(folder, MODULES_FILE):
        problem = f"there is no such file, but {signs[0]}, so that the pooling is unknown"
        raise InputError(problem, path=os.path.join(folder, MODULES_FILE), remedy="Fetch the folder again, as a whole.")
    check_sums(folder, "Export or fetch the folder again; if you changed it, delete SHA256SUMS.")
    inner = _transformer_folder(folder)
    config = read_json(os.path.join(inner, CONFIG_FILE), _REMEDY, dict)
    tokenizer = _read_tokenizer(inner)
    found = HuggingFaceFolder(inner, config, {}, tokenizer, read_modules(folder, tokenizer.settings))
    return dataclasses.replace(found, arrays=_read_weights(found.weights_file))


def _is_in(folder: str, name: str) -> bool:
    return os.path.exists(os.path.join(folder, name))


def _transformer_folder(folder: str) -> str:
    """The folder of the module Transformer: the folder itself, or ``0_Transformer`` of older libraries."""
    path = os.path.join(folder, MODULES_FILE)
    place = _places(path).get("Transformer", "") if os.path.exists(path) else ""
    return os.path.join(folder, place) if place else folder


def _sentence_file(folder: str) -> str:
    return next((name for name in _SENTENCES if _is_in(folder, name)), _SENTENCE)


def _read_weights(path: str) -> dict[str, Array]:
    """All arrays by name, of a file or of the shards that an index lists."""
    if not path.endswith(_SHARDS):
        return read_safetensors(path, _WEIGHTS_REMEDY)
    names = read_json(path, _REMEDY, dict).get("weight_map")
    if not isinstance(names, dict):
        raise InputError("got no weight_map", path=path, remedy="Save the model again.")
    arrays: dict[str, Array] = {}
    for shard in sorted(set(names.values())):
        arrays |= read_safetensors(os.path.join(os.path.dirname(path), shard), _WEIGHTS_REMEDY)
    if missing := sorted(set(names) - set(arrays)):
        problem = f"{len(missing)} arrays are in no shard"
        raise InputError(problem, path=path, field=missing[0], remedy="Fetch all shards again.")
    return arrays


def _read_tokenizer(folder: str) -> Tokenizer:
    names = (name for name in (VOCABULARY_FILE, TOKENIZER_FILE) if _is_in(folder, name))
    files = {name: read_bytes(os.path.join(folder, name), _REMEDY) for name in names}
    if not files:
        problem, remedy = "there is no such file, and no vocab.txt", "Save the tokenizer with the model."
        raise InputError(problem, path=os.path.join(folder, TOKENIZER_FILE), remedy=remedy)
    pieces, settings = files.get(VOCABULARY_FILE), _values(folder, _TOKENIZER_CONFIG)
    # Special tokens are texts or objects with a text.
    values = (settings | _values(folder, _SPECIAL_TOKENS)).items()
    special = {name: value.get("content") if isinstance(value, dict) else value for name, value in values}
    return Tokenizer(
        None if pieces is None else tuple(pieces.removesuffix(b"\n").replace(b"\r\n", b"\n").split(b"\n")),
        files.get(TOKENIZER_FILE),
        {name: text for name, text in special.items() if name.endswith("_token") and isinstance(text, str)},
        settings,
        lowers_first=_values(folder, _sentence_file(folder)).get("do_lower_case") is True,
    )


def _values(folder: str, name: str) -> dict[str, Any]:
    """The object of a JSON file; empty where there is no such file."""
    path = os.path.join(folder, name)
    return dict(read_json(path, _REMEDY, dict)) if os.path.exists(path) else {}


def read_modules(folder: str, tokenizer_settings: Mapping[str, Any]) -> SentenceModules:
    """The modules of a folder; the defaults where it has none.

    Args:
      folder: of the model.
      tokenizer_settings: of tokenizer_config.json, which has the length of texts where the module Transformer has none.

    Raises:
      InputError: for a file that is broken, a module, a pooling, an activation or an option that has no counterpart
        here, or modules in another order.
    """
    path = os.path.join(folder, MODULES_FILE)
    if not os.path.exists(path):
        return SentenceModules()
    places, inner = _places(path), _transformer_folder(folder)
    sentence_file = _sentence_file(inner)
    sentence = _values(inner, sentence_file)
    # do_lower_case is compared with what the tokenizer does, in `tasks.huggingface_tokenizer`.
    _check_values(os.path.join(inner, sentence_file), sentence, _SENTENCE_VALUES, ("max_seq_length", "do_lower_case"))
    lengths = [sentence.get("max_seq_length"), tokenizer_settings.get("model_max_length")]
    length = next((one for one in lengths if one is not None), None)
    found: dict[str, Any] = {
        "text_length": length if isinstance(length, int) and not isinstance(length, bool) else None,
        "is_normalized": "Normalize" in places,
        "prompts": Prompts.from_dict(
            _values(folder, _SENTENCE_TRANSFORMERS), os.path.join(folder, _SENTENCE_TRANSFORMERS)
        ),
    }
    for kind, place in places.items():
        if kind in _READERS:
            found |= _READERS[kind](os.path.join(folder, place), found["prompts"])
    if "token_weights" in found and found["pooling"] != "mean":
        problem = f"got weights of tokens with {found['pooling']} pooling, expected mean"
        raise InputError(problem, path=path, remedy="Tokens have weights in the mean only.")
    return SentenceModules(**found)


def _places(path: str) -> dict[str, str]:
    """The folder of each module, in order."""
    with reading(path, "Save the model again.", AttributeError):
        modules = [(module["type"].rpartition(".")[2], str(module["path"])) for module in read_json(path, _REMEDY)]
    modules = [("Transformer" if kind in _TRANSFORMERS else kind, place) for kind, place in modules]
    kinds = [kind for kind, _ in modules]
    if unknown := [kind for kind in kinds if kind not in _ORDER]:
        problem = f"got the module {unknown[0]}, which newsembed lacks"
        raise InputError(problem, path=path, remedy=f"newsembed has {', '.join(_ORDER)}.")
    steps = [_ORDER[kind] for kind in kinds]
    if steps != sorted(set(steps)) or not {"Transformer", "Pooling"} <= set(kinds):
        order = "expected Transformer, WordWeights or TextWeights, Pooling, Dense, Normalize, in this order, each once"
        problem = f"got the modules {', '.join(kinds)}; {order}"
        raise InputError(problem, path=path, remedy="Only Transformer and Pooling must be there.")
    return dict(modules)


def _check_values(path: str, values: Mapping[str, Any], fixed: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuses options that are not known, or have another value than the one that is computed here."""
    for name, value in sorted(values.items()):
        if name in known or value is None or (name in fixed and value == fixed[name]):
            continue
        problem = "newsembed does not know this option and ignores none"
        problem = f"got {value!r}, expected {fixed[name]!r}" if name in fixed else f"got {value!r}; {problem}"
        raise InputError(problem, path=path, field=name, remedy="Bring a model without it.")


def _pooling(folder: str, prompts: Prompts) -> dict[str, Any]:
    path = os.path.join(folder, CONFIG_FILE)
    values = read_json(path, _REMEDY, dict)
    flags = {name: on for name, on in values.items() if name.startswith("pooling_mode_")}
    known = ("word_embedding_dimension", "embedding_dimension", "pooling_mode", "include_prompt", *flags)
    _check_values(path, values, {}, known)
    modes = values.get("pooling_mode")
    if modes is None:
        modes = [name.removeprefix("pooling_mode_") for name, on in flags.items() if on] or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in _POOLING_OF:
        problem = f"got the pooling {', '.join(map(str, modes))}, expected one of cls, mean, max, lasttoken"
        raise InputError(problem, path=path, field="pooling_mode", remedy="newsembed has no other pooling.")
    if values.get("include_prompt") is False and any(prompts.texts.values()):
        problem = "got false: the prompt's tokens are not pooled; newsembed pools all tokens"
        raise InputError(problem, path=path, field="include_prompt", remedy="Bring a model that pools its prompt.")
    return {"pooling": _POOLING_OF[modes[0]]}


def _text_weights(folder: str, _prompts: Prompts) -> dict[str, Any]:
    path = os.path.join(folder, CONFIG_FILE)
    values = read_json(path, _REMEDY, dict)
    lead_length, sublinear = values.get("lead_length", 0), values.get("sublinear", False)
    if not (isinstance(lead_length, int) and lead_length >= 0 and isinstance(sublinear, bool)):
        problem = f"got lead_length = {lead_length!r} and sublinear = {sublinear!r}, expected 0 or more, and a boolean"
        raise InputError(problem, path=path, remedy="Export the folder again.")
    weights = _positive(folder, "weights", 1)
    return {"token_weights": weights, "lead_length": lead_length, "sublinear": sublinear}


def _positive(folder: str, name: str, rank: int) -> Array:
    path = os.path.join(folder, _WEIGHTS)
    weights = np.asarray(_array(read_safetensors(path, _WEIGHTS_REMEDY), name, path), np.float32)
    shape = (weights.size, 1)[:rank]
    if weights.shape != shape or not np.all(weights > 0):
        problem = f"got shape {list(weights.shape)}, the smallest {weights.min()}; expected {list(shape)}, all positive"
        raise InputError(problem, path=path, field=name)
    return weights.reshape(-1)


def _dense(folder: str, _prompts: Prompts) -> dict[str, Any]:
    path, weights = os.path.join(folder, CONFIG_FILE), os.path.join(folder, _WEIGHTS)
    values = read_json(path, _REMEDY, dict)
    known = ("in_features", "out_features", "bias", "activation_function")
    _check_values(path, values, {"module_input_name": _VECTOR, "module_output_name": _VECTOR}, known)
    given = values.get("activation_function", _ACTIVATIONS["tanh"])  # the library's default
    names = {theirs.rpartition(".")[2]: ours for ours, theirs in _ACTIVATIONS.items()}
    activation = names.get(str(given).rpartition(".")[2])
    if activation is None:
        problem = f"got {given}, expected {' or '.join(names)}"
        raise InputError(problem, path=path, field="activation_function", remedy="newsembed has no other activation.")
    arrays = read_safetensors(weights, _WEIGHTS_REMEDY)
    kernel = np.ascontiguousarray(np.asarray(_array(arrays, "linear.weight", weights), np.float32).T)
    bias = np.asarray(arrays.get("linear.bias", np.zeros(kernel.shape[1])), np.float32)
    return {"kernel": kernel, "bias": bias, "activation": activation}


def _array(arrays: dict[str, Array], name: str, path: str) -> Array:
    if name not in arrays:
        raise InputError("there is no such array", path=path, field=name, remedy="Save the model again.")
    return arrays[name]


_READERS: Final[Mapping[str, Callable[[str, Prompts], dict[str, Any]]]] = {
    "Pooling": _pooling,
    _WORD_WEIGHTS: lambda folder, _: {"token_weights": _positive(folder, "emb_layer.weight", 2)},
    _TEXT_WEIGHTS: _text_weights,
    "Dense": _dense,
}


def write_huggingface(folder: HuggingFaceFolder, *, hidden_size: int) -> None:
    """Writes the files of a folder.

    Args:
      folder: with tokenizer and modules; its path is an existing, empty folder.
      hidden_size: H.
    """
    tokenizer = folder.tokenizer
    _write_arrays(folder.path, folder.arrays)
    _write_json(folder.path, CONFIG_FILE, folder.config)
    pieces = None if tokenizer.pieces is None else b"".join(piece + b"\n" for piece in tokenizer.pieces)
    for name, content in ((TOKENIZER_FILE, tokenizer.content), (VOCABULARY_FILE, pieces)):
        if content is not None:
            write_whole(os.path.join(folder.path, name), content)
    _write_json(folder.path, _SPECIAL_TOKENS, tokenizer.special_tokens)
    _write_json(folder.path, _TOKENIZER_CONFIG, tokenizer.settings)
    _write_modules(folder.path, folder.modules, tokenizer.pieces, hidden_size)


def _write_modules(folder: str, modules: SentenceModules, pieces: tuple[bytes, ...] | None, hidden_size: int) -> None:
    weighing = _TEXT_WEIGHTS if modules.lead_length or modules.sublinear else _WORD_WEIGHTS
    is_there = {weighing: modules.token_weights is not None, "Dense": modules.kernel is not None}
    kinds = [kind for kind in ("Transformer", weighing, "Pooling", "Dense", "Normalize") if is_there.get(kind, True)]
    names = [f"{number}_{kind}" if number else "" for number, kind in enumerate(kinds)]
    code = {_TEXT_WEIGHTS: _TEXT_WEIGHTS_CODE}
    listed = [
        {"idx": number, "name": str(number), "path": name, "type": f"{code.get(kind, _LIBRARY)}.{kind}"}
        for number, (kind, name) in enumerate(zip(kinds, names, strict=True))
    ]
    _write_json(folder, MODULES_FILE, listed)
    _write_json(folder, _SENTENCE, {"max_seq_length": modules.text_length, "do_lower_case": False})
    settings: dict[str, Any] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    _write_json(folder, _SENTENCE_TRANSFORMERS, settings | modules.prompts.to_dict())
    places = {kind: os.path.join(folder, name) for kind, name in zip(kinds, names, strict=True)}
    if weighing in places:
        _write_token_weights(folder, places[weighing], modules, pieces)
    chosen = _POOLINGS[modules.pooling]
    flags = {f"pooling_mode_{mode}": mode == chosen for mode in dict.fromkeys((*_POOLING_FLAGS, chosen))}
    _write_json(places["Pooling"], CONFIG_FILE, {"word_embedding_dimension": hidden_size} | flags)
    if modules.kernel is not None:
        inside, size = modules.kernel.shape
        values = {"in_features": inside, "out_features": size, "bias": True}
        _write_json(places["Dense"], CONFIG_FILE, values | {"activation_function": _ACTIVATIONS[modules.activation]})
        bias = np.zeros(size, np.float32) if modules.bias is None else modules.bias
        _write_arrays(places["Dense"], {"linear.weight": modules.kernel.T, "linear.bias": bias})
    os.makedirs(places["Normalize"])


def _write_token_weights(root: str, folder: str, modules: SentenceModules, pieces: tuple[bytes, ...] | None) -> None:
    weights = np.asarray(modules.token_weights, np.float32)
    if modules.lead_length or modules.sublinear:
        code = resources.files(__package__).joinpath(f"{_TEXT_WEIGHTS_CODE}.py.txt").read_bytes()
        write_whole(os.path.join(root, f"{_TEXT_WEIGHTS_CODE}.py"), code)
        _write_json(folder, CONFIG_FILE, {"lead_length": modules.lead_length, "sublinear": modules.sublinear})
        _write_arrays(folder, {"weights": weights})
        return
    # Weights are looked up by id; the names need only differ.
    names = [str(token) for token in range(weights.size)] if pieces is None else [piece.decode() for piece in pieces]
    by_piece = dict(zip(names, weights.tolist(), strict=True))
    _write_json(folder, CONFIG_FILE, {"vocab": names, "word_weights": by_piece, "unknown_word_weight": 1.0})
    _write_arrays(folder, {"emb_layer.weight": weights[:, None]})


def _write_arrays(folder: str, arrays: Mapping[str, Array]) -> None:
    write_safetensors(os.path.join(folder, _WEIGHTS), arrays, {"format": "pt"})


def _write_json(folder: str, name: str, values: Any) -> None:
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    write_whole(os.path.join(folder, name), text.encode())
