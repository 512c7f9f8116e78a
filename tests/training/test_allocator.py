"""A training asks the kernel for large pages: counted in page faults, in processes of their own."""

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest
from newsembed.training import allocator

PAGES = 16_384  # of 4 KiB: 64 MiB
PROBE = """
import ctypes, json, os, resource, sys
from newsembed.training.allocator import restart_with_large_pages
print(os.getpid(), flush=True)
restart_with_large_pages()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def resident():
    return int(open("/proc/self/statm").read().split()[1])
start, before = resident(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
block = libc.malloc(PAGES * 4096)
ctypes.memset(block, 1, PAGES * 4096)
faults, most = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, resident()
libc.free(block)
print(json.dumps([faults, most - start, resident() - start, os.environ.get("GLIBC_TUNABLES"), sys.argv[1:]]))
"""
MADVISE = allocator._gives_pages_on_request() and allocator._has_glibc()


def probed(before="", **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    answer = subprocess.run(
        [sys.executable, "-c", before + PROBE.replace("PAGES", str(PAGES)), "--steps", "two words"],
        env=clean | {"JAX_PLATFORMS": "cpu"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    *processes, last = answer.stdout.splitlines()
    return processes, json.loads(last)


@pytest.mark.skipif(not MADVISE, reason="the kernel of this machine gives no large pages on request, or no glibc 2.35")
def test_the_process_is_replaced_by_itself_and_has_large_pages():
    processes, (faults, filled, left, variable, arguments) = probed()
    assert len(processes) == 2, "started twice"
    assert len(set(processes)) == 1, "as the same process, so that signals reach it"
    assert faults < PAGES / 10, "small pages only before and after the large ones"
    assert filled > PAGES * 0.9
    assert left < PAGES / 10, "what is freed returns to the kernel"
    assert variable is None, "children decide for themselves"
    assert arguments == ["--steps", "two words"]


@pytest.mark.parametrize(
    "environment",
    [{"JAX_PLATFORMS": "cuda"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=4"}, {"GLIBC_TUNABLES": ""}],
    ids=["an accelerator", "own tunables", "none, on purpose"],
)
def test_elsewhere_the_process_stays(environment):
    processes, (faults, _, _, variable, arguments) = probed(**environment)
    assert len(processes) == 1
    assert faults > PAGES * 0.9
    assert variable == environment.get("GLIBC_TUNABLES")
    assert arguments == ["--steps", "two words"]


def test_a_process_with_other_arguments_than_it_was_started_with_stays():
    processes, (faults, *_) = probed("import sys; sys.argv = ['newsembed', 'train']\n")
    assert len(processes) == 1, "a restart would run another command"
    assert faults > PAGES * 0.9


@pytest.mark.parametrize(
    ("content", "asks"),
    [("always [madvise] never\n", True), ("[always] madvise never\n", False), ("always madvise [never]\n", False)],
)
def test_only_a_kernel_that_gives_large_pages_on_request_is_asked(monkeypatch, tmp_path, content, asks):
    setting = tmp_path / "enabled"
    setting.write_text(content)
    monkeypatch.setattr(allocator, "_LARGE_PAGES", setting)
    assert allocator._gives_pages_on_request() is asks
    monkeypatch.setattr(allocator, "_LARGE_PAGES", tmp_path / "missing")
    assert not allocator._gives_pages_on_request()


@pytest.mark.parametrize(
    ("library", "knows"), [("glibc 2.35", True), ("glibc 2.34", False), ("glibc 3.0", True), ("other 9.9", False)]
)
def test_the_setting_needs_glibc_2_35(monkeypatch, library, knows):
    monkeypatch.setattr(allocator.os, "confstr_names", {"CS_GNU_LIBC_VERSION": 2})
    monkeypatch.setattr(allocator.os, "confstr", lambda name: library)
    assert allocator._has_glibc() is knows
    monkeypatch.setattr(allocator.os, "confstr_names", {})
    assert not allocator._has_glibc(), "another C library does not know the name"


def test_a_plugin_of_jax_means_an_accelerator(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(allocator.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [])
    assert allocator._computes_on_cpu()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [group])
    assert not allocator._computes_on_cpu()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [])
    for plugin in ("libtpu", "jax_plugins"):
        monkeypatch.setattr(allocator.importlib.util, "find_spec", lambda name, there=plugin: name == there or None)
        assert not allocator._computes_on_cpu()
