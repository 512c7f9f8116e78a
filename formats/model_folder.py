"""A model folder (MODEL_DIR): description, vocabulary and checkpoints of a model, and the records of its training.

A model folder holds::

    config.gin                          the configuration in force, loadable with --gin_file
    model.json                          a `ModelDescription`
    vocab.txt                           the vocabulary, a copy
    tokenizer.json, tokenizer_ids.json  of models with an imported tokenizer, see `vocabulary`
    metrics.jsonl, events.out.tfevents… see `training.metrics`
    suspect-batch-<step>-<process>.json the batch that stopped the run, see `training.guards`
    checkpoints/<step>/params           Orbax PyTree: the model's parameters, nested dict of float32 arrays
    checkpoints/<step>/training         Orbax PyTree: {"step", "opt_state"}
    checkpoints/<step>/iterators        Orbax JSON: positions in the training data, {"state": str} or, where the
                                        processes' differ, {"states": [str, …]} in their order
    checkpoints/<step>/SHA256SUMS       digests of the files of this checkpoint
    SHA256SUMS                          that of model.json; those of all files of an imported model
    checkpoints/<step>/metrics          Orbax JSON: the evaluation of this step; absent without one
    damaged-checkpoints/<step>          a checkpoint that could not be read; delete it when you know why
    architecture.gin, import.json       of imported models: the architecture for gin, and where the model came from

A program that only needs the model reads `model.json`, `vocab.txt` and `params` of the largest step with orbax alone::

    path, checkpointer = f"{model_dir}/checkpoints/{step}/params", orbax.checkpoint.PyTreeCheckpointer()
    as_numpy = orbax.checkpoint.RestoreArgs(restore_type=numpy.ndarray)  # the devices it was saved from may not be here
    restore_args = jax.tree.map(lambda _: as_numpy, checkpointer.metadata(path).item_metadata.tree)
    checkpointer.restore(path, orbax.checkpoint.args.PyTreeRestore(restore_args=restore_args))

An exported folder has `model.safetensors` in place of the checkpoints: float32 arrays by their dotted names; or
`model.onnx`.
"""

import contextlib
import dataclasses
import functools
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import numpy as np

from ..errors import InputError, reading
from .arrays import Array, flatten, read_safetensors, write_safetensors
from .digests import SUMS, check_sums, damage, file_sha256, remove_sums, write_list, write_sums
from .files import is_object, read_json, write_whole
from .huggingface import CONFIG_FILE, MODULES_FILE, Prompts
from .manifest import has_manifest
from .trust import allow
from .vocabulary import VOCABULARY_FILE, TokenizerFiles, VocabularyFile, vocabulary_digest, vocabulary_names

DEFAULT_SIGNATURE: Final = "serving_default"  # (title, body: string [b]) -> {OUTPUT: float32 [b, D]}
TEXT_SIGNATURE: Final = "text"  # (text: string [b]) -> {OUTPUT: float32 [b, D]}
QUERY_SIGNATURE: Final = "query"  # as TEXT_SIGNATURE, with the prompt of queries; only of models with prompts
# An export of tokens has DEFAULT_SIGNATURE only: (tokens: int32 [b, s]) -> {OUTPUT: float32 [b, D]}
TOKENS: Final = "tokens"
TEXT_INPUTS, TOKEN_INPUTS = "text", "tokens"  # what the signatures take, the fact "inputs"
OUTPUT: Final = "embedding"

FORMAT_VERSION: Final = 2  # of the facts
_NEEDED_FACTS: Final = frozenset(
    ("format_version", "digest", "dimensions", "max_length", "length_buckets", "long_documents", "prompts", "inputs")
)
_GRAPH_FILE: Final = "saved_model.pb"
_FACTS_FILE: Final = "newsembed.json"
_TOKENIZER_FOLDER: Final = os.path.join("assets.extra", "tokenizer")  # TensorFlow's place for files of others
_GIVE_EXPORT: Final = "Give a folder that newsembed export wrote."


def graph_file(folder: str) -> str:
    """TensorFlow's file; a folder without it is not a SavedModel."""
    return os.path.join(folder, _GRAPH_FILE)


def vocabulary_file(folder: str) -> str:
    """The ``vocab.txt`` of an export; the files of its tokenizer are next to it."""
    return os.path.join(folder, _TOKENIZER_FOLDER, VOCABULARY_FILE)


