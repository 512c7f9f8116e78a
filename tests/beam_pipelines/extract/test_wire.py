"""Messages of the process that reads pages: round trips of all its answers, and bytes that are not a message."""

import contextlib
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.extract.feeds import Feed
from newsembed.beam_pipelines.extract.page import ArticlePage, ExtractedPage
from newsembed.beam_pipelines.extract.wire import pack, unpack
from newsembed.formats.records import Rejection

DAY = datetime.date(2021, 3, 1)
ARTICLE = ArticlePage(
    url="http://s.example/1",
    title="A\u2028 title \ud800",
    body="One.\n\nTwo.",
    authors=("Ann Lee", "Bo Chen"),
    byline_date=DAY,
    modified_date=None,
    date_source="json-ld",
    language="en",
    keywords=(),
    image_url="",
    live_blog=True,
    sources={"title": "markup", "byline_date": "json-ld"},
)
VALUES = [
    ExtractedPage(article=ARTICLE, links=(("http://s.example/2", "Two"), ("http://s.example/3", "")), links_beyond=4),
    ExtractedPage(rejection=Rejection.NO_CONTENT, detail="0 characters"),
    ExtractedPage(hub_title="Weather"),
    Feed("F", (("/1", "One"),), (("/1", DAY, ("Ann Lee",)), ("/2", None, ())), 3),
    b"\x00\xff",
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=[type(value).__name__ for value in VALUES])
def test_what_the_process_answers_arrives_unchanged(value):
    kind, found = unpack(pack(("value", value)))
    assert kind == "value"
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, ExtractedPage):
        assert type(found.rejection) is type(value.rejection)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.dates() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=9,
)


@given(PLAIN)
def test_plain_values_arrive_unchanged(value):
    assert unpack(pack(value)) == value


@given(st.binary(max_size=40) | st.tuples(st.integers(0, 300), st.integers(0, 255)))
def test_other_bytes_are_no_message(damage):
    raw = pack(("value", VALUES[0]))
    if isinstance(damage, bytes):
        damaged = damage
    else:
        place, value = damage
        damaged = raw[:place] + bytes([value]) + raw[place + 1 :]
    with contextlib.suppress(ValueError):  # a changed letter may give another message
        unpack(damaged)
    with pytest.raises(ValueError, match="message|Expecting|Extra|JSON|ascii|codec"):
        unpack(raw[: len(raw) // 2])


def test_other_types_are_refused_on_both_sides():
    with pytest.raises(TypeError, match="type set"):
        pack({1})
    text = b'{"=": "Popen", "args": ["true"]}'
    with pytest.raises(ValueError, match="KeyError: 'Popen'"):
        unpack(len(text).to_bytes(8, "little") + text)
