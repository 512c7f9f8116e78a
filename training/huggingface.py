"""Reads a folder of Hugging Face: config.json, safetensors (whole or in shards) and the vocabulary; no torch, no transformers.

What is read has our order of tokens: the special ones at `tasks.features.SPECIAL_TOKENS`' ids, the others in the file's order. Only
WordPiece vocabularies (vocab.txt) can be tokenized here; of others the weights can be read, and whoever uses them brings the tokenizer.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.model_folder import MODEL_FILE, VOCABULARY_FILE, VocabularyFile
from ..formats.vocabulary import SPECIAL_TOKENS
from ..models.encoders.news_config import EXECUTION_OPTIONS, EncoderConfig
from ..models.huggingface import (
    UnsupportedModelError,
    encoder_config,
    plain_heads,
    read_params,
    reorder_tokens,
    token_order,
)

CONFIG_FILE: Final = "config.json"
WEIGHTS_FILE: Final = "model.safetensors"
INDEX_FILE: Final = "model.safetensors.index.json"
TOKENIZER_FILE: Final = "tokenizer.json"
TOKENIZER_CONFIG_FILE: Final = "tokenizer_config.json"
_MODULES_FILE: Final = "modules.json"

_DTYPES: Final[Mapping[str, Any]] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I64": np.int64,  # position numbers that old files keep
    "I32": np.int32,
}
# The special tokens' names in vocabularies that are not WordPiece, in our order.
_OTHER_SPECIALS: Final = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
_HEADS: Final = ("pooling_logits", "embedding_head", "topic_head", "mlm_transform", "mlm_norm", "mlm_bias")
_BODY_FIELDS: Final = (
    "dtype",
    "dropout_rate",
    "embedding_init",
    "embedding_size",
    "num_topics",
    "pooling",
    "lead_length",
    "sublinear",
    *EXECUTION_OPTIONS,
)


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel:
    """An encoder read from a Hugging Face folder.

    Attributes:
      folder: where it was read from.
      config: its architecture.
      params: nested dict of float32 arrays, tokens in our order. Heads that the folder lacks are missing: see `with_heads`.
      order: int64 [V], the folder's id of each of our tokens.
      vocabulary: vocab.txt in our order, None if the tokenizer is not WordPiece.
      ignored: names of arrays that have no place in a `NewsEncoder`.
      differences: how the folder's tokenizer cuts text otherwise than ours; a line each.
    """

    folder: str
    config: EncoderConfig
    params: dict[str, Any]
    order: npt.NDArray[np.int64]
    vocabulary: bytes | None
    ignored: tuple[str, ...]
    differences: tuple[str, ...]

    def with_heads(self) -> dict[str, Any]:
        """The parameters of a whole `NewsEncoder`; missing heads are `models.huggingface.plain_heads`."""
        return {**plain_heads(self.config), **self.params}


def is_huggingface(folder: str) -> bool:
    """Whether a folder holds a model of Hugging Face and not one of ours."""
    return os.path.isfile(os.path.join(folder, CONFIG_FILE)) and not os.path.exists(os.path.join(folder, MODEL_FILE))


def read_huggingface(folder: str, *, num_topics: int = 600, max_length: int | None = None) -> HuggingFaceModel:
    """Reads the encoder of a folder that `transformers` or `sentence_transformers` saved.

    Of a sentence-transformers folder, WordWeights (or our TextWeights), the pooling and one Dense module of linear activation become what reads the top vectors.

    Args:
      folder: with config.json, model.safetensors (or its shards and index) and vocab.txt or tokenizer.json.
      num_topics: T.
      max_length: fewer positions than the folder has; None keeps them all.

    Raises:
      InputError: for a missing or broken file, an unknown `model_type`, an option that `NewsEncoder` lacks, an array that is missing or has
        another shape, or a vocabulary without the special tokens.
    """
    path = os.path.join(folder, CONFIG_FILE)
    values = _read_json(path)
    pooling, weights_folder, dense_folder = _sentence_modules(folder)
    head = None if dense_folder is None else _read_dense(dense_folder)
    try:
        config = encoder_config(
            values, num_topics=num_topics, pooling=pooling, embedding_size=None if head is None else head["bias"].size
        )
    except UnsupportedModelError as error:
        raise InputError(
            error.problem, path=path, field=error.field, remedy="Bring another model, or teach NewsEncoder."
        ) from error
    arrays, weights_path = _read_weights(folder)
    try:
        params, ignored = read_params(values, config, arrays)
    except UnsupportedModelError as error:
        raise InputError(
            error.problem, path=weights_path, field=error.field, remedy="Save the model again, config.json with it."
        ) from error
    if max_length is not None and max_length < config.max_length:
        config = dataclasses.replace(config, max_length=max_length)
        if "position_embedding" in params:
            params["position_embedding"] = params["position_embedding"][:max_length]
    if weights_folder is not None:
        config, params["pooling_logits"] = _read_weighing(weights_folder, config)
    order, vocabulary, differences = _read_vocabulary(folder, config.vocab_size)
    params = reorder_tokens(params, order)
    if head is not None:
        _check_dense(head, config, dense_folder or "")
        params["embedding_head"] = head
    return HuggingFaceModel(folder, config, params, order, vocabulary, tuple(ignored), tuple(differences))


def initial_params(folder: str, config: EncoderConfig, vocabulary: VocabularyFile, created: Any) -> Any:
    """The parameters that a run starts from where INITIAL_CHECKPOINT_PATH is a Hugging Face folder.

    Args:
      folder: see `read_huggingface`.
      config: the run's; must be the folder's architecture, except that the heads may have any size and positions may be fewer.
      vocabulary: the run's; must hold the folder's pieces in our order.
      created: the run's own parameters on the devices, drawn at random; heads that the folder lacks stay as they are.

    Returns:
      Parameters in the shapes and shardings of `created`.

    Raises:
      InputError: as `read_huggingface`, and for another architecture or vocabulary.
    """
    model = read_huggingface(folder, num_topics=config.num_topics, max_length=config.max_length)
    _check_architecture(model, config)
    _check_vocabulary(model, vocabulary)

    def placed(mine: jax.Array, theirs: Any) -> jax.Array:
        return jax.device_put(np.asarray(theirs, np.float32), mine.sharding)

    found = {
        name: value
        for name, value in model.params.items()
        if name not in _HEADS or jax.tree.map(np.shape, value) == jax.tree.map(np.shape, created.get(name))
    }
    return {**created, **{name: jax.tree.map(placed, created[name], value) for name, value in found.items()}}


def _check_architecture(model: HuggingFaceModel, config: EncoderConfig) -> None:
    for field in dataclasses.fields(config):
        if field.name in _BODY_FIELDS:
            continue
        theirs, ours = getattr(model.config, field.name), getattr(config, field.name)
        if theirs != ours:
            raise InputError(
                f"the folder's model has {theirs!r}, this run {ours!r}",
                path=os.path.join(model.folder, CONFIG_FILE),
                field=f"EncoderConfig.{field.name}",
                remedy="Take the architecture.gin that `newsembed import-hf` writes for this folder.",
            )


def _check_vocabulary(model: HuggingFaceModel, vocabulary: VocabularyFile) -> None:
    if model.vocabulary is None:
        raise _not_wordpiece(model.folder)
    if model.vocabulary != vocabulary.content:
        raise InputError(
            f"{vocabulary.path} is not this model's vocabulary with the special tokens first",
            path=os.path.join(model.folder, VOCABULARY_FILE),
            field="VOCABULARY_PATH",
            remedy="Write it with `newsembed import-hf` and make the training data with it.",
        )


def wordpiece_vocabulary(model: HuggingFaceModel) -> VocabularyFile:
    """The vocabulary of a model that reads and writes text here.

    Raises:
      InputError: if its tokenizer is not WordPiece.
    """
    if model.vocabulary is None:
        raise _not_wordpiece(model.folder)
    return VocabularyFile(VOCABULARY_FILE, model.vocabulary, model.config.vocab_size)


def _not_wordpiece(folder: str) -> InputError:
    return InputError(
        "the tokenizer is not WordPiece: text in and out would need the model's own tokenizer, which newsembed does not have",
        path=os.path.join(folder, TOKENIZER_FILE),
        remedy="Bring a BERT-like model with vocab.txt; `training.huggingface.read_huggingface` reads the weights of this one as arrays.",
    )


def _read_json(path: str) -> dict[str, Any]:
    remedy = "Give a folder that transformers' save_pretrained wrote."
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=path, remedy=remedy) from error
    except ValueError as error:
        raise InputError("got no JSON", path=path, remedy=remedy) from error
    if not isinstance(values, dict):
        raise InputError(f"got a JSON {type(values).__name__}, expected an object", path=path, remedy=remedy)
    return values


def _read_weights(folder: str) -> tuple[dict[str, npt.NDArray[Any]], str]:
    """All arrays by name, and the file to name in errors."""
    whole, index = os.path.join(folder, WEIGHTS_FILE), os.path.join(folder, INDEX_FILE)
    if os.path.exists(whole) or not os.path.exists(index):
        return _read_safetensors(whole), whole
    names = _read_json(index).get("weight_map")
    if not isinstance(names, dict):
        raise InputError("got no weight_map", path=index, remedy="Save the model again.")
    arrays: dict[str, npt.NDArray[Any]] = {}
    for shard in sorted(set(names.values())):
        arrays |= _read_safetensors(os.path.join(folder, shard))
    missing = sorted(set(names) - set(arrays))
    if missing:
        raise InputError(
            f"{len(missing)} arrays are in no shard", path=index, field=missing[0], remedy="Fetch all shards again."
        )
    return arrays, index


def _read_safetensors(path: str) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name; bfloat16, which the library's own NumPy reader lacks, by ml_dtypes."""
    from safetensors import SafetensorError, deserialize

    try:
        with open(path, "rb") as file:
            arrays = deserialize(file.read())  # type: ignore[no-untyped-call]
    except FileNotFoundError as error:
        remedy = "Save the model with safe_serialization=True; pytorch_model.bin is not read, for it can run code."
        raise InputError("there is no such file", path=path, remedy=remedy) from error
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"no readable safetensors: {error}", path=path, remedy="Fetch or save the file again."
        ) from error
    unknown = [name for name, array in arrays if array["dtype"] not in _DTYPES]
    if unknown:
        kinds = ", ".join(_DTYPES)
        raise InputError(
            f"got the number type {dict(arrays)[unknown[0]]['dtype']}, expected one of {kinds}",
            path=path,
            field=unknown[0],
        )
    return {
        name: np.frombuffer(array["data"], _DTYPES[array["dtype"]]).reshape(array["shape"]) for name, array in arrays
    }


