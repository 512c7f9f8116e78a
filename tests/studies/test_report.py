"""The report: complete JSON, a self-contained page, escaped text, samples that point at real documents."""

import datetime
import json
import re

import newsembed
import pytest
from newsembed.formats import parquet
from newsembed.formats.records import Article, DeadLetter, Triplet
from newsembed.studies.report import parts_of, samples, write_report
from newsembed.studies.shared.pages import Cell
from newsembed.tests.document_table import numbered_triplet

FACTS = "job in out rejected failed tallies seconds documents_per_second skipped".split()
VALUES = (
    ("extract", 10, 7, {"no_title": 2}, {"truncated": 1}, {}, 1.5, 6.7, False),
    ("clean", 7, 7, {}, {}, {"kept": 7}, 0.0, None, True),
)
ROWS = [dict(zip(FACTS, values, strict=True)) for values in VALUES]


def article(number):
    site, day = f"p{number % 3}.example", datetime.date(2021 + number % 2, 1 + number % 12, 1)
    texts = (f"http://{site}/{number}", site, f"Title <{number}>", "body")
    return Article(f"{number:016x}", *texts, byline_date=day, language="en")


@pytest.fixture
def work(tmp_path):
    parquet.write_shard(str(tmp_path / "clean/articles/part-00000-of-00001.parquet"), map(article, range(30)), Article)
    parquet.write_shard(
        str(tmp_path / "triplets/triplets/part-00000-of-00001.parquet"),
        [numbered_triplet(n % 30, (n + 1) % 30, (n + 2) % 30) for n in range(150)],
        Triplet,
    )
    letters = [DeadLetter(f"key{n}", "rejected", "no_title", "detail", "<script>alert(1)</script>") for n in range(29)]
    letters.append(DeadLetter("file:3", "failed", "truncated", "ends early", ""))
    parquet.write_shard(str(tmp_path / "extract/dead_letters/pages/part-00000-of-00001.parquet"), letters, DeadLetter)
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained/metrics.jsonl").write_text(
        "".join(json.dumps({"step": step, "loss": 1 / (step + 1)}) + "\n" for step in range(5))
    )
    return tmp_path


def test_report_holds_every_number_and_stands_alone(work):
    write_report(str(work), ROWS, {"checks": [{"name": "a", "measured": 1, "expected": ">= 0", "met": True}]})
    report = json.loads((work / "report.json").read_text())
    assert report["jobs"] == ROWS
    assert report["checks"][0]["met"] is True
    page = (work / "report.html").read_text()
    assert page.count("<svg") == 5
    assert not re.search(
        r"<script|<link|<img|src=|https?://(?!www\.w3\.org|p\d|purl|creativecommons|matplotlib)",
        page.replace("http://p", ""),
    )
    assert "&lt;script&gt;alert(1)" in page
    assert "100 random triplets" in page
    assert "Title &lt;" in page


def test_what_made_the_page_comes_first_then_the_checks_then_the_jobs(work, monkeypatch):
    command = ["newsembed", "build", "--s3_secret_access_key", "abc", "--articles", "my news.jsonl", "--output=work"]
    monkeypatch.setattr("sys.argv", command)
    write_report(str(work), ROWS, {"encoders": [], "checks": [{"name": "a", "measured": 1, "met": False}]})
    page = (work / "report.html").read_text()
    today = datetime.datetime.now(datetime.UTC).date()
    order = [
        f"<td>{today}",
        f"<td>{newsembed.__version__}</td>",
        "<td>newsembed build --s3_secret_access_key … --articles &#39;my news.jsonl&#39; --output=work</td>",
        ">Checks</h2>",
        '<span class="bad">missed</span>',
        ">Jobs</h2>",
        ">Records in, out, rejected and failed, by job</h2>",
    ]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert page.count(">Checks</h2>") == 1


