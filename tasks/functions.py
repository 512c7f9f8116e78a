"""Functions of the user that the command line names: ``module:function`` or ``file.py:function``."""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InputError, refusing


def load_function(spec: str) -> Callable[..., Any]:
    """Imports the function that ``module:function`` or ``file.py:function`` names.

    Raises:
      InputError: if the file, the module or the function does not exist.
    """
    name, _, attribute = spec.rpartition(":")
    if not name.strip("."):
        raise InputError(f"got {spec!r}", remedy="give module:function, or file.py:function")
    with working_folder_on_path():
        if name.endswith(".py"):
            found = importlib.util.spec_from_file_location(os.path.basename(name)[:-3], name)
            if found is None or found.loader is None or not os.path.isfile(name):
                raise InputError("no such Python file", path=name, remedy="give file.py:function")
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
        else:
            remedy = "give module:function on PYTHONPATH"
            with refusing("cannot be imported:", ImportError, field=spec, remedy=remedy):
                module = importlib.import_module(name)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(
            f"{name} has no function {attribute!r}", field=spec, remedy="give the name of a function of the module"
        )
    return function


@contextlib.contextmanager
def working_folder_on_path() -> Iterator[None]:
    """Lets modules of the working folder be imported meanwhile."""
    entry = os.getcwd()
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)
