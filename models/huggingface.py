"""Encoders of Hugging Face's `transformers` as `EncoderConfig` and parameters, and back: names, shapes and layouts, no input or output.

| model_type | read | written | ours |
|---|---|---|---|
| bert | yes | yes | ``norm="post"`` |
| roberta, xlm-roberta | yes | no: bert says the same | ``norm="post"``, positions counted from 0 |
| megatron-bert | yes | yes | ``norm="pre"`` |
| modernbert | yes | yes | ``norm="modern"``, rotary positions, gated, local layers |

What has no place of its own here is folded at reading, which changes no output: row 0 of BERT's token types is added to every position
(texts of one type only), and RoBERTa's position table loses the `pad_token_id + 1` rows that no token uses.
A linear layer's weight is [out, in] there and [in, out] here.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .encoder_config import EncoderConfig

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

MODEL_TYPES: Final = ("bert", "roberta", "xlm-roberta", "megatron-bert", "modernbert")
_ROBERTA: Final = ("roberta", "xlm-roberta")
_PREFIXES: Final = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta.", "megatron-bert": "bert.", "modernbert": "model."}
_ACTIVATIONS: Final = {"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
_BODY: Final = ("embeddings.", "encoder.", "layers.", "final_norm.")  # an unknown array there means another architecture
_NO_WEIGHTS: Final = ("embeddings.position_ids", "embeddings.token_type_ids", "rotary_emb.inv_freq")
_TOKEN_TYPES: Final = 2


class UnsupportedModelError(ValueError):
    """A Hugging Face model that `NewsEncoder` cannot compute, or a folder that does not hold what its config.json says.

    Args:
      field: the key of config.json, or the array.
      problem: as "got X, expected Y".
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def encoder_config(
    values: Mapping[str, Any], *, embedding_size: int | None = None, num_topics: int = 600, pooling: str = "cls"
) -> EncoderConfig:
    """The architecture that a config.json describes.

    Args:
      values: of config.json.
      embedding_size: D; None takes H.
      num_topics: T.
      pooling: "cls" or "mean"; config.json does not say.

    Raises:
      UnsupportedModelError: for an unknown `model_type`, a missing key, or an option that `NewsEncoder` lacks.
    """
    model_type = values.get("model_type")
    if model_type not in MODEL_TYPES:
        raise UnsupportedModelError("model_type", f"got {model_type!r}, expected one of {', '.join(MODEL_TYPES)}")
    specific = _modernbert_options(values) if model_type == "modernbert" else _bert_options(values)
    hidden_size = _integer(values, "hidden_size")
    try:
        return EncoderConfig(
            vocab_size=_integer(values, "vocab_size"),
            hidden_size=hidden_size,
            num_layers=_integer(values, "num_hidden_layers"),
            num_heads=_integer(values, "num_attention_heads"),
            mlp_size=_integer(values, "intermediate_size"),
            embedding_size=embedding_size or hidden_size,
            num_topics=num_topics,
            pooling=pooling,  # type: ignore[arg-type] # checked there
            **specific,
        )
    except ValueError as error:
        if isinstance(error, UnsupportedModelError):
            raise
        raise UnsupportedModelError("config.json", str(error)) from error


def _bert_options(values: Mapping[str, Any]) -> dict[str, Any]:
    model_type = values["model_type"]
    _only(values, "position_embedding_type", "absolute", default="absolute")
    _only(values, "is_decoder", False, default=False)
    _only(values, "add_cross_attention", False, default=False)
    _only(values, "tie_word_embeddings", True, default=True)
    _only(values, "embedding_size", values.get("hidden_size"), default=values.get("hidden_size"))
    offset = _position_offset(values)
    return {
        "max_length": _integer(values, "max_position_embeddings") - offset,
        "dropout_rate": float(values.get("hidden_dropout_prob", 0.1)),
        "norm": "pre" if model_type == "megatron-bert" else "post",
        "activation": _activation(values, "hidden_act"),
        "layer_norm_epsilon": float(values.get("layer_norm_eps", 1e-12)),
    }


