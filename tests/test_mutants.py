"""The script that looks for faults that no test notices."""

import subprocess
import sys
from pathlib import Path

import mutants

SOURCE = '"""Text."""\n\n\ndef half(n):\n    if n > 2:\n        print(n)\n    return n / 2\n'


def test_mutants_are_drawn_by_a_seed_and_change_one_place():
    drawn = mutants.mutants("m.py", SOURCE, 5, 1)
    assert drawn == mutants.mutants("m.py", SOURCE, 5, 1)
    assert len({code for code, _ in drawn}) == 5
    for code, diff in drawn:
        assert code.startswith('"""Text."""')
        assert len([line for line in diff.splitlines()[2:] if line.startswith("-")]) == 1


def test_every_kind_of_fault_is_made():
    every = "".join(code for code, _ in mutants.mutants("m.py", SOURCE, 100, 1))
    for fault in ("not (n > 2)", "n >= 2", "pass", "n / 3", "return n\n"):
        assert fault in every


def test_the_test_files_of_a_module_are_those_that_import_it():
    tests = {
        "tests/a/test_long.py": "from newsembed.a import b, c\n" + "x = 1\n" * 9,
        "tests/a/test_b.py": "from newsembed.a.b import half\n" + "x = 1\n" * 99,
        "tests/a/test_other.py": "from newsembed.a import d\n",
    }
    assert mutants.test_files("a/b.py", tests) == ["tests/a/test_b.py", "tests/a/test_long.py"]


TRY = """
import sys, pathlib
sys.path.insert(0, sys.argv[1])
import mutants
mutants.ROOT = pathlib.Path(sys.argv[2])
source = (mutants.ROOT / "a/b.py").read_text()
print(mutants.notices("a/b.py", source, ["test_b.py"]))
print(mutants.notices("a/b.py", source.replace("n / 2", "n / 3"), ["test_b.py"]))
"""


def test_a_fault_is_noticed_by_a_test_that_fails(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").touch()
    (tmp_path / "__init__.py").touch()
    (tmp_path / "a" / "b.py").write_text(SOURCE)
    (tmp_path / "test_b.py").write_text("from newsembed.a.b import half\n\ndef test_half():\n    assert half(2) == 1\n")
    command = [sys.executable, "-c", TRY, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True
    )  # a process without JAX's threads may fork
    assert done.stdout.splitlines()[-2:] == ["None", "test_b.py"]
