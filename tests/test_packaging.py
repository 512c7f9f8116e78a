"""The wheel, and the sdist that Beam ships to workers, contain the package, its gin files and nothing else."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPPED = shutil.ignore_patterns(
    ".git", ".venv", "*.egg-info", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", "demo-output"
)


def skipped(folder, names):
    """What is not copied: leftovers anywhere, tests and benchmarks of the root."""
    return SKIPPED(folder, names) | ({"tests", "benchmarks"} & set(names) if Path(folder) == ROOT else set())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(wheel, sdist); the wheel is built from the sdist, as a worker builds it."""
    source = tmp_path_factory.mktemp("source") / "clone"
    shutil.copytree(ROOT, source, ignore=skipped)
    dist = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))


PACKAGES = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in {"build", "dist"}]


def expected_files(*suffixes):
    return {
        f"newsembed/{path.relative_to(ROOT)}"
        for package in PACKAGES
        for path in package.rglob("*")
        if path.suffix in suffixes
    }


def test_the_wheel_contains_every_module_gin_file_and_data_file(built):
    names = set(zipfile.ZipFile(built[0]).namelist())
    assert len(PACKAGES) > 8
    assert expected_files(".py") <= names
    assert {f"newsembed/gin/{path.relative_to(ROOT / 'gin')}" for path in (ROOT / "gin").rglob("*.gin")} <= names
    assert expected_files(".json", ".txt", ".html", ".toml") <= names


def test_the_wheel_leaves_setup_and_tests_out(built):
    names = zipfile.ZipFile(built[0]).namelist()
    assert "newsembed/setup.py" not in names
    assert not [name for name in names if name.startswith(("newsembed/tests", "newsembed/benchmarks", "tests/"))]


def test_the_sdist_can_be_built_again(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"setup.py", "pyproject.toml", "README.md", "__init__.py"} <= names


def test_the_wheel_runs_outside_the_repository(built, tmp_path):
    zipfile.ZipFile(built[0]).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import newsembed, newsembed.launch.cli as cli; "
        f"assert newsembed.__file__.startswith({str(tmp_path)!r}); cli.main([])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "newsembed COMMAND" in done.stdout
