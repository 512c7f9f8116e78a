"""Memory that a training frees stays with the process: counted in page faults, in processes of their own."""

import json
import os
import subprocess
import sys

import pytest
from newsembed.training import allocator

KEPT, RETURNED = 4_096, 16_384  # pages of 4 KiB: 16 and 64 MiB
PROBE = """
import ctypes, json, resource, sys
from newsembed.training.allocator import keep_freed_memory
kept = keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def resident():
    return int(open("/proc/self/statm").read().split()[1])
faults, start = [], resident()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(PAGES * 4096)
    ctypes.memset(block, 1, PAGES * 4096)
    libc.free(block)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(json.dumps([kept, faults, "jax" in sys.modules, resident() - start]))
"""


def probed(before="", pages=KEPT, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    answer = subprocess.run(
        [sys.executable, "-c", before + PROBE.replace("PAGES", str(pages))],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout.splitlines()[-1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is the C library of Linux")
def test_a_block_that_was_freed_is_used_again_without_page_faults():
    kept, faults, imported, resident = probed(JAX_PLATFORMS="cpu")
    assert kept
    assert not imported, "the setting must come before JAX, so it may not import it"
    assert max(faults[1:]) < KEPT / 100
    assert resident > KEPT / 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is the C library of Linux")
def test_a_large_block_returns_to_the_kernel():
    kept, _, _, resident = probed(pages=RETURNED, JAX_PLATFORMS="cpu")
    assert kept
    assert resident < RETURNED / 10, "kept blocks of many sizes leave gaps, and the memory grows without end"


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        ("import types, sys; sys.modules['jax'] = types.ModuleType('jax')\n", {"JAX_PLATFORMS": "cpu"}),
        ("", {"JAX_PLATFORMS": "cuda"}),
        ("", {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "4"}),
        ("", {"JAX_PLATFORMS": "cpu", "GLIBC_TUNABLES": "glibc.malloc.arena_max=4"}),
    ],
    ids=["jax was imported", "an accelerator", "own settings", "own tunables"],
)
def test_elsewhere_the_allocator_stays_as_it_is(before, environment):
    kept, *_ = probed(before, **environment)
    assert not kept


def test_a_plugin_of_jax_means_an_accelerator(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(allocator.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(allocator.importlib.metadata, "entry_points", lambda group: [])
    assert allocator._computes_on_cpu()
    monkeypatch.setattr(allocator.importlib.metadata, "entry_points", lambda group: [group])
    assert not allocator._computes_on_cpu()
    monkeypatch.setattr(allocator.importlib.metadata, "entry_points", lambda group: [])
    for plugin in ("libtpu", "jax_plugins"):
        monkeypatch.setattr(allocator.importlib.util, "find_spec", lambda name, there=plugin: name == there or None)
        assert not allocator._computes_on_cpu()
