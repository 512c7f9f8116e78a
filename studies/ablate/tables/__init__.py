"""The tables of ``newsembed ablate``, by name: one module each, which defines ``TABLE``.

A table of another package runs too: ``--table package.module:NAME``, or :func:`register` it and give its name.
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
    """The table of a name, or of ``package.module:NAME``.

    Raises:
      InputError: if there is no such table.
    """
    if name in _REGISTERED:
        return _REGISTERED[name]
    found = _imported(f"{__name__}.{name}:TABLE" if name in names() else name)
    if not isinstance(found, Table):
        raise _unknown(name)
    return found


def _imported(name: str) -> object:
    module, separator, attribute = name.partition(":")
    if not separator:
        raise _unknown(name)
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _unknown(name) from error


def _unknown(name: str) -> InputError:
    return InputError(
        f"no such table: {name}",
        field="--table",
        remedy=f"choose one of {', '.join(names())}, or name your own as package.module:NAME",
    )
