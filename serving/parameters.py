"""The parameters that embedding reads: compared with those of the architecture, and their digest."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..formats.vocabulary import vocabulary_digest
from ..formats.weights import flatten, unflatten

Params = Mapping[str, Any]  # nested dict of float32 arrays, as flax's ``apply({"params": ...})`` takes it


def matched(found: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]], path: str) -> Params:
    """The parameters that ``embed`` reads as float32.

    Args:
      found: arrays by dotted name.
      expected: the shapes of those that are read.
      path: the file to name.

    Raises:
      InputError: naming the first that are missing or have another shape.
    """
    remedy = "Restore a checkpoint of the architecture and vocabulary that model.json describes."
    missing = [name for name in expected if name not in found]
    if missing:
        raise InputError(f"{len(missing)} parameters are missing: {', '.join(missing[:3])}", path=path, remedy=remedy)
    for name, shape in expected.items():
        if tuple(found[name].shape) != shape:
            raise InputError(
                f"got shape {tuple(found[name].shape)}, expected {shape}: another architecture",
                path=path,
                field=name,
                remedy=remedy,
            )
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
