"""Documents that are longer than what a model reads at a time: their head, head and tail, or windows.

- ``head``: the first tokens, as in training.
- ``head+tail``: three quarters of the row from the start of the document, the rest from its end.
- ``windows``: the document is cut in at most 8 rows, each is embedded, and the embedding is the weighted mean of theirs
  scaled to length 1. Window k, counted from 0, has the weight 1 / (1 + k), times the share of the window that the
  document fills: news articles begin with what matters most.

A document that fits one row has the same embedding in all three. A prompt comes first in the document.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.vocabulary import CLS_ID, SEP_ID

HEAD, HEAD_TAIL, WINDOWS = "head", "head+tail", "windows"
LONG_DOCUMENTS: Final = (HEAD, HEAD_TAIL, WINDOWS)
MOST_WINDOWS: Final = 8
_TAIL: Final = 4  # one token in four is from the end
_WHOLE: Final = 1 << 30  # tokens: no document is cut

Row = npt.NDArray[np.int32]


def checked(how: str | None, max_length: int) -> str:
    """Checks how long documents are read; returns ``head`` for None.

    Raises:
      InputError: for another word, or rows without room for two tokens between [CLS] and [SEP].
    """
    how = how or HEAD
    if how not in LONG_DOCUMENTS:
        remedy = f"choose {', '.join(LONG_DOCUMENTS)}"
        raise InputError(f"got {how!r}", field="--long_documents", remedy=remedy)
    if how != HEAD and max_length < 4:
        problem = f"rows of {max_length} tokens have no room for {how}"
        raise InputError(problem, field="--max_length", remedy="give at least 4")
    return how


def tokens_read(how: str, max_length: int) -> int:
    """Tokens to which a document is cut before `rows_of` divides it."""
    return {HEAD: max_length, HEAD_TAIL: _WHOLE, WINDOWS: 2 + MOST_WINDOWS * (max_length - 2)}[how]


def rows_of(document: Row, how: str, max_length: int) -> list[Row]:
    """The rows that a model reads of one document.

    Args:
      document: ``[CLS] … [SEP]``, int32, cut to `tokens_read`.
      how: one of `LONG_DOCUMENTS`.
      max_length: of a row.

    Returns:
      One row or more, each ``[CLS] … [SEP]``.
    """
    if len(document) <= max_length:
        return [document]
    inner, room = document[1:-1], max_length - 2
    if how == HEAD:
        return [np.append(document[: max_length - 1], np.int32(SEP_ID))]
    if how == HEAD_TAIL:
        tail = room // _TAIL
        parts = [np.concatenate([inner[: room - tail], inner[len(inner) - tail :]])]
    else:
        parts = [inner[start : start + room] for start in range(0, min(len(inner), MOST_WINDOWS * room), room)]
    return [np.concatenate([[CLS_ID], part, [SEP_ID]]).astype(np.int32) for part in parts]


def row_weights(rows: Sequence[Row], max_length: int) -> npt.NDArray[np.float32]:
    """The weight of each row of one document, float32 [n]."""
    if len(rows) == 1:
        return np.ones(1, np.float32)
    filled = np.array([len(row) - 2 for row in rows]) / (max_length - 2)
    return (filled / np.arange(1, len(rows) + 1)).astype(np.float32)


def embed_rows(
    embed: Callable[[list[Row]], npt.NDArray[np.float32]], documents: Sequence[Row], how: str, max_length: int
) -> npt.NDArray[np.float32]:
    """Embeddings of documents by the embeddings of their rows, float32 [N, D] of length 1.

    Args:
      embed: rows to float32 [n, D].
      documents: see `rows_of`.
      how: one of `LONG_DOCUMENTS`.
      max_length: of a row.
    """
    divided = [rows_of(document, how, max_length) for document in documents]
    embeddings = embed([row for rows in divided for row in rows])
    firsts = np.cumsum([0, *map(len, divided)])[:-1]
    if len(embeddings) == len(documents):
        return embeddings
    weights = np.concatenate([row_weights(rows, max_length) for rows in divided])
    sums = np.add.reduceat(embeddings * weights[:, None], firsts, axis=0)
    means = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    several = np.array([len(rows) > 1 for rows in divided])
    # What fits one row stays as the model gives it.
    return np.where(several[:, None], means, embeddings[firsts]).astype(np.float32)


def tf_rows(documents: Any, how: str, max_length: int) -> tuple[Any, Any, Any]:
    """`rows_of` and `row_weights` as TensorFlow operations, for a SavedModel.

    Args:
      documents: tf.RaggedTensor int32 [b, (length)], ``[CLS] … [SEP]``, cut to `tokens_read`.
      how: ``head+tail`` or ``windows``.
      max_length: of a row.

    Returns:
      The rows, tf.RaggedTensor int32 [n, (length)]; the number of its document for each of them, ascending, int64 [n];
      and its weight, float32 [n].
    """
    import tensorflow as tf

    room = max_length - 2
    inner = documents[:, 1:-1]
    lengths = inner.row_lengths()
    if how == HEAD_TAIL:
        tail = room // _TAIL
        places = tf.ragged.range(lengths)
        total = tf.gather(lengths, places.value_rowids())
        kept = (places.values < room - tail) | (places.values >= total - tail) | (total <= room)
        rows = tf.ragged.boolean_mask(inner, inner.with_values(kept))
        return _closed(rows), tf.range(documents.nrows()), tf.ones_like(lengths, tf.float32)
    counts = tf.maximum((lengths + room - 1) // room, 1)
    owners = tf.repeat(tf.range(documents.nrows()), counts)
    number = tf.ragged.range(counts).values
    own_lengths = tf.minimum(tf.gather(lengths, owners) - number * room, room)
    weights = tf.cast(own_lengths, tf.float32) / room / tf.cast(number + 1, tf.float32)
    weights = tf.where(tf.gather(counts, owners) > 1, weights, tf.ones_like(weights))
    return _closed(tf.RaggedTensor.from_row_lengths(inner.values, own_lengths)), owners, weights


def _closed(rows: Any) -> Any:
    import tensorflow as tf

    ends = [tf.fill([rows.nrows(), 1], tf.constant(token, tf.int32)) for token in (CLS_ID, SEP_ID)]
    return tf.concat([ends[0], rows, ends[1]], axis=1)
