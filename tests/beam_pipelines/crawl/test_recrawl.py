"""The second crawl: with --state it stores only what changed."""

import dataclasses
import datetime
import shutil

import pytest
from crawling import all_letters, letters, page, stored
from crawling import crawl as crawl_pages
from newsembed.beam_pipelines.crawl.state import read_state, write_state
from newsembed.errors import InputError
from newsembed.formats.urls import canonical_url

HOME = "http://www.a.example"
FEED = f"<rss><channel><title>F</title><item><title>One</title><link>{HOME}/1</link></item></channel></rss>"


def crawl(*arguments, **changes):
    return crawl_pages(*arguments, fetch_images=True, **changes)


@pytest.fixture
def site(web):
    web.add(f"{HOME}/", page("/feed", "/plain"), ETag='"front"')
    web.add(f"{HOME}/feed", FEED, "application/rss+xml", Last_Modified="Wed, 01 May 2024 00:00:00 GMT")
    web.add(f"{HOME}/1", page("/unreached", image="http://img.example/i.png"), ETag='"one"')
    web.add(f"{HOME}/plain", page(text="no validators"))
    web.add("http://img.example/i.png", b"png", "image/png", ETag='"image"')
    return web


def test_a_second_crawl_stores_only_what_changed(tmp_path, site):
    state = str(tmp_path / "state")
    first = crawl(tmp_path, site, f"{HOME}/", state=state, out="first")
    assert (first["out"], first["rejected"]) == (5, {})
    assert sorted(found.name for found in (tmp_path / "state").iterdir()) == [
        "a.example.json.gz",
        "img.example.images.json.gz",
    ]

    second = crawl(tmp_path, site, f"{HOME}/", state=state, out="second")
    assert (second["in"], second["out"], second["rejected"]) == (5, 0, {"not_modified": 5})
    details = {letter.key: letter.detail[:8] for letter in all_letters(tmp_path, "second")}
    assert details.pop(f"{HOME}/plain") == "the same"
    assert set(details.values()) == {"304, as "}, "nothing of these was sent again"

    site.add(
        f"{HOME}/feed", FEED.replace("/1<", "/2<"), "application/rss+xml", Last_Modified="Thu, 02 May 2024 00:00:00 GMT"
    )
    site.add(f"{HOME}/2", page())
    site.add(f"{HOME}/plain", page(text="changed"))
    third = crawl(tmp_path, site, f"{HOME}/", state=state, out="third")
    assert set(stored(tmp_path, "third")) == {f"{HOME}/feed", f"{HOME}/2", f"{HOME}/plain"}
    assert third["rejected"] == {"not_modified": 1}, "the front page; the first article is listed no more"


def test_pages_behind_an_unchanged_page_are_still_reached(tmp_path, site):
    state = str(tmp_path / "state")
    crawl(tmp_path, site, f"{HOME}/", state=state, out="first")
    site.add(f"{HOME}/1", page(text="rewritten"), ETag='"two"')
    crawl(tmp_path, site, f"{HOME}/", state=state, out="second")
    assert set(stored(tmp_path, "second")) == {f"{HOME}/1"}


def feed_of(*links):
    items = "".join(f"<item><title>T</title><link>{link}</link></item>" for link in links)
    return f"<rss><channel><title>F</title>{items}</channel></rss>"


