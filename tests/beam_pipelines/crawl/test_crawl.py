"""crawl: limits, politeness and address checks, against misbehaving servers on loopback."""

import datetime

import pytest
from crawling import crawl, cut_off, feed, letters, page, stored
from newsembed.beam_pipelines.crawl import CrawlOptions
from newsembed.beam_pipelines.crawl.job import group_by_site, read_seeds
from newsembed.beam_pipelines.crawl.state import Visit
from newsembed.errors import InputError

ROBOTS = "User-agent: *\nDisallow: /private/\n"


def test_a_site_is_walked_to_its_depth_and_stored(tmp_path, web):
    web.add("http://www.a.example/robots.txt", ROBOTS, "text/plain")
    web.add("http://www.a.example/feed", feed("http://www.a.example/1"), "application/rss+xml")
    links = "/2", "http://other.example/x", "mailto:a@b.c", "/paper.pdf"
    web.add("http://www.a.example/1", page(*links, image="http://img.example/i.png"))
    web.add("http://www.a.example/2", page("/3", image="http://img.example/i.png"))
    web.add("http://www.a.example/3", page())
    web.add("http://img.example/i.png", b"image", "image/png")
    counts = crawl(tmp_path, web, "http://www.a.example/feed", max_depth=2, fetch_images=True)
    assert counts["tallies"] == {"pages": 3, "images": 1, "listed_images": 1}
    assert counts["rejected"] == {} == counts["failed"]
    assert stored(tmp_path) == {
        f"http://{name}": web.answers[tuple(name.replace("/", " /", 1).split())][0][2]
        for name in ("www.a.example/feed", "www.a.example/1", "www.a.example/2", "img.example/i.png")
    }
    assert web.count("http://img.example/i.png") == 1, "a thumbnail is fetched once"
    assert not any("other.example" in url or "/3" in url or "pdf" in url for url in web.requests)


def test_robots_are_obeyed_also_after_a_redirect(tmp_path, web):
    web.add("http://a.example/robots.txt", ROBOTS, "text/plain")
    web.add("http://a.example/", page("/private/1", "/detour", "/fine"))
    web.add("http://a.example/detour", "", status=302, Location="/private/2")
    web.add("http://a.example/fine", page())
    for number in (1, 2):
        web.add(f"http://a.example/private/{number}", page())
    counts = crawl(tmp_path, web, "http://a.example/")
    assert counts["rejected"] == {"robots_disallowed": 2}
    assert counts["out"] == 2
    assert not any("/private/" in url for url in web.requests)


def test_private_addresses_are_refused_before_anything_is_sent(tmp_path, web):
    web.add("http://a.example/", page())
    counts = crawl(tmp_path, web, "http://a.example/", f"http://127.0.0.1:{web.port}/", allow_private_addresses=False)
    assert counts["rejected"] == {"private_address": 2}
    assert web.requests == []


def test_every_url_that_is_not_stored_has_a_reason(tmp_path, web):
    links = ("/gone", "/broken", "/film", "/loop", "/away", "/huge", "/cut")
    web.add("http://a.example/", page(*links, image="/no-image"))
    web.add("http://a.example/broken", "x", status=500)
    web.add("http://a.example/film", b"x", "video/mp4")
    web.add("http://a.example/loop", "", status=302, Location="/loop")
    web.add("http://a.example/away", "", status=302, Location="http://elsewhere.example/")
    web.add("http://a.example/huge", "x" * 5000)
    web.add("http://a.example/cut", cut_off)
    web.add("http://a.example/no-image", page())
    counts = crawl(tmp_path, web, "http://a.example/", max_bytes=4000, fetch_images=True)
    assert counts["out"] == 1
    reasons = "http_error http_error unsupported_content_type fetch_error out_of_scope too_large fetch_error".split()
    expected = dict(zip(links, reasons, strict=True)) | {"/no-image": "unsupported_content_type"}
    assert letters(tmp_path) == {f"http://a.example{path}": reason for path, reason in expected.items()}
    assert not any("elsewhere" in url for url in web.requests)


def test_seeds_are_grouped_by_site_and_checked(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("# comment\n\nhttp://www.b.example/1\nhttp://a.example/\nhttp://b.example/2\nhttp://a.example/\n")
    assert group_by_site(map(Visit, read_seeds(str(path)))) == [
        ("a.example", [Visit("http://a.example/")]),
        ("b.example", [Visit("http://www.b.example/1"), Visit("http://b.example/2")]),
    ]
    path.write_text("http://a.example/\nftp://a.example/\n")
    with pytest.raises(InputError, match=r"seeds\.txt:2: got 'ftp://a\.example/', expected an absolute http"):
        read_seeds(str(path))
    path.write_text("x" * 1000)
    with pytest.raises(InputError, match=f"got '{'x' * 100}…', expected"):
        read_seeds(str(path))
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="contains no URL"):
        read_seeds(str(path))


DAYS = {"since": datetime.date(2024, 1, 2), "until": datetime.date(2024, 1, 1)}


@pytest.mark.parametrize(
    "changes",
    [{"resolve": ("a.example",)}, DAYS],
)
def test_invalid_options_are_rejected(changes):
    with pytest.raises(InputError, match=f"--{next(iter(changes))}"):
        CrawlOptions(**changes)
