"""The first steps of an update: which crawl is resumed, lists of words, and articles without a date."""

import dataclasses
from pathlib import Path

import pytest
from json_lines import write_rows
from newsembed.formats.manifest import write_manifest
from newsembed.updates import intake
from newsembed.updates.options import Sources, UpdateOptions
from newsembed.updates.run import update
from stream import CHOICE, CLEAN, OPTIONS, Words, article, articles_of, run, told


@pytest.fixture
def crawls(tmp_path, monkeypatch):
    """Runs the step that crawls, with a crawl that only notes the state that it finds and adds its feeds to it."""
    work, found = tmp_path / "work", []
    monkeypatch.setattr(intake, "crawl_state", lambda _: {"of the version": b""})
    work.mkdir()

    def crawl(feeds, *, is_cut_off=False):
        def execute(_job, inputs, output, options, _beam_args):
            found.append(sorted(path.name for path in Path(options.state).iterdir()))
            (Path(options.state) / Path(inputs["seeds"][0]).name).write_text("")
            if is_cut_off:
                raise KeyboardInterrupt
            write_manifest(output, {"digest": ""})

        monkeypatch.setattr(intake, "execute", execute)
        path = tmp_path / feeds
        path.write_text(f"https://{feeds}/\n")
        folders = intake._crawl(str(work), None, Sources(feeds=str(path)), UpdateOptions(), ())
        return [Path(folder).name for folder in folders], found[-1]

    crawl.found = found
    return crawl


def test_a_crawl_that_was_cut_off_is_resumed_with_its_state(crawls):
    with pytest.raises(KeyboardInterrupt):
        crawls("a", is_cut_off=True)
    assert crawls("a") == (["crawl-000"], ["a", "of the version"])


def test_of_a_crawl_of_other_feeds_that_was_cut_off_nothing_is_used(crawls):
    with pytest.raises(KeyboardInterrupt):
        crawls("a", is_cut_off=True)
    assert crawls("b") == (["crawl-000"], ["of the version"])


def test_a_crawl_after_one_that_no_version_has_goes_on_with_its_state(crawls):
    crawls("a")
    assert crawls("a") == (["crawl-000", "crawl-001"], ["a", "of the version"])
    assert crawls("b") == (["crawl-000", "crawl-001", "crawl-002"], ["a", "of the version"])


def test_articles_with_a_word_of_the_users_list_are_rejected(tmp_path):
    rows = [article(1, told("a", 1), 1), article(2, told("b", 2) + " A Blunder followed here.", 1)]
    (tmp_path / "words.txt").write_text("blunder\n")
    sources = Sources(articles=(write_rows(tmp_path / "1.jsonl", rows),), bad_words=(str(tmp_path / "words.txt"),))
    report = update(str(tmp_path / "archive"), Words(), CHOICE, sources, OPTIONS)
    assert (report.new, report.rejected) == (1, {"bad_words": 1})
    assert [row["title"] for row in articles_of(tmp_path / "archive")] == ["Title 1"]


def test_an_article_without_a_date_stays_without_one_over_runs(tmp_path):
    options = dataclasses.replace(OPTIONS, clean=dataclasses.replace(CLEAN, require_byline_date=False))
    undated = {name: value for name, value in article(1, told("a", 1), 1).items() if name != "byline_date"}
    archive = tmp_path / "archive"
    run(archive, [undated, article(2, told("b", 2), 1)], options=options)
    report = run(archive, [article(3, told("b", 3), 2)], options=options)
    assert (report.new, report.articles, report.superseded) == (1, 3, 0)
    rows = articles_of(archive)
    assert [row["event_id"] for row in rows if row["byline_date"] is None] == [""], "it has no event either"
    assert all(row["event_id"] for row in rows if row["byline_date"])
