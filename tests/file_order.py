"""The order in which the workers of pytest-xdist take the test files."""

import collections
from collections.abc import Iterable, Sequence

# The files that take longest, longest first: CPU seconds of the processes that they start included (2026-11-23).
LONGEST = (
    "tests/launch/test_build.py",
    "tests/training/test_processes.py",
    "tests/training/test_sharding.py",
    "tests/golden/test_golden.py",
)


def longest_first(files: Iterable[str], longest: Sequence[str] = LONGEST) -> list[str]:
    """Files of tests, one for each test, in the order in which they are run.

    The longest files come first, then the others by their number of tests: a long file that a worker takes last
    leaves the other workers without work.
    """
    counts = collections.Counter(files)
    known = {file: place for place, file in enumerate(longest)}
    return sorted(counts, key=lambda file: (known.get(file, len(known)), -counts[file]))