def test_samples_are_capped_and_repeat(work):
    found = samples.rejected(str(work))
    assert [(group.job, group.reason, group.outcome, group.count, len(group.letters)) for group in found] == [
        ("extract", "no_title", "rejected", 29, 10),
        ("extract", "truncated", "failed", 1, 1),
    ]
    assert found == samples.rejected(str(work))
    keys = [letter.key for letter in found[0].letters]
    assert len(set(keys)) == 10
    assert keys != [f"key{n}" for n in range(10)]  # drawn, not the first
    first, second = samples.triplets(str(work)), samples.triplets(str(work))
    assert first == second
    assert len(first) == 100
    assert all(row[role]["title"].startswith("Title <") for row in first for role in ("anchor", "positive", "negative"))


def tables_of(title, report, rejected=(), triplets=()):
    """The headings and cells of the tables of a part; a cell with a mark or folded lines as a pair."""
    (part,) = [one for one in parts_of({"jobs": [], **report}, [], rejected, triplets) if one.title == title]
    shown = lambda cell: (cell.text, cell.mark or cell.folded) if isinstance(cell, Cell) else cell  # noqa: E731
    return [[list(made.headings), *([shown(cell) for cell in row] for row in made.rows)] for made in part.blocks]


def test_the_jobs_and_other_values_cell_by_cell():
    row = ROWS[0] | {"in": 12345, "rejected": {"no_title": 2, "no_author": 1500}, "tallies": {"b": 1, "a": 2000}}
    assert tables_of("Jobs", {"jobs": [row]}) == [
        [
            ["job", "in", "out", "rejected", "failed", "tallies", "seconds"],
            ["extract", "12,345", "7", "no_author 1,500, no_title 2", "truncated 1", ("2", ("a 2,000", "b 1")), "1.5"],
        ]
    ]
    checks = [{"name": "a<b", "met": True, "values": [1, "x"]}, {"name": "c", "met": False, "share": 0.123456}]
    assert tables_of("Checks", {"checks": checks}) == [
        [
            ["name", "met", "values", "share"],
            ["a<b", ("met", "good"), "1, x", ""],
            ["c", ("missed", "bad"), "", "0.1235"],
        ]
    ]
    section = {"pairs": 1234, "share": 0.5, "by_day": {"one": {"a": 1}, "all": 2}}
    assert tables_of("Mining of days", {"mining_of_days": section}) == [
        [["", ""], ["pairs", "1234"], ["share", "0.5"]],
        [["", ""], ["all", "2"]],
        [["", ""], ["a", "1"]],
    ]


def test_many_scores_of_few_encoders_are_rows():
    # Five columns more than there are rows are turned; four are not.
    scores = {f"s{number}": number / 8 for number in range(5)}
    turned = [["name", "x"], *([f"s{number}", f"{number / 8:.4g}"] for number in range(5))]
    assert tables_of("Scores", {"scores": [{"name": "x", **scores}]}) == [turned]
    del scores["s0"]
    assert tables_of("Scores", {"scores": [{"name": "x", **scores}]})[0][0] == ["name", *scores]


def test_samples_say_their_share_of_the_job():
    letters = [DeadLetter("k<", "rejected", "no_title", "d", "s")]
    groups = [
        samples.Rejected("extract", "no_title", "rejected", 3000, letters * 2),
        samples.Rejected("extract", "truncated", "failed", 1000, letters),
        samples.Rejected("clean", "no_author", "rejected", 5, letters),
    ]
    part = parts_of({"jobs": []}, [], groups, [])[-1]
    assert [(one.id, one.summary, one.note) for one in part.blocks] == [
        ("extract-no_title", "extract: no_title", "3,000 rejected, 75.0% of the job's; 2 drawn at random"),
        ("extract-truncated", "extract: truncated", "1,000 failed, 25.0% of the job's; 1 drawn at random"),
        ("clean-no_author", "clean: no_author", "5 rejected, 100.0% of the job's; 1 drawn at random"),
    ]
    assert part.blocks[1].table.rows == [["k<", "d", "s"]]
