"""Starts this interpreter again, for a child that imports from where this process does."""

import os
import sys
from typing import Final

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
