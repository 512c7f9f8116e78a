"""Tests of the text of an `InputError`."""

from pathlib import Path

import pytest
from newsembed.errors import InputError


@pytest.mark.parametrize("path", ["folder/file.json", Path("folder/file.json")], ids=["str", "PathLike"])
def test_an_error_names_its_path_however_the_path_was_given(path: str | Path) -> None:
    error = InputError("is empty", path=path, field="rows", remedy="write it again")
    assert str(error) == "folder/file.json: rows: is empty\n  remedy: write it again"
    assert error.path == "folder/file.json"
    assert error.args[1] == "folder/file.json"
    assert isinstance(error.path, str)
    assert isinstance(error.args[1], str)


def test_an_error_without_a_path_is_its_problem() -> None:
    error = InputError("is empty")
    assert str(error) == "is empty"
    assert error.path is None
