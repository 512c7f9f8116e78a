"""Local files that appear when they are complete: written under a temporary name, then moved."""

import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import Final, TextIO

from ..errors import InputError, of_file_system

TEMPORARY: Final = ".tmp"  # the end of the names of files that are not complete


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """The temporary name of a local file, which replaces the file on leaving the context without an error.

    It is in the same folder and ends in ``.tmp``. After an error it is deleted, also on a full disk.
    """
    temporary = f"{path}.{uuid.uuid4().hex[:12]}{TEMPORARY}"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # the error came before the first byte
            os.remove(temporary)
        raise


@contextlib.contextmanager
def writing_text(path: str) -> Iterator[TextIO]:
    """A text file in UTF-8 that replaces the file of this name on leaving the context; its folder is made.

    A pipe or a device, such as /dev/stdout, is written to.
    """
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    is_replaced = os.path.isfile(path) or not os.path.exists(path)
    with (
        replacing(path) if is_replaced else contextlib.nullcontext(path) as place,
        open(place, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


def check_output(path: str, *, is_folder: bool) -> None:
    """Checks that the output of a command can be at a path, before the work is done.

    Args:
      path: as given for ``--output``.
      is_folder: whether the output is a folder, else a file.

    Raises:
      InputError: for a file where a folder is needed, or the other way round, or a place that cannot be written.
    """
    if os.path.exists(path) and os.path.isdir(path) != is_folder:
        found, needed = ("a file", "a folder") if is_folder else ("a folder", "a file")
        raise InputError(f"is {found}, the output is {needed}", path=path, field="--output", remedy="name another path")
    if is_folder or os.path.isfile(path) or not os.path.exists(path):  # else a pipe or a device, which has no folder
        _check_writable(path if is_folder else os.path.dirname(os.path.abspath(path)), path)


def _check_writable(folder: str, path: str) -> None:
    """Checks that a file can be made in a folder, or where the folder will be; its permissions do not say it all.

    Raises:
      InputError: if not.
    """
    place = os.path.abspath(folder)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        known = of_file_system(OSError(error.errno, error.strerror, place))
        problem = f"cannot be written: {place}: {error.strerror}"
        remedy = known.remedy if known else "name another path"
        raise InputError(problem, path=path, field="--output", remedy=remedy) from error
