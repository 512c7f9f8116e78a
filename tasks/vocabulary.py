"""The vocabulary and its tokenizer, for pipelines, training data and served models.

Our own tokenizer is TF-Text's: text is NFKC-casefolded (this removes case and compatibility forms and keeps accents and
composed Hangul), cleaned and split into words by TF-Text's BERT rules, and every word is cut into the longest pieces of
the vocabulary. TensorFlow's operations run inside a SavedModel; on arrays, `plain_tokenizer` gives the same ids without
TensorFlow, so a served model reads the tokens that it was trained on.

An imported model brings its own tokenizer, ``tokenizer.json`` next to ``vocab.txt``, see `imported_tokenizer`, which
also runs those of BERT and XLM-R inside a SavedModel.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np

from ..errors import InputError
from ..formats.vocabulary import (
    CLS_ID,
    CONTINUATION,
    SEP_ID,
    SPECIAL_TOKENS,
    TOKENIZER_FILE,
    UNK_ID,
    VOCABULARY_FILE,
    Family,
    TokenizerFiles,
    VocabularyFile,
    continues_word,
    read_vocabulary,
    vocabulary_bytes,
)
from .imported_tokenizer import ImportedTokenizer, UnigramGraph, WordPieceGraph, why_not_in_graph
from .plain_tokenizer import PlainTokenizer, words

# TF-Text's default of 100 bytes makes long runs of Thai, kana and Hangul [UNK].
MAX_BYTES_PER_WORD: Final = 400
_SHORTEST_DOCUMENT = 2  # [CLS] [SEP]


class Vocabulary:
    """Pieces and their ids, and the tokenizer over them.

    The tokenizer is built on first use, so that a vocabulary can be loaded, checked and pickled without TensorFlow.

    Args:
      pieces: in the order of their ids, :data:`~..formats.vocabulary.SPECIAL_TOKENS` first.
      digest: SHA-256 of the files, in hexadecimal digits; by default that of the files of these pieces.
      tokenizer: an imported tokenizer that makes the pieces; None for our own.

    Attributes:
      pieces: as given.
      digest: as given.
      tokenizer: as given.
    """

    def __init__(
        self, pieces: Sequence[str], digest: str | None = None, tokenizer: TokenizerFiles | None = None
    ) -> None:
        self.pieces = tuple(pieces)
        self.tokenizer = tokenizer
        self.digest = digest or self.file().sha256

    @classmethod
    def load(cls, path: str) -> Self:
        """Reads a vocabulary file, and the tokenizer next to it if there is one.

        Args:
          path: see :func:`~..formats.vocabulary.read_vocabulary`.

        Raises:
          InputError: naming the line, if the file is missing, is not UTF-8, lacks a special token in its place, or has
            an empty, repeated or broken piece; if its tokenizer is incomplete or not its own.
        """
        return cls.of(read_vocabulary(path))

    @classmethod
    def of(cls, file: VocabularyFile) -> Self:
        """The vocabulary of a file that was read."""
        return cls(file.pieces, file.sha256, file.tokenizer)

    def file(self, path: str = VOCABULARY_FILE) -> VocabularyFile:
        """The vocabulary as a file would hold it."""
        return VocabularyFile(path, vocabulary_bytes(self.pieces), len(self.pieces), self.tokenizer)

    @property
    def tokenizer_name(self) -> str:
        """What cuts the texts, in words."""
        if self.tokenizer is None:
            return "newsembed's own WordPiece"
        return f"the imported tokenizer.json ({self.tokenizer.family})"

    @property
    def size(self) -> int:
        """Number of pieces, the special tokens included."""
        return len(self.pieces)

    @property
    def shares(self) -> np.ndarray:
        """Of each piece among all of the texts that the tokenizer was learned from, float64 ``[V]``; 0 if unknown."""
        return self._tokenizer.shares if isinstance(self._tokenizer, ImportedTokenizer) else np.zeros(self.size)

    def encode_texts(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Ids of every text, without special tokens: int32 ``[number of pieces]`` each."""
        return self._tokenizer.encode([_valid(text) for text in texts])

    def encode_with_places(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Ids of every text, and the characters of each: int32 ``[pieces]``, and ``[pieces, 2]``, start and end."""
        return self._tokenizer.encode_with_places([_valid(text) for text in texts])

    def encode_documents(self, titles: Sequence[str], bodies: Sequence[str], max_length: int) -> list[np.ndarray]:
        """``[CLS] title [SEP] body [SEP]`` of every document, int32 ``[length]`` each.

        An empty part is left out together with its [SEP]; a document without any text is ``[CLS] [SEP]``.

        Args:
          titles: of the documents.
          bodies: of the documents, as many.
          max_length: longer documents are cut to this many ids, the last of them the closing [SEP].

        Raises:
          ValueError: if there are more titles than bodies, or fewer, or if ``max_length`` has no room for [CLS] and
            [SEP].
        """
        _check_length(max_length)
        parts = zip(self.encode_texts(titles), self.encode_texts(bodies), strict=True)
        return [join_document(title, body, max_length) for title, body in parts]

    def encode_with_words(self, texts: Sequence[str]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Ids of every text and, for whole-word masking, the 1-based number of the word of each id.

        Returns:
          ``(ids, word_ids)``, both one int32 ``[number of pieces]`` per text, without special tokens.
        """
        ids = self.encode_texts(texts)
        return ids, [self.word_ids(row) for row in ids]

    def word_ids(self, ids: np.ndarray) -> np.ndarray:
        """1-based number of the word of every piece of one text without special tokens, int32 ``[number of pieces]``.

        A word begins at every piece that does not continue one (``##`` in WordPiece), and at the first piece: those of
        byte-level tokenizers mark the space before a word, which the first word lacks.
        """
        begins = ~self._continues[ids]
        begins[:1] = True
        return np.cumsum(begins, dtype=np.int32)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Text of the ids, words joined by spaces, without special tokens other than [UNK].

        Raises:
          IndexError: for an id outside the vocabulary.
        """
        words: list[str] = []
        indices: list[int] = np.asarray(ids, dtype=np.int64).tolist()
        if indices and not 0 <= min(indices) <= max(indices) < self.size:
            raise IndexError(f"got ids from {min(indices)} to {max(indices)}, expected 0 to {self.size - 1}")
        if isinstance(self._tokenizer, ImportedTokenizer):
            return self._tokenizer.decode(indices)
        for index in indices:
            piece = self.pieces[index]
            if index < len(SPECIAL_TOKENS) and index != UNK_ID:
                continue
            if words and continues_word(piece):
                words[-1] += piece[len(CONTINUATION) :]
            else:
                words.append(piece)
        return " ".join(words)

    def tf_encode_documents(self, titles: Any, bodies: Any, max_length: int) -> Any:
        """:meth:`encode_documents` as TensorFlow operations, for use inside a ``tf.function`` and a SavedModel.

        Args:
          titles: tf.string ``[batch]``, UTF-8.
          bodies: tf.string ``[batch]``, UTF-8.
          max_length: as in :meth:`encode_documents`.

        Returns:
          tf.RaggedTensor int32 ``[batch, (length)]``, the ids that :meth:`encode_documents` gives.

        Raises:
          InputError: for an imported tokenizer that TensorFlow's operations cannot follow.
        """
        import tensorflow as tf

        _check_length(max_length)
        parts = [self._in_graph(titles), self._in_graph(bodies)]
        closed = [tf.concat([part, _column_where(part.row_lengths() > 0, SEP_ID)], axis=1) for part in parts]
        opening = tf.fill([tf.shape(titles)[0], 1], tf.constant(CLS_ID, tf.int32))
        document = tf.concat([opening, *closed], axis=1)
        lengths = document.row_lengths()
        # A document that is cut or empty still lacks its closing [SEP].
        is_open = tf.logical_or(lengths > max_length, lengths == 1)
        kept = _cut_rows(document, tf.where(is_open, tf.minimum(lengths, max_length - 1), lengths))
        return tf.concat([kept, _column_where(is_open, SEP_ID)], axis=1)

    def check_graph(self) -> None:
        """Refuses a tokenizer that TensorFlow's operations cannot follow.

        Raises:
          InputError: with the reason.
        """
        reason = None if self.tokenizer is None else why_not_in_graph(self.tokenizer)
        if reason is not None:
            raise InputError(
                f"the tokenizer cannot be part of a TensorFlow graph: {reason}",
                path=TOKENIZER_FILE,
                remedy="Export the model with --inputs tokens, or serve its model folder.",
            )

    @property
    def graph_resources(self) -> Any:
        """What a tf.Module that uses `tf_encode_documents` must hold as an attribute to be saved; None for nothing."""
        return getattr(self._in_graph, "pieces", None)

    @functools.cached_property
    def _continues(self) -> np.ndarray:
        """Whether a piece continues a word, bool ``[size]``."""
        return np.array(self.file().continuations)

    @functools.cached_property
    def _tokenizer(self) -> ImportedTokenizer | PlainTokenizer:
        if self.tokenizer is not None:
            return ImportedTokenizer(self.tokenizer)
        return PlainTokenizer(self.pieces, MAX_BYTES_PER_WORD)

    @functools.cached_property
    def _in_graph(self) -> Callable[[Any], Any]:
        """tf.RaggedTensor int32 ``[batch, (pieces)]`` of tf.string ``[batch]``."""
        import tensorflow as tf
        import tensorflow_text

        if self.tokenizer is not None:
            self.check_graph()
            if self.tokenizer.family is Family.METASPACE:
                return UnigramGraph(self.tokenizer)
            return WordPieceGraph(self.tokenizer, self.pieces)
        with tf.init_scope():  # the model buffer must outlive the graph in which it is first used
            own = tensorflow_text.FastBertTokenizer(
                list(self.pieces), max_bytes_per_word=MAX_BYTES_PER_WORD, token_out_type=tf.int32
            )
        return lambda texts: own.tokenize(tensorflow_text.case_fold_utf8(texts))

    def __getstate__(self) -> dict[str, Any]:
        return {"pieces": self.pieces, "digest": self.digest, "tokenizer": self.tokenizer}


def join_document(title: np.ndarray, body: np.ndarray, max_length: int) -> np.ndarray:
    """``[CLS] title [SEP] body [SEP]`` of ids without special tokens, as in :meth:`Vocabulary.encode_documents`.

    Args:
      title: int32 ``[number of pieces]``, may be empty.
      body: int32 ``[number of pieces]``, may be empty.
      max_length: of the result.
    """
    parts = [np.array([CLS_ID], np.int32)]
    for part in (title, body):
        if part.size:
            parts += [part.astype(np.int32, copy=False), np.array([SEP_ID], np.int32)]
    row = np.concatenate(parts)
    if row.size == 1 or row.size > max_length:
        row = np.append(row[: max_length - 1], np.int32(SEP_ID))
    return row


def normalize_for_learning(texts: Sequence[str]) -> list[str]:
    """Texts as the tokenizer reads them before it looks up pieces: normalised, with single spaces between words.

    A learner that splits them at the spaces counts the words that TF-Text will cut into pieces. Words of more than
    :data:`MAX_BYTES_PER_WORD` are left out: the tokenizer makes them [UNK] with any vocabulary.
    """
    rows = (words(_valid(text)) for text in texts)
    return [" ".join(word for word in row if len(word.encode()) <= MAX_BYTES_PER_WORD) for row in rows]


def _column_where(condition: Any, value: int) -> Any:
    """tf.RaggedTensor int32 ``[batch, (0 or 1)]``: ``value`` in the rows where ``condition`` holds."""
    import tensorflow as tf

    lengths = tf.cast(condition, tf.int64)
    return tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(lengths)], tf.constant(value, tf.int32)), lengths)


def _cut_rows(ragged: Any, lengths: Any) -> Any:
    """The first ``lengths[i]`` values of every row; none may exceed the row's own length."""
    import tensorflow as tf

    positions = tf.ragged.range(ragged.row_lengths())
    kept = positions.values < tf.gather(lengths, positions.value_rowids())
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(ragged.values, kept), lengths)


def _valid(text: str) -> str:
    """The text; half a surrogate pair, which JSON can smuggle in, has no UTF-8 form and becomes a question mark."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _check_length(max_length: int) -> None:
    if max_length < _SHORTEST_DOCUMENT:
        raise ValueError(f"got max_length={max_length}, expected at least {_SHORTEST_DOCUMENT}: [CLS] and [SEP]")
