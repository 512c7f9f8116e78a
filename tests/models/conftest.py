"""The same devices as below tests/training, whichever is collected first; little optimisation, since these models are tiny."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0")
