"""Rows of fixed shape for the readers of T5X and seqio: our rules for each feature, as a feature converter of seqio."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from ..errors import InputError
from ..learning.batches import Batch
from ..tasks.registry import RowMaker, get
from ..tasks.rows import TEXT
from .layout import Shapes
from .recipe import Recipe

TOKENS: Final = "tokens"


@dataclasses.dataclass(frozen=True)
class RowConverter:
    """What a feature converter of seqio does: examples of one of our seqio tasks to rows, as our trainer makes them.

    Attributes:
      recipe: the model with what it learns.
    """

    recipe: Recipe

    def __call__(self, ds: Any, task_feature_lengths: Mapping[str, int] | None) -> Any:
        """Returns the rows of a `tf.data.Dataset`.

        Read the examples whole (`trim_output_features = False`, or no lengths): a row that seqio has cut lost its
        closing [SEP].

        Args:
          ds: examples of one seqio task or mixture of `tasks.seqio_tasks.register_tasks`, or texts ("tokens").
          task_feature_lengths: TASK_FEATURE_LENGTHS; None takes the model's.

        Raises:
          InputError: for examples of a task that the model was not made for.
        """
        import tensorflow as tf

        make_row, shapes = self._rule(set(ds.element_spec), task_feature_lengths)

        def of_arrays(*arrays: np.ndarray) -> list[np.ndarray]:
            row = make_row(dict(zip(shapes, arrays, strict=True)))
            return [np.asarray(row[name], np.int32) for name in shapes]

        def of_tensors(example: Mapping[str, Any]) -> dict[str, Any]:
            values = tf.numpy_function(of_arrays, [example[name] for name in shapes], [tf.int32] * len(shapes))
            return {name: tf.ensure_shape(value, shapes[name]) for name, value in zip(shapes, values, strict=True)}

        return ds.map(of_tensors, num_parallel_calls=tf.data.AUTOTUNE)

    def _rule(self, features: set[str], lengths: Mapping[str, int] | None) -> tuple[Callable[[Batch], Batch], Shapes]:
        """What makes the rows of examples with these features, and the shapes of the rows.

        Raises:
          InputError: for examples of a task that the model was not made for.
        """
        config, layout = self.recipe.objectives.model.config, self.recipe.layout
        found = [group for group in layout.groups if set(group.shapes) == features] if layout is not None else []
        if found and self.recipe.data is not None:
            known = self.recipe.data.lengths
            task, lengths = get(found[0].tasks[0]), {**known, **lengths} if lengths else known
            of_task = RowMaker(task, lengths, self.recipe.objectives.bounds)
            return lambda example: of_task(example, task.name), task.shapes(lengths)
        if TOKENS in features:  # texts to embed, with whatever else
            shape = ((lengths or {}).get(TOKENS) or self.recipe.text_length or config.max_length,)
            return lambda example: {TOKENS: TEXT.fit(example[TOKENS], shape)}, {TOKENS: shape}
        raise InputError(
            f"got examples with {', '.join(sorted(features))}",
            field="DatasetConfig.mixture_or_task_name",
            remedy=f"Name a task or mixture of {', '.join(self.recipe.objectives.of_task) or 'texts to embed'}.",
        )


class ConverterClass(Protocol):
    """What T5X calls with the options of packing, and what our own readers read the recipe from."""

    @property
    def recipe(self) -> Recipe:
        """The model with what it learns."""
        ...

    def __call__(self, *, pack: bool = False, use_custom_packing_ops: bool = False) -> Any:
        """Returns the converter, a `seqio.FeatureConverter` with the attribute `recipe`."""
        ...


@dataclasses.dataclass(frozen=True)
class _ConverterClass:
    recipe: Recipe

    def __call__(self, *, pack: bool = False, use_custom_packing_ops: bool = False) -> Any:
        del use_custom_packing_ops
        if pack:
            raise InputError(
                "got True, expected False: `newsembed pack` has packed the rows", field="DatasetConfig.pack"
            )
        return _seqio_converter()(RowConverter(self.recipe))


@functools.cache
def _seqio_converter() -> Any:
    """The class of seqio's converters that pass on to ours; a function, because importing seqio takes seconds."""
    import seqio

    class Converter(seqio.FeatureConverter):
        """seqio asks for this type; its checks of lengths and types are in our rules."""

        TASK_FEATURES: ClassVar[dict[str, Any]] = {}
        MODEL_FEATURES: ClassVar[dict[str, Any]] = {}
        PACKING_FEATURE_DTYPES: ClassVar[dict[str, Any]] = {}

        def __init__(self, rows: RowConverter) -> None:
            super().__init__(pack=False)
            self.recipe, self._rows = rows.recipe, rows

        def __call__(self, ds: Any, task_feature_lengths: Mapping[str, int] | None) -> Any:
            return self._rows(ds, task_feature_lengths)

        def _convert_features(self, ds: Any, task_feature_lengths: Mapping[str, int]) -> Any:
            return self._rows(ds, task_feature_lengths)

        def get_model_feature_lengths(self, task_feature_lengths: Mapping[str, int]) -> Mapping[str, int]:
            return task_feature_lengths

    return Converter


def row_converter(recipe: Recipe) -> ConverterClass:
    """Returns the `FEATURE_CONVERTER_CLS` of a model."""
    return _ConverterClass(recipe)
