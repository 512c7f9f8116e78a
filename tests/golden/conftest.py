"""Makes the helpers in this folder importable: pytest's importlib mode does not."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
