"""Workers take the longest test files first."""

import importlib.util
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location("file_order", Path(__file__).parent / "file_order.py")
file_order = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(file_order)


def test_long_files_come_before_those_with_more_tests():
    files = [*["few.py"] * 2, *["long.py"] * 1, *["many.py"] * 9, "longer.py"]
    assert file_order.longest_first(files, ("longer.py", "absent.py", "long.py")) == [
        "longer.py",
        "long.py",
        "many.py",
        "few.py",
    ]


def test_the_longest_files_exist_and_are_listed_once():
    root = Path(__file__).parents[1]
    assert [path for path in file_order.LONGEST if not (root / path).is_file()] == []
    assert len(set(file_order.LONGEST)) == len(file_order.LONGEST)
