"""Files that appear when they are complete, and outputs that cannot be where they are asked for."""

import os

import pytest
from newsembed.errors import InputError
from newsembed.formats.whole import check_output, replacing, writing_text


def test_a_file_is_replaced_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with replacing(str(path)) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        assert os.path.basename(temporary).startswith("file.")
        assert temporary.endswith(".tmp")
        with open(temporary, "w") as file:
            file.write("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["file"]


def test_a_text_is_whole_and_its_folder_is_made(tmp_path):
    path = tmp_path / "new" / "groups.tsv"
    with writing_text(str(path)) as file:
        file.write("ä\n")
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()

    def write_half():
        with writing_text(str(path)) as file:
            file.write("half")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert path.read_text(encoding="utf-8") == "ä\n"
    assert os.listdir(path.parent) == ["groups.tsv"]


def test_a_pipe_is_written_to_and_stays(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with writing_text(path) as file:
        file.write("one\n")
    assert os.read(reader, 9) == b"one\n"
    os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("begun", [True, False])
def test_an_error_leaves_the_file_before_and_nothing_else(tmp_path, begun):
    path = tmp_path / "file"
    path.write_text("before")

    def write():
        with replacing(str(path)) as temporary:
            if begun:
                open(temporary, "w").close()
            raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        write()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]


def test_two_writers_of_one_file_have_names_of_their_own(tmp_path):
    with replacing(str(tmp_path / "file")) as one, replacing(str(tmp_path / "file")) as other:
        assert one != other
        for name in (one, other):
            open(name, "w").close()


@pytest.mark.parametrize(
    ("is_folder", "problem"),
    [(True, "is a file, the output is a folder"), (False, "is a folder, the output is a file")],
)
def test_an_output_of_the_other_kind_is_refused(tmp_path, is_folder, problem):
    file = tmp_path / "file"
    file.write_text("")
    wrong, right = (file, tmp_path) if is_folder else (tmp_path, file)
    with pytest.raises(InputError) as raised:
        check_output(str(wrong), is_folder=is_folder)
    assert (raised.value.problem, raised.value.path, raised.value.field) == (problem, str(wrong), "--output")
    check_output(str(right), is_folder=is_folder)
    check_output(str(tmp_path / "absent"), is_folder=is_folder)


@pytest.mark.parametrize("is_folder", [True, False])
@pytest.mark.parametrize("path", ["/proc/new", "/proc/new/deep"])
def test_an_output_where_nothing_can_be_written_is_refused_before_the_work(path, is_folder):
    with pytest.raises(InputError, match="cannot be written: /proc: No such file") as raised:
        check_output(path, is_folder=is_folder)
    assert (raised.value.path, raised.value.field) == (path, "--output")


def test_a_check_of_an_output_leaves_nothing_behind(tmp_path):
    check_output(str(tmp_path / "new" / "deep"), is_folder=True)
    check_output(str(tmp_path), is_folder=True)
    check_output(str(tmp_path / "new" / "file"), is_folder=False)
    assert not list(tmp_path.iterdir())
    check_output("/dev/null", is_folder=False)  # a device is written to as it is
