"""Reads a trained model from its folder: configuration, vocabulary and the parameters that embedding needs.

Two kinds of folder are read: MODEL_DIR as the trainer leaves it (``model.json``, ``vocab.txt``, ``checkpoints/<step>/params`` by Orbax) and
the output of ``newsembed export --format safetensors`` (``model.json``, ``vocab.txt``, ``model.safetensors``).
"""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..models.encoders.news import EncoderConfig, NewsEncoder

MODEL_FILE: Final = "model.json"
VOCABULARY_FILE: Final = "vocab.txt"
CHECKPOINTS: Final = "checkpoints"
SAFETENSORS_FILE: Final = "model.safetensors"
_PARAMS_ITEM: Final = "params"
_REMEDY: Final = "give the folder that newsembed train wrote (MODEL_DIR)"

Params = Mapping[str, Any]  # nested dict of float32 arrays, as flax's ``apply({"params": ...})`` takes it


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model ready to embed.

    Attributes:
      folder: where it was read from.
      config: its architecture.
      vocabulary_path: its ``vocab.txt``.
      params: nested dict of NumPy arrays; exactly those that ``NewsEncoder.embed`` reads, the other heads are left out.
      step: the checkpoint's step, -1 for fresh parameters, 0 where the folder does not say.
      digest: SHA-256 of configuration, vocabulary and parameters, 64 hex digits.
      text_length: tokens of the longest text that it learned to embed; the model's limit where the folder does not say.
    """

    folder: str
    config: EncoderConfig
    vocabulary_path: str
    params: Params
    step: int
    digest: str
    text_length: int


def load_model(folder: str, step: int | None = None) -> Model:
    """Reads the model of ``folder``.

    Args:
      folder: MODEL_DIR of the trainer, or a safetensors export.
      step: which checkpoint; ``None`` takes the last one.

    Raises:
      InputError: if the folder, a file or the step is missing, or the parameters are of another architecture.
    """
    config, vocabulary, text_length = read_description(folder)
    safetensors = os.path.join(folder, SAFETENSORS_FILE)
    if os.path.exists(safetensors):
        if step is not None:
            raise InputError(
                "a safetensors export holds one step only",
                path=safetensors,
                field=f"step {step}",
                remedy="leave the step out",
            )
        found, step = _read_safetensors(safetensors), 0
        source = safetensors
    else:
        step = _choose_step(folder, step)
        source = os.path.join(folder, CHECKPOINTS, str(step), _PARAMS_ITEM)
        found = _read_orbax(source)
    params = _matched(found, _expected(config), source)
    return Model(folder, config, vocabulary, params, step, _digest(config, vocabulary, params), text_length)


def fresh_model(folder: str, seed: int = 0) -> Model:
    """The architecture and vocabulary of ``folder`` with parameters drawn from ``seed``: the untrained baseline.

    Raises:
      InputError: as :func:`load_model`, for the configuration and vocabulary.
    """
    import jax
    from flax import linen as nn

    config, vocabulary, text_length = read_description(folder)
    variables = _initializer(config)(jax.random.key(seed))
    params = jax.tree.map(np.asarray, nn.meta.unbox(variables["params"]))
    return Model(folder, config, vocabulary, params, -1, _digest(config, vocabulary, params), text_length)


def read_description(folder: str) -> tuple[EncoderConfig, str, int]:
    """The architecture in ``model.json``, the path of the vocabulary it belongs to, and ``Model.text_length``.

    Raises:
      InputError: if a file is missing, ``model.json`` describes no encoder, or the vocabulary is not the one it names.
    """
    path = os.path.join(folder, MODEL_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
        config = EncoderConfig.from_dict(description["encoder"])
        expected = description["vocabulary_sha256"]
        text_length = min(int(description.get("text_length", config.max_length)), config.max_length)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy=_REMEDY) from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"no model description: {type(error).__name__}: {error}", path=path, remedy=_REMEDY) from error
    vocabulary = os.path.join(folder, VOCABULARY_FILE)
    try:
        with open(vocabulary, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=vocabulary, remedy=_REMEDY) from error
    if found != expected:
        raise InputError(
            f"its SHA-256 is {found[:12]}…, {MODEL_FILE} names {expected[:12]}…",
            path=vocabulary,
            remedy="restore the model's own vocabulary",
        )
    return config, vocabulary, text_length


def flatten(params: Params, prefix: str = "") -> dict[str, Any]:
    """Leaves by path, joined with dots and sorted: ``{"layers_0.attention.output.bias": array, …}``."""
    flat: dict[str, Any] = {}
    for name in sorted(params):
        value = params[name]
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of :func:`flatten`."""
    params: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        node = params
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return params


