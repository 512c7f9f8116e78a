"""A model as its folder holds it, and its parameters: compared with the architecture, and stored in fewer bits.

Only what an export stores has fewer bits: float16, or int8 with one scale for each row of a table or each output of a
matrix. The numbers become float32 again before they are used, so activations and the time of the layers stay as they
are. Weight-only quantisation with symmetric scales: Jacob et al. 2018, "Quantization and Training of Neural Networks
for Efficient Integer-Arithmetic-Only Inference", section 2, without their zero points.

Nothing here imports JAX: a static model is computed without it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Self

import numpy as np

from ..errors import InputError
from ..formats.arrays import Array, flatten, unflatten
from ..formats.huggingface import Prompts
from ..formats.model_folder import ModelDescription, ModelFolder
from ..formats.vocabulary import vocabulary_digest

PRECISIONS: Final = ("float32", "float16", "int8")
# The least cosine of an embedding to that in float32 on the sample texts of an export.
LEAST_COSINE: Final = {"float16": 0.9999, "int8": 0.99}
# In a lift, the head subtracts the archive's mean. The difference is small, so its rounding errors would be large.
_HEAD: Final = "embedding_head."
_SCALE: Final = ".scale"  # after the name of an int8 array
_LARGEST: Final = 127
_LARGEST_HALF: Final = float(np.finfo(np.float16).max)

Params = Mapping[str, Any]  # nested dict of float32 arrays, as flax's ``apply({"params": ...})`` takes it


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model ready to embed.

    Attributes:
      folder: where it was read from.
      config: its architecture, a ``models.encoders.Architecture``.
      vocabulary_path: its ``vocab.txt``.
      text_length: tokens of the longest text that it learned to embed; the model's limit where the folder does not say.
      prompts: texts that it wants before documents and queries.
      long_documents: how it reads documents of more tokens, see `rows`; ``None`` where the folder does not say.
      params: nested dict of NumPy arrays; exactly those that ``embed`` reads, the other heads are left out.
      step: the checkpoint's step, -1 for fresh parameters, 0 where the folder does not say.
      digest: SHA-256 of configuration, vocabulary and parameters, 64 hex digits.
    """

    folder: str
    config: Any
    vocabulary_path: str
    text_length: int
    prompts: Prompts = dataclasses.field(default_factory=Prompts)
    long_documents: str | None = None
    params: Params = dataclasses.field(default_factory=dict)
    step: int = -1
    digest: str = ""

    def with_params(self, params: Params, step: int, kind: str | None) -> Self:
        """The model with its parameters, nested, of a step; `kind` is that of the architecture, see `model_digest`."""
        digest = model_digest(self.config.to_dict(), kind, self.vocabulary_path, params)
        return dataclasses.replace(self, params=params, step=step, digest=digest)


def described(folder: str, config_of: Callable[[ModelDescription, str], Any]) -> Model:
    """The model of a folder without its parameters.

    Args:
      folder: of the model.
      config_of: gives the architecture of a description; the second argument is the file to name in errors.

    Raises:
      InputError: if a file is missing or broken, or the vocabulary is not the one that the description names.
    """
    files = ModelFolder(folder)
    said = files.read_description()
    config = config_of(said, files.description_file)
    files.check_vocabulary(said)
    length = config.max_length if said.text_length is None else min(said.text_length, config.max_length)
    return Model(folder, config, files.vocabulary_file, length, said.prompts, said.long_documents)


