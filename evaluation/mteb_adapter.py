"""Adapter of our encoders to the ``mteb`` package (2.x), which provides the tasks and downloads their data.

Example::

    import mteb
    from newsembed.evaluation.encoders import TfidfEncoder
    from newsembed.evaluation.mteb_adapter import MtebModel

    results = mteb.evaluate(MtebModel(encoder, "newsembed/trained"), mteb.get_tasks(tasks=["STS22.v2"]))

``mteb`` passes texts in several calls, queries separate from passages. Encoders that use statistics of the documents
(TF-IDF, LSA) would have a different space in each call and are rejected.
"""

import dataclasses
import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .baselines import LsaEncoder
from .encoders import Document, Encoder, TfidfEncoder, encode_checked, normalised

FloatArray = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class MtebModel:
    """An encoder with mteb's ``EncoderProtocol``.

    Attributes:
      encoder: an encoder that embeds each document independently.
      name: ``organisation/model``, the form of mteb's names.
      cache: folder of embeddings by content, as in ``encode_checked``.
    """

    encoder: Encoder
    name: str
    cache: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.encoder, (TfidfEncoder, LsaEncoder)):
            raise InputError(
                f"{type(self.encoder).__name__} embeds a collection as a whole, but mteb passes it in parts",
                field="encoder",
                remedy="use a trained model, word vectors or a function",
            )
        if self.name.count("/") != 1:
            raise InputError(
                f"got {self.name!r}, expected organisation/model", field="name", remedy="for example newsembed/trained"
            )

    def encode(self, inputs: Iterable[Any], **_: Any) -> FloatArray:
        """Returns unit vectors, float32 ``[N, D]``, of mteb's batches or of strings.

        A batch is a mapping with ``text`` and, for articles, ``title`` and ``body``. The vector of an empty text, which
        some tasks have, is zero.

        Raises:
          InputError: if all texts are empty, or as ``encode_checked``.
        """
        documents = [document for batch in inputs for document in batch_documents(batch)]
        filled = [number for number, document in enumerate(documents) if document.text]
        embedded = encode_checked(self.encoder, [documents[number] for number in filled], self.cache).embeddings
        embeddings = np.zeros((len(documents), embedded.shape[1]), np.float32)
        embeddings[filled] = embedded
        return embeddings

    def similarity(self, embeddings1: Any, embeddings2: Any) -> FloatArray:
        """Returns the cosines ``[N, M]``; a single vector counts as one row."""
        one, two = (normalised(np.atleast_2d(np.asarray(embeddings))) for embeddings in (embeddings1, embeddings2))
        return np.asarray(one @ two.T, np.float32)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> FloatArray:
        """Returns the cosines ``[N]`` of corresponding rows."""
        one, two = (normalised(np.atleast_2d(np.asarray(embeddings))) for embeddings in (embeddings1, embeddings2))
        return np.asarray((one * two).sum(axis=1), np.float32)

    @property
    def mteb_model_meta(self) -> Any:
        """The ``ModelMeta`` with the name and the encoder's digest as revision.

        Raises:
          InputError: if mteb is not installed.
        """
        try:
            meta: Any = importlib.import_module("mteb.models.model_meta")
        except ImportError as error:
            raise InputError(f"mteb cannot be imported: {error}", field="mteb", remedy="pip install mteb") from error
        return meta.ModelMeta.create_empty(overwrites={"name": self.name, "revision": self.encoder.digest})


def batch_documents(batch: Any) -> Sequence[Document]:
    """Returns the documents of one mteb batch.

    Raises:
      InputError: if the batch has no text.

    >>> batch_documents({"text": ["t b", "u"], "title": ["t", ""], "body": ["b", "u"]})
    [Document(title='t', body='b'), Document(title='', body='u')]
    >>> batch_documents("a sentence")
    [Document(title='', body='a sentence')]
    """
    if isinstance(batch, str):
        return [Document("", batch)]
    if not isinstance(batch, Mapping) or "text" not in batch:
        raise InputError(
            f"got a batch of {type(batch).__name__} without text", field="inputs", remedy="choose text tasks"
        )
    texts = list(batch["text"])
    titles, bodies = batch.get("title"), batch.get("body")
    if titles is None or bodies is None:
        return [Document("", text) for text in texts]
    return [Document(title or "", body or "") for title, body in zip(titles, bodies, strict=True)]