def _read_vocabulary(folder: str, size: int) -> tuple[npt.NDArray[np.int64], bytes | None, list[str]]:
    """The order of tokens, vocab.txt in that order if the tokenizer is WordPiece, and how it differs from ours."""
    path = os.path.join(folder, VOCABULARY_FILE)
    if os.path.exists(path):
        with open(path, "rb") as file:
            pieces = file.read().removesuffix(b"\n").replace(b"\r\n", b"\n").split(b"\n")
        if len(pieces) != size:
            remedy = "Give the vocabulary that the model was trained with."
            raise InputError(f"got {len(pieces)} pieces, config.json has vocab_size = {size}", path=path, remedy=remedy)
        order = _order(
            {piece.decode("utf-8", "replace"): token for token, piece in enumerate(pieces)}, SPECIAL_TOKENS, size, path
        )
        usable, unusable = _usable([pieces[token] for token in order])
        differences = _tokenizer_differences(folder)
        if unusable:
            differences.append(f"{unusable} pieces with spaces, or that stand twice, are never made from text")
        return order, b"".join(piece + b"\n" for piece in usable), differences
    path = os.path.join(folder, TOKENIZER_FILE)
    added = _read_json(path).get("added_tokens") or []
    ids = {token["content"]: token["id"] for token in added}
    names = SPECIAL_TOKENS if SPECIAL_TOKENS[0] in ids else _OTHER_SPECIALS
    return _order(ids, names, size, path), None, []


