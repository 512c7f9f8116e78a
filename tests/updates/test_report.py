"""The report of an update, line by line, and the options that an archive keeps."""

import dataclasses

import pytest
from newsembed.beam_pipelines.clean.rules import CleanOptions
from newsembed.beam_pipelines.crawl.options import CrawlOptions
from newsembed.updates.options import EncoderChoice, UpdateOptions, check_same
from newsembed.updates.report import Report, print_report
from refusals import refuses

READ = {"read": 1040, "new": 1000, "known": 7, "hubs_and_images": 11, "superseded": 2}
REJECTED = {"too_short": 4, "duplicate_url": 20, "advertisement": 4}
HELD = {"articles": 12345, "events": 678, "opened": 60, "merged": 1}
CRAWL = {"in": 30, "out": 20, "rejected": {"robots": 2}, "failed": {"http_error": 8}}
REPORT = Report(
    version=3,
    published=True,
    started="2024-01-02T03:04:05Z",
    rejected=REJECTED,
    failed={"broken_record": 5},
    crawl=(CRAWL,),
    seconds={"read": 1.25, "embed": 2.25},
    **READ,
    **HELD,
)


def printed(capsys, report):
    print_report("archive", report)
    *table, last = capsys.readouterr().out.strip().splitlines()
    words = [line.strip(" |│┃").split() for line in table]
    return {" ".join(line[:-1]).rstrip(" |│"): line[-1] for line in words if line and line[-1][0].isdigit()}, last


def test_every_count_is_printed_with_the_largest_reason_first(capsys):
    rows, last = printed(capsys, REPORT)
    expected = ["in 1,040", "new 1,000", "already known 7", "rejected: duplicate_url 20", "rejected: advertisement 4"]
    expected += ["rejected: too_short 4", "failed: broken_record 5", "hubs and images 11"]
    expected += ["superseded by earlier or corrected reports 2", "events opened 60", "events merged 1"]
    expected += ["URLs crawled 30", "URLs: http_error 8", "URLs: robots 2"]
    assert list(map(" ".join, rows.items())) == expected
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
        ((3, 0, {}, {"timeout": 3}), True),
        ((3, 0, {"robots_disallowed": 1}, {"timeout": 2}), True),
        ((3, 0, {"not_modified": 2}, {"timeout": 1}), False),
        ((3, 1, {}, {"timeout": 2}), False),
        ((3, 0, {"not_modified": 3}, {}), False),
        ((1, 0, {"private_address": 1}, {}), True),
    ],
)
def test_a_crawl_that_could_fetch_nothing_says_so_and_where_the_urls_are(capsys, crawl, said):
    crawl = dict(zip(("in", "out", "rejected", "failed"), crawl, strict=True))
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
        (KEPT | {"encoder_digest": "d2"}, "--encoder", "not the encoder of earlier runs; --replace_encoder"),
        ({name: value for name, value in KEPT.items() if name != "events"}, "--events", "got None"),
    ],
)
def test_options_that_make_other_articles_are_refused_by_name(changed, field, problem):
    refused = refuses(problem, check_same, "archive", KEPT, changed)
    assert refused.field == field


def test_a_state_of_the_crawl_is_the_archives_own():
    refuses("keeps the state", UpdateOptions, crawl=CrawlOptions(state="folder"))
