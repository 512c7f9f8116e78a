"""The C library's allocator in a training on a CPU: large pages for the arrays of a step."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

_VARIABLE: Final = "GLIBC_TUNABLES"  # read by glibc when a process starts, and at no other time
_SETTING: Final = "glibc.malloc.hugetlb=1"  # asks the kernel for large pages in blocks of 2 MiB and more
_FIRST_GLIBC: Final = (2, 35)  # that knows the setting
_LARGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_PLUGINS: Final = "jax_plugins"  # a group of entry points and a namespace package, through which JAX finds accelerators


def restart_with_large_pages() -> None:
    """Replaces this process by itself, with large pages, where that makes a training faster. Call it first of all.

    On a CPU, XLA allocates the arrays of a program when it runs and frees them afterwards. glibc takes large blocks
    from the kernel and returns them, so each step pays a page fault for each 4 KiB: a fifth to a third of its time
    (``benchmarks/RESULTS.md``). Most Linux distributions give pages of 2 MiB to processes that ask for them. glibc asks
    if an environment variable says so, which it reads only when a process starts.

    The process that is started returns from this function, without the variable, so that its children decide for
    themselves. The function does nothing where an accelerator may compute, the environment already configures glibc,
    the C library is not glibc 2.35 or newer, the kernel gives large pages to nobody or to everybody, or a program has
    set other arguments than it was started with.
    """
    given = os.environ.get(_VARIABLE)
    if given == _SETTING:
        del os.environ[_VARIABLE]
    elif given is None and _is_as_started() and _has_glibc() and _gives_pages_on_request() and _computes_on_cpu():
        arguments = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, arguments, os.environ | {_VARIABLE: _SETTING})  # noqa: S606 - this very command


def _is_as_started() -> bool:
    """Whether this process was started by the command that it runs; a program may have set other arguments since."""
    own = sys.argv[1:]
    return bool(sys.executable) and sys.orig_argv[len(sys.orig_argv) - len(own) :] == own


def _has_glibc() -> bool:
    """Whether the C library is a glibc that knows the setting."""
    asked = "CS_GNU_LIBC_VERSION"
    name, _, version = (os.confstr(asked) or "" if asked in os.confstr_names else "").partition(" ")
    return name == "glibc" and tuple(int(part) for part in version.split(".")[:2]) >= _FIRST_GLIBC


def _gives_pages_on_request() -> bool:
    """Whether the kernel gives large pages to those who ask."""
    try:
        return "[madvise]" in _LARGE_PAGES.read_text(encoding="ascii")
    except OSError:
        return False


def _computes_on_cpu() -> bool:
    """Whether JAX will find no accelerator, or is told to use none."""
    from importlib.metadata import entry_points  # takes longer than the start of most commands

    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        return platforms == "cpu"
    found = [name for name in (_PLUGINS, "libtpu") if importlib.util.find_spec(name)]
    return not found and not entry_points(group=_PLUGINS)
