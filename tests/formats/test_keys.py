"""API keys: their length, their characters, and errors that never hold one."""

import pytest
from newsembed.errors import InputError
from newsembed.serving.gate import check_key, read_key


def test_a_key_has_sixteen_visible_characters_without_white_space_around(tmp_path):
    (tmp_path / "key").write_text(f" \n{'!~' * 8}\t\n")
    assert read_key(str(tmp_path / "key")) == "!~" * 8
    assert check_key(" " + "k" * 16, "here") == "k" * 16
    visible = "an API key holds visible ASCII characters only"
    for key, problem in (
        (f" {'k' * 15} ", "an API key needs at least 16 characters"),
        ("k" * 15 + " k", visible),
        ("k" * 15 + "é", visible),
        ("k" * 15 + "\x7f", visible),
    ):
        with pytest.raises(InputError) as raised:
            check_key(key, "KEY_FILE")
        assert (raised.value.problem, raised.value.path) == (problem, "KEY_FILE")
        assert "kkk" not in str(raised.value)


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff" * 20)
    for name, reason in (("absent", "No such file or directory"), ("binary", "not a text file")):
        with pytest.raises(InputError, match=f"{tmp_path}/{name}: the API key cannot be read: {reason}"):
            read_key(str(tmp_path / name))
