"""Lets the tests of this folder import their helpers."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