def _modernbert_options(values: Mapping[str, Any]) -> dict[str, Any]:
    biases = {name: bool(values.get(name, False)) for name in ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")}
    if len(set(biases.values())) > 1:
        raise UnsupportedModelError("attention_bias", f"got {biases}, expected all of them true or all false")
    _only(values, "tie_word_embeddings", True, default=True)
    _only(values, "classifier_activation", values.get("hidden_activation", "gelu"), default="gelu")
    every = _integer(values, "global_attn_every_n_layers", 3)
    local_attention = _integer(values, "local_attention", 128)
    _check_layer_types(values, every)
    thetas = _rotary_thetas(values)
    is_local = every > 1
    return {
        "max_length": _integer(values, "max_position_embeddings"),
        "dropout_rate": float(values.get("mlp_dropout", 0.0)),
        "norm": "modern",
        "positions": "rotary",
        "rotary_theta": thetas[0],
        "local_rotary_theta": thetas[1] if is_local else EncoderConfig.local_rotary_theta,
        "local_distance": local_attention // 2 if is_local else 0,
        "global_every": every,
        "mlp": "gated",
        "activation": _activation(values, "hidden_activation"),
        "biases": biases["mlp_bias"],
        "layer_norm_epsilon": float(values.get("norm_eps", 1e-5)),
    }


def _check_layer_types(values: Mapping[str, Any], every: int) -> None:
    """Newer files list the kind of every layer; the list must be the one that `global_attn_every_n_layers` stands for."""
    kinds = values.get("layer_types")
    if kinds is None:
        return
    expected = ["sliding_attention" if layer % every else "full_attention" for layer in range(len(kinds))]
    if list(kinds) != expected:
        raise UnsupportedModelError("layer_types", f"got {kinds}, expected every {every}th layer from the first to be full_attention")


def _rotary_thetas(values: Mapping[str, Any]) -> tuple[float, float]:
    """Of global and local layers, from the keys of transformers 4 or 5."""
    parameters = values.get("rope_parameters")
    if parameters is None:
        local = values.get("local_rope_theta")
        theta = float(values.get("global_rope_theta", 160_000.0))
        return theta, float(10_000.0 if local is None else local)
    found = []
    for kind in ("full_attention", "sliding_attention"):
        part = parameters.get(kind) or {}
        if part.get("rope_type", "default") != "default":
            raise UnsupportedModelError("rope_parameters", f"got the rope_type {part['rope_type']!r}, expected default")
        found.append(float(part.get("rope_theta", 160_000.0 if kind == "full_attention" else 10_000.0)))
    return found[0], found[1]


def huggingface_config(config: EncoderConfig) -> dict[str, Any]:
    """The config.json of an encoder without its heads; special tokens have the ids of `tasks.features`.

    Raises:
      UnsupportedModelError: if no class of `transformers` computes this encoder.
    """
    shared = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.mlp_size,
        "max_position_embeddings": config.max_length,
        "initializer_range": 0.02,
        "pad_token_id": 0,
    }
    activation = "gelu" if config.activation == "gelu" else "gelu_pytorch_tanh"
    if config.norm == "modern":
        return shared | _modernbert_config(config, activation)
    for name, expected in (("positions", "learned"), ("mlp", "dense"), ("biases", True), ("local_distance", 0)):
        if getattr(config, name) != expected:
            raise _no_class(config, name, expected)
    model_type, architecture = ("bert", "BertModel") if config.norm == "post" else ("megatron-bert", "MegatronBertModel")
    return shared | {
        "model_type": model_type,
        "architectures": [architecture],
        "hidden_act": activation,
        "hidden_dropout_prob": config.dropout_rate,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": config.layer_norm_epsilon,
        "type_vocab_size": _TOKEN_TYPES,
        "position_embedding_type": "absolute",
    }


