"""The report: complete JSON, a self-contained page, escaped text, samples that point at real documents."""

import datetime
import json
import re

import pytest
from newsembed.beam_pipelines import parquet
from newsembed.beam_pipelines.records import Article, DeadLetter, Triplet
from newsembed.launch.demo import checks
from newsembed.launch.report import samples, write_report

ROWS = [
    {
        "job": "extract",
        "in": 10,
        "out": 7,
        "rejected": {"no_title": 2},
        "failed": {"truncated": 1},
        "tallies": {},
        "seconds": 1.5,
        "documents_per_second": 6.7,
        "skipped": False,
    },
    {
        "job": "clean",
        "in": 7,
        "out": 7,
        "rejected": {},
        "failed": {},
        "tallies": {"kept": 7},
        "seconds": 0.0,
        "documents_per_second": None,
        "skipped": True,
    },
]


def article(number):
    return Article(
        f"{number:016x}",
        f"http://p{number % 3}.example/{number}",
        f"p{number % 3}.example",
        f"Title <{number}>",
        "body",
        byline_date=datetime.date(2021 + number % 2, 1 + number % 12, 1),
        language="en",
    )


def triplet(anchor, positive, negative):
    return Triplet(f"{anchor:016x}", f"{positive:016x}", f"{negative:016x}", "en", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1, 400, 0.1)


@pytest.fixture
def work(tmp_path):
    parquet.write_shard(str(tmp_path / "clean/articles/part-00000-of-00001.parquet"), map(article, range(30)), Article)
    parquet.write_shard(
        str(tmp_path / "triplets/triplets/part-00000-of-00001.parquet"),
        [triplet(n % 30, (n + 1) % 30, (n + 2) % 30) for n in range(150)],
        Triplet,
    )
    letters = [DeadLetter(f"key{n}", "rejected", "no_title", "detail", "<script>alert(1)</script>") for n in range(9)]
    parquet.write_shard(str(tmp_path / "extract/dead_letters/pages/part-00000-of-00001.parquet"), letters, DeadLetter)
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained/metrics.jsonl").write_text("".join(json.dumps({"step": step, "loss": 1 / (step + 1)}) + "\n" for step in range(5)))
    return tmp_path


def test_report_holds_every_number_and_stands_alone(work):
    write_report(str(work), ROWS, {"checks": [{"name": "a", "measured": 1, "expected": ">= 0", "met": True}]})
    report = json.loads((work / "report.json").read_text())
    assert report["jobs"] == ROWS
    assert report["checks"][0]["met"] is True
    page = (work / "report.html").read_text()
    assert page.count("<svg") == 5
    assert not re.search(
        r"<script|<link|<img|src=|https?://(?!www\.w3\.org|p\d|purl|creativecommons|matplotlib)", page.replace("http://p", "")
    )
    assert "&lt;script&gt;alert(1)" in page
    assert "100 random triplets" in page
    assert "Title &lt;" in page


def test_samples_are_capped_and_repeat(work):
    assert {name: len(letters) for name, letters in samples.rejected(str(work)).items()} == {"extract: no_title": 5}
    first, second = samples.triplets(str(work)), samples.triplets(str(work))
    assert first == second
    assert len(first) == 100
    assert all(row[role]["title"].startswith("Title <") for row in first for role in ("anchor", "positive", "negative"))


def test_a_build_without_triplets_still_has_a_report(tmp_path):
    write_report(str(tmp_path), ROWS)
    assert "random triplets" not in (tmp_path / "report.html").read_text()


def test_mining_is_scored_against_the_truth_by_hand():
    truth = {
        f"{n:016x}": {"event": event, "near_duplicate_group": group}
        for n, (event, group) in enumerate([("e1", None), ("e1", None), ("e2", None), (None, "g"), (None, "g"), ("e1", None)])
    }
    publishers = {f"{n:016x}": publisher for n, publisher in enumerate("ababab")}
    mined = [triplet(1, 0, 2), triplet(1, 0, 2), triplet(0, 2, 1), triplet(3, 4, 4), triplet(0, 9, 9)]
    scored = checks.score_mining(iter(mined), truth, publishers)
    assert scored["positive pairs"] == 4  # (1,0) (0,2) (3,4) (0,9)
    assert scored["positive precision"] == pytest.approx(1 / 4)
    assert scored["positive recall"] == pytest.approx(1 / 2)  # of (0,1) and (0,5); (1,5) has one publisher
    assert scored["negative pairs"] == 4  # (1,2) (0,1) (3,4) (0,9)
    assert scored["negative precision (not the same event)"] == pytest.approx(2 / 4)  # (1,2) and (3,4); (0,9) is unknown
    assert scored["negative precision (nor the same evergreen)"] == pytest.approx(1 / 4)
    assert scored["anchors"] == 3
