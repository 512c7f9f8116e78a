"""Encoders of BERT's shape as graphs in ONNX, which OpenVINO computes faster on a CPU than JAX.

They may read windows, and have the lexical part of a hybrid, as the result of a lift does. The graph takes rows of
tokens of any length and has no compilation, so rows are padded to the longest of their batch only. It uses fused
operators for transformers (``com.microsoft``): Attention, SkipLayerNormalization, BiasGelu. ONNX Runtime knows them,
too.

OpenVINO multiplies matrices in bfloat16 where the CPU has instructions for it (AVX-512 BF16, AMX), else in float32. The
environment variable ``NEWSEMBED_FLOAT32=1`` keeps float32 everywhere.

Nothing here imports JAX.
"""

import dataclasses
import functools
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..errors import InputError
from ..errors import reading as reading_file
from ..formats.arrays import Array, flatten
from ..formats.digests import check_sums
from ..formats.imports import without
from ..formats.model_folder import ONNX_FILE, ModelFolder
from ..formats.vocabulary import PAD_ID
from ..models.architecture import Architecture
from ..models.transformer import HALF_LENGTH, TransformerConfig
from .interface import FloatArray, TokenizedEncoder
from .model import Model, described
from .rows import Planned, Row

# Its converter of models takes half of the time, and tells its makers of each import.
with without("openvino.tools.ovc"):
    import openvino

INPUT, OUTPUT = "tokens", "embedding"
_FLOAT32: Final = "NEWSEMBED_FLOAT32"  # environment variable
_OPSET: Final = 17
_IR_VERSION: Final = 9  # of that time: ONNX Runtime 1.15 and newer read it
_FUSED: Final = "com.microsoft"
_NORM_FLOOR: Final = 1e-12
_TOKENS_PER_BATCH: Final = 4_096
_LEAST_FILLED: Final = 0.8  # of each row of a batch: 32 queries take less than half the time of one batch
_LARGEST_BYTES: Final = 2**31 - 2**20  # of a graph in one file
_LARGE_BYTES: Final = 2**16  # of a constant that has a file of its own


def obstacle(config: Architecture) -> str | None:
    """Why the graph of a model cannot be written; None if it can."""
    if not isinstance(config, TransformerConfig):
        return f"the architecture is {config.kind!r}, the graph has encoders of BERT's shape"
    wanted: dict[str, Any] = {"norm": "post", "positions": "learned", "mlp": "dense", "activation": "gelu"}
    wanted |= {"biases": True, "dtype": "float32", "local_distance": 0}
    for name, value in wanted.items():
        if (found := getattr(config, name)) != value:
            return f"{name} is {found!r}, the graph has {value!r}"
    if config.pooling not in ("cls", "mean", "weighted"):
        return f"pooling is {config.pooling!r}, the graph has 'cls', 'mean' and 'weighted'"
    return None if config.num_layers else "it has no layers"


class Graph:
    """Nodes and constants of an ONNX graph, in the order in which they are added.

    Args:
      folder: gets a file for each large constant, which is then not in the graph; "" keeps all in it.
    """

    def __init__(self, folder: str = "") -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._folder = folder

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """The name of a new constant."""
        name, array = f"c{len(self._constants)}", np.asarray(value, dtype, order="C")
        if not self._folder or array.nbytes < _LARGE_BYTES:
            self._constants.append(numpy_helper.from_array(array, name))
            return name
        array.tofile(f"{self._folder}/{name}")
        place = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        place.data_location = TensorProto.EXTERNAL
        place.external_data.add(key="location", value=name)
        self._constants.append(place)
        return name

    def numbers(self, *values: int) -> list[str]:
        """The names of new constants of one whole number each, int64 [1]."""
        return [self.constant([value], np.int64) for value in values]

    def __getattr__(self, operator: str) -> Callable[..., str]:
        """What adds a node of an operator, such as ``graph.MatMul(one, two)``, see `_add`."""
        return functools.partial(self._add, operator)

    def _add(self, operator: str, *inputs: str, fused: bool = False, **attributes: Any) -> str:
        """The name of the output of a new node."""
        name = f"n{len(self._nodes)}"
        domain = {"domain": _FUSED} if fused else {}
        self._nodes.append(helper.make_node(operator, inputs, [name], **domain, **attributes))
        return name

    def model(self, output: str, dimensions: int) -> Any:
        """The whole model, which maps `INPUT`, int32 [b, s], to `OUTPUT`, float32 [b, D]."""
        self._nodes.append(helper.make_node("Identity", [output], [OUTPUT]))
        given = helper.make_tensor_value_info(INPUT, TensorProto.INT32, ["b", "s"])
        result = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["b", dimensions])
        graph = helper.make_graph(self._nodes, "newsembed", [given], [result], self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="newsembed")


