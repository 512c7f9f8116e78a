"""Quick compilation, said before jax's first use: these models are tiny."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
