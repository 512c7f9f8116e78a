"""Where T5X is, found out without importing it: its warnings are errors here."""

from importlib.machinery import PathFinder
from pathlib import Path

_SPEC = PathFinder.find_spec("t5x")
_FOLDERS = (_SPEC and _SPEC.submodule_search_locations) or ()
FOLDER = next((folder for folder in _FOLDERS if Path(folder, "trainer.py").exists()), None)
HAS_T5X = FOLDER is not None
