"""``newsembed export``: converts a trained model to a SavedModel, to safetensors or to a Hugging Face folder.

Example::

    newsembed export --model work/model --output work/saved
    newsembed export --model work/model@400 --format safetensors --output work/weights
    newsembed export --model work/model --precision int8 --output work/small
    newsembed export --model work/model --format huggingface --output work/huggingface
    newsembed export --model work/minilm --format onnx --output work/fast

The SavedModel takes raw strings and needs only tensorflow and tensorflow-text. Signatures: ``serving_default`` (title,
body: string [b]) and ``text`` (text: string [b]), both to {"embedding": float32 [b, D]} of unit length. After writing,
it is read back and compared with JAX. Where the model has prompts, these signatures put its prompt of documents before
the title (before the body, where the title is empty), and one more, ``query`` (text: string [b]), puts its prompt of
queries before the text. A model without layers needs neither JAX nor TensorFlow as ``--format safetensors``.

An imported BPE tokenizer has no form in TensorFlow: such a model is exported with ``--inputs tokens``. Its
``serving_default`` takes the ids of ``[CLS] title [SEP] body [SEP]`` (tokens: int32 [b, s], padded with 0, prompts
included); the files of the tokenizer are in ``assets.extra/tokenizer``, and ``newsembed serve``, ``embed`` and
``evaluate`` use them.

``--format onnx`` is for models of BERT's shape on CPUs: OpenVINO computes ``--model work/fast`` without JAX and
without compilation. Its graph takes the ids of ``[CLS] title [SEP] body [SEP]`` (tokens: int32 [b, s], padded with 0)
to embedding: float32 [b, D] of unit length.

``--precision int8`` of a SavedModel stores each matrix and the token table as 8-bit integers with one scale for each
output or row, ``float16`` (also for safetensors) halves them. The numbers are float32 again inside the graph. The
command prints the least cosine to the embeddings in float32 over sample texts, and refuses to write a model below 0.99
(float16: 0.9999).

The Hugging Face folder is for transformers and sentence-transformers:
``SentenceTransformer("work/huggingface").encode(texts)``. A model whose pooling depends on positions or copies
(`lead_length`, `sublinear`) has a module of its own, which the library runs with ``trust_remote_code=True``.
"""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .. import __version__
from ..errors import InputError
from ..formats.arrays import flatten, unflatten
from ..formats.command_line import Options, option, required
from ..formats.digests import write_sums
from ..formats.files import write_whole
from ..formats.folders import check_output, written
from ..formats.model_folder import (
    DEFAULT_SIGNATURE,
    OUTPUT,
    QUERY_SIGNATURE,
    TEXT_INPUTS,
    TEXT_SIGNATURE,
    TOKEN_INPUTS,
    TOKENS,
    ModelFolder,
    write_facts,
    write_vocabulary,
)
from ..formats.remote import local_folder, uploaded
from ..formats.trust import allow
from ..formats.vocabulary import PAD_ID
from ..models.encoders import named_kind
from ..tasks.vocabulary import Vocabulary
from .encoder import JaxEncoder, load_model
from .huggingface import write_huggingface
from .model import LEAST_COSINE, PRECISIONS, Model, restored, stored
from .rows import HEAD, LONG_DOCUMENTS, tf_rows, tokens_read
from .saved_model import SavedModelEncoder
from .specs import split_number

