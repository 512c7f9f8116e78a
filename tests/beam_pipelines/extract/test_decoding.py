"""extract: untrusted JSON becomes text that UTF-8 can hold."""

import codecs

import pytest
from newsembed.formats.jsonl import load_json


def test_surrogates_without_their_half_are_replaced_wherever_they_are():
    raw = r'{"a \ud83d": ["b \uDC00", {"c": "\ud83d\ude00"}, 1, null]}'
    assert load_json(raw) == {"a \ufffd": ["b \ufffd", {"c": "😀"}, 1, None]}
    for half in (r'"\ud83d"', r'"\uD83D"'):
        assert load_json(half) == "\ufffd"


def test_json_is_read_as_templates_write_it():
    assert load_json('"two\nlines"') == "two\nlines"
    assert load_json(codecs.BOM_UTF8 + b"[1]") == [1]
    for broken in ("{", "[" * 100_000, "[1]".encode("utf-16"), b'"\xff"'):
        with pytest.raises(ValueError, match=r"."):
            load_json(broken)
