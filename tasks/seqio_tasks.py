"""seqio tasks and mixtures over the training TFRecords; the functions import TensorFlow and seqio when called."""

import functools
from typing import Any, Final

from ..formats.manifest import DataSet, example_paths, example_pattern
from ..formats.tfrecords import PIECES, FeatureSpec
from ..formats.vocabulary import read_vocabulary
from . import registry
from .registry import smoothed_sizes

_SPLIT: Final = "train"


def register_tasks(data_dir: str, vocabulary_path: str) -> list[str]:
    """Registers one seqio task for each (task, language) set, and mixtures over the languages.

    All tasks of a seqio mixture must have the same features. There is a seqio mixture for each mixture of such tasks
    ("pretrain"), and one for each other task ("triplets", "topics"). seqio has no "weak_supervision"; the trainer draws
    it.

    Names are `<prefix>_<task>_<language>` and `<prefix>_<mixture>`, with underscores for hyphens, which seqio does not
    allow. Mixture rates are the paper's, m_i = n_1 (p_i / p_1)^0.7. Registering a folder again replaces its tasks.

    Args:
      data_dir: holds `task=…/language=…/part-*.tfrecord` and `manifest.json`.
      vocabulary_path: the vocab.txt that the data were written with; its size bounds the token features.

    Returns:
      The names, tasks first.

    Raises:
      InputError: if the folder or the vocabulary cannot be read.
    """
    import seqio
    import tensorflow as tf

    pieces, others = map(seqio.PassThroughVocabulary, (read_vocabulary(vocabulary_path).size, 0))
    counts, names, mixtures = registry.example_counts(data_dir), dict[DataSet, str](), list[str]()
    for key in sorted(counts):
        task, names[key] = registry.get(key.task), task_name(key.task, key.language)
        example_paths(data_dir, key)  # raises if there are none
        parsers = {spec.name: _parser(spec) for spec in task.features}
        files = {_SPLIT: example_pattern(data_dir, key)}
        features = {
            # A scalar has rank 0, and its length in `task_feature_lengths` must then be None.
            spec.name: seqio.Feature(
                pieces if spec.holds == PIECES else others, add_eos=False, dtype=tf.int32, rank=len(spec.shape)
            )
            for spec in task.row_features
        }
        seqio.TaskRegistry.remove(names[key])
        seqio.TaskRegistry.add(
            names[key],
            source=seqio.TFExampleDataSource(files, parsers, num_input_examples=None),
            preprocessors=[functools.partial(_to_int32, specs=task.features)],
            output_features=features,
        )
    for mixture, tasks in _mixtures().items():
        members = {key: counts[key] for key in names if key.task in tasks}
        if not members:
            continue
        rates = [(names[key], size) for key, size in smoothed_sizes(members).items()]
        name = f"newsembed_{mixture}"
        seqio.MixtureRegistry.remove(name)
        seqio.MixtureRegistry.add(name, rates)
        mixtures.append(name)
    return [*names.values(), *mixtures]


def task_name(task: str, language: str) -> str:
    """The seqio name of one set.

    >>> task_name("mlm", "pt-BR")
    'newsembed_mlm_pt_BR'
    """
    return f"newsembed_{task}_{language.replace('-', '_')}"


def _mixtures() -> dict[str, tuple[str, ...]]:
    """Names of the tasks of every seqio mixture, in the order of the first."""
    alike = {
        name: tasks
        for name, tasks in registry.mixtures().items()
        if len({registry.get(task).features for task in tasks}) == 1
    }
    mixed = {task for tasks in alike.values() for task in tasks}
    return alike | {name: (name,) for name in registry.names() if name not in mixed}


def _to_int32(dataset: Any, specs: tuple[FeatureSpec, ...]) -> Any:
    import tensorflow as tf

    names = [spec.name for spec in specs if spec.kind == "int"]
    return dataset.map(
        lambda example: {name: tf.cast(example[name], tf.int32) for name in names}, num_parallel_calls=tf.data.AUTOTUNE
    )


def _parser(spec: FeatureSpec) -> Any:
    import tensorflow as tf

    dtype = tf.int64 if spec.kind == "int" else tf.string
    if spec.shape == (None,):
        return tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True)
    default = tf.zeros(spec.shape, dtype) if spec.optional else None
    return tf.io.FixedLenFeature(list(spec.shape), dtype, default)
