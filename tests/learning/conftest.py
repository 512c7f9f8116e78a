"""The way to `toy_corpus`."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