def build(config: TransformerConfig, params: Mapping[str, Array], folder: str = "") -> Any:
    """The ONNX model of an encoder: the same function as ``embed`` of a `NewsEncoder` or `HybridEncoder`.

    Args:
      config: one without an `obstacle`.
      params: float32 by dotted name.
      folder: see :class:`Graph`.
    """
    graph = Graph(folder)
    tokens = INPUT
    if context := getattr(config, "context_length", 0):
        tokens = graph.Slice(tokens, *graph.numbers(0, context, 1))
    rows = tokens
    if config.window_length:
        tokens, rows = _windows(graph, tokens, config.position_count)
    hidden = _layers(graph, config, params, rows)
    if config.window_length:
        shape = graph.Concat(graph.Shape(tokens), graph.numbers(config.hidden_size)[0], axis=0)
        hidden = graph.Reshape(hidden, shape)
    if config.pooling == "cls":
        pooled = graph.Gather(hidden, graph.constant(0, np.int64), axis=1)
    else:
        weights = graph.Cast(_are_tokens(graph, tokens), to=TensorProto.FLOAT)
        if config.pooling == "weighted":
            own = _piece_weights(graph, config, params["pooling_logits"], tokens, config.lead_length, config.sublinear)
            weights = graph.Mul(weights, own)
        total = graph.ReduceSum(weights, graph.numbers(1)[0], keepdims=1)
        # A row of padding alone has no weight, and no length either.
        weights = graph.Div(weights, graph.Max(total, graph.constant(_NORM_FLOOR)))
        pooled = _weighted_sum(graph, weights, hidden)
    head = [graph.constant(params[f"embedding_head.{name}"]) for name in ("kernel", "bias")]
    vector = graph.Gemm(pooled, *head)
    if config.embedding_activation == "tanh":
        vector = graph.Tanh(vector)
    unit = _of_unit_length(graph, vector)
    if "lexical_table" in params:
        unit = _with_words(graph, config, params, unit)
    return graph.model(unit, config.embedding_size)


def _are_tokens(graph: Graph, tokens: str) -> str:
    return graph.Not(graph.Equal(tokens, graph.constant(PAD_ID, np.int32)))


def _of_unit_length(graph: Graph, vectors: str) -> str:
    norms = graph.ReduceL2(vectors, axes=[1], keepdims=1)
    return graph.Div(vectors, graph.Max(norms, graph.constant(_NORM_FLOOR)))


def _weighted_sum(graph: Graph, weights: str, vectors: str) -> str:
    """[b, s] and [b, s, H] -> [b, H]."""
    one = graph.numbers(1)[0]
    return graph.Squeeze(graph.MatMul(graph.Unsqueeze(weights, one), vectors), one)


