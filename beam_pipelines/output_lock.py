"""The lock on an output folder: one run of a job at a time."""

import contextlib
import datetime
import fcntl
import json
import logging
import os
import socket
import uuid
from collections.abc import Iterator
from typing import Any, Final

from ..errors import InputError

LOCK: Final = ".lock"
_log = logging.getLogger(__name__)


@contextlib.contextmanager
def locked(output: str, field: str = "--output") -> Iterator[None]:
    """Holds the lock on a folder, which is created if it does not exist.

    The lock is the file ``.lock`` with pid, host and start of the process that holds it. It is removed at the end, also
    after errors and Ctrl-C. A killed process leaves it behind: the next run on the same host takes it over. A run on
    another host cannot know whether the owner still runs, and is refused.

    Object stores are not locked, because Beam's filesystems cannot create a file only where none exists. There, the
    user makes sure that one run at a time writes to a folder.

    Args:
      output: the folder.
      field: the option that names it, for the error.

    Raises:
      InputError: if another run holds the lock, which names its owner, or if the folder cannot be made.
      OSError: if the folder or a lock in it cannot be read or written.
    """
    if "://" in output:
        yield
        return
    created = not os.path.isdir(output)
    try:
        os.makedirs(output, exist_ok=True)
    except FileNotFoundError as error:  # in a file system that makes none, such as /proc
        raise InputError("no folder can be made here", path=output, field=field, remedy="name another path") from error
    path, owner = os.path.join(output, LOCK), _this_run()
    try:
        _acquire(path, owner, field)
        yield
    finally:
        if _read(path) == owner:
            os.unlink(path)
        if created:
            with contextlib.suppress(OSError):  # not empty: a result, or a workspace to resume from
                os.rmdir(output)


def process_start(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty if it has ended or the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as source:
            fields = source.read().rpartition(")")[2].split()  # the name before the parenthesis may hold spaces
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _this_run() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "process_started": process_start(os.getpid()),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "run": uuid.uuid4().hex,  # two runs in one process
    }


def _acquire(path: str, owner: dict[str, Any], field: str) -> None:
    with _one_process_at_a_time(os.path.dirname(path)):
        while not _create(path, owner):
            found = _read(path)
            if found and _is_alive(found):
                where = f"process {found['pid']} on {found['host']}, since {found.get('time', 'an unknown time')}"
                raise InputError(
                    f"another run is writing to this folder: {where}",
                    path=os.path.dirname(path),
                    field=field,
                    remedy=f"wait until it ends, or name another folder; if it no longer runs, delete {path}",
                )
            was = f"process {found['pid']}, which has ended," if found else "a process that left no name"
            _log.warning("%s: the lock of %s is taken over", os.path.dirname(path), was)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _create(path: str, owner: dict[str, Any]) -> bool:
    """Creates the lock, unless there is one."""
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(file, "w", encoding="utf-8") as sink:
        json.dump(owner, sink)
    return True


@contextlib.contextmanager
def _one_process_at_a_time(folder: str) -> Iterator[None]:
    """Keeps two processes from taking over one lock, where the filesystem can lock folders."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read(path: str) -> dict[str, Any] | None:
    """The owner of a lock; ``None`` if there is no lock, or its owner was killed before it wrote its name.

    A lock that cannot be read, such as that of another user, is an ``OSError``: its owner may be alive.
    """
    try:
        with open(path, encoding="utf-8") as source:
            found = json.load(source)
    except (FileNotFoundError, ValueError):
        return None
    is_owner = isinstance(found, dict) and isinstance(found.get("pid"), int) and isinstance(found.get("host"), str)
    return found if is_owner and found["pid"] > 0 else None


def _is_alive(owner: dict[str, Any]) -> bool:
    if owner["host"] != socket.gethostname():
        return True
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # a process of another user has this number; whether it is the owner follows from its start
    return not owner.get("process_started") or process_start(owner["pid"]) == owner["process_started"]
