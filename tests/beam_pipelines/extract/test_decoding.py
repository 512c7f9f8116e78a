"""extract: bytes of pages and untrusted JSON become text that UTF-8 can hold."""

import codecs

import pytest
from newsembed.beam_pipelines.extract.decoding import decode
from newsembed.beam_pipelines.extract.loose_json import load_json

RUSSIAN = "Совет города проголосовал за новую дамбу. " * 3


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        ("für".encode(), "windows-1252", "für"),  # valid UTF-8, whatever is declared
        ("für".encode("latin-1"), "windows-1252", "für"),
        (RUSSIAN.encode("koi8-r"), "koi8-r", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "", RUSSIAN),  # detected
        (RUSSIAN.encode("koi8-r"), "no-such-charset", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "hex", RUSSIAN),  # a codec that is not a charset
        (codecs.BOM_UTF8 + b"a", "utf-16", "a"),
        (codecs.BOM_UTF16_LE + "für".encode("utf-16-le"), "utf-8", "für"),
        (codecs.BOM_UTF16_BE + "für".encode("utf-16-be"), "utf-8", "für"),
        ("川".encode("iso-2022-jp"), "iso-2022-jp", "川"),  # consists of ASCII bytes
        (b"", "", ""),
    ],
)
def test_the_bytes_count_more_than_the_declared_charset(raw, charset, text):
    assert decode(raw, charset) == text


TEXT = "L\u2019été \u201cdéjà\u201d \u2014 Ünïcode § \U0001f525"


def misread_as_windows(raw):
    """As browsers do: the five bytes that Windows-1252 does not define become control codes."""
    return "".join(
        chr(byte) if byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else bytes([byte]).decode("cp1252") for byte in raw
    )


@pytest.mark.parametrize("misread", [lambda raw: raw.decode("latin-1"), misread_as_windows], ids=["latin-1", "windows"])
def test_text_that_was_encoded_twice_is_decoded_twice(misread):
    assert decode(misread(TEXT.encode()).encode(), "") == TEXT


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "L'été à Mañana, Ã‰tÃ© und Âge",  # Latin-1 alone, but no UTF-8 behind it
        f"“{'é'.encode().decode('latin-1')}”",  # one word of the page is wrong, the rest is right
        "â€",
        "plain",
    ],
)
def test_text_that_was_encoded_once_stays(text):
    assert decode(text.encode(), "") == text


@pytest.mark.parametrize(
    "head",
    ['<meta charset="koi8-r">', '<META http-equiv=x content="text/html; charset=KOI8-R">', '<?xml encoding="koi8-r"?>'],
)
def test_the_declaration_of_the_page_counts_where_the_header_has_none(head):
    for charset in ("", "no-such-charset"):
        assert decode(f"{head}дамба".encode("koi8-r"), charset) == f"{head}дамба"
    assert decode(f"{head}дамба".encode("windows-1251"), "windows-1251") == f"{head}дамба", "the header comes first"


@pytest.mark.parametrize(("valid", "is_utf8"), [("ü" * 10, True), ("ü" * 8 + "€", False)])
def test_text_with_few_broken_characters_is_utf_8(valid, is_utf8):
    raw = valid.encode() + b"\xe9"  # one foreign byte: is it less than a twentieth of the 21 or 20 beyond ASCII?
    assert decode(raw, "iso-8859-1") == (f"{valid}\ufffd" if is_utf8 else raw.decode("latin-1"))
    assert decode(raw, "koi8-r") == raw.decode("koi8-r"), "a charset that no server sends by default"
    assert (decode(raw, "") == f"{valid}\ufffd") == is_utf8


@pytest.mark.parametrize(
    ("controls", "size", "is_text"), [(5, 100, True), (6, 100, False), (6, 119, False), (6, 120, True)]
)
def test_binary_data_has_more_than_a_twentieth_of_control_characters(controls, size, is_text):
    raw = b"\x01" * controls + b"\t\n\r" * 5 + b"a" * (size - 15 - controls)
    assert (decode(raw, "") is not None) == is_text


def test_characters_that_text_does_not_have():
    for code in range(256):
        raw = bytes([code]) * 6 + b"a" * 94
        assert (decode(raw, "koi8-r") is None) == (code < 32 and chr(code) not in "\t\n\v\f\r\x1b"), code


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