def _windows(graph: Graph, tokens: str, window: int) -> tuple[str, str]:
    """The rows [b, s] padded to whole windows, and the windows as rows; a shorter row is one window of its length."""
    one, two = graph.numbers(1, 2)
    length = graph.Slice(graph.Shape(tokens), one, two)
    width = graph.Min(length, *graph.numbers(window))
    whole = graph.Div(graph.Sub(graph.Add(length, width), one), width)
    more = graph.Sub(graph.Mul(whole, width), length)
    before = graph.constant([0, 0, 0], np.int64)
    padded = graph.Pad(tokens, graph.Concat(before, more, axis=0), graph.constant(PAD_ID, np.int32))
    return padded, graph.Reshape(padded, graph.Concat(*graph.numbers(-1), width, axis=0))


def _piece_weights(
    graph: Graph, config: TransformerConfig, logits: Array, tokens: str, lead_length: int, is_sublinear: bool
) -> str:
    """What each piece counts, [b, s], also on padding; `models.attention.term_weights` defines it."""
    weights = graph.Gather(graph.constant(np.exp(logits)), tokens)
    places = np.arange(config.max_length + config.window_length)
    length = graph.Slice(graph.Shape(tokens), *graph.numbers(1, 2))
    shares = graph.constant(1 / (1 + places / lead_length) if lead_length else np.ones(len(places)))
    shares = graph.Slice(shares, *graph.numbers(0), length)
    if not is_sublinear:
        return graph.Mul(weights, shares)
    one, two = graph.numbers(1, 2)
    are_copies = graph.Equal(graph.Unsqueeze(tokens, one), graph.Unsqueeze(tokens, two))
    total = graph.MatMul(graph.Cast(are_copies, to=TensorProto.FLOAT), shares)
    together = graph.Div(graph.Log(graph.Add(total, graph.constant(1))), total)
    return graph.Mul(weights, graph.Mul(shares, together))


def _with_words(graph: Graph, config: TransformerConfig, params: Mapping[str, Array], dense: str) -> str:
    """The dense embedding and that of the words beside each other; `models.encoders.hybrid` defines the shares."""
    is_token = graph.Cast(_are_tokens(graph, INPUT), to=TensorProto.FLOAT)
    lead: int = config.lexical_lead_length  # type: ignore[attr-defined]  # of a HybridConfig, which imports JAX
    weights = _piece_weights(graph, config, params["lexical_logits"], INPUT, lead, is_sublinear=True)
    vectors = graph.Gather(graph.constant(params["lexical_table"]), INPUT)
    words = _of_unit_length(graph, _weighted_sum(graph, graph.Mul(weights, is_token), vectors))
    count = graph.ReduceSum(is_token, graph.numbers(1)[0], keepdims=1)
    most = graph.constant(1 / (1 + np.exp(-params["lexical_gate"])))
    share = graph.Mul(most, graph.Div(count, graph.Add(count, graph.constant(HALF_LENGTH))))
    rest = graph.Sub(graph.constant(1), share)
    parts = [graph.Mul(graph.Sqrt(one), part) for one, part in ((rest, dense), (share, words))]
    return graph.Concat(*parts, axis=1)


def _layers(graph: Graph, config: TransformerConfig, params: Mapping[str, Array], tokens: str) -> str:
    """The top vectors of the tokens of rows: [b, s] -> [b, s, H]."""
    zero, one, two = graph.numbers(0, 1, 2)
    length = graph.Slice(graph.Shape(tokens), one, two)
    places = graph.Slice(graph.constant(params["position_embedding"]), zero, length)
    pieces = graph.Gather(graph.constant(params["token_embedding"]), tokens)
    scale, bias = (graph.constant(params[f"input_norm.{part}"]) for part in ("scale", "bias"))
    summed = graph.Add(pieces, places)
    hidden = graph.LayerNormalization(summed, scale, bias, epsilon=config.layer_norm_epsilon)
    are_tokens = graph.Cast(_are_tokens(graph, tokens), to=TensorProto.INT32)
    counted = graph.ReduceSum(are_tokens, one, keepdims=0)
    lengths = graph.Max(counted, graph.constant(1, np.int32))  # attention over nothing has no meaning
    relative: list[str] = []
    if config.relative_buckets:
        table = graph.constant(_relative_bias(params["relative_bias"], config.position_count)[None])
        ends = graph.Concat(length, length, axis=0)
        axes = graph.constant([2, 3], np.int64)
        relative = ["", graph.Slice(table, graph.constant([0, 0], np.int64), ends, axes)]
    for number in range(config.num_layers):
        prefix = f"layers_{number}."
        own = {name.removeprefix(prefix): params[name] for name in params if name.startswith(prefix)}
        hidden = _block(graph, config, own, hidden, [lengths, *relative])
    return hidden