@pytest.mark.parametrize("seed", ["/", "/feed"])
def test_a_limit_on_pages_is_spent_on_new_pages_first(tmp_path, web, seed):
    """The old pages stay in front of the new ones in the list, as on a page with a fixed head."""
    state, old = str(tmp_path / "state"), [f"{HOME}/old-{number}" for number in range(5)]
    web.add(f"{HOME}/", page(*old))
    web.add(f"{HOME}/feed", feed_of(*old), "application/rss+xml")
    for url in old:
        web.add(url, page(), ETag='"old"')
    crawl(tmp_path, web, f"{HOME}{seed}", state=state, out="first", max_depth=1)
    new = [f"{HOME}/new-{number}" for number in range(3)]
    web.add(f"{HOME}/", page(*old, *new))
    web.add(f"{HOME}/feed", feed_of(*old, *new), "application/rss+xml")
    for url in new:
        web.add(url, page())
    counts = crawl(tmp_path, web, f"{HOME}{seed}", state=state, out="second", max_depth=1, max_pages_per_site=5)
    assert set(stored(tmp_path, "second")) == {f"{HOME}{seed}", *new}
    assert counts["rejected"] == {"not_modified": 1, "page_limit": 4}


def test_known_pages_take_turns_under_a_limit(tmp_path, web):
    """What was requested longest ago is next, so that every page is looked at again after a few crawls."""
    state, pages = str(tmp_path / "state"), [f"{HOME}/{number}" for number in range(4)]
    web.add(f"{HOME}/", page(*pages))
    for url in pages:
        web.add(url, page(), ETag='"same"')
    crawl(tmp_path, web, f"{HOME}/", state=state, out="first", max_depth=1)
    path = tmp_path / "state/a.example.json.gz"
    records = read_state(str(path))
    today = datetime.datetime.now(datetime.UTC).date()
    for age, url in enumerate(map(canonical_url, pages)):
        records[url] = dataclasses.replace(records[url], requested=today - datetime.timedelta(days=age))
    write_state(str(path), records, today)
    asked = len(web.requests)
    crawl(tmp_path, web, f"{HOME}/", state=state, out="second", max_depth=1, max_pages_per_site=3)
    assert [url for url in web.requests[asked:] if "robots" not in url] == [f"{HOME}/", f"{HOME}/3", f"{HOME}/2"]


def test_broken_links_do_not_stay_new(tmp_path, web):
    """A page that is gone, and an address that leads to a known page, are asked for after what is new."""
    state, gone = str(tmp_path / "state"), [f"{HOME}/gone-{number}" for number in range(3)]
    web.add(f"{HOME}/", page(*gone, "/busy"))
    web.add(f"{HOME}/busy", "", status=503)
    crawl(tmp_path, web, f"{HOME}/", state=state, out="first", max_depth=1)
    web.add(f"{HOME}/", page(*gone, "/busy", "/new"))
    web.add(f"{HOME}/new", page(text="new"))
    web.add(f"{HOME}/busy", page(text="busy no more"))
    crawl(tmp_path, web, f"{HOME}/", state=state, out="second", max_depth=1, max_pages_per_site=3)
    assert set(stored(tmp_path, "second")) == {f"{HOME}/", f"{HOME}/busy", f"{HOME}/new"}


def test_a_new_address_of_a_known_page_brings_nothing_new(tmp_path, site):
    state = str(tmp_path / "state")
    crawl(tmp_path, site, f"{HOME}/", state=state, out="first")
    site.add(f"{HOME}/", page("/feed", "/plain", "/alias"), ETag='"front 2"')
    site.add(f"{HOME}/alias", "", status=302, Location="/plain")
    counts = crawl(tmp_path, site, f"{HOME}/", state=state, out="second")
    assert set(stored(tmp_path, "second")) == {f"{HOME}/"}
    assert counts["rejected"] == {"not_modified": 4, "duplicate_url": 1}


def test_urls_that_failed_are_requested_again(tmp_path, site):
    state = str(tmp_path / "state")
    healthy = site.answers["www.a.example", "/1"]
    site.add(f"{HOME}/1", "x", status=500)
    crawl(tmp_path, site, f"{HOME}/", state=state, out="first")
    site.answers["www.a.example", "/1"] = healthy
    crawl(tmp_path, site, f"{HOME}/", state=state, out="second")
    assert f"{HOME}/1" in stored(tmp_path, "second")


