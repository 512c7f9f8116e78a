"""Encoders for jobs that embed texts with a model. Jobs name them by a text such as ``model:work/model``.

Jobs import no model code: the caller of a job passes the function that opens an encoder to :func:`use`. Workers get
its name and import its module. The function of the command line is in `launch.encoders`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from ..errors import InputError
from .entities.tables import Floats

FORMS: Final = "model:DIR[@STEP], savedmodel:DIR, st:DIR or another encoder of `newsembed evaluate`"
_TEXTS_AT_ONCE: Final = 4_096  # of several batches each, so that texts of one length find each other


class SentenceEncoder(Protocol):
    """An encoder as jobs see it."""

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""

    def embed(self, texts: Sequence[str], titles: Sequence[str] | None = None) -> Any:
        """Returns the embeddings of N texts, or of N articles with their titles, float32 ``[N, D]``."""


Opener = Callable[[str], SentenceEncoder]
_used: list[Opener] = []


def use(opener: Opener) -> None:
    """Says which function opens encoders in this process. It must be a function of a module that workers can import."""
    _used[:] = [opener]


def opener() -> Opener:
    """Returns the function that opens encoders.

    Raises:
      InputError: if this process has none.
    """
    if not _used:
        problem = "no function that opens encoders is set in this process"
        raise InputError(problem, field="--encoder", remedy="start the job by `newsembed`, or call encoders.use first")
    return _used[0]


def digest(name: str) -> str:
    """Returns the digest of the encoder that a text names; loads it, so that a broken one is reported first.

    Raises:
      InputError: for a text that names no encoder, or an encoder that cannot be loaded.
    """
    return opened(opener(), name).digest


@functools.lru_cache(maxsize=1)
def opened(open_encoder: Opener, name: str, _run: str = "") -> SentenceEncoder:
    """Returns an encoder, loaded once for each process and job.

    Args:
      open_encoder: the function that opens it.
      name: what it opens.
      _run: the job's workspace: the files may change between two jobs.
    """
    return open_encoder(name)


def embed_unit(
    encoder: SentenceEncoder, texts: Sequence[str], name: str, titles: Sequence[str] | None = None
) -> Floats:
    """Returns the embeddings of texts as rows of length 1; rows of zeros stay zero.

    Args:
      encoder: the encoder.
      texts: N texts.
      name: of the encoder, for errors.
      titles: of the texts, if they are the bodies of articles.

    Returns:
      float32 ``[N, D]``; ``[0, 0]`` for no texts.

    Raises:
      InputError: for NaN, infinity, a wrong number of rows, or a matrix that is not dense.
    """
    parts = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        own = [] if titles is None else [titles[start : start + _TEXTS_AT_ONCE]]
        found = encoder.embed(some, *own)
        if not isinstance(found, np.ndarray) or found.ndim != 2 or len(found) != len(some):
            problem = f"got {type(found).__name__} of shape {getattr(found, 'shape', '?')} for {len(some)} texts"
            remedy = "choose an encoder whose vectors do not depend on the other texts, such as model:DIR"
            raise InputError(f"{problem}, expected one row of numbers for each", path=name, remedy=remedy)
        if not np.isfinite(found).all():
            remedy = "use a checkpoint from before training diverged"
            raise InputError("the encoder returned NaN or infinity", path=name, remedy=remedy)
        norms = np.linalg.norm(found.astype(np.float32), axis=1, keepdims=True)
        parts.append((found / np.where(norms > 0, norms, 1)).astype(np.float32))
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
