"""The second crawl: with --state it stores only what changed."""

import pytest
from crawling import crawl as crawl_pages
from crawling import feed, page, stored
from newsembed.errors import InputError
from newsembed.tests.example_inputs import dead_letters

HOME = "http://www.a.example"
RSS = "application/rss+xml"


def crawl(*arguments, **changes):
    return crawl_pages(*arguments, fetch_images=True, **changes)


@pytest.fixture
def site(web):
    web.add(f"{HOME}/", page("/feed", "/plain"), ETag='"front"')
    web.add(f"{HOME}/feed", feed(f"{HOME}/1"), RSS, Last_Modified="Wed, 01 May 2024 00:00:00 GMT")
    web.add(f"{HOME}/1", page("/unreached", image="http://img.example/i.png"), ETag='"one"')
    web.add(f"{HOME}/plain", page(text="no validators"))
    web.add("http://img.example/i.png", b"png", "image/png", ETag='"image"')
    return web


def test_a_second_crawl_stores_only_what_changed(tmp_path, site):
    state = str(tmp_path / "state")
    first = crawl(tmp_path, site, f"{HOME}/", state=state, out="first")
    assert (first["out"], first["rejected"]) == (5, {})
    names = ["a.example.json.gz", "img.example.images.json.gz"]
    assert sorted(found.name for found in (tmp_path / "state").iterdir()) == names

    second = crawl(tmp_path, site, f"{HOME}/", state=state, out="second")
    assert (second["in"], second["out"], second["rejected"]) == (5, 0, {"not_modified": 5})
    details = {letter.key: letter.detail[:8] for letter in dead_letters(tmp_path / "second")}
    assert details.pop(f"{HOME}/plain") == "the same"
    assert set(details.values()) == {"304, as "}, "nothing of these was sent again"

    site.add(f"{HOME}/feed", feed(f"{HOME}/2"), RSS, Last_Modified="Thu, 02 May 2024 00:00:00 GMT")
    site.add(f"{HOME}/2", page())
    site.add(f"{HOME}/plain", page(text="changed"))
    third = crawl(tmp_path, site, f"{HOME}/", state=state, out="third")
    assert set(stored(tmp_path, "third")) == {f"{HOME}/feed", f"{HOME}/2", f"{HOME}/plain"}
    assert third["rejected"] == {"not_modified": 1}, "the front page; the first article is listed no more"


@pytest.mark.parametrize("seed", ["/", "/feed"])
def test_a_limit_on_pages_is_spent_on_new_pages_first(tmp_path, web, seed):
    """The old pages stay in front of the new ones in the list, as on a page with a fixed head."""
    state, old = str(tmp_path / "state"), [f"{HOME}/old-{number}" for number in range(5)]
    web.add(f"{HOME}/", page(*old))
    web.add(f"{HOME}/feed", feed(*old), RSS)
    for url in old:
        web.add(url, page(), ETag='"old"')
    crawl(tmp_path, web, f"{HOME}{seed}", state=state, out="first", max_depth=1)
    new = [f"{HOME}/new-{number}" for number in range(3)]
    web.add(f"{HOME}/", page(*old, *new))
    web.add(f"{HOME}/feed", feed(*old, *new), RSS)
    for url in new:
        web.add(url, page())
    counts = crawl(tmp_path, web, f"{HOME}{seed}", state=state, out="second", max_depth=1, max_pages_per_site=5)
    assert set(stored(tmp_path, "second")) == {f"{HOME}{seed}", *new}
    assert counts["rejected"] == {"not_modified": 1, "page_limit": 4}


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


def test_a_deeper_second_crawl_follows_what_the_first_did_not(tmp_path, site):
    state = str(tmp_path / "state")
    crawl(tmp_path, site, f"{HOME}/", state=state, out="first", max_depth=0)
    crawl(tmp_path, site, f"{HOME}/", state=state, out="second", max_depth=1)
    assert {f"{HOME}/feed", f"{HOME}/plain"} <= set(stored(tmp_path, "second"))


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
