"""The state of a crawl: written atomically, read back unchanged, damage reported."""

import datetime
import gzip
import json

import pytest
from newsembed.beam_pipelines.crawl import state
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.sources import Entry
from newsembed.beam_pipelines.crawl.state import UrlRecord, read_state, record_of, write_state
from newsembed.errors import InputError

TODAY = datetime.date(2024, 5, 1)
LINKS = (Entry("http://a.example/ü", TODAY), Entry("http://a.example/\udc80", None))


def fetched(**headers):
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Fetched(
        "http://a.example/", 200, "OK", named, b"body", date=datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    )


def test_state_comes_back_as_it_was(tmp_path):
    path = str(tmp_path / "state/a.example.json.gz")
    known = {
        "http://a.example/": record_of(fetched(ETag='W/"1"'), "feed", LINKS, "http://a.example/i.png"),
        "http://a.example/leaf": record_of(fetched(Last_Modified="Wed, 01 May 2024 00:00:00 GMT")),
    }
    write_state(path, known, TODAY)
    assert read_state(path) == known
    assert known["http://a.example/"].conditions() == {"If-None-Match": 'W/"1"'}
    assert known["http://a.example/leaf"].conditions() == {"If-Modified-Since": "Wed, 01 May 2024 00:00:00 GMT"}
    before = (tmp_path / "state/a.example.json.gz").read_bytes()
    write_state(path, known, TODAY)
    assert (tmp_path / "state/a.example.json.gz").read_bytes() == before
    assert [found.name for found in (tmp_path / "state").iterdir()] == ["a.example.json.gz"]


def test_urls_without_requests_for_400_days_are_forgotten(tmp_path):
    path = str(tmp_path / "s.json.gz")
    old = UrlRecord("x", "", "d", TODAY - datetime.timedelta(days=401))
    last = UrlRecord("x", "", "d", TODAY - datetime.timedelta(days=400))
    new = UrlRecord("x", "", "d", TODAY)
    write_state(path, {"http://a.example/old": old, "http://a.example/last": last, "http://a.example/new": new}, TODAY)
    assert list(read_state(path)) == ["http://a.example/last", "http://a.example/new"]


def test_validators_that_would_break_a_request_are_dropped():
    assert record_of(fetched(ETag='"1"\x01', Last_Modified="1. März")).conditions() == {}


def test_records_of_very_long_lists_have_no_links():
    assert record_of(fetched(), "sitemap", LINKS * 2_500).links == LINKS * 2_500
    assert record_of(fetched(), "sitemap", (*LINKS * 2_500, LINKS[0])).links is None


def damaged(raw):
    value = json.loads(gzip.decompress(raw))
    yield "cut", raw[:-9]
    yield "flipped", raw[:30] + bytes([raw[30] ^ 0xFF]) + raw[31:]
    yield "empty", b""
    yield "no gzip", b"{}"
    yield "no JSON", gzip.compress(b"{")
    yield "a list", gzip.compress(b"[]")
    yield "no pages", gzip.compress(json.dumps({"urls": []}).encode())
    yield "short entry", gzip.compress(json.dumps(value | {"pages": {"http://a.example/": ["x"]}}).encode())
    yield "link out of range", gzip.compress(json.dumps(value | {"urls": []}).encode())


def test_damage_is_named_with_its_file(tmp_path):
    path = tmp_path / "a.example.json.gz"
    write_state(str(path), {"http://a.example/": record_of(fetched(), "feed", LINKS)}, TODAY)
    for name, raw in damaged(path.read_bytes()):
        path.write_bytes(raw)
        with pytest.raises(InputError, match=r"a\.example\.json\.gz: --state: a damaged state file") as raised:
            state.check_states(str(tmp_path))
        assert "delete it" in raised.value.remedy, name
