"""The tests have the same names in every process: two workers that collect different tests run none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEFAULT = "not long"  # of the options in pyproject.toml, also of the other process


def test_another_process_collects_the_same_tests(request):
    """The other process starts later, with other hashes of strings and another zone."""
    if request.config.option.keyword or request.config.option.markexpr != DEFAULT:
        pytest.skip("a part of the tests was selected by name")
    names = [item.nodeid for item in request.session.items]
    files = sorted({name.partition("::")[0] for name in names if "::" in name})
    if any("::" in argument for argument in request.config.args):
        pytest.skip("single tests were selected")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"} | {"PYTEST_XDIST_WORKER": "other"},
        capture_output=True,
        text=True,
        check=False,
    )
    other = [line for line in done.stdout.splitlines() if "::" in line]
    assert done.returncode == 0, done.stdout[-2000:]
    assert sorted(other) == sorted(names)
