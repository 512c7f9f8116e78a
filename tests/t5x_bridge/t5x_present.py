"""Whether T5X is importable, found out without importing it: its warnings are errors here."""

from importlib.machinery import PathFinder
from pathlib import Path

_SPEC = PathFinder.find_spec("t5x")
HAS_T5X = any(Path(folder, "trainer.py").exists() for folder in (_SPEC and _SPEC.submodule_search_locations) or ())
