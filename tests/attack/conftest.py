"""Puts this folder on the path: pytest's importlib mode does not."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