def _block(graph: Graph, config: TransformerConfig, own: Mapping[str, Array], hidden: str, seen: Sequence[str]) -> str:
    """One layer: [b, s, H] -> [b, s, H]. ``own`` has its parameters, ``seen`` the lengths and the relative bias."""
    size = config.hidden_size

    def matmul(states: str, kernel: Array) -> str:
        return graph.MatMul(states, graph.constant(kernel))

    def normalized(more: str, bias: Array, name: str) -> str:
        constants = [graph.constant(value) for value in (own[f"{name}.scale"], own[f"{name}.bias"], bias)]
        epsilon = config.layer_norm_epsilon
        return graph.SkipLayerNormalization(more, hidden, *constants, fused=True, epsilon=epsilon)

    projections = [
        graph.constant(own["attention.query_key_value_kernel"].reshape(size, -1)),
        graph.constant(own["attention.query_key_value_bias"].reshape(-1)),
    ]
    attended = graph.Attention(hidden, *projections, *seen, fused=True, num_heads=config.num_heads)
    mixed = matmul(attended, own["attention.output_kernel"].reshape(-1, size))
    hidden = normalized(mixed, own["attention.output_bias"], "attention_norm")
    inner = graph.BiasGelu(matmul(hidden, own["mlp_in.kernel"]), graph.constant(own["mlp_in.bias"]), fused=True)
    return normalized(matmul(inner, own["mlp_out.kernel"]), own["mlp_out.bias"], "mlp_norm")