def _modernbert_config(config: EncoderConfig, activation: str) -> dict[str, Any]:
    for name, expected in (("positions", "rotary"), ("mlp", "gated")):
        if getattr(config, name) != expected:
            raise _no_class(config, name, expected)
    return {
        "model_type": "modernbert",
        "architectures": ["ModernBertModel"],
        "hidden_activation": activation,
        "classifier_activation": activation,
        "embedding_dropout": config.dropout_rate,
        "mlp_dropout": config.dropout_rate,
        "attention_dropout": 0.0,
        "norm_eps": config.layer_norm_epsilon,
        "global_rope_theta": config.rotary_theta,
        "local_rope_theta": config.local_rotary_theta,
        "local_attention": 2 * config.local_distance or 128,
        "global_attn_every_n_layers": config.global_every,
        **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), config.biases),
        "cls_token_id": 2,
        "bos_token_id": 2,
        "sep_token_id": 3,
        "eos_token_id": 3,
    }


def _no_class(config: EncoderConfig, name: str, expected: Any) -> UnsupportedModelError:
    got = getattr(config, name)
    problem = f"got {got!r} with norm = {config.norm!r}, expected {expected!r}: transformers has no class that computes this encoder"
    return UnsupportedModelError(f"EncoderConfig.{name}", problem)


@dataclasses.dataclass(frozen=True)
class _Entry:
    """Arrays of ours and theirs that hold the same numbers.

    Attributes:
      ours: paths, joined with dots.
      theirs: names without the model's prefix.
      shapes: of theirs.
      read: theirs to ours.
      write: ours to theirs.
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    read: Callable[..., tuple[Array, ...]]
    write: Callable[..., tuple[Array, ...]]


def read_params(values: Mapping[str, Any], config: EncoderConfig, arrays: Arrays) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a `NewsEncoder`, without embedding and topic head, as float32.

    Args:
      values: of config.json.
      config: from `encoder_config`.
      arrays: by their names in the checkpoint.

    Returns:
      The nested parameters, tokens still in the file's order, and the names of arrays that have no place here (a pooler, other heads).
      The masked-LM head is there only if the checkpoint has one.

    Raises:
      UnsupportedModelError: for an array that is missing, has another shape, or is unknown inside the body.
    """
    model_type = values["model_type"]
    found = _without_prefix(arrays, _PREFIXES[model_type])
    used: set[str] = set()
    params: dict[str, Any] = {}
    for entry in _body(values, config):
        _read(entry, found, used, params)
    head = list(_masked_lm(model_type, config))
    if any(name in found for entry in head for name in entry.theirs):
        for entry in head:
            _read(entry, found, used, params)
        bias = next((name for name in _OUTPUT_BIAS[model_type] if name in found), None)
        used |= set(_OUTPUT_BIAS[model_type]) | set(_TIED_TABLE[model_type])
        _check_tied(found, model_type, params["token_embedding"])
        put(params, "mlm_bias", np.zeros(config.vocab_size, np.float32) if bias is None else _checked(found, bias, (config.vocab_size,)))
    rest = sorted(set(found) - used)
    body = [name for name in rest if name.startswith(_BODY) and not name.endswith(_NO_WEIGHTS)]
    if body:
        raise UnsupportedModelError(body[0], f"got {len(body)} arrays that config.json does not account for: another architecture")
    return params, [name for name in rest if not name.endswith(_NO_WEIGHTS)]


def write_params(values: Mapping[str, Any], config: EncoderConfig, params: Mapping[str, Any]) -> dict[str, Array]:
    """The encoder's arrays by their names in `transformers`, without the heads; inverse of `read_params`.

    Args:
      values: from `huggingface_config`.
      config: the encoder's.
      params: nested, as `NewsEncoder` has them.
    """
    written: dict[str, Array] = {}
    for entry in _body(values, config):
        ours = (np.asarray(_leaf(params, path), np.float32) for path in entry.ours)
        written |= dict(zip(entry.theirs, entry.write(*ours), strict=True))
    return {name: np.ascontiguousarray(array) for name, array in written.items()}


