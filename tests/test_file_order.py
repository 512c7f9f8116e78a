"""Workers take the longest test files first."""

from pathlib import Path

import file_order


def test_long_files_come_before_those_with_more_tests():
    files = [*["few.py"] * 2, *["long.py"] * 1, *["many.py"] * 9, "longer.py"]
    found = file_order.longest_first(files, ("longer.py", "absent.py", "long.py"))
    assert found == ["longer.py", "long.py", "many.py", "few.py"]


def test_the_longest_files_exist_and_are_listed_once():
    root = Path(__file__).parents[1]
    assert [path for path in file_order.LONGEST if not (root / path).is_file()] == []
    assert len(set(file_order.LONGEST)) == len(file_order.LONGEST)
