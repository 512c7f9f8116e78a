"""A T5X model over the registries: any architecture, the objectives of any tasks, and what a run writes of it."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from clu import metrics as clu_metrics
from flax import core, traverse_util
from flax.linen import partitioning as flax_partitioning
from t5x import gin_utils, models
from t5x import metrics as t5x_metrics

from ..errors import InputError
from ..formats.model_folder import ModelFolder
from ..formats.t5x import write_skeleton
from ..learning.model_files import check_same_model, write_model_files
from ..learning.objectives import Objective, Objectives
from ..learning.options import DataOptions, ModelOptions
from ..tasks import registry
from .checkpoints import skeleton_of
from .recipe import BatchLayout, Loss, loss_of_batch, make_recipe
from .rows import ConverterClass

HELD_OUT_MASKS: Final = 0x5EED  # held-out rows have the same masks at every evaluation of every run


@flax.struct.dataclass
class MeanOverSteps(clu_metrics.Average):
    """The mean over those steps of a period that have the metric; NaN if none has."""

    def compute(self) -> Any:
        """Returns the mean."""
        return jnp.where(self.count > 0, self.total / jnp.maximum(self.count, 1), jnp.nan)


class EmbeddingModel(models.BaseModel):
    """An architecture of `models.encoders.KINDS` with the objectives of its tasks.

    Args:
      vocabulary_path: VOCABULARY_PATH, the vocab.txt of model and data.
      model: the architecture; its partitioner is T5X's here.
      data: what it trains on; None for a model that only embeds.
      objectives: take the place of the registered ones, each for the tasks that it serves.
      optimizer_def: T5X's; None for a model that is not trained.

    Attributes:
      recipe: the model with what it learns.

    Raises:
      InputError: for a vocabulary, data, an architecture, an objective or options that do not fit each other.
    """

    def __init__(
        self,
        vocabulary_path: str,
        model: ModelOptions,
        data: DataOptions | None = None,
        objectives: Sequence[Objective] = (),
        optimizer_def: Any = None,
    ) -> None:
        self.recipe = make_recipe(vocabulary_path, model, data, objectives)
        self.FEATURE_CONVERTER_CLS = ConverterClass(self.recipe)
        self._batch_size: int | None = None
        super().__init__(optimizer_def=optimizer_def)

    def loss_fn(
        self, params: Any, batch: Mapping[str, jax.Array], dropout_rng: jax.Array | None
    ) -> tuple[jax.Array, dict[str, Any]]:
        """Returns the loss of the task that the batch is of, and its metrics.

        Args:
          params: of the model.
          batch: see `layout.BatchLayout`.
          dropout_rng: all randomness of the step follows from it, as in our trainer; None measures a held-out batch.

        Raises:
          InputError: for a part of a batch.
        """
        if dropout_rng is None:
            return self.eval_fn(params, batch)
        self._check_whole(batch)
        return self._losses(self.recipe.objectives, params, batch, _typed(dropout_rng))

    def eval_fn(self, params: Any, batch: Mapping[str, jax.Array]) -> tuple[jax.Array, dict[str, Any]]:
        """Returns the loss and the metrics of a held-out batch: without dropout and what only helps training."""
        return self._losses(self.recipe.objectives.evaluated(), params, batch, jax.random.key(HELD_OUT_MASKS))

    def predict_batch_with_aux(
        self, params: Any, batch: Mapping[str, jax.Array], rng: jax.Array | None = None
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Returns the embeddings of a batch's texts, float32 [B, D] of length 1, and nothing else.

        The texts are the feature "tokens", or the one that the batch's task names (`Task.text`).

        Raises:
          InputError: for a batch without texts.
        """
        del rng
        module = self.recipe.objectives.model.module
        return module.apply({"params": core.unfreeze(params)}, _texts(batch), method="embed"), {}

    def score_batch(self, params: Any, batch: Mapping[str, jax.Array], return_intermediates: bool = False) -> jax.Array:
        """Returns the cosine of each query of a batch and its answer, float32 [B].

        Raises:
          InputError: for a batch of a task without such pairs, or intermediate values.
        """
        _, layout = self.recipe.needed_data()
        objectives = self.recipe.objectives.evaluated()
        task = layout.groups[0].tasks[0]
        pairs = None
        if len(layout.groups) == 1 and not return_intermediates:
            pairs = objectives.pairs(task, core.unfreeze(params), layout.rows_in(batch, 0))
        if pairs is None:
            raise InputError(
                f"got a batch of {', '.join(self.recipe.objectives.of_task)}, expected queries with answers",
                field="infer.mode",
                remedy="Set MIXTURE_OR_TASK_NAME to a task with pairs, such as triplets, or mode = 'predict'.",
            )
        return jnp.sum(pairs.query * pairs.answer, axis=1)

    def get_initial_variables(
        self, rng: jax.Array, input_shapes: Mapping[str, Any], input_types: Mapping[str, Any] | None = None
    ) -> Any:
        """Returns the parameters as our trainer draws them, with the logical axes of each."""
        del input_types
        if input_shapes:
            self._batch_size = next(iter(input_shapes.values()))[0]
        params = self.recipe.objectives.model.module.init(_typed(rng), jnp.zeros((1, 1), jnp.int32))["params"]
        return core.freeze({"params": nn.unbox(params), "params_axes": _axes(params)})

    def optimizer_skeleton(self) -> Any:
        """Returns how the optimizer's state is nested, see `trees.skeleton_of`; None for optimizers not of optax."""
        if not hasattr(self.optimizer_def, "optax_optimizer"):
            return None
        key = jax.random.key(0)
        params = jax.eval_shape(lambda: core.unfreeze(self.get_initial_variables(key, {}))["params"])
        return skeleton_of(jax.eval_shape(self.optimizer_def.optax_optimizer.init, params))

    def _losses(
        self, objectives: Objectives, params: Any, batch: Mapping[str, jax.Array], key: jax.Array
    ) -> tuple[jax.Array, dict[str, Any]]:
        _, layout = self.recipe.needed_data()
        loss = loss_of_batch(objectives, layout, core.unfreeze(params), batch, key)
        size = len(next(iter(batch.values())))
        timing = {
            "timing/seqs_per_second": t5x_metrics.TimeRate.from_model_output(numerator=size),
            "timing/steps_per_second": t5x_metrics.StepsPerTime.from_model_output(),
        }
        return loss.value, _metrics(loss, layout) | timing

    def _check_whole(self, batch: Mapping[str, jax.Array]) -> None:
        size = len(next(iter(batch.values())))
        if self._batch_size not in (None, size):
            raise InputError(
                f"got {size} of {self._batch_size} rows; the loss needs the whole batch, whose rows are the negatives",
                field="trainer.Trainer.num_microbatches",
                remedy="Set it to None; GRADIENT_CHUNK saves the same memory with the same loss.",
            )


