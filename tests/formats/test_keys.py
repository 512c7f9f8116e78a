"""API keys: their length, their characters, and errors that never hold one."""

import pytest
from newsembed.errors import InputError
from newsembed.formats.keys import check_key, read_key


def test_a_key_has_sixteen_visible_characters_without_white_space_around(tmp_path):
    (tmp_path / "key").write_text(f" \n{'!~' * 8}\t\n")
    assert read_key(str(tmp_path / "key")) == "!~" * 8
    assert check_key(" " + "k" * 16, "here") == "k" * 16


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("k" * 15, "an API key needs at least 16 characters"),
        (f" {'k' * 15} ", "an API key needs at least 16 characters"),
        ("k" * 15 + " k", "an API key holds visible ASCII characters only"),
        ("k" * 15 + "é", "an API key holds visible ASCII characters only"),
        ("k" * 15 + "\x7f", "an API key holds visible ASCII characters only"),
    ],
)
def test_other_keys_are_refused_without_showing_them(key, problem):
    with pytest.raises(InputError) as raised:
        check_key(key, "KEY_FILE")
    assert (raised.value.problem, raised.value.path) == (problem, "KEY_FILE")
    assert "kkk" not in str(raised.value)


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(InputError, match="the API key cannot be read: No such file or directory") as raised:
        read_key(str(tmp_path / "absent"))
    assert raised.value.path == str(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff" * 20)
    with pytest.raises(InputError, match="the API key cannot be read: not a text file"):
        read_key(str(tmp_path / "binary"))