def is_saved_model(folder: str) -> bool:
    """Whether a folder holds a SavedModel."""
    return os.path.exists(graph_file(folder))


def write_vocabulary(folder: str, vocabulary: VocabularyFile) -> None:
    """Writes the files of a vocabulary into an export, for readers that make tokens of texts."""
    for name, content in vocabulary.files.items():
        write_whole(os.path.join(folder, _TOKENIZER_FOLDER, name), content)


def write_facts(folder: str, facts: Mapping[str, Any]) -> None:
    """Writes the facts next to TensorFlow's files.

    Args:
      folder: of the SavedModel.
      facts: JSON values: digest, dimensions, max_length, length_buckets, step, platforms, signatures, encoder (the
        architecture) and its kind, None for the news encoder; prompts: added by the graph, or by the readers of an
        export that takes tokens; inputs, long_documents, precision, tokenizer and versions.
    """
    text = json.dumps({"format_version": FORMAT_VERSION, **facts}, indent=2)
    write_whole(os.path.join(folder, _FACTS_FILE), text.encode())


def read_facts(folder: str) -> dict[str, Any]:
    """What `write_facts` wrote.

    Raises:
      InputError: if the folder is not a SavedModel of newsembed, or the file is broken or of a later version.
    """
    if not is_saved_model(folder):
        raise InputError(f"no {_GRAPH_FILE}", path=folder, remedy=_GIVE_EXPORT)
    path = os.path.join(folder, _FACTS_FILE)
    facts: dict[str, Any] = read_json(path, _GIVE_EXPORT, dict)
    if missing := _NEEDED_FACTS - set(facts):
        raise InputError(f"lacks {', '.join(sorted(missing))}", path=path, remedy="Export the model again.")
    if facts["format_version"] != FORMAT_VERSION:
        problem = f"got an export of version {facts['format_version']}, expected {FORMAT_VERSION}"
        raise InputError(problem, path=path, field="format_version", remedy="Use a newer newsembed.")
    return facts


# The items of one checkpoint.
PARAMS: Final = "params"
TRAINING: Final = "training"
ITERATORS: Final = "iterators"
ONNX_FILE: Final = "model.onnx"  # of an export in ONNX

