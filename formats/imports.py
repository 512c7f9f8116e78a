"""Imports of libraries without parts of theirs that nothing here uses."""

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without(module: str) -> Iterator[None]:
    """Lets what is imported meanwhile not find a module that it can do without; one that is loaded stays."""
    if is_hidden := module not in sys.modules:
        # Importing a module that is None is a ModuleNotFoundError.
        sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules[module]
