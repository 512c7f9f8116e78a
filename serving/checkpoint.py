"""Reads a trained model from its folder: configuration, vocabulary and the parameters that embedding needs.

Two kinds of folder are read: MODEL_DIR as the trainer leaves it, and the output of ``newsembed export --format
safetensors``; see ``formats.model_folder``.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from ..formats.model_folder import ModelFolder
from ..formats.prompts import Prompts
from ..formats.weights import flatten
from ..models.encoders import Architecture, config_from_dict, named_kind
from .parameters import Params, matched, model_digest


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model ready to embed.

    Attributes:
      folder: where it was read from.
      config: its architecture.
      vocabulary_path: its ``vocab.txt``.
      params: nested dict of NumPy arrays; exactly those that ``embed`` reads, the other heads are left out.
      step: the checkpoint's step, -1 for fresh parameters, 0 where the folder does not say.
      digest: SHA-256 of configuration, vocabulary and parameters, 64 hex digits.
      text_length: tokens of the longest text that it learned to embed; the model's limit where the folder does not say.
      prompts: texts that it wants before documents and queries.
      long_documents: how it reads documents of more tokens, see `long_documents`; ``None`` where the folder does not
        say.
    """

    folder: str
    config: Architecture
    vocabulary_path: str
    params: Params
    step: int
    digest: str
    text_length: int
    prompts: Prompts = dataclasses.field(default_factory=Prompts)
    long_documents: str | None = None


def load_model(folder: str, step: int | None = None) -> Model:
    """Reads the model of ``folder``.

    Args:
      folder: MODEL_DIR of the trainer, or a safetensors export.
      step: which checkpoint; ``None`` takes the last one.

    Raises:
      InputError: if the folder, a file or the step is missing, the architecture is unknown, or the parameters are of
        another one.
    """
    config, vocabulary, text_length, prompts = read_description(folder)
    found, step, source = ModelFolder(folder).read_params(step)
    params = matched(found, _expected(config), source)
    digest, long_documents = _digest(config, vocabulary, params), _long_documents(folder)
    return Model(folder, config, vocabulary, params, step, digest, text_length, prompts, long_documents)


def fresh_model(folder: str, seed: int = 0) -> Model:
    """The architecture and vocabulary of ``folder`` with parameters drawn from ``seed``: the untrained baseline.

    Raises:
      InputError: as `load_model`, for the configuration and vocabulary.
    """
    import jax
    from flax import linen as nn

    config, vocabulary, text_length, prompts = read_description(folder)
    variables = _initializer(config)(jax.random.key(seed))
    params = jax.tree.map(np.asarray, nn.meta.unbox(variables["params"]))
    digest, long_documents = _digest(config, vocabulary, params), _long_documents(folder)
    return Model(folder, config, vocabulary, params, -1, digest, text_length, prompts, long_documents)


def read_description(folder: str) -> tuple[Architecture, str, int, Prompts]:
    """The architecture of a model folder, the path of its vocabulary, ``Model.text_length`` and ``Model.prompts``.

    Raises:
      InputError: if a file is missing, ``model.json`` describes no known architecture, or the vocabulary is not the one
        it names.
    """
    files = ModelFolder(folder)
    description = files.read_description()
    config = config_from_dict(description.encoder, description.kind, path=files.description_file)
    files.check_vocabulary(description)
    text_length = config.max_length if description.text_length is None else description.text_length
    return config, files.vocabulary_file, min(text_length, config.max_length), description.prompts


def _long_documents(folder: str) -> str | None:
    return ModelFolder(folder).read_description().long_documents


@functools.cache
def _initializer(config: Architecture) -> Any:
    """Compiled ``key -> variables`` of what ``embed`` reads."""
    import jax

    tokens = np.zeros((1, 2), np.int32)
    return jax.jit(lambda key: config.module().init(key, tokens, method="embed"))


def _expected(config: Architecture) -> dict[str, tuple[int, ...]]:
    """Shapes of what ``embed`` reads, by flat name."""
    import jax
    from flax import linen as nn

    variables = jax.eval_shape(_initializer(config), jax.random.key(0))
    return {name: tuple(spec.shape) for name, spec in flatten(nn.meta.unbox(variables["params"])).items()}


def _digest(config: Architecture, vocabulary_path: str, params: Params) -> str:
    return model_digest(config.to_dict(), named_kind(config), vocabulary_path, params)