_DAMAGED_REMEDY: Final = "Choose another checkpoint, or restore the file from a copy."
_CHANGED_REMEDY: Final = f"Restore it from a copy; if you changed it yourself, delete {SUMS} beside it."
_REMEDY: Final = "Give a folder that newsembed train, lift or import-hf (--from minilm) wrote."


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """The content of ``model.json``.

    Attributes:
      encoder: the architecture as its ``to_dict`` gives it.
      vocabulary_sha256: hex digest of the vocabulary and its tokenizer, see `VocabularyFile.sha256`.
      text_length: tokens of a text that are read unless told otherwise; None where the model has learned to embed none.
      kind: of the architecture; None for the news encoder, see ``models.encoders.named_kind``.
      prompts: texts that embedding puts before documents and queries; most models have none.
      long_documents: how documents of more tokens are read, see ``serving.rows``; None: by their head.
    """

    encoder: Mapping[str, Any]
    vocabulary_sha256: str
    text_length: int | None = None
    kind: str | None = None
    prompts: Prompts = dataclasses.field(default_factory=Prompts)
    long_documents: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values, without those that are None."""
        values = {name: getattr(self, name) for name in _KINDS} | self.prompts.to_dict()
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], path: str) -> Self:
        """Inverse of `to_dict`; `path` is the file to name."""
        given = {name: values.get(name) for name in _KINDS}
        for name, kind in _KINDS.items():
            if not isinstance(given[name], kind):
                problem = f"got no model description: {given[name]!r} is a {type(given[name]).__name__}"
                raise InputError(problem, path=path, field=name, remedy=_REMEDY)
        return cls(**given, prompts=Prompts.from_dict(values, path))  # type: ignore[arg-type]  # checked


# The JSON values of a description.
_KINDS: Final[Mapping[str, Any]] = {
    "kind": str | None,
    "encoder": dict,
    "vocabulary_sha256": str,
    "text_length": int | None,
    "long_documents": str | None,
}


def _below(name: str) -> "functools.cached_property[str]":
    return functools.cached_property(lambda folder: os.path.join(folder.path, name))


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """The files of a model folder or a safetensors export.

    Attributes:
      path: the folder.
    """

    path: str

    description_file = _below("model.json")
    vocabulary_file = _below(VOCABULARY_FILE)
    config_file = _below("config.gin")
    metrics_file = _below("metrics.jsonl")
    architecture_file = _below("architecture.gin")
    safetensors_file = _below("model.safetensors")
    checkpoints = _below("checkpoints")
    damaged_checkpoints = _below("damaged-checkpoints")

    def checkpoint(self, step: int) -> str:
        """The folder of one checkpoint."""
        return os.path.join(self.checkpoints, str(step))

    def steps(self) -> list[int]:
        """The complete checkpoints, ascending; a folder without parameters was being written when its run died."""
        names = os.listdir(self.checkpoints) if os.path.isdir(self.checkpoints) else []
        return sorted(int(name) for name in names if name.isdigit() and is_checkpoint(self.checkpoint(int(name))))

    @property
    def is_described(self) -> bool:
        """Whether the folder has a description."""
        return os.path.exists(self.description_file)

    @property
    def is_huggingface(self) -> bool:
        """Whether the folder holds a model of Hugging Face and not one of ours."""
        names = (CONFIG_FILE, MODULES_FILE)
        return any(os.path.isfile(os.path.join(self.path, name)) for name in names) and not self.is_described

    @property
    def is_exported(self) -> bool:
        """Whether the folder is a safetensors export."""
        return os.path.exists(self.safetensors_file)

    def read_description(self) -> ModelDescription:
        """Reads ``model.json``.

        Raises:
          InputError: if it is missing, broken, or changed since it was written.
        """
        if not self.is_described:
            if self.is_huggingface:
                remedy = f"Convert it: newsembed import-hf --from {self.path} --output FOLDER"
                raise InputError("is a folder of Hugging Face", path=self.path, remedy=remedy)
            if is_saved_model(self.path):
                remedy = "Give it by --saved_model, or as savedmodel:FOLDER."
                raise InputError("is a SavedModel", path=self.path, remedy=remedy)
        path = self.description_file
        if problem := damage(self.path, [os.path.basename(path)]):
            raise InputError(problem, path=path, remedy=_CHANGED_REMEDY)
        return ModelDescription.from_dict(read_json(path, _REMEDY, dict), path)

    def write_description(
        self, description: ModelDescription, vocabulary: bytes, tokenizer: TokenizerFiles | None = None
    ) -> None:
        """Writes ``model.json``, ``vocab.txt`` and the files of an imported tokenizer, each as a whole or not at all.

        Args:
          description: of the model.
          vocabulary: the content of the vocabulary file.
          tokenizer: that makes its pieces; None for our own.
        """
        files = VocabularyFile(self.vocabulary_file, vocabulary, 0, tokenizer).files
        text = json.dumps(description.to_dict(), indent=2) + "\n"
        for name in set(vocabulary_names(self.vocabulary_file)) - set(files):
            os.remove(os.path.join(self.path, name))  # of another tokenizer
        for name, content in files.items():
            write_whole(os.path.join(self.path, name), content)
        remove_sums(self.path)
        write_whole(self.description_file, text.encode())
        write_list(self.path, {os.path.basename(self.description_file): file_sha256(self.description_file)})

    def check_vocabulary(self, description: ModelDescription) -> None:
        """Compares ``vocab.txt`` and its tokenizer with their digest in the description.

        Raises:
          InputError: if it is missing or another one.
        """
        path, expected = self.vocabulary_file, description.vocabulary_sha256
        found = vocabulary_digest(path)
        if found != expected:
            raise InputError(
                f"its SHA-256 is {found[:12]}…, {os.path.basename(self.description_file)} names {expected[:12]}…",
                path=path,
                remedy="Restore the model's own vocabulary.",
            )

    def read_params(self, step: int | None = None) -> tuple[dict[str, Array], int, str]:
        """The parameters by their dotted names, their step (0 for an export), and the file or folder to name in errors.

        Args:
          step: which checkpoint; None takes the last one.

        Raises:
          InputError: if there is no such checkpoint, it cannot be read, or it changed since it was written.
        """
        if self.is_exported:
            path = self.safetensors_file
            if step is not None:
                problem = "a safetensors export holds one step only"
                raise InputError(problem, path=path, field=f"step {step}", remedy="Leave the step out.")
            if problem := damage(self.path, [os.path.basename(path)]):
                raise InputError(f"no readable safetensors: {problem}", path=path, remedy=_DAMAGED_REMEDY)
            return read_safetensors(path), 0, path
        steps = self.steps()
        if step is None and steps:
            step = steps[-1]
        if step not in steps:
            problem = f"no checkpoint of step {step}" if steps else "no checkpoints"
            remedy = f"Choose one of {', '.join(map(str, steps))}." if steps else "Train the model until its first one."
            raise InputError(problem, path=self.checkpoints, remedy=remedy)
        path = os.path.join(self.checkpoint(step), PARAMS)
        check_sums(self.checkpoint(step), _DAMAGED_REMEDY, [PARAMS])
        # Flax's axis-name boxes are saved as one more level, {"value": array}.
        return {name.removesuffix(".value"): value for name, value in flatten(read_tree(path)).items()}, step, path

    def write_export(self, source: "ModelFolder", params: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        """Writes a safetensors export: description, vocabulary and tokenizer of `source`, and nested parameters."""
        write_safetensors(self.safetensors_file, flatten(params), metadata)
        self.write_texts(source)

    def write_texts(self, source: "ModelFolder") -> None:
        """Writes description, vocabulary and tokenizer of `source`."""
        shutil.copyfile(source.description_file, self.description_file)
        for name, path in vocabulary_names(source.vocabulary_file).items():
            shutil.copyfile(path, os.path.join(self.path, name))

    def write_import(self, params: Mapping[str, Any], architecture: str, origin: Mapping[str, Any]) -> None:
        """Writes the files of an imported model next to its description.

        Args:
          params: nested, float32; they become the checkpoint of step 0.
          architecture: gin text.
          origin: JSON values: where the model came from, and how its own tokenizer differs.
        """
        import orbax.checkpoint as ocp

        check_place(self.path, "--output")
        write_whole(self.architecture_file, architecture.encode())
        allow(self.architecture_file)
        text = json.dumps(origin, indent=2, ensure_ascii=False) + "\n"
        write_whole(os.path.join(self.path, "import.json"), text.encode())
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(os.path.abspath(os.path.join(self.checkpoint(0), PARAMS)), params)
        write_sums(self.checkpoint(0))
        write_sums(self.path)


def check_place(path: str, field: str) -> None:
    """Refuses a folder in which Orbax would write checkpoints that cannot be read, and the result of a job.

    Raises:
      InputError: for a path that Orbax takes for a pattern, or a folder with a manifest; a store is not asked.
    """
    if is_object(path):
        return
    if has_manifest(path):
        raise InputError("a job wrote this folder", path=path, field=field, remedy="name another one for the model")
    if found := " ".join(sorted(set("*?[") & set(os.path.abspath(path)))):
        problem = f"checkpoints are written below folders without {found} in their names only"
        raise InputError(problem, path=path, field=field, remedy="name another path; the result may be renamed")


def is_checkpoint(path: str) -> bool:
    """Whether a folder is one checkpoint."""
    return os.path.isdir(os.path.join(path, PARAMS))


def folder_of_checkpoint(path: str) -> ModelFolder:
    """The model folder of one checkpoint, ``<folder>/checkpoints/<step>``."""
    return ModelFolder(os.path.dirname(os.path.dirname(os.path.abspath(path))))


def read_tree(path: str) -> Any:
    """Returns a saved Orbax tree: dicts, lists and NumPy arrays, None for what has no arrays; any devices saved it.

    Raises:
      InputError: if it cannot be read.
    """
    import jax
    import orbax.checkpoint as ocp

    with (
        reading(path, "Choose another checkpoint; this one is broken.", OSError),
        _without_advice(),
        ocp.PyTreeCheckpointer() as checkpointer,
    ):
        metadata = checkpointer.metadata(os.path.abspath(path)).item_metadata
        if metadata is None:
            raise InputError("no Orbax metadata")
        # As NumPy: the sharding it was saved with may name devices that this machine lacks.
        restore_args = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), metadata.tree)
        return checkpointer.restore(os.path.abspath(path), ocp.args.PyTreeRestore(restore_args=restore_args))


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Leaves out Orbax's warning that the folder of the parameters is not that of a whole checkpoint."""
    logger = logging.getLogger("absl")
    is_shown = lambda record: "_CHECKPOINT_METADATA" not in record.getMessage()  # noqa: E731 - removed by identity
    logger.addFilter(is_shown)
    try:
        yield
    finally:
        logger.removeFilter(is_shown)
