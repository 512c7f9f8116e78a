"""Folders that commands write: the lock on one, and a whole one that appears under its name in one step."""

import contextlib
import ctypes
import datetime
import fcntl
import itertools
import json
import logging
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ..errors import InputError, refusing
from . import files
from .digests import SUMS, read_sums, some_of

LOCK: Final = ".lock"
_CURRENT_FOLDER, _EXCHANGE = -100, 2  # of Linux's renameat2
_log = logging.getLogger(__name__)


def check_output(path: str, *, overwrite: bool, inputs: Iterable[str] = ()) -> None:
    """Checks that :func:`written` can write a folder, before the work is done.

    Args:
      path: as given for ``--output``.
      overwrite: whether a folder that a command wrote may be replaced.
      inputs: folders that the command reads.

    Raises:
      InputError: if there is something else, or something at all unless it may be replaced; if the folder holds files
        that its ``SHA256SUMS`` does not list; if it lies in an input, or the other way round; or if the place cannot be
        written.
    """
    target = os.path.realpath(path)
    if os.path.commonpath([target, os.getcwd()]) == target:
        raise InputError("is where this command runs", path=path, field="--output", remedy="name a folder in it")
    for other in map(os.path.realpath, itertools.filterfalse(files.is_object, inputs)):
        if os.path.commonpath([target, other]) in (target, other):
            remedy = "name a folder that is neither in it nor around it"
            raise InputError(f"overlaps with the input {other}", path=path, field="--output", remedy=remedy)
    if os.path.lexists(path) and not overwrite:
        remedy = "choose another folder or give --overwrite"
        raise InputError("exists already", path=path, field="--output", remedy=remedy)
    files.check_output(path, is_folder=True)
    check_listed(path)


def check_listed(path: str) -> None:
    """Checks that a folder, or what is stored under a URI, has no files that its ``SHA256SUMS`` does not list.

    Raises:
      InputError: naming some of them.
    """
    if others := sorted(set(files.sizes_below(path)) - {SUMS, *(read_sums(path) or ())}):
        problem = f"holds files that {SUMS} does not list, so no command wrote them: {some_of(others)}"
        raise InputError(problem, path=path, field="--output", remedy="move them, or name another folder")


@contextlib.contextmanager
def written(path: str, *, overwrite: bool = False, inputs: Iterable[str] = ()) -> Iterator[str]:
    """Yields the name of a new folder, which takes the place of `path` on leaving the context without an error.

    It is beside `path`, so readers see the folder before or the whole new one. Arguments and errors are those of
    :func:`check_output`.
    """
    target, inputs = os.path.realpath(path), tuple(inputs)
    check_output(path, overwrite=overwrite, inputs=inputs)
    temporary = files.temporary_name(target)
    os.makedirs(temporary)
    try:
        yield temporary
        check_output(path, overwrite=overwrite, inputs=inputs)  # another run may have written it in the meantime
        if os.path.lexists(target):
            _exchange(temporary, target)
        else:
            os.rename(temporary, target)
    finally:
        files.delete([temporary])  # of an error, or what was there before


def _exchange(one: str, other: str) -> None:
    """Exchanges the names of two folders, in one step where the system can."""
    libc = ctypes.CDLL(None)
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2") and not libc.renameat2(
        _CURRENT_FOLDER, names[0], _CURRENT_FOLDER, names[1], _EXCHANGE
    ):
        return
    aside = files.temporary_name(other)
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)


def empty(folder: str) -> None:
    """Deletes a folder; where it is locked, what else is in it."""
    if os.path.isdir(folder):
        files.delete(os.path.join(folder, name) for name in os.listdir(folder) if name != LOCK)
        with contextlib.suppress(OSError):  # it is locked
            os.rmdir(folder)


@contextlib.contextmanager
def locked(output: str, field: str = "--output") -> Iterator[None]:
    """Holds the lock on a folder, which is created if it does not exist: one run at a time writes to it.

    It is a lock of the system on the file ``.lock``, which names the owner, so it ends with its process in any case.
    Object stores have no locks. There, the user makes sure that one run at a time writes to a folder.

    Args:
      output: the folder.
      field: the option that names it, for the error.

    Raises:
      InputError: if another run holds the lock, or if the folder cannot be made.
    """
    if "://" in output:
        yield
        return
    created = not os.path.isdir(output)
    # Also in a file system that makes none, such as /proc.
    with refusing("no folder can be made here:", OSError, path=output, field=field, remedy="name another path"):
        os.makedirs(output, exist_ok=True)
    path = os.path.join(output, LOCK)
    lock = _acquire(path, field)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder is not empty: a result, or a workspace to resume from
            os.unlink(path)
            if created:
                os.rmdir(output)
        os.close(lock)


def _acquire(path: str, field: str) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(lock, 200, 0).decode()
            os.close(lock)
            problem, remedy = f"another run is writing to this folder: {owner}", "wait for it, or name another folder"
            raise InputError(problem, path=os.path.dirname(path), field=field, remedy=remedy) from error
        except OSError as error:
            _log.warning("%s: this file system has no locks (%s): let one run write at a time", path, error)
            return lock
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                os.truncate(lock, 0)
                os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}, since {now()}".encode(), 0)
                return lock
        os.close(lock)  # its owner has removed the file in between


def now() -> str:
    """The time in UTC, such as "2026-01-31T08:00:00+00:00"."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


MODEL: Final = "model"  # of a training, or of the training in progress
TRIAL: Final = "trial"  # what a training was evaluated on
_TRAININGS: Final = "trainings"
_DECISION: Final = "decision.json"


def training_work(archive: str) -> str:
    """The folder of the training in progress."""
    return os.path.join(archive, ".training")


def training_folder(archive: str, number: int) -> str:
    """The folder of a finished training, from 1."""
    return os.path.join(archive, _TRAININGS, f"{number:06d}")


def trained_model(archive: str, number: int) -> str:
    """The model folder of a finished training."""
    return os.path.join(training_folder(archive, number), MODEL)


def decision_file(archive: str, number: int) -> str:
    """The file with the outcome of a training."""
    return os.path.join(training_folder(archive, number), _DECISION)


def trainings(archive: str) -> list[int]:
    """The numbers of the trainings that have a folder, ascending."""
    folder = os.path.join(archive, _TRAININGS)
    return sorted(int(name) for name in os.listdir(folder) if name.isdigit()) if os.path.isdir(folder) else []


def read_json(path: str) -> Any:
    """The value in a JSON file; None where there is no such file, or a run was cut off while it wrote it."""
    try:
        with open(path, "rb") as source:
            return json.loads(source.read())
    except (FileNotFoundError, ValueError):
        return None
