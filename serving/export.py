"""``newsembed export``: converts a trained model to a SavedModel, to safetensors or to a Hugging Face folder.

Example::

    newsembed export --model work/model --output work/saved
    newsembed export --model work/model@400 --format safetensors --output work/weights
    newsembed export --model work/model --precision int8 --output work/small
    newsembed export --model work/model --format huggingface --output work/huggingface

The SavedModel takes raw strings and needs only tensorflow and tensorflow-text. Signatures: ``serving_default`` (title,
body: string [b]) and ``text`` (text: string [b]), both to {"embedding": float32 [b, D]} of unit length. A model without
layers is in it a second time (in float32 only), as safetensors (``assets.extra/weights``), which newsembed reads
without TensorFlow. For other models, ``newsembed search`` lets JAX compute the parameters in TensorFlow's own file,
where JAX is installed, because TensorFlow takes longer to start. After writing, the SavedModel is read back in each of
these ways and compared with JAX. Where the model has prompts, these signatures put its prompt of documents before the
title (before the body, where the title is empty), and one more, ``query`` (text: string [b]), puts its prompt of
queries before the text.

An imported SentencePiece or byte-level tokenizer has no form in TensorFlow: such a model is exported with ``--inputs
tokens``. Its ``serving_default`` takes the ids of ``[CLS] title [SEP] body [SEP]`` (tokens: int32 [b, s], padded with
0, prompts included); the files of the tokenizer are in ``assets.extra/tokenizer``, and ``newsembed serve``, ``embed``
and ``evaluate`` use them.

``--precision int8`` stores each matrix and the token table as 8-bit integers with one scale for each output or row,
``float16`` (also for safetensors) halves them. The numbers are float32 again inside the graph. The command prints the
least cosine to the embeddings in float32 over sample texts, and refuses to write a model below 0.99 (float16: 0.9999).

The Hugging Face folder is for transformers and sentence-transformers:
``SentenceTransformer("work/huggingface").encode(texts)``. A model whose pooling depends on positions or copies
(`lead_length`, `sublinear`) has a module of its own, which the library runs with ``trust_remote_code=True``.
"""

import argparse
import dataclasses
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .. import __version__
from ..errors import InputError
from ..formats.digests import write_sums
from ..formats.model_folder import ModelFolder
from ..formats.saved_model import (
    TEXT_INPUTS,
    TOKEN_INPUTS,
    weights_folder,
    write_facts,
    write_places,
    write_vocabulary,
)
from ..formats.weights import flatten, unflatten
from ..formats.whole import check_output
from ..models.encoders import named_kind
from .checkpoint import Model, load_model
from .encoder import JaxEncoder
from .export_graph import text_module, token_module
from .huggingface import write_huggingface
from .long_documents import HEAD
from .model_card import write_card
from .precision import LEAST_COSINE, PRECISIONS, restored, stored
from .saved_model import SavedModelEncoder
from .specs import add_long_documents_argument, split_number
from .static import is_static

PLATFORMS: Final = ("cpu", "cuda", "tpu")
# The largest difference of a unit vector's components from JAX.
_TOLERANCE: Final = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 4e-3}
_SAMPLE: Final = (
    ("", "x"),
    ("Storm reaches the coast", ""),
    ("Ein Sturm erreicht die Küste", "Der Wind nahm am Abend zu. " * 3),
    ("Budget vote", "The house voted late. " * 400),  # longer than any limit
    ("", ""),
)


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
    least_cosine: float | None = None


