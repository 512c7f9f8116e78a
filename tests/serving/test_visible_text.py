"""Queries without anything to read, and dates that are numbers, in the server's checks and in ``newsembed search``."""

import datetime
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.serving import search
from newsembed.serving.analysis import has_text
from newsembed.serving.filters import parse_day
from refusals import refuses

INVISIBLE = ["", " \t\n", "\x00", "\x00\x1b\x7f", "\u200b", "\u200d\u2060\ufeff", "\u00ad", "\ufe0f", "\u3164"]
INVISIBLE += ["\u0301", "\u2028\u00a0", "\ud800", "\u202e", "\U000e0020"]


@pytest.mark.parametrize("text", INVISIBLE)
def test_invisible_texts_have_no_text(text):
    assert not has_text(text)
    assert not has_text(text * 1_000)
    assert has_text(f"{text}a{text}")


@given(st.text())
def test_a_word_makes_any_text_visible(text):
    assert has_text(text + "storm")
    assert has_text("嵐" + text)


@given(st.text(st.characters(categories=["Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Cs"])))
def test_no_mix_of_invisible_characters_has_text(text):
    assert not has_text(text)


@pytest.mark.parametrize("text", ["storm", "?", "7", "🌊", "ِسلام", "é", "\u200bstorm", "नमस्ते", "\U0001fae9"])
def test_visible_texts_have_text(text):
    assert has_text(text)


@pytest.mark.parametrize("query", ["", "  ", "\x00", "\u200b\ufeff"])
def test_search_refuses_them_before_the_encoder_sees_them(query):
    encoder = types.SimpleNamespace(encode_queries=lambda _: pytest.fail("embedded"))
    problem = "has no visible characters" if query.strip() else "is empty"
    refuses(f"query: the query {problem}", search.find_words, None, encoder, query, 3)


@pytest.mark.parametrize(
    "text", ["1714521600", "20240501", "2024-W18-3", "2024-5-1", "2024-02-30", "0000-01-01", "2024-05-01T00:00", ""]
)
def test_only_days_with_hyphens_are_dates(text):
    options = search.SearchOptions(query=("q",), index="i", until=text)
    refuses(f"--until: got {text!r}, expected a day as YYYY-MM-DD", options.day, "until")
    for value in (1714521600, 1.5, True, None, datetime.datetime(2024, 5, 1), "9" * 10_000):
        with pytest.raises(ValueError, match="expected a day as YYYY-MM-DD"):
            parse_day(value)


@given(st.dates())
def test_days_are_read_as_they_are_written(day):
    assert parse_day(day.isoformat()) == day
