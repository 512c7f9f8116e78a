"""The order in which the workers of pytest-xdist take the test files."""

import collections

# Files that take long for their number of tests, the longest first, about: they start processes, or compile and train.
LONGEST = (
    "tests/golden/test_golden.py",
    "tests/training/test_sharding.py",
    "tests/training/test_processes.py",
    "tests/updates/test_update.py",
    "tests/serving/test_kinds.py",
    "tests/training/test_bilingual_runs.py",
    "tests/training/test_calibration.py",
    "tests/launch/test_build.py",
    "tests/training/test_loop.py",
    "tests/serving/test_export.py",
    "tests/models/test_translators.py",
    "tests/launch/test_import_tokenizers.py",
    "tests/tasks/test_imported_tokenizer.py",
    "tests/training/test_early_stopping.py",
    "tests/serving/test_static.py",
    "tests/serving/test_prompting.py",
    "tests/serving/test_long_documents.py",
    "tests/learning/objectives/test_contrastive.py",
    "tests/training/test_context_run.py",
    "tests/studies/test_lift.py",
    "tests/serving/test_model.py",
    "tests/models/test_word_encoders.py",
    "tests/test_extending.py",
    "tests/beam_pipelines/test_object_store_jobs.py",
    "tests/updates/test_train.py",
    "tests/training/test_lexical.py",
    "tests/beam_pipelines/test_bitext_mining.py",
)


def longest_first(files, longest=LONGEST):
    """Files of tests, one for each test, in the order in which they are run.

    The longest files come first, then the others by their number of tests: a long file that a worker takes last
    leaves the other workers without work.
    """
    counts = collections.Counter(files)
    known = {file: place for place, file in enumerate(longest)}
    return sorted(counts, key=lambda file: (known.get(file, len(known)), -counts[file]))
