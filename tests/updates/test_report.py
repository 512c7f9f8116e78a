"""The report of an update, line by line, and the options that an archive keeps."""

import dataclasses

import pytest
from newsembed.beam_pipelines.clean.rules import CleanOptions
from newsembed.beam_pipelines.crawl.options import CrawlOptions
from newsembed.errors import InputError
from newsembed.updates.options import EncoderChoice, UpdateOptions, check_same
from newsembed.updates.report import Report, print_report

REPORT = Report(
    version=3,
    published=True,
    started="2024-01-02T03:04:05Z",
    read=1040,
    new=1000,
    known=7,
    rejected={"too_short": 4, "duplicate_url": 20, "advertisement": 4},
    failed={"broken_record": 5},
    hubs_and_images=11,
    superseded=2,
    articles=12345,
    events=678,
    opened=60,
    merged=1,
    crawl=({"in": 30, "out": 20, "rejected": {"robots": 2}, "failed": {"http_error": 8}},),
    seconds={"read": 1.25, "embed": 2.25},
)


def printed(capsys, report):
    print_report("archive", report)
    *table, last = capsys.readouterr().out.strip().splitlines()
    words = [line.strip(" |│┃").split() for line in table]
    return {" ".join(line[:-1]).rstrip(" |│"): line[-1] for line in words if line and line[-1][0].isdigit()}, last


def test_every_count_is_printed_with_the_largest_reason_first(capsys):
    rows, last = printed(capsys, REPORT)
    assert list(rows.items()) == [
        ("in", "1,040"),
        ("new", "1,000"),
        ("already known", "7"),
        ("rejected: duplicate_url", "20"),
        ("rejected: advertisement", "4"),
        ("rejected: too_short", "4"),
        ("failed: broken_record", "5"),
        ("hubs and images", "11"),
        ("superseded by earlier or corrected reports", "2"),
        ("events opened", "60"),
        ("events merged", "1"),
        ("URLs crawled", "30"),
        ("URLs: http_error", "8"),
        ("URLs: robots", "2"),
    ]
    assert last == "archive: version 3, 12,345 articles in 678 events; 3.5 s"


def test_counts_of_nothing_are_left_out_and_a_run_without_a_version_says_so(capsys):
    none = dict.fromkeys(("hubs_and_images", "superseded", "opened", "merged"), 0)
    quiet = dataclasses.replace(REPORT, published=False, crawl=(), rejected={}, failed={}, **none)
    rows, last = printed(capsys, quiet)
    assert list(rows) == ["in", "new", "already known"]
    assert last == "archive: nothing new; version 3 stays, 12,345 articles in 678 events"
    assert printed(capsys, dataclasses.replace(quiet, articles=1, events=1))[1].endswith("1 article in 1 event")
    first = dataclasses.replace(quiet, version=0)
    assert printed(capsys, first)[1].endswith("the archive has no version yet")
    rejected = dataclasses.replace(first, rejected={"near_duplicate": 2, "no_author": 1038})
    end = "no version yet: 1,038 of 1,040 rejected as no_author; --clean.require_author=false keeps them"
    assert printed(capsys, rejected)[1].endswith(end)
    unswitched = dataclasses.replace(first, rejected={"duplicate_body": 1040})
    assert printed(capsys, unswitched)[1].endswith("no version yet: 1,040 of 1,040 rejected as duplicate_body")


@pytest.mark.parametrize(
    ("crawl", "said"),
    [
        ({"in": 3, "out": 0, "rejected": {}, "failed": {"timeout": 3}}, True),
        ({"in": 3, "out": 0, "rejected": {"robots_disallowed": 1}, "failed": {"timeout": 2}}, True),
        ({"in": 3, "out": 0, "rejected": {"not_modified": 2}, "failed": {"timeout": 1}}, False),
        ({"in": 3, "out": 1, "rejected": {}, "failed": {"timeout": 2}}, False),
        ({"in": 3, "out": 0, "rejected": {"not_modified": 3}, "failed": {}}, False),
        ({"in": 1, "out": 0, "rejected": {"private_address": 1}, "failed": {}}, True),
    ],
)
def test_a_crawl_that_could_fetch_nothing_says_so_and_where_the_urls_are(capsys, crawl, said):
    print_report("archive", dataclasses.replace(REPORT, rejected={}, failed={}, crawl=(crawl,)))
    shown = capsys.readouterr().out
    assert ("note: nothing of the crawl could be fetched" in shown) is said
    assert ("`newsembed rejected archive` prints" in shown) is (said or bool(crawl["failed"]))


CHOICE = EncoderChoice("static:model", 64)
KEPT = UpdateOptions().to_json(CHOICE, "d1")


def given(**changes):
    return UpdateOptions(**changes).to_json(CHOICE, "d1")


@pytest.mark.parametrize("changed", [given(crawl=CrawlOptions(max_attempts=9)), KEPT | {"encoder": "static:moved"}])
def test_options_that_change_no_article_may_differ(changed):
    assert changed != KEPT
    check_same("archive", KEPT, changed)  # raises nothing


@pytest.mark.parametrize(
    ("changed", "field", "problem"),
    [
        (given(clean=CleanOptions(near_duplicate_threshold=0.5)), "--clean.near_duplicate_threshold", "got 0.5"),
        (
            KEPT | {"encoder_options": {"max_length": 65, "document_prompt": None}},
            "--max_length",
            "got 65, expected 64",
        ),
        (KEPT | {"events": KEPT["events"] | {"days": 9}, "encoder_options": {}}, "--events.days", "got 9"),
        (KEPT | {"encoder_digest": "d2"}, "--encoder", "not comparable"),
        ({name: value for name, value in KEPT.items() if name != "events"}, "--events", "got None"),
    ],
)
def test_options_that_make_other_articles_are_refused_by_name(changed, field, problem):
    with pytest.raises(InputError, match=problem) as refused:
        check_same("archive", KEPT, changed)
    assert refused.value.field == field


def test_a_state_of_the_crawl_is_the_archives_own():
    with pytest.raises(InputError, match="keeps the state"):
        UpdateOptions(crawl=CrawlOptions(state="folder"))
