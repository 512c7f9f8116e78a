"""What becomes of each response: records of six streams, or a dead letter with its reason. No page is parsed here."""

import datetime

import pytest
from newsembed.beam_pipelines.extract import read
from newsembed.beam_pipelines.extract.feeds import Feed
from newsembed.beam_pipelines.extract.isolation import Limits, PageError, read_payload
from newsembed.beam_pipelines.extract.page import ExtractedPage
from newsembed.beam_pipelines.extract.read import FeedStatement, ImageHash, Link, read_slice
from newsembed.beam_pipelines.extract.sources import Slice
from newsembed.beam_pipelines.extract.warc import Gap, Response
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.formats import parquet
from newsembed.formats.records import Article, Failure, Hub, Rejection, make_doc_id
from newsembed.tests.example_inputs import dead_letters

URL = "http://a.example/x"
FETCHED = datetime.datetime(2024, 1, 15, tzinfo=datetime.UTC)
KINDS = {"articles": Article, "hubs": Hub, "links": Link, "images": ImageHash, "statements": FeedStatement}


def response(content_type="text/html", payload=b"<p>x", status=200, url=URL, **changes):
    return Response(url, status, content_type, "utf-8", payload, FETCHED, **changes)


ARTICLE = Article(make_doc_id("http://news.a.example/own"), "http://news.a.example/own", "a.example", "T", "B")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Reads responses whose payloads are the given results, or errors; returns counts, streams and dead letters."""

    def run(*responses, found=None, indexes=()):
        calls = []

        class Stub:
            def call(self, function, *arguments):
                assert function is read_payload
                calls.append(arguments)
                if isinstance(found, Exception):
                    raise found
                return found

        def read_warc(piece, begun):
            begun.update({0, 7})
            return iter(responses)

        monkeypatch.setattr(read, "reader", lambda limits: Stub() if limits == Limits(1, 2) else None)
        monkeypatch.setattr(read, "read_warc", read_warc)
        with Shard(Phase(str(tmp_path), "read", 1), 0) as shard:
            read_slice(shard, Slice("f.warc", "warc", 0, -1, indexes=indexes), Limits(1, 2), 50)
            counts = shard.counts()
        streams = {name: list(parquet.read_stream(f"{tmp_path}/_{name}", kind)) for name, kind in KINDS.items()}
        return counts, streams, dead_letters(tmp_path), calls

    return run


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html", "page"),
        ("application/xhtml+xml", "xhtml"),
        ("image/jpeg", "image"),
        *((kind, "feed") for kind in ("application/rss+xml", "application/atom+xml", "text/xml", "application/json")),
        *(("text/plain", None), ("", "page"), ("x-image/png", None)),
    ],
)
def test_the_content_type_says_how_a_response_is_read(run, content_type, kind):
    counts, _, letters, calls = run(response(content_type))
    assert calls == ([(50, kind, b"<p>x", "utf-8", URL)] if kind else [])
    if kind is None:
        assert [(one.key, one.reason, one.detail) for one in letters] == [(URL, "not_html", content_type)]
    assert counts.read == 1


@pytest.mark.parametrize(
    ("one", "letter"),
    [
        (Gap(3, 9, "no record", URL), ("f.warc:3", "broken_record", f"no record; bytes 3 to 9 are passed over; {URL}")),
        (Gap(3, 3, "no record"), ("f.warc:3", "broken_record", "no record")),
        (response(status=404, cut="4 of 9 bytes"), (URL, "truncated", "f.warc: 4 of 9 bytes")),
        (response("text/plain", status=404), (URL, "not_ok_status", "404")),
        (response("text/plain", oversized=True), (URL, "not_html", "text/plain")),
        (response(oversized=True), (URL, "too_large", "20971520 bytes or more")),
    ],
)
def test_the_first_reason_against_a_response_counts(run, one, letter):
    counts, streams, (found,), calls = run(one)
    assert (found.key, found.reason, found.detail) == letter
    assert (counts.read, counts.written, calls) == (1, 0, [])
    assert not any(streams.values())


def test_an_error_of_the_reader_is_a_dead_letter_with_the_text_of_the_page(run):
    _, _, (found,), _ = run(response(payload=b"<p>\xff text"), found=PageError(Failure.TIMEOUT, "slow"))
    assert (found.key, found.outcome, found.reason, found.detail) == (URL, "failed", "timeout", "slow")
    assert found.sample == "<p>\ufffd text"


def test_a_payload_that_is_nothing_is_undecodable_as_a_page_and_of_another_type_otherwise(run):
    _, _, (found,), _ = run(response(payload=b"\0" * 9))
    assert (found.outcome, found.reason) == ("failed", "undecodable")
    assert found.detail == "9 bytes that are not text, sent as text/html"
    _, _, (found,), _ = run(response("text/xml"))
    assert (found.outcome, found.reason, found.detail) == ("rejected", "not_html", "text/xml")


def test_an_article_has_its_own_address_and_its_links_with_words(run):
    links = (("http://b.example/1", "One"), ("http://b.example/2", ""))
    counts, streams, _, _ = run(response(), found=ExtractedPage(ARTICLE, links=links, links_beyond=3))
    (found,) = streams["articles"]
    assert (found.doc_id, found.url) == (make_doc_id("http://news.a.example/own"), "http://news.a.example/own")
    assert (found.publisher, found.fetched_at, found.title) == ("a.example", FETCHED, "T")
    assert streams["links"] == [Link(make_doc_id("http://b.example/1"), "One")]
    assert counts.tallies == {"articles": 1, "links_beyond_limit": 3}
    assert (counts.read, counts.written) == (1, 1)


def test_a_front_page_is_a_hub_of_what_it_links_to_except_itself(run):
    links = ((URL, "Here"), ("http://b.example/2", "Two"), ("http://b.example/1", ""), ("http://b.example/2", "Again"))
    page = ExtractedPage(hub_title=" All \n news ", links=links)
    counts, streams, _, _ = run(response(url="http://www.a.example/x"), found=page)
    (hub,) = streams["hubs"]
    members = tuple(sorted(make_doc_id(f"http://b.example/{number}") for number in (1, 2)))
    assert hub == Hub(make_doc_id(URL), URL, "a.example", "All news", "directory", members)
    assert [link.text for link in streams["links"]] == ["Here", "Two", "Again"]
    assert counts.tallies == {"hubs": 1}


@pytest.mark.parametrize(("given", "reason"), [(Rejection.NO_TITLE, "no_title"), (None, "no_content")])
def test_a_page_that_is_neither_is_rejected_with_its_reason(run, given, reason):
    counts, streams, (found,), _ = run(response(), found=ExtractedPage(rejection=given, detail="why"))
    assert (found.outcome, found.reason, found.detail, found.sample) == ("rejected", reason, "why", "<p>x")
    assert counts.rejected == {reason: 1}


def test_a_feed_is_a_hub_with_links_and_statements(run):
    day = datetime.date(2024, 1, 13)
    entries = (("/1", "One"), ("http://b.example/2", ""), ("mailto:x", "No"))
    stated = (("/1", day, ("By Ann Lee",)), ("mailto:x", day, ()))
    counts, streams, _, _ = run(response("text/xml"), found=Feed("News", entries, stated, 4))
    (hub,) = streams["hubs"]
    first, second = make_doc_id("http://a.example/1"), make_doc_id("http://b.example/2")
    assert (hub.kind, hub.title, hub.doc_ids) == ("feed", "News", tuple(sorted((first, second))))
    assert streams["links"] == [Link(first, "One")]
    assert streams["statements"] == [FeedStatement(first, day, ("Ann Lee",))]
    assert counts.tallies == {"hubs": 1, f"feed_entries_beyond_{read.MAX_ENTRIES}": 4}


def test_members_of_a_hub_beyond_the_limit_are_counted(run, monkeypatch):
    monkeypatch.setattr(read, "_MAX_HUB_MEMBERS", 2)
    for count, beyond in ((2, {}), (5, {"hub_members_beyond_2": 3})):
        links = tuple((f"http://b.example/{number}", "") for number in range(count))
        counts, streams, _, _ = run(response(), found=ExtractedPage(hub_title="T", links=links))
        assert streams["hubs"][0].doc_ids == tuple(sorted(make_doc_id(link) for link, _ in links)[:2])
        assert counts.tallies == {"hubs": 1} | beyond


def test_what_an_index_lists_and_the_file_lacks_is_counted(run, tmp_path):
    lines = [f'example,a)/{n} 20240115 {{"url": "{URL}", "filename": "f.warc", "offset": "{n}"}}\n' for n in (0, 5, 7)]
    (tmp_path / "f.cdxj").write_text("".join(lines))
    index = str(tmp_path / "f.cdxj")
    counts, _, (found,), _ = run(indexes=(index,))
    assert (found.key, found.reason) == ("f.warc:5", "missing_record")
    assert found.detail == f"listed in {index}, but no record begins here; {URL}"
    assert (counts.read, counts.tallies) == (1, {"records_in_index": 3})
