"""Commands of this program as children of a study, which are stopped together with it."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Final

from ...beam_pipelines.interpreter import PYTHON, child_environment
from ...beam_pipelines.parent import PARENT
from ...errors import Terminated

_PACKAGE: Final = __package__.partition(".")[0]
_running: Final[set[subprocess.Popen[bytes]]] = set()


@contextlib.contextmanager
def child(arguments: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a command of newsembed; at the end of the block it has ended.

    If this process is killed, the command gets SIGTERM, which makes a training save a checkpoint.

    Args:
      arguments: of ``newsembed``.
      **options: of `subprocess.Popen`.
    """
    environment = {**child_environment(), PARENT: str(os.getpid())}
    process = subprocess.Popen([*PYTHON, "-m", _PACKAGE, *arguments], env=environment, **options)  # noqa: S603 - ours
    _running.add(process)
    try:
        yield process
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()
        _running.discard(process)


@contextlib.contextmanager
def stopped_together() -> Iterator[None]:
    """Makes SIGTERM raise `Terminated`; it and Ctrl-C send SIGTERM to all children, also to those of other threads.

    Only the main thread may handle signals; in others SIGTERM keeps its meaning.

    Raises:
      KeyboardInterrupt: for Ctrl-C or SIGTERM.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _raise) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        for process in list(_running):
            process.terminate()
        raise
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
