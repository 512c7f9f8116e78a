"""The C library's allocator in a training on a CPU: memory that a step frees stays with the process."""

import ctypes
import importlib.metadata
import importlib.util
import os
import sys
from typing import Final

# Parameters of glibc's mallopt, and their values: one arena for all threads, with the blocks of up to 32 MiB (the most
# that glibc accepts), which keeps what is freed. Larger blocks come from the kernel and return to it: in the arena they
# leave gaps into which no other block fits, and the memory of a training of MiniLM-L6 passed 23 GB in 12 steps.
_SETTINGS: Final = ((-8, 1), (-3, 32 << 20), (-1, -1))
_PLUGINS: Final = "jax_plugins"  # a group of entry points and a namespace package, through which JAX finds accelerators


def keep_freed_memory() -> bool:
    """Lets each step of a training take the memory that the step before it freed. Call it before JAX is imported.

    On a CPU, XLA allocates the arrays of a program when it runs and frees them afterwards. glibc returns large blocks
    to the kernel, so that the next step pays a page fault for each 4 KiB: a quarter of its time for 4 layers of 256
    (``benchmarks/RESULTS.md``). The process then keeps the blocks of up to 32 MiB that its largest step needed.

    Returns:
      Whether it was done: not where an accelerator may compute, JAX was imported before, the environment already
      configures the allocator (``MALLOC_…``, ``GLIBC_TUNABLES``), or the C library is another one than glibc.
    """
    is_configured = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if not sys.platform.startswith("linux") or is_configured or "jax" in sys.modules or not _computes_on_cpu():
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        return all(mallopt(parameter, value) == 1 for parameter, value in _SETTINGS)
    except (OSError, AttributeError):
        return False


def _computes_on_cpu() -> bool:
    """Whether JAX will find no accelerator, or is told to use none."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        return platforms == "cpu"
    found = [name for name in (_PLUGINS, "libtpu") if importlib.util.find_spec(name)]
    return not found and not importlib.metadata.entry_points(group=_PLUGINS)
