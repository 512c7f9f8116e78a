"""What encoders share that cut texts into the pieces of a model folder's vocabulary."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..tasks.vocabulary import Vocabulary
from .interface import FloatArray
from .long_documents import HEAD, Row, embed_rows, tokens_read
from .prompting import prompt_digest, with_prompt


class TokenizedEncoder(ABC):
    """The part of a `TextEncoder` between texts and rows of tokens.

    Attributes:
      model_digest: differs whenever the model's embeddings of the same rows may differ.
      vocabulary: the model's.
      max_length: tokens read of each document, with its prompt.
      document_prompt: the text before each document, "" for none.
      query_prompt: the text before each query, "" for none.
      long_documents: how documents of more tokens are read.
    """

    model_digest: str
    vocabulary: Vocabulary
    max_length: int
    document_prompt: str
    query_prompt: str
    long_documents: str

    @abstractmethod
    def _embed_rows(self, rows: Sequence[Row], *, are_queries: bool) -> FloatArray:
        """Embeds N rows of at most ``max_length`` tokens, with [CLS] and [SEP], as float32 ``[N, D]`` of length 1."""

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""
        how = "" if self.long_documents == HEAD else f"-{self.long_documents}"
        return f"{self.model_digest}-{self.max_length}{prompt_digest(self.document_prompt)}{how}"

    @property
    def tokenizer_name(self) -> str:
        """What cuts the texts, in words."""
        return self.vocabulary.tokenizer_name

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        """Embeds N documents as float32 ``[N, D]`` of unit length; either part may be empty.

        Raises:
          ValueError: if there are not as many titles as bodies.
        """
        if len(titles) != len(bodies):
            raise ValueError(f"got {len(titles)} titles and {len(bodies)} bodies")
        return self._encode(*with_prompt(self.document_prompt, titles, bodies), are_queries=False)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Embeds N queries as float32 ``[N, D]`` of unit length."""
        return self._encode([f"{self.query_prompt}{text}" for text in texts], [""] * len(texts), are_queries=True)

    def count_tokens(self, titles: Sequence[str], bodies: Sequence[str]) -> int:
        """The tokens that `encode` reads of documents, without the prompt."""
        return sum(map(len, self._documents(titles, bodies)))

    def _encode(self, titles: Sequence[str], bodies: Sequence[str], *, are_queries: bool) -> FloatArray:
        def embed(rows: list[Row]) -> FloatArray:
            return self._embed_rows(rows, are_queries=are_queries)

        return embed_rows(embed, self._documents(titles, bodies), self.long_documents, self.max_length)

    def _documents(self, titles: Sequence[str], bodies: Sequence[str]) -> list[Row]:
        return self.vocabulary.encode_documents(titles, bodies, tokens_read(self.long_documents, self.max_length))
