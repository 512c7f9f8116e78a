"""Importing it before jax's first use makes the many small programs of the tests compile quickly."""

import os
import tempfile

# Many runs of the same tiny model: each program is compiled once into this folder, which goes when the tests end.
CACHE = tempfile.TemporaryDirectory(prefix="newsembed-test-xla-")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", CACHE.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