def token_order(special_ids: Sequence[int], vocab_size: int) -> npt.NDArray[np.int64]:
    """Their id of each of our tokens: the special ones first, the others in their order.

    Args:
      special_ids: their ids of [PAD], [UNK], [CLS], [SEP] and [MASK], in the order of `tasks.features.SPECIAL_TOKENS`.
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


def reorder_tokens(params: Mapping[str, Any], order: npt.NDArray[np.int64]) -> dict[str, Any]:
    """The parameters with row i of the token table, and output bias i, taken from row `order[i]`."""
    moved = {name: np.asarray(params[name])[order] for name in ("token_embedding", "mlm_bias") if name in params}
    return {**params, **moved}


def plain_heads(config: EncoderConfig) -> dict[str, Any]:
    """Heads for an encoder that comes without: parameters that its checkpoint did not have.

    The embedding head hands the pooled vector on as it is (its first D units; 0 beyond H), as sentence-transformers does without a Dense
    module. The topic head gives 0 for every topic. The masked-LM transform hands the hidden state on through GELU and norm.
    """
    hidden, vocabulary = config.hidden_size, config.vocab_size
    transform = {"kernel": np.eye(hidden, dtype=np.float32)}
    norm = {"scale": np.ones(hidden, np.float32)}
    if config.biases:
        transform["bias"], norm["bias"] = np.zeros(hidden, np.float32), np.zeros(hidden, np.float32)
    return {
        "embedding_head": {
            "kernel": np.eye(hidden, config.embedding_size, dtype=np.float32),
            "bias": np.zeros(config.embedding_size, np.float32),
        },
        "topic_head": {"kernel": np.zeros((hidden, config.num_topics), np.float32), "bias": np.zeros(config.num_topics, np.float32)},
        "mlm_transform": transform,
        "mlm_norm": norm,
        "mlm_bias": np.zeros(vocabulary, np.float32),
    }


_OUTPUT_BIAS: Final = {
    "bert": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    "megatron-bert": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    "roberta": ("lm_head.bias", "lm_head.decoder.bias"),
    "xlm-roberta": ("lm_head.bias", "lm_head.decoder.bias"),
    "modernbert": ("decoder.bias",),
}
_TIED_TABLE: Final = {
    "bert": ("cls.predictions.decoder.weight",),
    "megatron-bert": ("cls.predictions.decoder.weight",),
    "roberta": ("lm_head.decoder.weight",),
    "xlm-roberta": ("lm_head.decoder.weight",),
    "modernbert": ("decoder.weight",),
}


def _masked_lm(model_type: str, config: EncoderConfig) -> Iterator[_Entry]:
    """Transform and norm before the tied table."""
    hidden = config.hidden_size
    dense, norm = {
        "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
        "megatron-bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
        "modernbert": ("head.dense", "head.norm"),
    }.get(model_type, ("lm_head.dense", "lm_head.layer_norm"))
    yield from _linear("mlm_transform", dense, hidden, hidden, biases=config.biases)
    yield from _norm("mlm_norm", norm, hidden, biases=config.biases)


def _body(values: Mapping[str, Any], config: EncoderConfig) -> Iterator[_Entry]:
    if values["model_type"] == "modernbert":
        return _modernbert_body(config)
    return _bert_body(values, config)


def _bert_body(values: Mapping[str, Any], config: EncoderConfig) -> Iterator[_Entry]:
    hidden, is_pre = config.hidden_size, config.norm == "pre"
    yield _same("token_embedding", "embeddings.word_embeddings.weight", (config.vocab_size, hidden))
    yield _positions(values, config)
    if not is_pre:
        yield from _norm("input_norm", "embeddings.LayerNorm", hidden)
    for layer in range(config.num_layers):
        ours, theirs = f"layers_{layer}", f"encoder.layer.{layer}"
        yield from _query_key_value(
            config, f"{ours}.attention", tuple(f"{theirs}.attention.self.{name}" for name in ("query", "key", "value"))
        )
        yield from _attention_output(config, f"{ours}.attention", f"{theirs}.attention.output.dense")
        yield from _norm(f"{ours}.attention_norm", f"{theirs}.attention.{'ln' if is_pre else 'output.LayerNorm'}", hidden)
        yield from _linear(f"{ours}.mlp_in", f"{theirs}.intermediate.dense", hidden, config.mlp_size)
        yield from _linear(f"{ours}.mlp_out", f"{theirs}.output.dense", config.mlp_size, hidden)
        yield from _norm(f"{ours}.mlp_norm", f"{theirs}.{'ln' if is_pre else 'output.LayerNorm'}", hidden)
    if is_pre:
        yield from _norm("output_norm", "encoder.ln", hidden)


def _modernbert_body(config: EncoderConfig) -> Iterator[_Entry]:
    hidden, biases = config.hidden_size, config.biases
    yield _same("token_embedding", "embeddings.tok_embeddings.weight", (config.vocab_size, hidden))
    yield from _norm("input_norm", "embeddings.norm", hidden, biases=biases)
    for layer in range(config.num_layers):
        ours, theirs = f"layers_{layer}", f"layers.{layer}"
        if config.has_attention_norm(layer):
            yield from _norm(f"{ours}.attention_norm", f"{theirs}.attn_norm", hidden, biases=biases)
        yield from _query_key_value(config, f"{ours}.attention", (f"{theirs}.attn.Wqkv",))
        yield from _attention_output(config, f"{ours}.attention", f"{theirs}.attn.Wo")
        yield from _norm(f"{ours}.mlp_norm", f"{theirs}.mlp_norm", hidden, biases=biases)
        yield from _gated(config, ours, f"{theirs}.mlp.Wi")
        yield from _linear(f"{ours}.mlp_out", f"{theirs}.mlp.Wo", config.mlp_size, hidden, biases=biases)
    yield from _norm("output_norm", "final_norm", hidden, biases=biases)


def _same(ours: str, theirs: str, shape: tuple[int, ...]) -> _Entry:
    return _Entry((ours,), (theirs,), (shape,), lambda array: (array,), lambda array: (array,))


def _linear(ours: str, theirs: str, inputs: int, outputs: int, *, biases: bool = True) -> Iterator[_Entry]:
    yield _Entry((f"{ours}.kernel",), (f"{theirs}.weight",), ((outputs, inputs),), lambda array: (array.T,), lambda array: (array.T,))
    if biases:
        yield _same(f"{ours}.bias", f"{theirs}.bias", (outputs,))


def _norm(ours: str, theirs: str, size: int, *, biases: bool = True) -> Iterator[_Entry]:
    yield _same(f"{ours}.scale", f"{theirs}.weight", (size,))
    if biases:
        yield _same(f"{ours}.bias", f"{theirs}.bias", (size,))


def _query_key_value(config: EncoderConfig, ours: str, theirs: tuple[str, ...]) -> Iterator[_Entry]:
    """Ours is one kernel [H, 3, N, d]; theirs three of [H, H], or one of [3 H, H]."""
    hidden, inner = config.hidden_size, (3, config.num_heads, config.head_size)
    rows = 3 * hidden // len(theirs)

    def read(*arrays: Array) -> tuple[Array, ...]:
        return (np.concatenate(arrays).T.reshape(hidden, *inner),)

    def write(array: Array) -> tuple[Array, ...]:
        return tuple(np.split(array.reshape(hidden, 3 * hidden).T, len(theirs)))

    weights = tuple(f"{name}.weight" for name in theirs)
    yield _Entry((f"{ours}.query_key_value_kernel",), weights, ((rows, hidden),) * len(theirs), read, write)
    if config.biases:
        yield _Entry(
            (f"{ours}.query_key_value_bias",),
            tuple(f"{name}.bias" for name in theirs),
            ((rows,),) * len(theirs),
            lambda *arrays: (np.concatenate(arrays).reshape(inner),),
            lambda array: tuple(np.split(array.reshape(-1), len(theirs))),
        )


def _attention_output(config: EncoderConfig, ours: str, theirs: str) -> Iterator[_Entry]:
    hidden = config.hidden_size
    yield _Entry(
        (f"{ours}.output_kernel",),
        (f"{theirs}.weight",),
        ((hidden, hidden),),
        lambda array: (array.T.reshape(config.num_heads, config.head_size, hidden),),
        lambda array: (array.reshape(hidden, hidden).T,),
    )
    if config.biases:
        yield _same(f"{ours}.output_bias", f"{theirs}.bias", (hidden,))


def _gated(config: EncoderConfig, ours: str, theirs: str) -> Iterator[_Entry]:
    """Theirs holds the activated half and then the linear one; here they are two layers, so that devices can share each."""
    halves = (f"{ours}.mlp_in", f"{ours}.mlp_gate")
    yield _Entry(
        tuple(f"{half}.kernel" for half in halves),
        (f"{theirs}.weight",),
        ((2 * config.mlp_size, config.hidden_size),),
        lambda array: tuple(np.split(array.T, 2, axis=1)),
        lambda *arrays: (np.concatenate(arrays, axis=1).T,),
    )
    if config.biases:
        yield _Entry(
            tuple(f"{half}.bias" for half in halves),
            (f"{theirs}.bias",),
            ((2 * config.mlp_size,),),
            lambda array: tuple(np.split(array, 2)),
            lambda *arrays: (np.concatenate(arrays),),
        )


def _position_offset(values: Mapping[str, Any]) -> int:
    """Rows of the position table before that of the first token."""
    return _integer(values, "pad_token_id", 1) + 1 if values["model_type"] in _ROBERTA else 0


def _positions(values: Mapping[str, Any], config: EncoderConfig) -> _Entry:
    offset, hidden = _position_offset(values), config.hidden_size
    types = _integer(values, "type_vocab_size", _TOKEN_TYPES)

    def write(array: Array) -> tuple[Array, ...]:
        return np.pad(array, ((offset, 0), (0, 0))), np.zeros((types, hidden), np.float32)

    return _Entry(
        ("position_embedding",),
        ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"),
        ((config.max_length + offset, hidden), (types, hidden)),
        lambda positions, kinds: (positions[offset:] + kinds[0],),
        write,
    )


def _without_prefix(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """Names as the bare encoder has them; old files call a norm's weight and bias gamma and beta."""
    names = {}
    for name, array in arrays.items():
        bare = name.removeprefix(prefix)
        for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
            bare = bare.removesuffix(old) + new if bare.endswith(old) else bare
        names[bare] = array
    return names