PLATFORMS: Final = ("cpu", "cuda", "tpu")
# The numbers that each format has a place for.
_PRECISIONS: Final = {
    "savedmodel": PRECISIONS,
    "safetensors": ("float32", "float16"),
    "huggingface": ("float32",),
    "onnx": ("float32",),
}
# The largest difference of a unit vector's components from JAX.
_TOLERANCE: Final = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 4e-3}
_LARGEST_BATCH_BITS: Final = 20
_TITLES: Final = ("", "Storm reaches the coast", "Ein Sturm erreicht die Küste", "Budget vote", "")
_BODIES: Final = ("x", "", "Der Wind nahm am Abend zu. " * 3, "The house voted late. " * 400, "")  # beyond any limit


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportChoices(Options):
    """What an export is like."""

    format: str = option("savedmodel", "what to write", choices=tuple(_PRECISIONS))
    max_length: int | None = option(
        None, "savedmodel: tokens read of each document (default: as in training)", ge=3, metavar="TOKENS"
    )
    platforms: tuple[str, ...] = option(PLATFORMS, "savedmodel: where it can run", choices=PLATFORMS, metavar="LIST")
    inputs: str = option(
        TEXT_INPUTS,
        "savedmodel: what the signatures take, raw strings or ids",
        choices=(TEXT_INPUTS, TOKEN_INPUTS),
    )
    precision: str = option(
        "float32",
        "numbers of the parameters; int8: savedmodel, float16: savedmodel and safetensors",
        choices=PRECISIONS,
    )
    long_documents: str | None = option(
        None,
        "savedmodel: how it reads documents of more tokens (default: as model.json says, or head)",
        choices=LONG_DOCUMENTS,
    )
    overwrite: bool = option(False, "replace the output folder")

    def __post_init__(self) -> None:
        """Refuses numbers that the format has no place for, and a SavedModel that runs nowhere."""
        super().__post_init__()
        fits = _PRECISIONS[self.format]
        if self.precision not in fits:
            problem = f"got {self.precision}, the format {self.format} holds {' or '.join(fits)}"
            raise InputError(problem, field="--precision", remedy="Leave it out, or choose --format savedmodel.")
        if not self.platforms:
            raise InputError("got none", field="--platforms", remedy=f"choose from {', '.join(PLATFORMS)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions(ExportChoices):
    """Options of ``newsembed export``."""

    model: str = required("a training folder; the last checkpoint unless a step is given", metavar="DIR[@STEP]")
    output: str = required("folder to write; must not exist unless --overwrite", metavar="DIR")


OPTIONS: Final = ExportOptions
Exported = tuple[Any, dict[str, Any]]  # a tf.Module and its signatures


@dataclasses.dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export.

    Attributes:
      output: the folder.
      step: of the checkpoint.
      bytes: size of all files.
      max_difference: largest absolute difference from JAX over sample texts; ``None`` for formats that hold the
        numbers unchanged.
      tokenizer: what cuts the texts, in words.
      least_cosine: of an embedding to that in float32 over sample texts; ``None`` where the numbers are float32.
    """

    output: str
    step: int
    bytes: int
    max_difference: float | None
    tokenizer: str
    least_cosine: float | None


def run(options: ExportOptions) -> int:
    """Runs the command."""
    with uploaded(options.output, overwrite=options.overwrite) as output:
        print(f"exporting {options.model} as {options.format}", file=sys.stderr)
        report = export(dataclasses.replace(options, output=output))
    compared = "" if report.max_difference is None else f", equal to JAX within {report.max_difference:.1e}"
    lost = "" if report.least_cosine is None else f", cosine to float32 at least {report.least_cosine:.5f}"
    print(f"step {report.step} exported, {report.bytes / 1e6:.1f} MB{compared}{lost}: {options.output}")
    where = {"savedmodel": ", in the SavedModel" if options.inputs == TEXT_INPUTS else ", outside of the SavedModel"}
    print(f"tokenizer: {report.tokenizer}{where.get(options.format, '')}")
    return 0


def export(options: ExportOptions) -> ExportReport:
    """Writes a model; the output appears under its name only when it is whole and compared.

    A safetensors export holds ``model.safetensors`` (names are Flax's paths joined with dots, arrays are float32 or
    float16), ``model.json`` and ``vocab.txt``; ``load_encoder`` reads it back.

    Raises:
      InputError: on a model that cannot be read, an output that exists, ``inputs`` "text" for a tokenizer that has no
        form in TensorFlow, parameters that lose too much in this precision, or an encoder that no class of
        `transformers` computes.
      RuntimeError: if the SavedModel differs from JAX by more than its number type explains, or the exported tokenizer
        differs from ours on sample texts.
    """
    output = options.output
    path, step = split_number(options.model)
    place: Any = {"overwrite": options.overwrite, "inputs": (path,)}
    check_output(output, **place)  # before the model is read
    folder = local_folder(path, step)
    model = load_model(folder, step)
    arrays, rounded, least_cosine = _rounded(model, options.precision)
    difference = None
    with written(output, **place) as temporary:
        if options.format == "huggingface":
            write_huggingface(model, temporary, os.path.basename(os.path.abspath(output)))
        elif options.format == "safetensors":
            facts = {"format": "newsembed", "version": __version__, "step": str(model.step), "digest": model.digest}
            ModelFolder(temporary).write_export(ModelFolder(folder), unflatten(arrays), facts)
        elif options.format == "onnx":
            difference = _write_onnx(model, temporary)
        else:
            encoder = JaxEncoder(rounded, max_length=options.max_length, long_documents=options.long_documents)
            difference = _write_saved_model(encoder, arrays, temporary, options)
        if options.format != "onnx":
            write_sums(temporary)
    allow(output)
    size = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(output) for name in names)
    tokenizer = Vocabulary.load(model.vocabulary_path).tokenizer_name
    return ExportReport(output, model.step, size, difference, tokenizer, least_cosine)


def _write_onnx(model: Model, folder: str) -> float:
    """Writes an export in ONNX; returns its largest difference from JAX in float32."""
    from .onnx_engine import read_export, write

    write(model, folder)
    write_sums(folder)
    encoders = JaxEncoder(model), read_export(folder, is_exact=True)
    ours, theirs = (encoder.encode(_TITLES, _BODIES) for encoder in encoders)
    difference = float(np.abs(ours - theirs).max())
    if not difference <= _TOLERANCE[model.config.dtype]:
        raise RuntimeError(f"the graph differs from JAX by {difference}; nothing was written")
    return difference


def _rounded(model: Model, precision: str) -> tuple[dict[str, Any], Model, float | None]:
    """The parameters as they are stored, the model that computes with them, and its least cosine to the given one."""
    flat = flatten(model.params)
    if precision == "float32":
        return flat, model, None
    arrays = stored(flat, precision, path=model.folder)
    rounded = dataclasses.replace(model, params=unflatten(restored(arrays)), digest=f"{model.digest}-{precision}")
    before, after = (JaxEncoder(one).encode(_TITLES, _BODIES) for one in (model, rounded))
    has_text = np.linalg.norm(before, axis=1) > 0  # some architectures have a zero for the empty text
    least = float(np.min(np.sum(before * after, axis=1)[has_text]))
    if not least >= (bound := LEAST_COSINE[precision]):
        problem = f"an embedding has the cosine {least:.4f} to that in float32, less than {bound}"
        raise InputError(problem, path=model.folder, field="--precision", remedy="Export it in float32.")
    return arrays, rounded, least


def _write_saved_model(encoder: JaxEncoder, arrays: Mapping[str, Any], output: str, options: ExportOptions) -> float:
    """Writes a SavedModel; returns the largest difference of an embedding of a sample text, or a query, from JAX."""
    import tensorflow as tf

    takes_texts = options.inputs == TEXT_INPUTS
    if takes_texts:
        encoder.vocabulary.check_graph()
    module, signatures = (text_module if takes_texts else token_module)(encoder, arrays, options.platforms)
    tf.saved_model.save(module, output, signatures=signatures)
    _without_random_name(os.path.join(output, "fingerprint.pb"))
    write_vocabulary(output, encoder.vocabulary.file())
    facts = {
        "digest": encoder.digest,
        "dimensions": encoder.dimensions,
        "max_length": encoder.max_length,
        "length_buckets": list(encoder.buckets),
        "long_documents": encoder.long_documents,
        "prompts": {"document": encoder.document_prompt, "query": encoder.query_prompt},
        "inputs": options.inputs,
        "precision": options.precision,
        "tokenizer": encoder.tokenizer_name,
        "step": encoder.model.step,
        "platforms": list(options.platforms),
        "signatures": list(signatures),
        "kind": named_kind(encoder.model.config),
        "encoder": encoder.model.config.to_dict(),
        "versions": {"newsembed": __version__, "tensorflow": tf.__version__},
    }
    write_facts(output, facts)
    saved = SavedModelEncoder(output)
    documents = saved.encode(_TITLES, _BODIES) - encoder.encode(_TITLES, _BODIES)
    queries = saved.encode_queries(_TITLES) - encoder.encode_queries(_TITLES)
    difference = float(np.abs([documents, queries]).max())  # NaN, where one is
    if not difference <= _TOLERANCE[encoder.model.config.dtype]:
        raise RuntimeError(f"the SavedModel differs from JAX by {difference}; nothing was written")
    return difference


def _without_random_name(path: str) -> None:
    """Takes the random name out of TensorFlow's fingerprint, so that equal models give equal bytes."""
    from tensorflow.core.protobuf.fingerprint_pb2 import FingerprintDef

    with open(path, "rb") as file:
        fingerprint = FingerprintDef.FromString(file.read())
    fingerprint.ClearField("uuid")
    write_whole(path, fingerprint.SerializeToString(deterministic=True))


def text_module(encoder: JaxEncoder, arrays: Mapping[str, Any], platforms: tuple[str, ...]) -> Exported:
    """The tf.Module with the parameters as variables, and its signatures."""
    import tensorflow as tf

    module, embed = _module(encoder, arrays, platforms)
    module.tokenizer = encoder.vocabulary.graph_resources
    strings = tf.TensorSpec([None], tf.string)

    def embedding(title: Any, body: Any) -> dict[str, Any]:
        """Embeds texts with the prompt before the title, or before the body where there is no title."""
        if encoder.document_prompt:
            prompt, has_title = tf.constant(encoder.document_prompt), tf.strings.length(title) > 0
            title, body = tf.where(has_title, prompt + title, title), tf.where(has_title, body, prompt + body)
        return embedding_as_is(title, body)

    def embedding_as_is(title: Any, body: Any) -> dict[str, Any]:
        """Embeds texts without a prompt; a document of several rows is their weighted mean."""
        how, length = encoder.long_documents, encoder.max_length
        ragged = encoder.vocabulary.tf_encode_documents(title, body, tokens_read(how, length))
        if how == HEAD:
            return {OUTPUT: embed(_bucketed(ragged, encoder.buckets))[: ragged.nrows()]}
        rows, owners, weights = tf_rows(ragged, length)
        vectors = embed(_bucketed(rows, encoder.buckets))[: rows.nrows()]
        sums = tf.math.segment_sum(vectors * weights[:, None], owners)
        return {OUTPUT: tf.math.l2_normalize(sums, axis=1, epsilon=1e-24)}

    @tf.function(input_signature=[strings, strings], autograph=False)
    def from_parts(title: Any, body: Any) -> dict[str, Any]:
        checked = tf.debugging.assert_equal(tf.shape(title), tf.shape(body), "as many titles as bodies")
        with tf.control_dependencies([checked]):
            return embedding(tf.identity(title), body)

    @tf.function(input_signature=[strings], autograph=False)
    def from_text(text: Any) -> dict[str, Any]:
        return embedding(tf.zeros_like(text), text)

    module.from_parts, module.from_text = from_parts, from_text
    signatures = {DEFAULT_SIGNATURE: from_parts, TEXT_SIGNATURE: from_text}
    if encoder.document_prompt or encoder.query_prompt:

        @tf.function(input_signature=[strings], autograph=False)
        def from_query(text: Any) -> dict[str, Any]:
            return embedding_as_is(tf.constant(encoder.query_prompt) + text, tf.zeros_like(text))

        module.from_query = signatures[QUERY_SIGNATURE] = from_query
    return module, signatures


def token_module(encoder: JaxEncoder, arrays: Mapping[str, Any], platforms: tuple[str, ...]) -> Exported:
    """The tf.Module whose signature takes tokens, int32 [b, s] with s up to the encoder's length."""
    import tensorflow as tf

    module, embed = _module(encoder, arrays, platforms)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, TOKENS)], autograph=False)
    def from_tokens(tokens: Any) -> dict[str, Any]:
        return {OUTPUT: embed(tokens)}

    module.from_tokens = from_tokens
    return module, {DEFAULT_SIGNATURE: from_tokens}