def _order(ids: Mapping[str, int], specials: Sequence[str], size: int, path: str) -> npt.NDArray[np.int64]:
    missing = [special for special in specials if special not in ids]
    if missing:
        raise InputError(
            f"the special tokens {', '.join(missing)} are not in it",
            path=path,
            remedy=f"The vocabulary must have {', '.join(specials)}, anywhere.",
        )
    return token_order([ids[special] for special in specials], size)


def _usable(pieces: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The pieces, those that `tasks.vocabulary` refuses replaced by names that no text makes; and how many those are."""
    seen: set[bytes] = set()
    result: list[bytes] = []
    for number, piece in enumerate(pieces):
        text = piece.decode("utf-8", "replace")
        is_fine = len(text.split()) == 1 and text == text.strip() and piece not in seen and text.encode() == piece
        result.append(piece if is_fine else b"[unusable%d]" % number)
        seen.add(piece)
    return result, sum(new is not old for new, old in zip(result, pieces, strict=True))


def _tokenizer_differences(folder: str) -> list[str]:
    """What the folder says about its tokenizer that ours does otherwise (`tasks.vocabulary`: NFKC, case folded, accents kept).

    Raises:
      InputError: for a vocabulary with upper case: every capital letter would be lost, and words with it.
    """
    path = os.path.join(folder, TOKENIZER_CONFIG_FILE)
    values = _read_json(path) if os.path.exists(path) else {}
    if not values.get("do_lower_case", True):
        raise InputError(
            "the vocabulary has upper case, and newsembed's tokenizer folds case: most names and nouns would be cut otherwise",
            path=path,
            field="do_lower_case",
            remedy="Bring the uncased model.",
        )
    lines = ["text is NFKC-casefolded (ß is ss, ﬁ is fi, full width is half width); BERT's tokenizer only lowers case"]
    if values.get("strip_accents") in (None, True):
        lines.append(
            "accents are kept; the model was trained without them, so words with accents are cut into other pieces or [UNK]"
        )
    if values.get("tokenize_chinese_chars") is False:
        lines.append("every Chinese character is a word; the model was trained on whole runs")
    return lines


def _sentence_modules(folder: str) -> tuple[str, str | None, str | None]:
    """Pooling and the folders of the WordWeights (or TextWeights) and Dense modules, as modules.json says; "cls" and None without one."""
    path = os.path.join(folder, _MODULES_FILE)
    if not os.path.exists(path):
        return "cls", None, None
    with open(path, encoding="utf-8") as file:
        modules = json.load(file)
    pooling, weights, dense = "cls", None, None
    for module in modules:
        kind, place = module["type"].rpartition(".")[2], os.path.join(folder, module["path"])
        if kind in ("WordWeights", "TextWeights"):
            weights = place
        elif kind == "Pooling":
            pooling = _pooling(os.path.join(place, CONFIG_FILE))
        elif kind == "Dense" and dense is None:
            dense = place
        elif kind not in ("Transformer", "Normalize"):
            remedy = "newsembed has Transformer, WordWeights, TextWeights, Pooling, Dense and Normalize."
            raise InputError(f"got the module {kind}, which NewsEncoder lacks", path=path, remedy=remedy)
    if weights is not None and pooling != "mean":
        raise InputError(
            f"got weights of tokens with {pooling} pooling, expected mean",
            path=path,
            remedy="NewsEncoder weights the mean alone.",
        )
    return pooling if weights is None else "weighted", weights, dense


def _pooling(path: str) -> str:
    values = _read_json(path)
    mode = values.get("pooling_mode")
    modes = (
        {mode}
        if isinstance(mode, str)
        else {name.removeprefix("pooling_mode_") for name, on in values.items() if on is True}
    )
    names = {"cls": "cls", "cls_token": "cls", "mean": "mean", "mean_tokens": "mean"}
    modes -= {"include_prompt"}
    if len(modes) != 1 or not modes <= set(names):
        raise InputError(f"got the pooling {', '.join(sorted(modes))}, expected cls or mean", path=path)
    return names[modes.pop()]


def _read_weighing(folder: str, config: EncoderConfig) -> tuple[EncoderConfig, npt.NDArray[np.float32]]:
    """The config with what TextWeights adds to it, and `pooling_logits` [V], tokens in the file's order."""
    arrays, path = _read_safetensors(os.path.join(folder, WEIGHTS_FILE)), os.path.join(folder, CONFIG_FILE)
    name = "weights" if "weights" in arrays else "emb_layer.weight"
    if name not in arrays:
        raise InputError(
            "there is no such array",
            path=os.path.join(folder, WEIGHTS_FILE),
            field=name,
            remedy="Save the model again.",
        )
    if name == "weights":
        values = _read_json(path)
        try:
            config = dataclasses.replace(
                config, lead_length=values.get("lead_length", 0), sublinear=values.get("sublinear", False)
            )
        except ValueError as error:
            raise InputError(str(error), path=path, remedy="Export the folder again.") from error
    weights = np.asarray(arrays[name], np.float32)
    expected = (config.vocab_size,) if name == "weights" else (config.vocab_size, 1)
    if weights.shape != expected or not np.all(weights > 0):
        problem = (
            f"got shape {list(weights.shape)}, the smallest {weights.min()}; expected {list(expected)}, all positive"
        )
        raise InputError(problem, path=os.path.join(folder, WEIGHTS_FILE), field=name)
    return config, np.log(weights.reshape(-1))


def _read_dense(folder: str) -> dict[str, npt.NDArray[np.float32]]:
    path = os.path.join(folder, CONFIG_FILE)
    activation = _read_json(path).get("activation_function", "torch.nn.modules.linear.Identity")
    if not activation.endswith("Identity"):
        raise InputError(f"got {activation}, expected the identity", path=path, field="activation_function")
    arrays = _read_safetensors(os.path.join(folder, WEIGHTS_FILE))
    kernel = np.ascontiguousarray(np.asarray(arrays["linear.weight"], np.float32).T)
    bias = arrays.get("linear.bias", np.zeros(kernel.shape[1]))
    return {"kernel": kernel, "bias": np.asarray(bias, np.float32)}


def _check_dense(head: Mapping[str, npt.NDArray[np.float32]], config: EncoderConfig, folder: str) -> None:
    if head["kernel"].shape != (config.hidden_size, config.embedding_size):
        problem = f"got shape {list(head['kernel'].shape)}, expected [{config.hidden_size}, {config.embedding_size}]"
        raise InputError(problem, path=os.path.join(folder, WEIGHTS_FILE), field="linear.weight")
