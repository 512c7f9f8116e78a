"""Quick compilation, said before jax's first use; and the way to `toy_corpus`."""

import os
import sys
import tempfile

# Many runs of the same tiny model: each program is compiled once into this folder, which goes when the tests end.
_CACHE = tempfile.TemporaryDirectory(prefix="newsembed-test-xla-")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", _CACHE.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, os.path.dirname(__file__))
