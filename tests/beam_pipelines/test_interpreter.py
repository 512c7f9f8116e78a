"""Child processes import libraries from where this process does, whatever files the working folder has."""

import os
import subprocess
import sys

import pytest
from newsembed.beam_pipelines.interpreter import PYTHON, child_environment, import_path
from newsembed.beam_pipelines.options import worker_command

PIPELINE = """
import os, sys
import apache_beam as beam
from newsembed.beam_pipelines.options import make_pipeline
from newsembed.tasks.functions import load_function

def work(number):
    import os, sys
    found = [load_function(spec)(number) for spec in ("tagger:tag", "own.py:tag")]
    with open(f"{number}.txt", "w") as sink:
        print(os.getpid(), os.getcwd() in sys.path, *found, file=sink)

with make_pipeline(["--direct_num_workers=2"], 2) as pipeline:
    pipeline | beam.Create([1, 2]) | beam.Reshuffle() | beam.Map(work)
print(os.getpid())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder whose files have the names of libraries."""
    for name in ("proto", "argparse", "lxml", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('the {name} of the user')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_workers_import_no_library_from_the_working_folder_but_the_functions_of_the_user(folder):
    for name in ("tagger", "own"):
        (folder / f"{name}.py").write_text("def tag(number):\n    return 10 * number\n")
    program = [sys.executable, "-P", "-c", PIPELINE]  # as the console script starts it
    done = subprocess.run(program, env=child_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for number in (1, 2):
        worker, has_folder, *found = (folder / f"{number}.txt").read_text().split()
        assert worker != done.stdout.split()[-1], "another process should work"
        assert (has_folder, found) == ("False", [str(10 * number)] * 2)


def test_the_package_as_a_program_imports_no_library_from_the_working_folder(folder):
    program = [sys.executable, "-m", "newsembed", "--version"]
    done = subprocess.run(program, env=child_environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_has_the_import_path_of_this_process(folder, monkeypatch):
    program = [*PYTHON, "-c", "import sys; print(sys.path)"]
    for first in (str(folder / "lib"), ""):
        monkeypatch.setattr(sys, "path", [first, *sys.path])
        assert import_path().split(os.pathsep)[0] == (first or str(folder))
        done = subprocess.run(program, env=child_environment(), capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"['{first or folder}', ")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    done = subprocess.run(program, env=child_environment(), capture_output=True, text=True, check=True)
    assert f"'{folder}'" not in done.stdout
    assert "''" not in done.stdout


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({}, ["system", "1"]), ({"MALLOC_ARENA_MAX": "4"}, ["system", "4"])],
    ids=["ours", "user's"],
)
def test_workers_give_memory_back_unless_the_user_chooses_other_allocators(monkeypatch, chosen, expected):
    for name in ("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    code = "import os, pyarrow; print(pyarrow.default_memory_pool().backend_name, os.environ['MALLOC_ARENA_MAX'])"
    done = subprocess.run(worker_command("-c", code), shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected
