"""Whether T5X is importable."""

import importlib.util


def _is_importable():
    try:
        return importlib.util.find_spec("t5x.trainer") is not None
    except ModuleNotFoundError:
        return False


HAS_T5X = _is_importable()
