"""``newsembed train``: passes its arguments to the trainer."""

import argparse
from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Runs the trainer; see ``newsembed train --help``."""
    import gin

    from ..training import run

    with gin.unlock_config():  # a run in this process may have locked it
        from ..studies import evaluators  # noqa: F401 - gin files name them

    return run.main(argv)


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``newsembed train``, without the gin values."""
    from ..training import run

    return run.make_parser()
