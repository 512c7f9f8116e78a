"""Quick compilation, said before jax's first use: these models are tiny; and the way to `reference_encoders`."""

import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
sys.path.insert(0, os.path.dirname(__file__))
