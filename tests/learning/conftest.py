"""Quick compilation, and the way to `toy_corpus`."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import quick_compilation  # noqa: E402, F401
