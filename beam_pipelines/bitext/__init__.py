"""Translation pairs: those that files hold (`readers`), and those that ``newsembed bitext`` finds (`job`)."""

from typing import TYPE_CHECKING, Any

from .aligned import count_lines
from .pairs import BitextPart, TranslationPair
from .readers import HELP, digest, plan_parts, read_pairs

if TYPE_CHECKING:
    from .job import JOB as JOB


def __getattr__(name: str) -> Any:
    """Imports ``JOB`` on first access: readers of files need none of the job.

    Raises:
      AttributeError: for any other name.
    """
    if name == "JOB":
        from .job import JOB

        return JOB
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["HELP", "BitextPart", "TranslationPair", "count_lines", "digest", "plan_parts", "read_pairs"]
