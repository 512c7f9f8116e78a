"""Runs the cases for eight devices in a process of its own, where jax sees eight devices; here it sees one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Simulated devices share one pool of threads, by default one for each device. Two independent collectives of one
# program can occupy them all while half the devices have not entered either, which never ends. The older emitters
# compile these small programs in less than half the time.
ENVIRONMENT = {
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
    "--xla_cpu_use_fusion_emitters=false",
    "NPROC": "64",
}


def run_on_eight_devices(marker):
    """Runs the cases with a marker; one process imports and compiles for all."""
    cases = sorted(Path(__file__).parent.glob("*_on_eight_devices.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marker, *map(str, cases)]
    result = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=1800,
        env=os.environ | ENVIRONMENT,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout


def test_eight_simulated_devices_compute_what_one_does():
    run_on_eight_devices("not long")


@pytest.mark.long  # `make attack`
def test_what_compiles_long_computes_the_same_on_eight_devices_too():
    run_on_eight_devices("long")
