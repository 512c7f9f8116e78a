"""What the commands and the server ask of an encoder, and what encoders share that cut texts into tokens."""

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..formats.bars import bar
from ..tasks.vocabulary import Vocabulary
from .model import Model
from .rows import HEAD, Planned, Row, batches, checked, embed_rows, tokens_read

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


class DocumentEncoder:
    """A :class:`TextEncoder` in the shape the benchmarks ask for: one argument, documents with a title and a body."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder

    @property
    def digest(self) -> str:
        """The encoder's."""
        return self.encoder.digest

    def encode(self, documents: Sequence[Any]) -> FloatArray:
        """Embeds documents (anything with ``title``, ``body`` and ``is_query``) as float32 ``[N, D]``."""
        queries = np.array([document.is_query for document in documents], bool)
        found = np.empty((len(documents), self.encoder.dimensions), np.float32)
        texts = [document for document in documents if not document.is_query]
        if texts:
            found[~queries] = self.encoder.encode([one.title for one in texts], [one.body for one in texts])
        if queries.any():
            found[queries] = self.encoder.encode_queries([one.body for one in documents if one.is_query])
        return found


class TokenizedEncoder(ABC):
    """The part of a `TextEncoder` between texts and rows of tokens of a model's vocabulary.

    Args:
      model: whose texts are read.
      max_length: tokens read of each document, with its prompt; None takes as many as the model was trained on.
      progress: show a tqdm bar.
      document_prompt: the text before each document, "" for none; None takes the model's.
      query_prompt: the text before each query, "" for none; None takes the model's.
      long_documents: how documents of more tokens are read, see `rows`; None takes the model's.

    Attributes:
      model: as given.
      vocabulary: the model's.
      max_length: as given, or the model's.
      document_prompt: as given, or the model's.
      query_prompt: as given, or the model's.
      long_documents: as given, or the model's.
    """

    def __init__(
        self,
        model: Model,
        *,
        max_length: int | None = None,
        progress: bool = False,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        long_documents: str | None = None,
    ) -> None:
        self.model = model
        self.max_length = min(max_length or model.text_length, model.config.max_length)
        self.document_prompt = model.prompts.document if document_prompt is None else document_prompt
        self.query_prompt = model.prompts.query if query_prompt is None else query_prompt
        self.long_documents = checked(long_documents or model.long_documents, self.max_length)
        self.vocabulary = Vocabulary.load(model.vocabulary_path)
        self._progress = progress

    @abstractmethod
    def encode_tokens(self, rows: Sequence[Row], *, are_queries: bool = False) -> FloatArray:
        """Embeds N rows of at most ``max_length`` tokens, with [CLS] and [SEP], as float32 ``[N, D]`` of length 1."""

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""
        how = "" if self.long_documents == HEAD else f"-{self.long_documents}"
        return f"{self.model.digest}-{self.max_length}{prompt_digest(self.document_prompt)}{how}"

    @property
    def dimensions(self) -> int:
        """D."""
        return int(self.model.config.embedding_size)

    @property
    def tokenizer_name(self) -> str:
        """What cuts the texts, in words."""
        return self.vocabulary.tokenizer_name

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        """Embeds N documents as float32 ``[N, D]`` of unit length; either part may be empty."""
        return self._encode(*with_prompt(self.document_prompt, titles, bodies), are_queries=False)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Embeds N queries as float32 ``[N, D]`` of unit length."""
        return self._encode([f"{self.query_prompt}{text}" for text in texts], [""] * len(texts), are_queries=True)

    def count_tokens(self, titles: Sequence[str], bodies: Sequence[str]) -> int:
        """The tokens that `encode` reads of documents, without the prompt."""
        return sum(map(len, self._documents(titles, bodies)))

    def _encode(self, titles: Sequence[str], bodies: Sequence[str], *, are_queries: bool) -> FloatArray:
        embed = functools.partial(self.encode_tokens, are_queries=are_queries)
        return embed_rows(embed, self._documents(titles, bodies), self.long_documents, self.max_length)

    def _documents(self, titles: Sequence[str], bodies: Sequence[str]) -> list[Row]:
        return self.vocabulary.encode_documents(titles, bodies, tokens_read(self.long_documents, self.max_length))

    def preparations(self) -> Iterator[Callable[[], None]]:
        """None: most encoders compile nothing."""
        return iter(())

    def _in_batches(self, rows: Sequence[Row], plan: Iterable[Planned], embed: Callable[[Row], Any]) -> FloatArray:
        """Embeds N rows in batches of padded ones, each by `embed`: int32 ``[B, L]`` -> float32 ``[B, D]``."""
        embeddings = np.zeros((len(rows), self.dimensions), np.float32)
        with bar(len(rows), "text", shown=self._progress) as shown:
            for numbers, tokens in batches(rows, plan):
                embeddings[numbers] = embed(tokens)[: len(numbers)]
                shown.update(len(numbers))
        return embeddings


def most_tokens(titles: Sequence[str], bodies: Sequence[str]) -> int:
    """A number of tokens that documents cannot exceed, found without a tokenizer.

    >>> most_tokens(["Storm"], ["It rained."])
    23
    """
    texts = (*titles, *bodies)
    return _SPECIAL_TOKENS * len(titles) + sum(len(text) * (1 if text.isascii() else _EXPANSION) for text in texts)


def with_prompt(prompt: str, titles: Sequence[str], bodies: Sequence[str]) -> tuple[list[str], list[str]]:
    """Titles and bodies with a prompt before the first text of each document: its title or, without one, its body.

    >>> with_prompt("passage: ", ["Storm", ""], ["It rained.", "The vote."])
    (['passage: Storm', ''], ['It rained.', 'passage: The vote.'])

    Raises:
      ValueError: if there are not as many titles as bodies.
    """
    pairs = list(zip(titles, bodies, strict=True))
    return (
        [f"{prompt}{title}" if title else "" for title, _ in pairs],
        [body if title else f"{prompt}{body}" for title, body in pairs],
    )


def prompt_digest(prompt: str) -> str:
    """What a prompt of documents adds to the digest of an encoder: nothing without one."""
    return f"-{hashlib.sha256(prompt.encode()).hexdigest()[:16]}" if prompt else ""
