"""Texts to vectors by an exported SavedModel: TensorFlow and TF-Text only, no JAX.

An export that takes tokens holds the files of its tokenizer, which then runs here.
"""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats.bars import bar
from ..formats.digests import check_sums
from ..formats.model_folder import (
    DEFAULT_SIGNATURE,
    OUTPUT,
    QUERY_SIGNATURE,
    TOKEN_INPUTS,
    TOKENS,
    read_facts,
    vocabulary_file,
)
from ..tasks.vocabulary import Vocabulary
from .interface import FloatArray, prompt_digest, with_prompt
from .rows import Row, batches, embed_rows, tokens_read

_BATCH: Final = 64
_HEIGHTS: Final = (1, 2, 4, 8, 16, 32, 64)  # the rows that the graph pads a batch to
_LONG_HEIGHTS: Final = 5  # of these are prepared for long texts
_SPECIAL_TOKENS: Final = 4  # at most, in addition to the words of a text


class SavedModelEncoder:
    """An exported SavedModel as a ``TextEncoder``.

    Args:
      folder: what ``newsembed export`` wrote.
      progress: show a tqdm bar.
      document_prompt: the text before each document; None leaves it to the SavedModel.
      query_prompt: the text before each query; None leaves it to the SavedModel.
      long_documents: how documents of more tokens are read; the SavedModel's own or None.

    Attributes:
      facts: of the export.

    Raises:
      InputError: if the folder is not a SavedModel, not one of ours or damaged, adds another prompt itself, or reads
        long documents in another way.
    """

    def __init__(
        self,
        folder: str,
        *,
        progress: bool = False,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        long_documents: str | None = None,
    ) -> None:
        self.facts = read_facts(folder)
        self._takes_tokens = self.facts["inputs"] == TOKEN_INPUTS
        self._max_length, self._long_documents = int(self.facts["max_length"]), str(self.facts["long_documents"])
        if long_documents not in (None, self._long_documents):
            problem = f"got {long_documents}, the SavedModel reads long documents by {self._long_documents}"
            remedy = "Export the model with this option, or give the model."
            raise InputError(problem, path=folder, field="--long_documents", remedy=remedy)
        check_sums(folder, "export the model again, or restore the folder from a copy")
        self._document_prompt = self._own_prompt("document", document_prompt, folder)
        self._query_prompt = self._own_prompt("query", query_prompt, folder)
        self._progress = progress
        self._vocabulary = Vocabulary.load(vocabulary_file(folder)) if self._takes_tokens else None
        self._loaded = _load_graph(folder)
        self._signature = self._loaded.signatures[DEFAULT_SIGNATURE]
        self._query = self._loaded.signatures.get(QUERY_SIGNATURE)

    @property
    def tokenizer_name(self) -> str:
        """What cuts the texts, in words."""
        if self._vocabulary is not None:
            return self._vocabulary.tokenizer_name
        return f"{self.facts['tokenizer']}, in the SavedModel"

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""
        base = f"savedmodel-{self.facts['digest']}"
        if self._takes_tokens and self._document_prompt == self.facts["prompts"]["document"]:
            return base  # the export's own digest covers it
        suffix = prompt_digest(self._document_prompt)
        return base + (suffix or "-no-prompt" if self._takes_tokens else suffix)

    @property
    def dimensions(self) -> int:
        """D."""
        return int(self.facts["dimensions"])

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        """Embeds N documents as float32 ``[N, D]`` of unit length."""
        return self._encode(*with_prompt(self._document_prompt, titles, bodies))

    def count_tokens(self, titles: Sequence[str], bodies: Sequence[str]) -> int | None:
        """The tokens that `encode` reads of documents, without the prompt; None where the graph cuts the texts."""
        if self._vocabulary is None:
            return None
        return sum(map(len, self._documents(self._vocabulary, titles, bodies)))

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Embeds N queries as float32 ``[N, D]`` of unit length."""
        prompted = [f"{self._query_prompt}{text}" for text in texts]
        if self._query is None or not prompted:
            return self._encode(prompted, [""] * len(prompted))
        return self._query(text=_strings(prompted))[OUTPUT].numpy()

    def preparations(self) -> Iterator[Callable[[], None]]:
        """Functions that compile one height and length of a batch each: the graph pads to a few of them."""
        for number, length in enumerate(self.facts["length_buckets"]):
            heights = (_BATCH,) if self._takes_tokens else _HEIGHTS if number == 0 else _HEIGHTS[:_LONG_HEIGHTS]
            text = " ".join("a" * max(1, int(length) - _SPECIAL_TOKENS))  # a token for each letter
            for height in heights:
                yield functools.partial(self._prepare, text, height, queries=number == 0)

    def _prepare(self, text: str, height: int, *, queries: bool) -> None:
        self._encode([""] * height, [text] * height)
        if queries and self._query is not None:
            self.encode_queries([text] * height)

    def _own_prompt(self, role: str, prompt: str | None, folder: str) -> str:
        """What is put before texts here, before the graph puts its own; it cannot replace that of the graph."""
        in_graph = str(self.facts["prompts"][role])
        if self._takes_tokens:  # no graph sees the texts
            return in_graph if prompt is None else prompt
        if prompt is None or prompt == in_graph:
            return ""
        if in_graph:
            problem = f"got {prompt!r}, and the SavedModel itself puts {in_graph!r} before each {role}"
            raise InputError(problem, path=folder, field="--prompt", remedy="Give the model that it was exported from.")
        return prompt

    def _documents(self, vocabulary: Vocabulary, titles: Sequence[str], bodies: Sequence[str]) -> list[Row]:
        return vocabulary.encode_documents(titles, bodies, tokens_read(self._long_documents, self._max_length))

    def _encode(self, titles: Sequence[str], bodies: Sequence[str]) -> FloatArray:
        if self._vocabulary is None:
            lengths = [len(title) + len(body) for title, body in zip(titles, bodies, strict=True)]
            parts = {"title": titles, "body": bodies}
            return self._in_batches(
                lengths, lambda numbers: {name: _strings([texts[n] for n in numbers]) for name, texts in parts.items()}
            )
        documents = self._documents(self._vocabulary, titles, bodies)
        return embed_rows(self._encode_rows, documents, self._long_documents, self._max_length)

    def _encode_rows(self, rows: Sequence[Row]) -> FloatArray:
        """Embeds rows of tokens, padded to a length of the model and a whole batch: each shape takes a second."""

        def padded(numbers: Sequence[int]) -> dict[str, Any]:
            longest = max(len(rows[number]) for number in numbers)
            width = next(length for length in self.facts["length_buckets"] if length >= longest)
            ((_, tokens),) = batches(rows, [(np.array(numbers), (_BATCH, width))])
            return {TOKENS: tokens}

        return self._in_batches([len(row) for row in rows], padded)

    def _in_batches(self, lengths: Sequence[int], inputs: Callable[[Sequence[int]], dict[str, Any]]) -> FloatArray:
        """Embeds N texts in batches of similar length, so that short ones are not padded to the length of a long one.

        Args:
          lengths: of the texts.
          inputs: the inputs of the signature for the texts of some numbers.
        """
        import tensorflow as tf

        embeddings = np.zeros((len(lengths), self.dimensions), np.float32)
        order = np.argsort(lengths, kind="stable")
        with bar(len(order), "text", shown=self._progress) as shown:
            for start in range(0, len(order), _BATCH):
                numbers = order[start : start + _BATCH]
                batch = {name: tf.constant(value) for name, value in inputs(numbers.tolist()).items()}
                embeddings[numbers] = self._signature(**batch)[OUTPUT].numpy()[: len(numbers)]
                shown.update(len(numbers))
        return embeddings


def _load_graph(folder: str) -> Any:
    """TensorFlow's object of a SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - registers the tokenizer's ops

    _compile_unheard()
    remedy = "export the model again, or restore the folder from a copy"
    try:
        loaded = tf.saved_model.load(folder)
    except (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"TensorFlow cannot read it: {lines[0]}", path=folder, remedy=remedy) from error
    if DEFAULT_SIGNATURE not in loaded.signatures:
        remedy = "give a folder that newsembed export wrote"
        raise InputError(f"no signature {DEFAULT_SIGNATURE}", path=folder, remedy=remedy)
    return loaded


@functools.cache
def _compile_unheard() -> None:
    """Lets XLA compile while nothing reads its standard error: it logs the first time, whatever the level of logs."""
    import tensorflow as tf

    errors = os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        tf.function(lambda value: value + 1, jit_compile=True)(1)
    finally:
        os.dup2(errors, 2)
        os.close(errors)


def _strings(texts: Sequence[str]) -> Any:
    """A constant of strings; half a surrogate pair, which JSON can smuggle in, has no UTF-8 form."""
    import tensorflow as tf

    return tf.constant([text.encode("utf-8", errors="replace") for text in texts])
