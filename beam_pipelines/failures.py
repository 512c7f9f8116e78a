"""Errors inside Beam's pipelines, as the error that the code of the shard raised.

Beam wraps the errors of a DoFn. From a worker process only the text of the traceback arrives.
"""

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from typing import Final

from ..errors import InputError, of_file_system, of_file_system_text

VERBOSE: Final = "NEWSEMBED_VERBOSE"  # set in the environment of all processes by `newsembed --verbose`
_NAME: Final = re.escape(f"{InputError.__module__}.{InputError.__name__}")
_RAISED: Final = re.compile(rf"{_NAME}: (.*?)(?: \[while running '[^']*'\]|\n\n|\Z)", re.DOTALL)
_REMEDY: Final = "\n  remedy: "
# What Prism says when the process of a worker ends; it does not repeat the work, as Flink and Dataflow do.
_WORKER_LOST: Final = re.compile(r"SDK worker disconnected")
# Ctrl-C inside of a DoFn, of which Beam makes another error.
_INTERRUPTED: Final = re.compile(r"^(RuntimeError: )?KeyboardInterrupt\b", re.MULTILINE)


@contextlib.contextmanager
def named(folder: str) -> Iterator[None]:
    """Raises what the code of a shard raised, if the user can correct it, in place of Beam's error.

    Args:
      folder: named where an error of the file system names no file.

    Raises:
      InputError: for one inside the pipeline, and for a disk or folder that cannot be written.
      KeyboardInterrupt: for one inside the pipeline.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if _INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from None
        found = input_error(error, folder)
        if found is None:
            raise
        raise found from error


def input_error(error: BaseException, folder: str) -> InputError | None:
    """The error that the user can correct and that another one wraps or quotes; ``None`` if there is none.

    Args:
      error: as Beam raised it.
      folder: see :func:`named`.
    """
    wrapped: BaseException | None = error
    while wrapped is not None:
        if isinstance(wrapped, InputError):
            return wrapped
        wrapped = wrapped.__cause__ or wrapped.__context__
    if quoted := _RAISED.findall(str(error)):
        problem, _, remedy = quoted[-1].partition(_REMEDY)
        return InputError(problem.strip(), remedy=remedy.strip() or None)
    if _WORKER_LOST.search(str(error)):
        remedy = "see the engine's log, often memory ran out; run the same command again: finished shards are kept"
        return InputError("a worker process of the engine died", path=folder, remedy=remedy)
    return of_file_system(error, folder) or of_file_system_text(str(error), folder)


def quoted(error: InputError) -> str:
    """The text of a worker's error from which :func:`input_error` makes the same error."""
    return f"{InputError.__module__}.{InputError.__name__}: {error}"


class WithoutTracebacks(logging.Filter):
    """Drops Beam's log messages about errors of bundles: the runner raises the same error where it is reported."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is logged."""
        return bool(os.environ.get(VERBOSE)) or not record.name.startswith("apache_beam.runners")
