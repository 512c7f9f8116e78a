"""How a record of any length becomes a row of fixed length: one rule for the seqio and the TensorFlow-free readers."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from .errors import InputError
from .features import FEATURES, FeatureSpec, TaskName

NO_LABEL: Final = -1  # fills `topic_labels`: such a slot carries no loss
PACKED_TASKS: Final = frozenset({TaskName.MLM, TaskName.TLM})


def batch_features(task: TaskName) -> tuple[FeatureSpec, ...]:
    """The features that reach the device: all integer ones of the task."""
    return tuple(spec for spec in FEATURES[task] if spec.kind == "int")


def row_lengths(task: TaskName, lengths: Mapping[str, int]) -> dict[str, int]:
    """The fixed length of every feature of varying length.

    Args:
      task: whose features.
      lengths: `TASK_FEATURE_LENGTHS`. Features that run along the tokens (`segment_ids`, `positions`, `word_ids`) may be left out
        and then take the length of `tokens`; likewise `topic_labels` takes that of `topic_ids`.

    Raises:
      InputError: for a feature without a length, or a length that is no positive integer.
    """
    result = {}
    for spec in batch_features(task):
        if spec.shape != (None,):
            continue
        leader = {"segment_ids": "tokens", "positions": "tokens", "word_ids": "tokens", "topic_labels": "topic_ids"}.get(spec.name)
        length = lengths.get(spec.name, lengths.get(leader) if leader else None)
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise InputError(
                f"got {length!r} for the task {task}, expected a positive number of values",
                path="TASK_FEATURE_LENGTHS",
                field=spec.name,
                remedy=f"Set TASK_FEATURE_LENGTHS = {{'{spec.name}': <length>, …}}.",
            )
        result[spec.name] = length
    return result


def fit_row(task: TaskName, name: str, values: np.ndarray, length: int) -> np.ndarray:
    """Cuts or fills one feature to `length`.

    A one-piece row of tokens that is cut keeps its last token, the closing [SEP]. Filling is 0, and `NO_LABEL` for labels.

    Args:
      task: whose feature.
      name: the feature.
      values: int32 [any length].
      length: of the result.
    """
    if values.size >= length:
        row = values[:length].copy()
        if name.endswith("tokens") and task not in PACKED_TASKS:
            row[-1] = values[-1]
        return row
    fill = NO_LABEL if name == "topic_labels" else 0
    return np.concatenate([values, np.full(length - values.size, fill, values.dtype)])