def _read(entry: _Entry, found: Arrays, used: set[str], params: dict[str, Any]) -> None:
    used.update(entry.theirs)
    arrays = [_checked(found, name, shape) for name, shape in zip(entry.theirs, entry.shapes, strict=True)]
    for path, array in zip(entry.ours, entry.read(*arrays), strict=True):
        put(params, path, np.ascontiguousarray(array))


def _checked(found: Arrays, name: str, shape: tuple[int, ...]) -> Array:
    if name not in found:
        raise UnsupportedModelError(name, "the array is missing")
    if tuple(found[name].shape) != shape:
        raise UnsupportedModelError(name, f"got shape {list(found[name].shape)}, expected {list(shape)} by config.json")
    return np.asarray(found[name], np.float32)


def _check_tied(found: Arrays, model_type: str, table: Array) -> None:
    for name in _TIED_TABLE[model_type]:
        if name in found and not np.array_equal(_checked(found, name, table.shape), table):
            raise UnsupportedModelError(name, "it is not the token table; NewsEncoder's output table is tied to it")


def put(params: dict[str, Any], path: str, value: Any) -> None:
    """Sets the leaf at a path joined with dots."""
    *parents, name = path.split(".")
    for parent in parents:
        params = params.setdefault(parent, {})
    params[name] = value


def _leaf(params: Mapping[str, Any], path: str) -> Any:
    node: Any = params
    for name in path.split("."):
        node = node[name]
    return node


def _integer(values: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = values.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnsupportedModelError(name, f"got {value!r}, expected an integer")
    return value


def _only(values: Mapping[str, Any], name: str, expected: Any, *, default: Any) -> None:
    if values.get(name, default) != expected:
        raise UnsupportedModelError(name, f"got {values[name]!r}, expected {expected!r}; NewsEncoder computes nothing else")


def _activation(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name, "gelu")
    if value not in _ACTIVATIONS:
        raise UnsupportedModelError(name, f"got {value!r}, expected one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[value]
