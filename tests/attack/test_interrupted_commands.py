"""A short sample of `interrupted.py`, and tests of the harness, in a process of their own: they fork it.

A process in which JAX has run has threads, and must not be forked.
"""

import subprocess
import sys
from pathlib import Path

CHECKS = Path(__file__).with_name("checks_of_interrupted.py")


def test_the_harness_and_a_sample_of_its_attacks():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(CHECKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


def test_the_fuzzer_starts_as_a_script():
    subprocess.run([sys.executable, CHECKS.with_name("fuzz.py"), "--help"], check=True)
