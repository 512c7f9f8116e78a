"""``newsembed train``: passes its arguments to the trainer."""

from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Runs the trainer; see ``newsembed train --help``."""
    import gin

    from ..training import run

    with gin.unlock_config():  # a run in this process may have locked it
        from ..studies import evaluators  # noqa: F401 - gin files name them

    return run.main(argv)
