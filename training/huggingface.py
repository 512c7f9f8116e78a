"""Models of Hugging Face with our order of tokens, and as the start of a run; no torch, no transformers.

The special tokens move to their ids in `formats.vocabulary`, the others follow in the folder's order; the folder's
tokenizer comes along, see `tasks.huggingface_tokenizer`.
"""

import dataclasses
from typing import Any, Final

import jax
import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.huggingface import HuggingFaceFolder
from ..formats.huggingface import read_huggingface as read_folder
from ..formats.vocabulary import VocabularyFile
from ..models.encoders import Architecture, Capability, EncoderConfig, require
from ..models.huggingface import import_model, reorder_tokens
from ..models.huggingface.interface import UnsupportedArrayError, UnsupportedModelError
from ..tasks.huggingface_tokenizer import import_vocabulary

# Fields that may differ between a folder and the run that starts from it.
_OF_HEADS: Final = str.split(
    "embedding_init embedding_size num_topics embedding_activation pooling lead_length sublinear"
)


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel:
    """A model read from a Hugging Face folder.

    Attributes:
      source: the folder.
      config: its architecture.
      params: nested dict of float32 arrays, tokens in our order. Heads that the folder lacks are missing, see
        `with_heads`.
      plain_heads: heads for those that are missing.
      order: int64 [V], the folder's id of each of our tokens.
      vocabulary: in our order, with the folder's tokenizer unless that is our own.
      ignored: names of arrays that have no counterpart in the architecture.
      differences: how ids for texts differ from those of the folder's libraries; a line each.
    """

    source: HuggingFaceFolder
    config: EncoderConfig
    params: dict[str, Any]
    plain_heads: dict[str, Any]
    order: npt.NDArray[np.int64]
    vocabulary: VocabularyFile
    ignored: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def text_length(self) -> int | None:
        """Tokens of a text that are read unless told otherwise; None where the folder does not say."""
        length = self.source.modules.text_length
        return None if length is None else min(length, self.config.max_length)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is different in the embeddings; a line each."""
        if self.source.modules.is_normalized:
            return ()
        return (
            "the folder has no module Normalize; our embeddings have length 1, so cosines stay and dot products change",
        )

    def with_heads(self) -> dict[str, Any]:
        """The parameters of a whole model."""
        return {**self.plain_heads, **self.params}


def read_huggingface(folder: str, *, num_topics: int = 600, max_length: int | None = None) -> HuggingFaceModel:
    """Reads the model of a folder that `transformers` or `sentence_transformers` saved.

    Args:
      folder: see `formats.huggingface`.
      num_topics: T.
      max_length: fewer positions than the folder has; None keeps them all.

    Raises:
      InputError: for a missing or broken file, a model that the architecture does not compute, an array that is missing
        or has another shape, or a tokenizer that `import_vocabulary` refuses.
    """
    source = read_folder(folder)
    try:
        config, params, plain_heads, ignored = import_model(
            source.config, source.arrays, source.modules, num_topics=num_topics, max_length=max_length
        )
    except UnsupportedModelError as error:
        is_array = isinstance(error, UnsupportedArrayError)
        path = source.weights_file if is_array else source.config_file
        remedy = "Save the model again, config.json with it." if is_array else "Bring a model of another architecture."
        raise InputError(error.problem, path=path, field=error.field, remedy=remedy) from error
    vocabulary = import_vocabulary(source, config.vocab_size)
    params, order = reorder_tokens(params, vocabulary.order), vocabulary.order
    return HuggingFaceModel(
        source, config, params, plain_heads, order, vocabulary.file, ignored, vocabulary.differences
    )


def initial_params(folder: str, config: Architecture, vocabulary: VocabularyFile, created: Any) -> Any:
    """The parameters that a run starts from where INITIAL_CHECKPOINT_PATH is a Hugging Face folder.

    Args:
      folder: see `read_huggingface`.
      config: the run's; must be the folder's architecture, except that the heads may have any size and positions may be
        fewer.
      vocabulary: the run's; must hold the folder's pieces in our order.
      created: the run's own parameters on the devices, drawn at random; heads that the folder lacks stay as they are.

    Returns:
      Parameters in the shapes and shardings of `created`.

    Raises:
      InputError: as `read_huggingface`, and for another architecture or vocabulary.
    """
    require(config, Capability.HUGGING_FACE, by="a start from a Hugging Face folder")
    model = read_huggingface(folder, num_topics=config.num_topics, max_length=config.max_length)
    _check_architecture(model, config)
    _check_vocabulary(model, vocabulary)

    def placed(mine: jax.Array, theirs: Any) -> jax.Array:
        return jax.device_put(np.asarray(theirs, np.float32), mine.sharding)

    # What differs in shape are heads: the architectures are the same.
    found = {
        name: value
        for name, value in model.params.items()
        if jax.tree.map(np.shape, value) == jax.tree.map(np.shape, created.get(name))
    }
    return {**created, **{name: jax.tree.map(placed, created[name], value) for name, value in found.items()}}


def _check_architecture(model: HuggingFaceModel, config: Architecture) -> None:
    left_out = (*model.config.free_options, *_OF_HEADS)
    for field in dataclasses.fields(config):
        if field.name in left_out:
            continue
        theirs, ours = getattr(model.config, field.name), getattr(config, field.name)
        if theirs != ours:
            raise InputError(
                f"the folder's model has {theirs!r}, this run {ours!r}",
                path=model.source.config_file,
                field=f"{type(config).__name__}.{field.name}",
                remedy="Take the architecture.gin that `newsembed import-hf` writes for this folder.",
            )


def _check_vocabulary(model: HuggingFaceModel, vocabulary: VocabularyFile) -> None:
    """Refuses another vocabulary or tokenizer; our own tokenizer may take the place of the folder's.

    Raises:
      InputError: naming the folder's tokenizer.
    """
    is_same = model.vocabulary.content == vocabulary.content
    if not is_same or (vocabulary.tokenizer is not None and vocabulary.sha256 != model.vocabulary.sha256):
        raise InputError(
            f"{vocabulary.path} is not this model's vocabulary with the special tokens first",
            path=model.source.vocabulary_file,
            field="VOCABULARY_PATH",
            remedy="Write it with `newsembed import-hf` and make the training data with it.",
        )
