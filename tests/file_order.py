"""The order in which the workers of pytest-xdist take the test files."""

import collections
from collections.abc import Iterable, Sequence

# Files that take long for their number of tests, the longest first, about: they start processes, or compile and train.
LONGEST = (
    "tests/training/test_processes.py",
    "tests/training/test_sharding.py",
    "tests/launch/test_build.py",
    "tests/golden/test_golden.py",
    "tests/updates/test_train.py",
    "tests/studies/test_lift.py",
    "tests/training/test_kills.py",
    "tests/test_notebooks.py",
    "tests/launch/test_import_tokenizers.py",
    "tests/beam_pipelines/test_bitext_mining.py",
    "tests/beam_pipelines/test_translation.py",
    "tests/studies/test_ablate_tables.py",
    "tests/updates/test_update.py",
    "tests/serving/test_static.py",
    "tests/tasks/test_plain_tokenizer.py",
    "tests/beam_pipelines/test_jobs.py",
    "tests/learning/objectives/test_contrastive.py",
    "tests/training/test_meshes.py",
    "tests/training/test_context_run.py",
    "tests/studies/test_distil.py",
    "tests/learning/objectives/test_bilingual.py",
    "tests/training/test_early_stopping.py",
    "tests/training/test_calibration.py",
    "tests/serving/test_long_documents.py",
)


def longest_first(files: Iterable[str], longest: Sequence[str] = LONGEST) -> list[str]:
    """Files of tests, one for each test, in the order in which they are run.

    The longest files come first, then the others by their number of tests: a long file that a worker takes last
    leaves the other workers without work.
    """
    counts = collections.Counter(files)
    known = {file: place for place, file in enumerate(longest)}
    return sorted(counts, key=lambda file: (known.get(file, len(known)), -counts[file]))