@functools.cache
def _initializer(config: EncoderConfig) -> Any:
    """Compiled ``key -> variables`` of what ``embed`` reads."""
    import jax

    tokens = np.zeros((1, 2), np.int32)
    return jax.jit(lambda key: NewsEncoder(config).init(key, tokens, method="embed"))


def _choose_step(folder: str, step: int | None) -> int:
    root = os.path.join(folder, CHECKPOINTS)
    # A folder without the item is a checkpoint that was being written when the trainer died.
    names = os.listdir(root) if os.path.isdir(root) else []
    steps = sorted(
        int(name) for name in names if name.isdigit() and os.path.isdir(os.path.join(root, name, _PARAMS_ITEM))
    )
    if not steps:
        raise InputError("no checkpoints", path=root, remedy="train the model until its first checkpoint")
    if step is None:
        return steps[-1]
    if step not in steps:
        raise InputError(
            f"no checkpoint of step {step}", path=root, remedy=f"choose one of {', '.join(map(str, steps))}"
        )
    return step


def _read_orbax(path: str) -> dict[str, Any]:
    import jax
    import orbax.checkpoint as ocp

    remedy = "choose another checkpoint; this one is broken"
    try:
        with ocp.PyTreeCheckpointer() as checkpointer:
            metadata = checkpointer.metadata(os.path.abspath(path)).item_metadata
            if metadata is None:
                raise InputError("no Orbax metadata", path=path, remedy=remedy)
            # As NumPy: the sharding it was saved with may name devices that this machine lacks.
            restore_args = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), metadata.tree)
            restored = checkpointer.restore(os.path.abspath(path), ocp.args.PyTreeRestore(restore_args=restore_args))
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"no readable Orbax parameters: {error}", path=path, remedy=remedy) from error
    flat = flatten(restored)
    # Flax's axis-name boxes are saved as one more level, {"value": array}.
    return {name.removesuffix(".value"): value for name, value in flat.items()}


def _read_safetensors(path: str) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(f"no readable safetensors: {error}", path=path, remedy="export the model again") from error


def _expected(config: EncoderConfig) -> dict[str, Any]:
    """Shapes of what ``embed`` reads, by flat name."""
    import jax
    from flax import linen as nn

    variables = jax.eval_shape(_initializer(config), jax.random.key(0))
    return flatten(nn.meta.unbox(variables["params"]))


def _matched(found: Mapping[str, Any], expected: Mapping[str, Any], path: str) -> Params:
    """The parameters that ``embed`` reads as float32, or an error that names the first that differ."""
    remedy = "restore a checkpoint of the same architecture and vocabulary as model.json says"
    missing = [name for name in expected if name not in found]
    if missing:
        raise InputError(f"{len(missing)} parameters are missing: {', '.join(missing[:3])}", path=path, remedy=remedy)
    for name, spec in expected.items():
        if tuple(found[name].shape) != tuple(spec.shape):
            raise InputError(
                f"got shape {tuple(found[name].shape)}, expected {tuple(spec.shape)}: another architecture",
                path=path,
                field=name,
                remedy=remedy,
            )
    return unflatten({name: np.asarray(found[name], np.float32) for name in expected})


def _digest(config: EncoderConfig, vocabulary_path: str, params: Params) -> str:
    digest = hashlib.sha256(json.dumps(config.to_dict(), sort_keys=True).encode())
    with open(vocabulary_path, "rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    for name, value in flatten(params).items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
