"""``newsembed extract``: WARC files and pre-extracted articles to articles and hubs.

The job is imported when it is asked for: whoever reads one page, as the processes of :mod:`.isolation` do, needs no Beam.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job import JOB as JOB


def __getattr__(name: str) -> Any:
    if name == "JOB":
        from .job import JOB

        return JOB
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
