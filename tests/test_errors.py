"""Tests of the text of an `InputError`, and of its way from one process to another."""

import pickle
from pathlib import Path

import pytest
from newsembed.errors import InputError, of_memory, reading


@pytest.mark.parametrize("path", ["folder/file.json", Path("folder/file.json")], ids=["str", "PathLike"])
def test_an_error_names_its_path_however_the_path_was_given(path):
    error = InputError("is empty", path=path, field="rows", remedy="write it again")
    assert str(error) == "folder/file.json: rows: is empty\n  remedy: write it again"
    assert error.path == "folder/file.json"
    assert error.args[1] == "folder/file.json"
    assert isinstance(error.path, str)
    assert isinstance(error.args[1], str)


def test_an_error_without_a_path_is_its_problem():
    error = InputError("is empty")
    assert str(error) == "is empty"
    assert error.path is None


def test_an_error_of_another_process_arrives_whole():
    error = InputError("is empty", path="file.json", field="rows", remedy="write it again")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad digit"), "table.tsv: cannot be read: bad digit\n  remedy: write it again"),
        (KeyError("title"), "table.tsv: cannot be read: no 'title'\n  remedy: write it again"),
        (InputError("is empty", field="rows"), "table.tsv: rows: is empty\n  remedy: write it again"),
        (InputError("is empty", path="a", remedy="fill it"), "a: is empty\n  remedy: fill it"),
        (EOFError("ends"), "table.tsv: cannot be read: ends\n  remedy: write it again"),
    ],
)
def test_errors_of_reading_name_file_and_remedy(error, text):
    with pytest.raises(InputError) as raised, reading("table.tsv", "write it again", EOFError):
        raise error
    assert str(raised.value) == text
    with pytest.raises(OSError, match="disk"), reading("table.tsv", "write it again"):
        raise OSError("disk")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        RuntimeError("Traceback (most recent call last):\n x\nMemoryError [while running 'Process(know)']"),
        ValueError("RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.\n\x1b[31m"),
        ImportError("a.so: failed to map segment from shared object"),
    ],
)
def test_no_memory_is_said_with_the_options_that_take_less(error):
    found = of_memory(error)
    assert found is not None
    assert str(found).startswith("memory ran out")
    assert "\x1b" not in str(found)
    assert "Traceback" not in str(found)
    assert all(option in str(found.remedy) for option in ("--direct_num_workers", "--max_length", "--batch_size"))


def test_no_memory_is_found_below_the_error_of_a_library():
    def closed():
        try:
            raise MemoryError
        finally:
            raise ValueError("I/O operation on closed file")  # what zipfile says then

    with pytest.raises(ValueError, match="closed file") as caught:
        closed()
    assert "MemoryError" in str(of_memory(caught.value))
    error = RuntimeError("Unable to translate languages/Create")
    error.__cause__ = RuntimeError("can't start new thread")
    assert "new thread" in str(of_memory(error))


def test_other_errors_are_not_of_memory():
    assert of_memory(ValueError("the memory of a city")) is None
