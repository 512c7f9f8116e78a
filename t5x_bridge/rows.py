"""Rows of fixed shape for the readers of T5X and seqio: our rules for each feature, as a feature converter of seqio."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from ..errors import InputError
from ..learning.batches import Batch
from ..tasks.registry import TEXT, RowMaker, get
from .recipe import Recipe, Shapes

TOKENS: Final = "tokens"


def rows_of(recipe: Recipe, examples: Any, lengths: Mapping[str, int] | None) -> Any:
    """Returns the rows of examples of one of our seqio tasks, as our trainer makes them, as a `tf.data.Dataset`.

    Read the examples whole (`trim_output_features = False`, or no lengths): a row that seqio has cut lost its closing
    [SEP].

    Args:
      recipe: the model with what it learns.
      examples: of one seqio task or mixture of `tasks.seqio_tasks.register_tasks`, or texts ("tokens").
      lengths: TASK_FEATURE_LENGTHS; None takes the model's.

    Raises:
      InputError: for examples of a task that the model was not made for.
    """
    import tensorflow as tf

    make_row, shapes = _rule(recipe, set(examples.element_spec), lengths)

    def of_arrays(*arrays: np.ndarray) -> list[np.ndarray]:
        row = make_row(dict(zip(shapes, arrays, strict=True)))
        return [np.asarray(row[name], np.int32) for name in shapes]

    def of_tensors(example: Mapping[str, Any]) -> dict[str, Any]:
        values = tf.numpy_function(of_arrays, [example[name] for name in shapes], [tf.int32] * len(shapes))
        return {name: tf.ensure_shape(value, shapes[name]) for name, value in zip(shapes, values, strict=True)}

    return examples.map(of_tensors, num_parallel_calls=tf.data.AUTOTUNE)


def _rule(
    recipe: Recipe, features: set[str], lengths: Mapping[str, int] | None
) -> tuple[Callable[[Batch], Batch], Shapes]:
    """What makes the rows of examples with these features, and the shapes of the rows."""
    found = [group for group in recipe.layout.groups if set(group.shapes) == features] if recipe.layout else []
    if found and recipe.data is not None:
        task, lengths = get(found[0].tasks[0]), {**recipe.data.lengths, **(lengths or {})}
        of_task = RowMaker(task, lengths, recipe.objectives.bounds)
        return lambda example: of_task(example, task.name), task.shapes(lengths)
    if TOKENS in features:  # texts to embed, with whatever else
        longest = recipe.text_length or recipe.objectives.model.config.max_length
        shape = ((lengths or {}).get(TOKENS) or longest,)
        return lambda example: {TOKENS: TEXT.fit(example[TOKENS], shape)}, {TOKENS: shape}
    raise InputError(
        f"got examples with {', '.join(sorted(features))}",
        field="DatasetConfig.mixture_or_task_name",
        remedy=f"Name a task or mixture of {', '.join(recipe.objectives.of_task) or 'texts to embed'}.",
    )


@dataclasses.dataclass(frozen=True)
class ConverterClass:
    """The `FEATURE_CONVERTER_CLS` of a model, which T5X calls with the options of packing.

    Attributes:
      recipe: the model with what it learns.
    """

    recipe: Recipe

    def __call__(self, *, pack: bool = False, use_custom_packing_ops: bool = False) -> Any:
        """Returns the converter, a `seqio.FeatureConverter` with the attribute `recipe`."""
        del use_custom_packing_ops
        if pack:
            raise InputError(
                "got True, expected False: `newsembed pack` has packed the rows", field="DatasetConfig.pack"
            )
        return _seqio_converter()(self.recipe)


@functools.cache
def _seqio_converter() -> Any:
    """The class of seqio's converters that pass on to ours; a function, because importing seqio takes seconds."""
    import seqio

    class Converter(seqio.FeatureConverter):
        """seqio asks for this type; its checks of lengths and types are in our rules."""

        TASK_FEATURES: ClassVar[dict[str, Any]] = {}
        MODEL_FEATURES: ClassVar[dict[str, Any]] = {}
        PACKING_FEATURE_DTYPES: ClassVar[dict[str, Any]] = {}

        def __init__(self, recipe: Recipe) -> None:
            super().__init__(pack=False)
            self.recipe = recipe

        def __call__(self, ds: Any, task_feature_lengths: Mapping[str, int] | None) -> Any:
            return rows_of(self.recipe, ds, task_feature_lengths)

        _convert_features = __call__

        def get_model_feature_lengths(self, task_feature_lengths: Mapping[str, int]) -> Mapping[str, int]:
            return task_feature_lengths

    return Converter