def add_arguments(parser: argparse.ArgumentParser, *, with_model: bool = True) -> None:
    """Adds the options of ``newsembed export``; without ``--model`` for commands that name the model otherwise."""
    if with_model:
        parser.add_argument(
            "--model",
            required=True,
            metavar="DIR[@STEP]",
            help="a training folder; the last checkpoint unless a step is given",
        )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder to write; must not exist unless --overwrite"
    )
    parser.add_argument(
        "--format",
        choices=("savedmodel", "safetensors", "huggingface"),
        default="savedmodel",
        help="default: savedmodel",
    )
    parser.add_argument(
        "--max_length",
        type=int,
        metavar="TOKENS",
        help="savedmodel: tokens read of each document (default: as in training)",
    )
    parser.add_argument(
        "--platforms",
        default=",".join(PLATFORMS),
        metavar="LIST",
        help=f"savedmodel: of {','.join(PLATFORMS)} (default: all)",
    )
    parser.add_argument(
        "--inputs",
        choices=(TEXT_INPUTS, TOKEN_INPUTS),
        default=TEXT_INPUTS,
        help="savedmodel: what the signatures take, raw strings or ids (default: text)",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="numbers of the parameters; int8: savedmodel, float16: savedmodel and safetensors (default: float32)",
    )
    add_long_documents_argument(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace the output folder")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    folder, step = split_number(args.model)
    _check_precision(args.precision, args.format)
    common = {"step": step, "overwrite": args.overwrite}
    if args.format == "huggingface":
        report = export_huggingface(folder, args.output, **common)
    elif args.format == "safetensors":
        report = export_safetensors(folder, args.output, precision=args.precision, **common)
    else:
        platforms = tuple(args.platforms.split(","))
        report = export_saved_model(
            folder,
            args.output,
            platforms=platforms,
            inputs=args.inputs,
            precision=args.precision,
            max_length=args.max_length,
            long_documents=args.long_documents,
            **common,
        )
    compared = "" if report.max_difference is None else f", equal to JAX within {report.max_difference:.1e}"
    lost = "" if report.least_cosine is None else f", cosine to float32 at least {report.least_cosine:.5f}"
    print(f"step {report.step} exported, {report.bytes / 1e6:.1f} MB{compared}{lost}: {report.output}")
    where = {"savedmodel": ", in the SavedModel" if args.inputs == TEXT_INPUTS else ", outside of the SavedModel"}
    print(f"tokenizer: {report.tokenizer}{where.get(args.format, '')}")
    return 0


def export_saved_model(
    folder: str,
    output: str,
    *,
    step: int | None = None,
    platforms: Sequence[str] = PLATFORMS,
    inputs: str = TEXT_INPUTS,
    precision: str = "float32",
    overwrite: bool = False,
    **reading: Any,
) -> ExportReport:
    """Writes the model of ``folder`` as a SavedModel and compares it with JAX.

    Args:
      folder: MODEL_DIR or a safetensors export.
      output: folder to write; appears under its name only when it is whole and compared.
      step: which checkpoint, the last by default.
      platforms: what it can run on.
      inputs: "text" or "tokens": what its signatures take.
      precision: numbers of its parameters, see `precision`; it is compared with JAX on the same numbers.
      overwrite: replace ``output``.
      reading: ``max_length`` and ``long_documents`` of the `JaxEncoder`, which the SavedModel follows.

    Raises:
      InputError: on a model that cannot be read, an output that exists, a bad option, ``inputs`` "text" for a
        tokenizer that has no form in TensorFlow, or parameters that lose too much in this precision.
      RuntimeError: if the SavedModel differs from JAX by more than its number type explains.
    """
    _check_output(output, overwrite=overwrite)
    unknown = sorted(set(platforms) - set(PLATFORMS))
    if unknown or not platforms:
        raise InputError(
            f"got the platforms {list(platforms)}", field="--platforms", remedy=f"choose from {', '.join(PLATFORMS)}"
        )
    max_length = reading.get("max_length")
    if max_length is not None and max_length < 3:
        raise InputError(
            f"got {max_length}, expected at least 3",
            field="--max_length",
            remedy="leave room for [CLS], a token and [SEP]",
        )
    model = load_model(folder, step)
    arrays, rounded, least_cosine = _rounded(model, precision)
    encoder = JaxEncoder(rounded, **reading)
    if inputs == TEXT_INPUTS:
        encoder.vocabulary.check_graph()
    temporary = _temporary(output)
    _write_saved_model(encoder, arrays, temporary, tuple(platforms), inputs, precision)
    difference = _difference(encoder, temporary)
    if not difference <= _TOLERANCE[encoder.model.config.dtype]:
        raise RuntimeError(f"the SavedModel differs from JAX by {difference}; it was left at {temporary}")
    _publish(temporary, output)
    return ExportReport(output, encoder.model.step, _bytes(output), difference, encoder.tokenizer_name, least_cosine)


def export_safetensors(
    folder: str, output: str, *, step: int | None = None, precision: str = "float32", overwrite: bool = False
) -> ExportReport:
    """Writes the parameters that embedding needs as ``model.safetensors``, with ``model.json`` and ``vocab.txt``.

    ``load_encoder`` reads the folder back. Names are Flax's paths joined with dots, arrays are float32 or float16.

    Raises:
      InputError: as :func:`export_saved_model`, and for int8.
    """
    _check_precision(precision, "safetensors")
    _check_output(output, overwrite=overwrite)
    model = load_model(folder, step)
    temporary = _temporary(output)
    arrays, _, least_cosine = _rounded(model, precision)
    ModelFolder(temporary).write_export(ModelFolder(folder), unflatten(arrays), _metadata(model))
    _publish(temporary, output)
    return ExportReport(output, model.step, _bytes(output), None, _tokenizer_name(model), least_cosine)


def export_huggingface(folder: str, output: str, *, step: int | None = None, overwrite: bool = False) -> ExportReport:
    """Writes the model for `transformers` and `sentence_transformers`, see ``huggingface``, without its topic head.

    Raises:
      InputError: as :func:`export_saved_model`, and for an encoder that no class of `transformers` computes.
      RuntimeError: if the exported tokenizer differs from ours on sample texts.
    """
    _check_output(output, overwrite=overwrite)
    model = load_model(folder, step)
    temporary = _temporary(output)
    try:
        write_huggingface(model, temporary)
    except InputError:
        shutil.rmtree(temporary)
        raise
    write_card(temporary, model, os.path.basename(os.path.abspath(output)))
    _publish(temporary, output)
    return ExportReport(output, model.step, _bytes(output), None, _tokenizer_name(model))


def _tokenizer_name(model: Model) -> str:
    from ..tasks.vocabulary import Vocabulary

    return Vocabulary.load(model.vocabulary_path).tokenizer_name


def _check_precision(precision: str, form: str) -> None:
    """Refuses numbers that a format has no place for.

    Raises:
      InputError: naming the formats that have one.
    """
    fits = {"savedmodel": PRECISIONS, "safetensors": ("float32", "float16"), "huggingface": ("float32",)}[form]
    if precision not in fits:
        problem = f"got {precision}, the format {form} holds {' or '.join(fits)}"
        remedy = "Leave it out, or choose --format savedmodel."
        raise InputError(problem, field="--precision", remedy=remedy)


def _rounded(model: Model, precision: str) -> tuple[dict[str, Any], Model, float | None]:
    """The parameters as they are stored, the model that computes with them, and its least cosine to the given one.

    Raises:
      InputError: for parameters that this precision cannot hold, or embeddings that are too far from the given ones.
    """
    flat = flatten(model.params)
    if precision == "float32":
        return flat, model, None
    arrays = stored(flat, precision, path=model.folder)
    rounded = dataclasses.replace(model, params=unflatten(restored(arrays)), digest=f"{model.digest}-{precision}")
    before, after = (JaxEncoder(one).encode(*zip(*_SAMPLE, strict=True)) for one in (model, rounded))
    has_text = np.linalg.norm(before, axis=1) > 0  # some architectures have a zero for the empty text
    least = float(np.min(np.sum(before * after, axis=1)[has_text]))
    if not least >= LEAST_COSINE[precision]:
        problem = f"in {precision} an embedding has the cosine {least:.4f} to that in float32"
        remedy = "Export it in float32 or float16."
        raise InputError(problem, path=model.folder, field="--precision", remedy=remedy)
    return arrays, rounded, least


def _write_saved_model(
    encoder: JaxEncoder, arrays: Mapping[str, Any], output: str, platforms: tuple[str, ...], inputs: str, precision: str
) -> None:
    import tensorflow as tf

    takes_texts = inputs == TEXT_INPUTS
    module, signatures = (text_module if takes_texts else token_module)(encoder, arrays, platforms)
    tf.saved_model.save(module, output, signatures=signatures)
    model = encoder.model
    facts = {
        "digest": encoder.digest,
        "dimensions": encoder.dimensions,
        "max_length": encoder.max_length,
        "length_buckets": list(encoder.buckets),
        "step": model.step,
        "platforms": list(platforms),
        "signatures": list(signatures),
        "encoder": model.config.to_dict(),
        "versions": {"newsembed": __version__, "tensorflow": tf.__version__},
    }
    if encoder.long_documents != HEAD:
        facts["long_documents"] = encoder.long_documents
    if precision != "float32":
        facts["precision"] = precision
    if encoder.document_prompt or encoder.query_prompt:
        facts["prompts"] = {"document": encoder.document_prompt, "query": encoder.query_prompt}
    if not takes_texts:
        facts["inputs"] = inputs
    write_vocabulary(output, encoder.vocabulary.file())
    write_places(output, arrays)
    if encoder.vocabulary.tokenizer is not None:
        facts["tokenizer"] = encoder.tokenizer_name
    if _has_weights(encoder, inputs, precision):
        _write_weights(encoder, output)
    kind = named_kind(model.config)
    write_facts(output, facts if kind is None else {"kind": kind, **facts})


def _has_weights(encoder: JaxEncoder, inputs: str, precision: str) -> bool:
    """Whether the export holds the weights of a static model a second time.

    An imported tokenizer inside the graph is left out: TensorFlow's ids may differ from the library's for rare orders
    of characters, see `tasks.wordpiece_graph`. Numbers other than float32 are left out, too: only the graph makes them
    smaller.
    """
    if precision != "float32" or not is_static(encoder.model.folder):
        return False
    return encoder.vocabulary.tokenizer is None or inputs == TOKEN_INPUTS


def _write_weights(encoder: JaxEncoder, output: str) -> None:
    """Writes the weights and the vocabulary of a static model for readers without TensorFlow."""
    weights = ModelFolder(weights_folder(output))
    os.makedirs(weights.path)
    weights.write_export(ModelFolder(encoder.model.folder), encoder.model.params, _metadata(encoder.model))


def _metadata(model: Model) -> dict[str, str]:
    return {"format": "newsembed", "version": __version__, "step": str(model.step), "digest": model.digest}


def _difference(encoder: JaxEncoder, folder: str) -> float:
    titles, bodies = zip(*_SAMPLE, strict=True)
    difference = 0.0
    for light in (False, True):  # the graph, and what stands in for it: NumPy, or JAX for a few texts
        saved = SavedModelEncoder(folder, light=light, few_texts=light)
        difference = max(difference, np.abs(saved.encode(titles, bodies) - encoder.encode(titles, bodies)).max())
        if "prompts" in saved.facts:
            difference = max(difference, np.abs(saved.encode_queries(titles) - encoder.encode_queries(titles)).max())
    return float(difference)


def _check_output(output: str, *, overwrite: bool) -> None:
    if os.path.exists(output) and not overwrite:
        raise InputError(
            "exists already", path=output, field="--output", remedy="choose another folder or give --overwrite"
        )
    check_output(output, is_folder=True)


def _temporary(output: str) -> str:
    path = f"{output.rstrip('/')}.tmp"
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def _publish(temporary: str, output: str) -> None:
    write_sums(temporary)
    if os.path.exists(output):
        shutil.rmtree(output)
    os.replace(temporary, output)


def _bytes(folder: str) -> int:
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(folder) for name in names)