def _relative_bias(table: Array, length: int) -> Array:
    """The bias of relative positions, float32 [N, L, L]; `models.attention.relative_bias` defines it."""
    from ..models.attention import bucket_starts  # imports JAX, which only such models need

    buckets, starts = table.shape[0], np.asarray(bucket_starts(table.shape[0]))
    offsets = np.arange(length)[None, :] - np.arange(length)[:, None]
    numbers = np.searchsorted(starts, np.abs(offsets), side="right") - 1 + np.where(offsets > 0, buckets // 2, 0)
    return np.transpose(table[numbers], (2, 0, 1))


def write(model: Model, folder: str) -> None:
    """Writes an export: the graph beside the description and the tokenizer of the model.

    Args:
      model: with its parameters.
      folder: exists.

    Raises:
      InputError: for an architecture that the graph does not have.
    """
    if problem := obstacle(model.config):
        remedy = "export it as savedmodel or safetensors"
        raise InputError(f"ONNX cannot hold it: {problem}", path=model.folder, field="--format", remedy=remedy)
    graph = build(model.config, flatten(model.params))
    onnx.helper.set_model_props(graph, {"digest": model.digest, "step": str(model.step)})
    # One file of protobuf holds 2 GB at most, so a larger graph has its arrays in a second file.
    is_large = graph.ByteSize() > _LARGEST_BYTES
    onnx.save(graph, f"{folder}/{ONNX_FILE}", save_as_external_data=is_large, location=f"{ONNX_FILE}.data")
    ModelFolder(folder).write_texts(ModelFolder(model.folder))


def read_export(folder: str, *, is_exact: bool = False, **reading: Any) -> "OnnxEncoder":
    """The encoder of a folder that `write` has written.

    Args:
      folder: of the export.
      is_exact: whether products are in float32 on every CPU.
      reading: see :class:`TokenizedEncoder`.

    Raises:
      InputError: if a file is missing or damaged.
    """
    check_sums(folder, "Export the model again.")
    # Of a hybrid the lexical part is in the graph alone.
    names = {field.name for field in dataclasses.fields(TransformerConfig)}
    with reading_file(ModelFolder(folder).description_file, "Export the model again, with this version of newsembed."):
        model = described(
            folder,
            lambda said, _: TransformerConfig.from_dict({name: said.encoder[name] for name in names & {*said.encoder}}),
        )
    path = f"{folder}/{ONNX_FILE}"
    # The errors of OpenVINO have no common class below Exception.
    with reading_file(path, "Export the model again.", Exception):
        graph = core().read_model(path)
        facts = {name: str(graph.get_rt_info(["framework", name]).value) for name in ("digest", "step")}
        model = dataclasses.replace(model, step=int(facts["step"]), digest=facts["digest"])
        computed = _compiled(graph, is_exact)
    return OnnxEncoder(model, computed, **reading)


def encoder_of(model: Model, **reading: Any) -> "OnnxEncoder | None":
    """The encoder of a model; None if the graph does not have the architecture.

    Args:
      model: with its parameters.
      reading: see :class:`TokenizedEncoder`.
    """
    if obstacle(model.config):
        return None
    with tempfile.TemporaryDirectory(prefix="newsembed-") as folder:
        onnx.save(build(model.config, flatten(model.params), folder), f"{folder}/{ONNX_FILE}")
        computed = _compiled(core().read_model(f"{folder}/{ONNX_FILE}"), is_exact=False)
    return OnnxEncoder(dataclasses.replace(model, params={}), computed, **reading)


@functools.cache
def core() -> Any:
    """OpenVINO, once for the process.

    Each of its cores has a stack for signal handlers and gives that of the core before back when it ends. If the one
    before has ended first, the next signal, such as SIGTERM, ends the process with SIGSEGV.
    """
    return openvino.Core()


def _compiled(graph: Any, is_exact: bool) -> Any:
    """What computes a graph."""
    options: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,  # threads of two processes would share a core, and leave another idle
        "CPU_RUNTIME_CACHE_CAPACITY": 200,  # kernels of a query's length save 3 ms; those of 1,500 shapes take 1.3 GB
    }
    if hasattr(os, "sched_getaffinity"):  # by itself it counts cores that this process may not use
        options["INFERENCE_NUM_THREADS"] = len(os.sched_getaffinity(0))
    if is_exact or os.environ.get(_FLOAT32):
        options["INFERENCE_PRECISION_HINT"] = "f32"
    return core().compile_model(graph, "CPU", options)


class OnnxEncoder(TokenizedEncoder):
    """A model as a `TextEncoder`, computed by OpenVINO on the CPU.

    Args:
      model: its parameters are not read.
      computed: the graph, compiled.
      reading: see :class:`TokenizedEncoder`.
    """

    def __init__(self, model: Model, computed: Any, **reading: Any) -> None:
        super().__init__(model, **reading)
        self._computed, self._lock = computed, threading.Lock()

    def encode_tokens(self, rows: Sequence[Row], *, are_queries: bool = False) -> FloatArray:  # noqa: ARG002
        """Embeds N rows of tokens as float32 ``[N, D]`` of length 1; queries cost the same."""
        return self._in_batches(rows, _plan(rows), self._embed)

    def _embed(self, tokens: Row) -> FloatArray:
        with self._lock:  # it computes one request at a time
            return np.asarray(self._computed([tokens])[OUTPUT])


def _plan(rows: Sequence[Row]) -> Iterator[Planned]:
    """Batches of similar length, the longest first: memory runs out at the start or never."""
    order, start = np.argsort([-len(row) for row in rows], kind="stable"), 0
    while start < len(order):
        longest = len(rows[order[start]])
        numbers = order[start : start + max(1, _TOKENS_PER_BATCH // longest)]
        numbers = numbers[[len(rows[number]) >= _LEAST_FILLED * longest for number in numbers]]
        yield numbers, (len(numbers), longest)
        start += len(numbers)
