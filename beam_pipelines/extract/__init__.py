"""``newsembed extract``: converts WARC files and pre-extracted articles to articles and hubs.

The job is imported on first access: extracting a single page, as the processes of :mod:`.isolation` do, needs no Beam.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job import JOB as JOB


def __getattr__(name: str) -> Any:
    """Imports ``JOB`` on first access.

    Raises:
      AttributeError: for any other name.
    """
    if name == "JOB":
        from .job import JOB

        return JOB
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
