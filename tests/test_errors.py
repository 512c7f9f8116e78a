"""Tests of the text of an `InputError`, and of its way from one process to another."""

import pickle
from pathlib import Path

import pytest
from newsembed.errors import InputError, counted
from newsembed.launch.extras import MissingExtraError


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


@pytest.mark.parametrize(
    "error",
    [
        InputError("is empty", path="file.json", field="rows", remedy="write it again"),
        MissingExtraError("umap", "umap"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_another_process_arrives_whole(error: InputError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 files"),
        (1, "1 file"),
        (2, "2 files"),
        (999, "999 files"),
        (1000, "1,000 files"),
        (1_000_001, "1,000,001 files"),
    ],
)
def test_a_noun_has_the_form_of_its_number(count: int, text: str) -> None:
    assert counted(count, "file") == text