def test_a_deeper_second_crawl_follows_what_the_first_did_not(tmp_path, site):
    state = str(tmp_path / "state")
    crawl(tmp_path, site, f"{HOME}/", state=state, out="first", max_depth=0)
    crawl(tmp_path, site, f"{HOME}/", state=state, out="second", max_depth=1)
    assert {f"{HOME}/feed", f"{HOME}/plain"} <= set(stored(tmp_path, "second"))


def test_without_state_everything_is_fetched_again(tmp_path, site):
    crawl(tmp_path, site, f"{HOME}/", out="first")
    assert crawl(tmp_path, site, f"{HOME}/", out="second")["out"] == 5
    assert not any("If-None-Match" in headers for headers in site.headers)


def test_state_is_not_written_before_the_crawl_is_complete(tmp_path, site, monkeypatch):
    from newsembed.beam_pipelines.crawl import job as crawl_job

    def killed(*_args):
        raise RuntimeError("killed")

    state = str(tmp_path / "state")
    with monkeypatch.context() as patch:
        patch.setattr(crawl_job, "_crawl_listed", killed)
        with pytest.raises(RuntimeError, match="killed"):
            crawl(tmp_path, site, f"{HOME}/", state=state)
    assert not (tmp_path / "state").exists()
    asked = len(site.requests)
    counts = crawl(tmp_path, site, f"{HOME}/", state=state)
    assert counts["out"] == 5, "the site that was complete is not crawled again against its own state"
    assert [url for url in site.requests[asked:] if "robots" not in url] == ["http://img.example/i.png"]
    assert (tmp_path / "state/a.example.json.gz").exists()


def test_damaged_state_is_named_before_anything_is_fetched(tmp_path, site):
    state = tmp_path / "state"
    crawl(tmp_path, site, f"{HOME}/", state=str(state), out="first")
    path = state / "a.example.json.gz"
    path.write_bytes(path.read_bytes()[:-20])
    asked = len(site.requests)
    with pytest.raises(InputError, match=r"a\.example\.json\.gz: --state: a damaged state file"):
        crawl(tmp_path, site, f"{HOME}/", state=str(state), out="second")
    assert len(site.requests) == asked
    path.unlink()
    assert crawl(tmp_path, site, f"{HOME}/", state=str(state), out="third")["out"] == 4


def test_each_site_has_its_own_state(tmp_path, site):
    state = tmp_path / "state"
    site.add("http://b.example/", page(), ETag='"b"')
    crawl(tmp_path, site, f"{HOME}/", "http://b.example/", state=str(state), out="first")
    shutil.move(state / "b.example.json.gz", tmp_path / "elsewhere")
    crawl(tmp_path, site, f"{HOME}/", "http://b.example/", state=str(state), out="second")
    assert set(stored(tmp_path, "second")) == {"http://b.example/"}
    assert letters(tmp_path, "second")[f"{HOME}/"] == "not_modified"


def test_state_lies_outside_the_output(tmp_path, site):
    with pytest.raises(InputError, match="--state: is in the output folder"):
        crawl(tmp_path, site, f"{HOME}/", state=str(tmp_path / "out/state"))


def test_targets_of_redirects_are_compared_too(tmp_path, site):
    state = str(tmp_path / "state")
    site.add(f"{HOME}/", page("/1", "/alias", "/early", "/late"), ETag='"front"')
    site.add(f"{HOME}/alias", "", status=301, Location="/1")
    site.add(f"{HOME}/early", "", status=301, Location="/late")
    site.add(f"{HOME}/late", page(), ETag='"late"')
    first = crawl(tmp_path, site, f"{HOME}/", state=state, out="first")
    assert (first["out"], first["rejected"]) == (4, {"duplicate_url": 2})
    second = crawl(tmp_path, site, f"{HOME}/", state=state, out="second")
    assert (second["out"], second["rejected"]) == (0, {"duplicate_url": 2, "not_modified": 4})
