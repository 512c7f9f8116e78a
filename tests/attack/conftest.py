"""The way to the helpers beside it: pytest's importlib mode has none."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
