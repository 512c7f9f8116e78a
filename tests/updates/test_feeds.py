"""Updates from feeds: only what changed is fetched, and a crawl that was cut off is not lost."""

import pytest
from crawling import options, serving
from newsembed.formats.archive import Archive, read_runs
from newsembed.formats.parquet import read_records
from newsembed.formats.records import DeadLetter
from newsembed.updates.intake import crawl_state
from newsembed.updates.options import Sources, UpdateOptions
from newsembed.updates.run import _LETTERS, update
from stream import CHOICE, CLEAN, OPTIONS, Words, articles_of, told

SITE = "http://www.news.example"


def story(number):
    paragraphs = "".join(f"<p>{told(f'e{number}', part, 40).capitalize()}</p>" for part in range(4))
    return f"""<html><head><title>Story {number} of the day</title>
<meta property="article:published_time" content="2024-03-0{number}T08:00:00Z"></head>
<body><article><h1>Story {number} of the day</h1>{paragraphs}</article></body></html>"""


def front(*numbers):
    return "".join(f'<a href="/2024/03/0{number}/story-{number}">Story {number} of the day</a> ' for number in numbers)


def publish(web, *numbers):
    """The site has these stories; pages have an ETag."""
    web.add(f"{SITE}/", f"<html><head><title>News</title></head><body>{front(*numbers)}</body></html>")
    for number in numbers:
        web.add(f"{SITE}/2024/03/0{number}/story-{number}", story(number), ETag=f'"{number}"')


@pytest.fixture
def web():
    with serving() as found:
        yield found


@pytest.fixture
def crawl(web, tmp_path):
    """Runs an update from the site."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{SITE}/\n")
    both = UpdateOptions(crawl=options(web), clean=CLEAN, events=OPTIONS.events)

    def run(archive, **more):
        return update(str(archive), Words(), CHOICE, Sources(feeds=str(seeds)), both, **more)

    return run


def titles(archive):
    return sorted(row["title"] for row in articles_of(archive))


def test_urls_that_were_not_fetched_are_dead_letters_but_for_those_that_did_not_change(web, crawl, tmp_path):
    archive = tmp_path / "archive"
    publish(web, 1, 2)
    crawl(archive)
    links = front(1, 2, 8, 9)  # 9 is missing
    web.add(f"{SITE}/", f"<html><head><title>News</title></head><body>{links}</body></html>")
    web.add(f"{SITE}/robots.txt", "User-agent: *\nDisallow: /2024/03/08/")
    assert crawl(archive).crawl[0]["failed"] == {"http_error": 1}
    letters = list(read_records(f"{archive}/{_LETTERS}", DeadLetter))
    assert [one.reason for one in letters if one.key.endswith("story-9")] == ["http_error"]
    assert [one.reason for one in letters if one.key.endswith("story-8")] == ["robots_disallowed"]
    assert "not_modified" not in {one.reason for one in letters}


def test_the_next_run_stores_only_what_changed(web, crawl, tmp_path):
    archive = tmp_path / "archive"
    publish(web, 1, 2)
    first = crawl(archive)
    assert (first.new, sum(first.rejected.values()), first.read) == (2, 1, 3), "the front page is not an article"
    assert titles(archive) == ["Story 1 of the day", "Story 2 of the day"]
    publish(web, 1, 2, 3)
    second = crawl(archive)
    assert (second.new, second.known, second.superseded) == (1, 0, 0)
    assert second.crawl[0]["rejected"]["not_modified"] == 2
    assert len(titles(archive)) == 3
    assert crawl_state(Archive(str(archive)))
    third = crawl(archive)
    assert (third.read, third.new, third.published) == (0, 0, False)


def test_the_pages_of_a_crawl_that_was_cut_off_are_read_by_the_next_run(web, crawl, tmp_path):
    archive = tmp_path / "archive"
    publish(web, 1)

    def stop(_phase, _done, _total, step):
        if step == "crawl":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crawl(archive, progress=stop)
    assert read_runs(str(archive)) == []
    publish(web, 1, 2)
    report = crawl(archive)
    assert (report.new, len(report.crawl)) == (2, 2)
    assert report.crawl[1]["rejected"]["not_modified"] == 1, "the state of the first crawl is used"
    assert titles(archive) == ["Story 1 of the day", "Story 2 of the day"]
