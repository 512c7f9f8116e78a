"""A disk that is full, for this process."""

import contextlib
import resource


@contextlib.contextmanager
def small_files(size):
    """Files cannot grow beyond a size: the kernel refuses the write, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
