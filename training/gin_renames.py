"""Old names of gin values: run files and `config.gin` of model folders that were written with them still load."""

import re
from typing import Final

# The old key, and the key or macro that has taken its place. A macro sets the option of every objective that has it.
RENAMED: Final = {
    "Losses.temperature": "Contrastive.temperature",
    "Losses.learn_temperature": "Contrastive.learn_temperature",
    "Losses.stop_translated_gradient": "Contrastive.stop_translated_gradient",
    "Losses.hard_negatives": "Contrastive.hard_negatives",
    "Losses.symmetric": "Contrastive.symmetric",
    "Losses.augmentations": "Contrastive.augmentations",
    "Losses.translated_triplets": "Contrastive.translated_triplets",
    "Losses.matryoshka_sizes": "Contrastive.matryoshka_sizes",
    "Losses.matryoshka_weights": "Contrastive.matryoshka_weights",
    "Losses.topics_per_row": "Topics.topics_per_row",
    "Losses.masking_rate": "MASKING_RATE",
    "Losses.mlm_weight": "MLM_WEIGHT",
    "Losses.vocabulary_chunk": "VOCABULARY_CHUNK",
    "Losses.gradient_chunk": "GRADIENT_CHUNK",
    "train.model_dir": "RunOptions.model_dir",
    "train.train_steps": "RunOptions.train_steps",
    "train.log_period": "RunOptions.log_period",
    "train.peak_flops_per_device": "RunOptions.peak_flops_per_device",
    "train.seed": "RunOptions.seed",
    "train.data_dir": "DataOptions.data_dir",
    "train.vocabulary_path": "DataOptions.vocabulary_path",
    "train.mixture": "DataOptions.mixture",
    "train.feature_lengths": "DataOptions.feature_lengths",
    "train.batch_size": "DataOptions.batch_size",
    "train.open_set": "DataOptions.open_set",
    "train.smoothing": "DataOptions.smoothing",
    "train.task_weights": "DataOptions.task_weights",
    "train.architecture": "ModelOptions.architecture",
    "train.vocab_size": "ModelOptions.vocab_size",
    "train.text_length": "ModelOptions.text_length",
    "train.partitioner": "ModelOptions.partitioner",
    "train.learning_rate": "OptimizerOptions.learning_rate",
    "train.guards": "OptimizerOptions.guards",
    "train.initial_checkpoint_path": "CheckpointOptions.initial_checkpoint_path",
    "train.checkpoint_period": "CheckpointOptions.period",
    "train.keep_checkpoints": "Keeping.newest",
    "train.keep_period": "Keeping.period",
    "train.keep_best": "Keeping.best",
    "train.keep_best_mode": "Keeping.best_mode",
    "train.whitening_rows": "CalibrationOptions.whitening_rows",
    "train.latent_semantics": "CalibrationOptions.latent_semantics",
    "adam.b1": "Moments.b1",
    "adam.b2": "Moments.b2",
    "adam.epsilon": "Moments.epsilon",
}
_KEY: Final = re.compile(r"^([ \t]*)((?:Losses|adam|train)\.\w+)(?=\s*=)", re.MULTILINE)
# Groups that are now made elsewhere: the optimizer in its group, the losses by the registry of objectives.
_GROUP: Final = (
    (re.compile(r"^[ \t]*train\.losses\s*=.*$", re.MULTILINE), "# train.losses is no longer used"),
    (
        re.compile(r"^([ \t]*)train\.optimizer(?=\s*=\s*@(?!OptimizerOptions))", re.MULTILINE),
        r"\1OptimizerOptions.optimizer",
    ),
)


def with_new_names(text: str) -> tuple[str, list[str]]:
    r"""Returns gin text with the new names in the place of old ones, line by line, and the old keys that it had.

    >>> with_new_names("train.seed = 3\nLosses.mlm_weight = 0.1")
    ('RunOptions.seed = 3\nMLM_WEIGHT = 0.1', ['train.seed', 'Losses.mlm_weight'])
    """
    for pattern, replacement in _GROUP:
        text = pattern.sub(replacement, text)
    found = [match[2] for match in _KEY.finditer(text) if match[2] in RENAMED]
    return _KEY.sub(lambda match: match[1] + RENAMED.get(match[2], match[2]), text), found