def matched(
    found: Mapping[str, Any],
    expected: Mapping[str, tuple[int, ...]],
    path: str,
    heads: Callable[[], Collection[str]] = tuple,
) -> Params:
    """The parameters that ``embed`` reads as float32, nested.

    Args:
      found: arrays by dotted name.
      expected: the shapes of those that are read.
      path: the file to name in errors.
      heads: gives the names of those that the architecture has besides; called if there are others than expected.

    Raises:
      InputError: for parameters that are missing, have another shape, or are not of the architecture.
    """
    remedy = "Restore a checkpoint of the architecture and vocabulary that model.json describes."
    missing = [name for name in expected if name not in found]
    if missing:
        raise InputError(f"{len(missing)} parameters are missing: {', '.join(missing[:3])}", path=path, remedy=remedy)
    surplus = sorted(set(found) - set(expected))
    if surplus := surplus and sorted(set(surplus) - set(heads())):
        problem = f"{len(surplus)} parameters are not of the architecture: {', '.join(surplus[:3])}"
        raise InputError(problem, path=path, remedy=remedy)
    for name, shape in expected.items():
        if tuple(found[name].shape) != shape:
            problem = f"got shape {tuple(found[name].shape)}, expected {shape}: another architecture"
            raise InputError(problem, path=path, field=name, remedy=remedy)
    return unflatten({name: np.asarray(found[name], np.float32) for name in expected})


def model_digest(encoder: Mapping[str, Any], kind: str | None, vocabulary_path: str, params: Params) -> str:
    """SHA-256 of configuration, vocabulary and parameters, 64 hex digits.

    Args:
      encoder: the configuration as its ``to_dict`` gives it.
      kind: of the architecture; None for the news encoder.
      vocabulary_path: ``vocab.txt``.
      params: nested.
    """
    identity = encoder if kind is None else {"kind": kind, **encoder}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
    digest.update(bytes.fromhex(vocabulary_digest(vocabulary_path)))
    for name, value in flatten(params).items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def stored(params: Mapping[str, Array], precision: str, *, path: str) -> dict[str, Array]:
    """Parameters as an export holds them.

    Args:
      params: float32 arrays by their dotted names.
      precision: one of `PRECISIONS`. With int8, arrays with fewer than two dimensions and the head stay float32.
      path: of the model, to name in errors.

    Returns:
      Arrays by name; for each int8 array another one, float32, with its scales.

    Raises:
      InputError: if a value is too large for float16, or not finite.
    """
    result = {}
    for name, value in params.items():
        if precision != "float32" and not np.isfinite(value).all():
            raise InputError("holds NaN or infinity", path=path, field=name, remedy="Export another checkpoint.")
        if precision == "float16":
            largest = float(np.max(np.abs(value), initial=0.0))
            if largest > _LARGEST_HALF:
                problem = f"got the value {largest:.3g}, the largest float16 is {_LARGEST_HALF:.0f}"
                raise InputError(problem, path=path, field=name, remedy="Export with --precision float32 or int8.")
            result[name] = value.astype(np.float16)
        elif precision == "int8" and value.ndim >= 2 and not name.startswith(_HEAD):
            result[name], result[name + _SCALE] = quantized(value, is_kernel=name.endswith("kernel"))
        else:
            result[name] = value
    return result


def quantized(value: Array, *, is_kernel: bool) -> tuple[Array, Array]:
    """int8 integers q and float32 scales s with value about q s; each error is at most s / 2.

    Args:
      value: float32, two dimensions or more.
      is_kernel: whether the first dimension is what a product sums over, so that each output has one scale; else each
        row of the last dimension has one, as the vector of a word piece.

    Returns:
      q in the shape of `value`, and s in that shape with 1 where a scale is shared.
    """
    largest = np.max(np.abs(value), axis=0 if is_kernel else -1, keepdims=True)
    scales = (np.where(largest > 0, largest, 1.0) / _LARGEST).astype(np.float32)
    return np.rint(value / scales).astype(np.int8), scales


def restored(params: Mapping[str, Any]) -> dict[str, Any]:
    """float32 arrays by name from what `stored` returned, as NumPy or JAX arrays."""
    scales = {name + _SCALE for name, value in params.items() if value.dtype == np.int8}
    return {
        name: value.astype(np.float32) * params[name + _SCALE] if name + _SCALE in scales else value.astype(np.float32)
        for name, value in params.items()
        if name not in scales
    }
