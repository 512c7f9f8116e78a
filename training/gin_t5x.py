"""Names in gin files of T5X that mean the same in our trainer; the others are left out and listed.

A file of T5X follows a run file of ours, which has the architecture and the objectives::

    newsembed train --gin_file=runs/train_small.gin --gin_file=their_run.gin …
"""

import re
from collections.abc import Collection
from typing import Any, Final

# Names as those of imported modules, a module of T5X, or one of its own gin files.
_OF_T5X: Final = re.compile(
    r"""^(?:from __gin__ import dynamic_registration|(?:from|import)\s+t5x\b"""
    r"""|include\s+["']t5x/(?:configs|examples|contrib)/)""",
    re.MULTILINE,
)
MODULES: Final = ("t5x", "t5", "seqio", "airio", "__main__", "__gin__", "gin", "newsembed")  # imports that are left out
INCLUDES: Final = ("t5x/configs/", "t5x/examples/", "t5x/contrib/")

# T5X's [scope/]class.argument, and the macro of ours. A macro takes the place of the run file's value; a value for what
# the macro configures would leave the run file's macro without use, which is an error.
KEYS: Final = {
    "train.model_dir": "MODEL_DIR",
    "train.total_steps": "TRAIN_STEPS",
    "train.stats_period": "LOG_PERIOD",
    "train.random_seed": "SEED",
    "train.eval_period": "EVAL_PERIOD",
    "train.eval_steps": "EVAL_BATCHES",
    "train/DatasetConfig.mixture_or_task_name": "MIXTURE_OR_TASK_NAME",
    "train/DatasetConfig.task_feature_lengths": "TASK_FEATURE_LENGTHS",
    "train/DatasetConfig.batch_size": "BATCH_SIZE",
    "SaveCheckpointConfig.period": "CHECKPOINT_PERIOD",
    "SaveCheckpointConfig.keep": "KEEP_CHECKPOINTS",
    "SaveBestCheckpointer.force_keep_period": "KEEP_PERIOD",
    "RestoreCheckpointConfig.path": "INITIAL_CHECKPOINT_PATH",
    "PjitPartitioner.num_partitions": "MODEL_PARALLEL",
}
MACROS: Final = {"RANDOM_SEED": "SEED", "EVAL_STEPS": "EVAL_BATCHES", "STATS_PERIOD": "LOG_PERIOD"}
_OF_TRAIN: Final = (
    "model train_dataset_cfg checkpoint_cfg partitioner trainer_cls summarize_config_fn get_dataset_fn "
    "train_eval_get_dataset_fn inference_evaluator_cls"
)
# What only connects T5X's own parts with each other.
WIRING: Final = {
    *(f"train.{name}" for name in _OF_TRAIN.split()),
    *("CheckpointConfig.save", "CheckpointConfig.restore", "Trainer.learning_rate_fn"),
    *("PjitPartitioner.logical_axis_rules", "summarize_config.model"),
    *(f"EmbeddingModel.{name}" for name in ("model", "data", "optimizer_def")),
}
_NEVER_NONE: Final = ("KEEP_CHECKPOINTS", "SEED")  # T5X keeps all checkpoints then, or takes any seed


def is_of_t5x(text: str) -> bool:
    """Returns whether a gin file is one of T5X.

    >>> is_of_t5x("include 't5x/configs/runs/pretrain.gin'"), is_of_t5x("include 'models/pretrain.gin'")
    (True, False)
    """
    return bool(_OF_T5X.search(text))


def translated(scope: str, owner: str, parameter: str, value: Any, known: Collection[str]) -> tuple[str, Any] | None:
    """Returns our key and value for what a file of T5X sets; None if it has no meaning here.

    >>> translated("", "SaveCheckpointConfig", "period", 5, [])
    ('CHECKPOINT_PERIOD', 5)

    Args:
      scope: with its slash, or empty.
      owner: the last part of the class's name, or of the macro's.
      parameter: empty for a macro.
      value: as gin's parser gives it.
      known: names that our gin files may configure.
    """
    name = f"{scope}{owner}.{parameter}"
    if not parameter:
        key: str | None = MACROS.get(owner, owner)
    else:
        key = KEYS.get(name) or (name if owner in known and owner != "train" else None)
    if key is None or (value is None and key in _NEVER_NONE):
        return None
    return key, None if key == "INITIAL_CHECKPOINT_PATH" and value in ([], ()) else value
