"""What may run: SavedModels and gin files that this user made, or named in a command.

An archive names its encoder, and a model folder has a configuration. Both may come from a stranger, and both can make
this machine read and write files. So they are used unasked only where their digest is in a list of this user's,
``newsembed/trusted`` in ``$XDG_STATE_HOME`` or ``~/.local/state``. What newsembed writes for the user is added to it,
and so is what a command names.
"""

import contextlib
import hashlib
import os
from typing import Final

from ..errors import InputError
from .digests import file_sha256
from .files import sizes_below
from .remote import local_folder

_allowed: Final = set[str]()  # by this process: the list may be impossible to write


def allow(path: str) -> None:
    """Adds a file or folder to what the user trusts, with its content of now."""
    digest, listed = _digest(path), _list()
    _allowed.add(digest)
    with contextlib.suppress(OSError):  # a home that cannot be written: the next command asks
        if digest not in _listed():
            os.makedirs(os.path.dirname(listed), mode=0o700, exist_ok=True)
            with open(listed, "a", encoding="utf-8") as file:
                file.write(f"{digest}  {os.path.abspath(path)!r}\n")


def check(path: str, option: str) -> None:
    """Refuses a file or folder that is new to this user, or was changed.

    Args:
      path: named by data.
      option: by which a command names it, with its value.

    Raises:
      InputError: if it is not in the list.
    """
    if _digest(path) not in _allowed | _listed():
        problem = "it can read and write files, and neither you made it nor a command of yours has named it"
        remedy = f"if you trust who made it, name it once: {option}"
        raise InputError(problem, path=path, field=option.split(maxsplit=1)[0], remedy=remedy)


def check_encoder(spec: str) -> None:
    """Refuses ``KIND:DIR``, an encoder that data name, where it is a SavedModel that is new to this user."""
    kind, _, path = spec.partition(":")
    if kind == "savedmodel" and os.path.isdir(folder := local_folder(path)):
        check(folder, f"--saved_model {path}")


def _list() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "newsembed", "trusted")


def _listed() -> set[str]:
    try:
        with open(_list(), encoding="utf-8", errors="replace") as file:
            return {line.split(" ", 1)[0] for line in file}
    except OSError:
        return set()


def _digest(path: str) -> str:
    if not os.path.isdir(path):
        return file_sha256(path)
    lines = (f"{file_sha256(os.path.join(path, name))} {name}\n" for name in sizes_below(path))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