def summarize_config(model_dir: str, summary_writer: Any, step: int, *, model: EmbeddingModel) -> None:
    """Writes config.gin, model.json and the vocabulary into the MODEL_DIR of a T5X run; its `summarize_config_fn`.

    Args:
      model_dir: MODEL_DIR.
      summary_writer: T5X's, may be None.
      step: of the summary.
      model: of the run.

    Raises:
      InputError: if MODEL_DIR holds another model.
    """
    recipe = model.recipe
    config = recipe.objectives.model.config
    if ModelFolder(model_dir).is_described:
        check_same_model(model_dir, config, recipe.vocabulary)
    if jax.process_index() == 0:
        os.makedirs(model_dir, exist_ok=True)
        write_model_files(model_dir, config, recipe.vocabulary, recipe.text_length)
        skeleton = model.optimizer_skeleton()
        if skeleton is not None:
            write_skeleton(model_dir, skeleton)
    gin_utils.summarize_gin_config(model_dir, summary_writer, step)


def _typed(key: jax.Array) -> jax.Array:
    """T5X passes keys of the old kind, uint32 [2]; the numbers that follow from both kinds are the same."""
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)


def _texts(batch: Mapping[str, jax.Array]) -> jax.Array:
    names = dict.fromkeys(["tokens", *(registry.get(task).text for task in registry.names())])
    for name in names:
        if name in batch:
            return batch[name]
    raise InputError(f"got {', '.join(batch)}, expected one of {', '.join(names)}", field="DatasetConfig")


def _axes(boxed: Any) -> Any:
    """T5X's names of the axes of each parameter."""

    def axes_of(array: Any, spec: Any) -> Any:
        names = tuple(spec) or (None,) * jnp.ndim(array)
        return flax_partitioning.AxisMetadata(names=names)

    arrays = traverse_util.flatten_dict(nn.unbox(boxed))
    specs = traverse_util.flatten_dict(nn.get_partition_spec(boxed))
    named = {(*path[:-1], f"{path[-1]}_axes"): axes_of(array, specs[path]) for path, array in arrays.items()}
    return traverse_util.unflatten_dict(named)


def _metrics(loss: Loss, layout: BatchLayout) -> dict[str, Any]:
    """T5X's metrics: the loss of all steps, and of each group its loss and what its objective logs."""
    found = {"loss": MeanOverSteps(total=loss.value, count=jnp.ones((), jnp.int32))}
    for number, group in enumerate(layout.groups):
        if group.name not in loss.metrics:
            continue
        is_own = loss.number == number
        values = {"loss": jnp.where(is_own, loss.value, 0.0), **loss.metrics[group.name]}
        for name, value in values.items():
            found[f"{name}/{group.name}"] = MeanOverSteps(total=value, count=is_own.astype(jnp.int32))
    return found