def _module(encoder: JaxEncoder, arrays: Mapping[str, Any], platforms: tuple[str, ...]) -> tuple[Any, Any]:
    """A tf.Module with the parameters, and ``tokens int32 [b, s] -> float32 [b, D]`` with them in TensorFlow.

    b is any number, s any number up to the encoder's length.
    """
    import tensorflow as tf
    from jax.experimental import jax2tf

    # One program for all platforms: kernels of a single platform cannot be in it.
    flax_module = encoder.model.config.portable().module()

    def embed(params: Mapping[str, Any], tokens: Any) -> Any:
        return flax_module.apply({"params": unflatten(restored(params))}, tokens, method="embed")

    converted = jax2tf.convert(
        embed,
        polymorphic_shapes=[None, "(b, s)"],
        polymorphic_constraints=[f"s <= {encoder.max_length}"],
        with_gradient=False,
        native_serialization_platforms=platforms,
    )
    module = tf.Module()
    # Variables, not constants: a protocol buffer holds at most 2 GB, and a table of 500 000 words alone takes 1.5 GB.
    module.params = {name: tf.Variable(value, trainable=False, name=name) for name, value in arrays.items()}

    def with_parameters(tokens: Any) -> Any:
        with _without_source_lines():
            return converted(module.params, tokens)

    return module, with_parameters


@contextlib.contextmanager
def _without_source_lines() -> Iterator[None]:
    """Keeps the paths and lines of this code out of compiled programs: they differ from one installation to another."""
    import jax

    name = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, name)
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)


def _bucketed(ragged: Any, lengths: Sequence[int]) -> Any:
    """Pads to one of ``lengths`` and a power of two of rows, because each shape takes a second or more to compile."""
    import tensorflow as tf

    longest = tf.reduce_max(tf.concat([ragged.row_lengths(), [1]], 0))
    width = tf.gather(tf.constant(lengths, tf.int64), tf.searchsorted(tf.constant(lengths, tf.int64), longest[None]))[0]
    sizes = tf.constant([1 << bits for bits in range(_LARGEST_BATCH_BITS + 1)], tf.int64)
    rows = ragged.nrows(tf.int64)
    height = tf.gather(sizes, tf.searchsorted(sizes, rows[None]))[0]
    tokens = ragged.to_tensor(default_value=PAD_ID, shape=[None, None])
    missing = tf.stack([height, width]) - tf.shape(tokens, tf.int64)
    return tf.pad(tokens, tf.stack([tf.zeros_like(missing), missing], 1), constant_values=PAD_ID)
