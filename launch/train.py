"""``newsembed train``: hands its arguments, gin's, to the trainer."""

from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Runs the trainer; see ``newsembed train --help``."""
    from ..training import run
    from . import evaluators  # noqa: F401 - gin files name them

    return run.main(argv)
