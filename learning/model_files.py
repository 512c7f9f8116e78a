"""The description of a run's model in its MODEL_DIR, written and compared."""

import dataclasses
from typing import Final

from ..errors import InputError
from ..formats.huggingface import Prompts
from ..formats.model_folder import ModelDescription, ModelFolder
from ..formats.vocabulary import VocabularyFile
from ..models.encoders import Architecture, config_from_dict, named_kind
from ..models.encoders.news import EncoderConfig

# The run files set these fields by macros; a key that nothing uses is an error, so the values must come by macros, too.
_MACROS: Final = {
    "num_topics": "NUM_TOPICS",
    "dropout_rate": "DROPOUT_RATE",
    "pooling": "POOLING",
    "lead_length": "LEAD_LENGTH",
    "sublinear": "SUBLINEAR",
}


def write_model_files(
    model_dir: str,
    config: Architecture,
    vocabulary: VocabularyFile,
    text_length: int | None,
    prompts: Prompts | None = None,
    long_documents: str | None = None,
) -> None:
    """Writes the description and the vocabulary, each as a whole or not at all.

    Args:
      model_dir: an existing folder.
      config: the architecture.
      vocabulary: copied; the description has its digest.
      text_length: how many tokens of a text are read unless told otherwise: those of the longest text that the model
        learned to embed, or what the run chose; None where it has learned none.
      prompts: of an imported model. Training puts none before its texts, so the model of a run has none.
      long_documents: how documents of more tokens are read, see ``serving.rows``; None: by their head.
    """
    description = ModelDescription(
        config.to_dict(), vocabulary.sha256, text_length, named_kind(config), prompts or Prompts(), long_documents
    )
    ModelFolder(model_dir).write_description(description, vocabulary.content, vocabulary.tokenizer)


def check_same_model(model_dir: str, config: Architecture, vocabulary: VocabularyFile) -> None:
    """Refuses a model folder of another model. A folder without a description passes.

    Raises:
      InputError: naming the first attribute that differs, or the vocabulary.
    """
    files = ModelFolder(model_dir)
    if not files.is_described:
        return
    path, remedy = files.description_file, f"Use the architecture and vocabulary of {model_dir}, or another folder."
    description = files.read_description()
    saved = config_from_dict(description.encoder, description.kind, path=path)
    if saved.kind != config.kind:
        problem = f"the checkpoint's model is a {saved.kind} architecture, this run's a {config.kind} one"
        raise InputError(problem, path=path, field="kind", remedy=remedy)
    for field in dataclasses.fields(config):
        theirs, ours = getattr(saved, field.name), getattr(config, field.name)
        if field.name not in config.free_options and theirs != ours:
            problem = f"the checkpoint's model has {theirs!r}, this run {ours!r}"
            raise InputError(problem, path=path, field=field.name, remedy=remedy)
    if description.vocabulary_sha256 != vocabulary.sha256:
        raise InputError(
            f"the checkpoint was trained with another vocabulary than {vocabulary.path}",
            path=path,
            field="vocabulary_sha256",
            remedy=remedy,
        )


def architecture_gin(config: Architecture) -> str:
    """The architecture as a gin file that follows a run file; number type and execution options stay the run's."""
    name, left_to_the_run = type(config).__name__, ("vocab_size", "dtype", *config.execution_options)
    lines = ["# The shape of an imported model; give it after the run file: --gin_file=runs/… --gin_file=this"]
    macros = _MACROS if type(config) is EncoderConfig else {}
    if not macros:  # the run files have the shape of an `EncoderConfig`
        lines.append(f"ModelOptions.architecture = @{name}")
    for field in dataclasses.fields(config):
        if field.name not in left_to_the_run:
            key = macros.get(field.name, f"{name}.{field.name}")
            lines.append(f"{key} = {getattr(config, field.name)!r}")
    return "\n".join(lines) + "\n"
