"""How a record of any length becomes a row of fixed length: one rule for the seqio and the TensorFlow-free readers."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..errors import InputError
from ..formats.tfrecords.schema import FeatureSpec
from ..formats.vocabulary import CLS_ID
from .features import FEATURES, TaskName

NO_LABEL: Final = -1  # fills `topic_labels`: such a slot carries no loss
NEGATIVES: Final = "negatives"  # of a triplet, in TASK_FEATURE_LENGTHS; 1 where absent
PACKED_TASKS: Final = frozenset({TaskName.MLM, TaskName.TLM})


def batch_features(task: TaskName) -> tuple[FeatureSpec, ...]:
    """The features that reach the device: all integer ones of the task."""
    return tuple(spec for spec in FEATURES[task] if spec.kind == "int")


def row_lengths(task: TaskName, lengths: Mapping[str, int]) -> dict[str, int]:
    """The fixed length of every feature of varying length.

    Args:
      task: whose features.
      lengths: `TASK_FEATURE_LENGTHS`. Features that run along the tokens (`segment_ids`, `positions`, `word_ids`) may be left out
        and then take the length of `tokens`; likewise `topic_labels` takes that of `topic_ids`. `NEGATIVES` is how many hard negatives of
        a record are read, each as long as `negative_tokens` says.

    Returns:
      The lengths by feature, and `NEGATIVES` where it is above 1.

    Raises:
      InputError: for a feature without a length, or a length that is no positive integer.
    """
    result = {}
    negatives = lengths.get(NEGATIVES, 1)
    if not isinstance(negatives, int) or isinstance(negatives, bool) or negatives < 1:
        raise InputError(
            f"got {negatives!r}, expected 1 or more",
            path="TASK_FEATURE_LENGTHS",
            field=NEGATIVES,
            remedy="Leave it out for 1.",
        )
    for spec in batch_features(task):
        if spec.shape != (None,):
            continue
        if spec.name == "negative_doc_id":
            result[spec.name] = 2 * negatives
            continue
        leader = {
            "segment_ids": "tokens",
            "positions": "tokens",
            "word_ids": "tokens",
            "topic_labels": "topic_ids",
        }.get(spec.name)
        length = lengths.get(spec.name, lengths.get(leader) if leader else None)
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise InputError(
                f"got {length!r} for the task {task}, expected a positive number of values",
                path="TASK_FEATURE_LENGTHS",
                field=spec.name,
                remedy=f"Set TASK_FEATURE_LENGTHS = {{'{spec.name}': <length>, …}}.",
            )
        result[spec.name] = length
    return result | ({NEGATIVES: negatives} if negatives > 1 and task is TaskName.TRIPLETS else {})


def fit_row(task: TaskName, name: str, values: np.ndarray, length: int, negatives: int = 1) -> np.ndarray:
    """Cuts or fills one feature to `length`; of several negatives in `negative_tokens`, each, and their number to `negatives`.

    A one-piece row of tokens that is cut keeps its last token, the closing [SEP]. Filling is 0, and `NO_LABEL` for labels.

    Args:
      task: whose feature.
      name: the feature.
      values: int32 [any length].
      length: of the result.
      negatives: to read of a record; places without one are filled with 0.

    Returns:
      int32 [length], or [negatives, length] for `negative_tokens` where there is more than one.

    Raises:
      InputError: for ids of negatives that do not come in twos.
    """
    if name == "negative_tokens":
        texts = np.split(values, np.flatnonzero(values == CLS_ID)[1:])
        rows = [_fit(task, name, text, length) for text in texts[:negatives]]
        return rows[0] if negatives == 1 else np.stack(rows + [np.zeros_like(rows[0])] * (negatives - len(rows)))
    if name == "negative_doc_id" and values.size % 2:
        raise InputError(
            f"got {values.size} values, expected 2 for each negative", field=name, remedy="Write the records again."
        )
    return _fit(task, name, values, length)


def _fit(task: TaskName, name: str, values: np.ndarray, length: int) -> np.ndarray:
    if values.size >= length:
        row = values[:length].copy()
        if name.endswith("tokens") and task not in PACKED_TASKS:
            row[-1] = values[-1]
        return row
    fill = NO_LABEL if name == "topic_labels" else 0
    return np.concatenate([values, np.full(length - values.size, fill, values.dtype)])
