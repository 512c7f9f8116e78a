"""What a T5X run writes about itself: T5X's config.gin, and our description of the model next to its checkpoints."""

import os
from typing import Any

import jax
from t5x import gin_utils

from ..formats.model_folder import ModelFolder
from ..formats.t5x import write_skeleton
from ..learning.model_files import check_same_model, write_model_files
from .model import EmbeddingModel


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
