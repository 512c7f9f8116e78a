"""Encoders for jobs that embed texts with a model. Jobs name them by a text such as ``model:work/model``."""

import functools
import importlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from ..errors import InputError
from ..formats.arrays import unit_rows
from .arrays import Floats, slices

FORMS: Final = "model:DIR[@STEP], savedmodel:DIR, st:DIR or another encoder of `newsembed evaluate`"
_TEXTS_AT_ONCE: Final = 4_096  # of several batches each, so that texts of one length find each other


class SentenceEncoder(Protocol):
    """An encoder as jobs see it."""

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""

    def embed(self, texts: Sequence[str]) -> Any:
        """Returns the embeddings of N texts, float32 ``[N, D]``."""


# The function that opens encoders, in a module that workers import: jobs import no model code.
_OPENER: Final = ("newsembed.launch.encoders", "open_encoder")


def digest(name: str) -> str:
    """Returns the digest of the encoder that a text names; loads it, so that a broken one is reported first."""
    return opened(name).digest


@functools.lru_cache(maxsize=1)
def opened(name: str, _run: str = "") -> SentenceEncoder:
    """Returns an encoder, loaded once for each process and job.

    Args:
      name: what it opens.
      _run: the job's workspace: the files may change between two jobs.
    """
    module, function = _OPENER
    return getattr(importlib.import_module(module), function)(name)


def embed_unit(encoder: SentenceEncoder, texts: Sequence[str], name: str) -> Floats:
    """Returns the embeddings of texts as rows of length 1; rows of zeros stay zero.

    Args:
      encoder: the encoder.
      texts: N texts.
      name: of the encoder, for errors.

    Returns:
      float32 ``[N, D]``; ``[0, 0]`` for no texts.
    """
    parts = []
    for some in (texts[part] for part in slices(len(texts), _TEXTS_AT_ONCE)):
        found = encoder.embed(some)
        if not isinstance(found, np.ndarray) or found.ndim != 2 or len(found) != len(some):
            problem = f"got {type(found).__name__} of shape {getattr(found, 'shape', '?')} for {len(some)} texts"
            remedy = "choose an encoder whose vectors do not depend on the other texts, such as model:DIR"
            raise InputError(f"{problem}, expected one row of numbers for each", path=name, remedy=remedy)
        if not np.isfinite(found).all():
            remedy = "use a checkpoint from before training diverged"
            raise InputError("the encoder returned NaN or infinity", path=name, remedy=remedy)
        parts.append(unit_rows(found.astype(np.float32)))
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
