"""The tables of ``newsembed ablate``, by name: one module each, which defines ``TABLE``.

A module of a user may :func:`register` another one: ``newsembed --import MODULE ablate --table NAME``.
"""

import importlib
import pkgutil
from typing import Final

from ....errors import InputError
from ..table import Table

DEFAULT: Final = "newsembed"
_REGISTERED: dict[str, Table] = {}


def register(table: Table) -> Table:
    """Makes a table known under its name.

    Raises:
      ValueError: if another table has this name.
    """
    if table.name in names() and _REGISTERED.get(table.name) is not table:
        raise ValueError(f"there is already a table {table.name}")
    _REGISTERED[table.name] = table
    return table


def names() -> list[str]:
    """The names of the tables of this package and of those registered."""
    return sorted({*(module.name for module in pkgutil.iter_modules(__path__)), *_REGISTERED})


def load(name: str) -> Table:
    """The table of a name.

    Raises:
      InputError: if there is no such table.
    """
    if name not in names():
        remedy = f"choose one of {', '.join(names())}, or register your own: newsembed --import MODULE ablate …"
        raise InputError(f"no such table: {name}", field="--table", remedy=remedy)
    if name in _REGISTERED:
        return _REGISTERED[name]
    found: Table = importlib.import_module(f".{name}", __package__).TABLE
    return found
