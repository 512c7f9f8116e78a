"""Child processes of this program: with its interpreter and import path, and ended with the process that wants them."""

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

PARENT: Final = "NEWSEMBED_PARENT"  # in the environment of a child: the pid of the process to end with
_POLL_SECONDS: Final = 1.0
# Without the option, ``-m`` and ``-c`` put the working folder first on the path: a file there with the name of a
# library, such as proto.py, would take its place.
PYTHON: Final = (sys.executable, "-P")


def import_path() -> str:
    """The value of PYTHONPATH that gives a child the folders of this process, in their order.

    The working folder is among them only if this process imports from it.
    """
    return os.pathsep.join(folder or os.getcwd() for folder in sys.path)


def child_environment() -> dict[str, str]:
    """The environment of this process with :func:`import_path`."""
    return {**os.environ, "PYTHONPATH": import_path()}


def end_with(pid: int, end: Callable[[], None] = lambda: os._exit(1)) -> None:
    """Calls ``end`` from a thread when another process has ended, at most a second later."""

    def wait() -> None:
        while _is_alive(pid):
            time.sleep(_POLL_SECONDS)
        end()

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()


def end_with_parent() -> None:
    """Ends this process when its parent ends, even if that is killed."""
    end_with(os.getppid())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it lives, and belongs to another user
    return True
