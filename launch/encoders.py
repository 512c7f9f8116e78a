"""Encoders of jobs: the kinds of `newsembed evaluate`, opened where a job of `beam_pipelines` asks for one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..beam_pipelines import encoders
from ..errors import InputError

if TYPE_CHECKING:
    from ..evaluation.encoders import Encoder

_OF_COLLECTIONS: Final = ("tfidf", "lsa")  # the vector of a text depends on the texts that are embedded with it


class JobEncoder:
    """An encoder of the benchmarks as jobs see it.

    Args:
      inner: the encoder.
    """

    def __init__(self, inner: "Encoder") -> None:
        self._inner = inner

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""
        return self._inner.digest

    def embed(self, texts: Sequence[str]) -> Any:
        """Returns the embeddings of N texts as bodies without titles, float32 ``[N, D]``."""
        from ..evaluation.encoders import Document

        return np.asarray(self._inner.encode([Document("", text) for text in texts]), np.float32)


def open_encoder(name: str) -> JobEncoder:
    """Returns the encoder that a text names, such as ``model:work/model`` or ``st:models/labse``."""
    from .. import serving
    from ..evaluation.command import encoder_factory

    if name.partition(":")[0] in _OF_COLLECTIONS:
        remedy = f"choose {encoders.FORMS}"
        raise InputError(f"{name} gives a text another vector in each shard", field="--encoder", remedy=remedy)
    return JobEncoder(encoder_factory(name, serving.factories(progress=False))())
