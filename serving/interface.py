"""What the commands and the server ask of an encoder, whatever computes it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
_EXPANSION: Final = 18  # characters that normalisation makes of one at most (NFKC of U+FDFA), each a token at worst
_SPECIAL_TOKENS: Final = 8  # of a document at most: [CLS], [SEP], and the mark before a text of some tokenizers


class TextEncoder(Protocol):
    """The interface of encoders for the commands and the server."""

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""

    @property
    def dimensions(self) -> int:
        """D."""

    @property
    def tokenizer_name(self) -> str:
        """What cuts the texts, in words."""

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        """Embeds N documents as float32 ``[N, D]`` of unit length; either part may be empty."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Embeds N queries as float32 ``[N, D]`` of unit length, with the prompt of queries if the model has one."""

    def preparations(self) -> Iterator[Callable[[], None]]:
        """Functions that compile what batches of some sizes need, those of short texts first. A server runs them."""


@runtime_checkable
class TokenCounter(Protocol):
    """An encoder that can say how many tokens it would read, at a small part of the cost of embedding."""

    def count_tokens(self, titles: Sequence[str], bodies: Sequence[str]) -> int | None:
        """The tokens that `encode` reads of documents, without the prompt; None if only the model itself cuts them."""


def most_tokens(titles: Sequence[str], bodies: Sequence[str]) -> int:
    """A number of tokens that documents cannot exceed, found without a tokenizer.

    >>> most_tokens(["Storm"], ["It rained."])
    23
    """
    texts = (*titles, *bodies)
    return _SPECIAL_TOKENS * len(titles) + sum(len(text) * (1 if text.isascii() else _EXPANSION) for text in texts)


class DocumentEncoder:
    """A :class:`TextEncoder` in the shape the benchmarks ask for: one argument, documents with a title and a body."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder

    @property
    def digest(self) -> str:
        """The encoder's."""
        return self.encoder.digest

    def encode(self, documents: Sequence[Any]) -> FloatArray:
        """Embeds documents (anything with ``title`` and ``body``) as float32 ``[N, D]``."""
        return self.encoder.encode(
            [document.title for document in documents], [document.body for document in documents]
        )
