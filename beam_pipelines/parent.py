"""Ends worker processes when the process that started them ends, even if that process is killed."""

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

PARENT: Final = "NEWSEMBED_PARENT"  # in the environment of a worker: the pid of the process to end with
_PR_SET_PDEATHSIG: Final = 1
_POLL_SECONDS: Final = 1.0


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends (Linux; elsewhere nothing happens).

    The kernel counts the thread that started this process as the parent.
    """
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    # A C library without prctl: the process then ends when its pipe is closed, as on other systems.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent or parent == 1:  # it ended before the call
        os._exit(1)


def end_with(pid: int, end: Callable[[], None] = lambda: os._exit(1)) -> None:
    """Calls ``end`` from a thread when another process, which need not be the parent, has ended."""
    threading.Thread(target=_wait, args=(pid, end), name="end-with-parent", daemon=True).start()


def _wait(pid: int, end: Callable[[], None]) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        end()
        return
    except (OSError, AttributeError):  # an old kernel, or another system
        while _is_alive(pid):
            time.sleep(_POLL_SECONDS)
        end()
        return
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll()
    os.close(handle)
    end()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it lives, and belongs to another user
    return True
