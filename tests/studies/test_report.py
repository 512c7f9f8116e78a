"""The report: complete JSON, a self-contained page, escaped text, samples that point at real documents."""

import datetime
import json
import re

import newsembed
import pytest
from newsembed.beam_pipelines.clean.yields import PublisherYield, alarm_to_json, find_alarms, write_yields
from newsembed.beam_pipelines.progress import print_rows
from newsembed.formats import parquet
from newsembed.formats.records import Article, DeadLetter, Triplet
from newsembed.studies.report import plots, samples, shown_command, write_report
from newsembed.studies.report.page import render
from newsembed.studies.report.yields import Yields, top_reasons

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
    return Triplet(
        f"{anchor:016x}", f"{positive:016x}", f"{negative:016x}", "en", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1, 400, 0.1
    )


@pytest.fixture
def work(tmp_path):
    parquet.write_shard(str(tmp_path / "clean/articles/part-00000-of-00001.parquet"), map(article, range(30)), Article)
    parquet.write_shard(
        str(tmp_path / "triplets/triplets/part-00000-of-00001.parquet"),
        [triplet(n % 30, (n + 1) % 30, (n + 2) % 30) for n in range(150)],
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
    monkeypatch.setattr("sys.argv", ["newsembed", "build", "--articles", "my news.jsonl", "--output=work"])
    write_report(str(work), ROWS, {"encoders": [], "checks": [{"name": "a", "measured": 1, "met": False}]})
    page = (work / "report.html").read_text()
    today = datetime.datetime.now(datetime.UTC).date()
    order = [
        f"<td>{today}",
        f"<td>{newsembed.__version__}</td>",
        "<td>newsembed build --articles &#x27;my news.jsonl&#x27; --output=work</td>",
        ">Checks</h2>",
        "<span class=bad>missed</span>",
        ">Jobs</h2>",
        ">Records in, out, rejected and failed, by job</h2>",
    ]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert page.count(">Checks</h2>") == 1


def test_the_shown_command_has_no_secrets():
    given = ["build", "--s3_secret_access_key", "abc", "--s3_access_key_id=def", "--output", "work", "--verbose"]
    shown = "newsembed build --s3_secret_access_key … --s3_access_key_id=… --output work --verbose"
    assert shown_command(given) == shown


def test_tallies_are_folded_and_plots_take_the_colours_of_the_page(work):
    write_report(str(work), ROWS)
    page = (work / "report.html").read_text()
    assert "<td><details><summary>1</summary>kept 7</details></td>" in page
    plots = re.findall("<svg.*?</svg>", page, re.DOTALL)
    assert not any("#000000" in plot or "#ffffff" in plot for plot in plots)
    assert any("currentColor" in plot for plot in plots)
    assert page.count("<div class=wide><svg") == len(plots) == 5


def test_titles_name_their_language(work):
    write_report(str(work), ROWS)
    page = (work / "report.html").read_text()
    assert len(re.findall(r'<span lang="en">Title &lt;\d+&gt;</span>', page)) == 300


def test_many_scores_of_few_encoders_are_rows():
    scores = {f"score {number}": number / 8 for number in range(6)}
    page = render({"jobs": [], "encoders": [{"encoder": "ours & co", **scores}]}, [], [], [])
    assert "<th scope=col>encoder</th><th scope=col class=n>ours &amp; co</th>" in page
    assert "<tr><td>score 1</td><td class=n>0.125</td></tr>" in page
    assert '<a href="#part-1">Encoders</a>' in page


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


def test_yields_and_their_alarms_are_shown(work):
    rows = [PublisherYield(f"p{n}.example", 20, 10, {"no_author": 8, "near_duplicate": 2}) for n in range(45)]
    write_yields(f"{work}/clean/yields.tsv", rows)
    (alarm,) = find_alarms(rows[:1], {"p0.example": PublisherYield("p0.example", 50, 50, {})}, 0.1, 0.01)
    (work / "clean/manifest.json").write_text(json.dumps({"yield_alarms": [alarm_to_json(alarm)]}))
    write_report(str(work), ROWS)
    page = (work / "report.html").read_text()
    assert "100% of 50" in page
    assert "56% of 18" in page
    assert "no_author 8, near_duplicate 2" in page
    assert "and 5 more in clean/yields.tsv" in page


def test_alarms_are_printed(capsys):
    alarm = {
        "publisher": "[a].example",
        "before": 0.9,
        "now": 0.1,
        "judged_before": 1000,
        "judged_now": 50,
        "p_value": 0,
        "reason": "no_author",
    }
    print_rows([{**ROWS[0], "yield_alarms": [{**alarm, "kind": "dropped"}, {**alarm, "kind": "lost"}]}])
    printed = capsys.readouterr().out
    assert (
        "[a].example: yield dropped: kept 90% of 1,000 articles before, 10% of 50 now; what grew most: no_author"
        in printed
    )
    assert "[a].example: no articles now; kept 90% of 1,000 articles before" in printed


def test_a_build_without_triplets_still_has_a_report(tmp_path):
    write_report(str(tmp_path), ROWS)
    assert "by publisher" not in (tmp_path / "report.html").read_text()
    assert "random triplets" not in (tmp_path / "report.html").read_text()


def cells(page, heading):
    """The rows of cells of the part with a heading, as text without tags."""
    part = page.partition(f">{heading}</h2>")[2].partition("<h2")[0]
    rows = re.findall("<tr>(.*?)</tr>", part, re.DOTALL)
    return [re.findall("<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]


def test_the_jobs_and_other_values_cell_by_cell():
    row = ROWS[0] | {"in": 12345, "rejected": {"no_title": 2, "no_author": 1500}, "tallies": {"b": 1, "a": 2000}}
    checks = [{"name": "a<b", "met": True, "values": [1, "x"]}, {"name": "c", "met": False, "share": 0.123456}]
    page = render({"jobs": [row], "checks": checks, "mining_of_days": {"pairs": 1234, "share": 0.5}}, [], [], [])
    assert cells(page, "Jobs") == [
        ["job", "in", "out", "rejected", "failed", "tallies", "seconds"],
        ["extract", "12,345", "7", "no_author 1,500<br>no_title 2", "truncated 1",
         "<details><summary>2</summary>a 2,000<br>b 1</details>", "1.5"],
    ]  # fmt: skip
    assert cells(page, "Checks") == [
        ["name", "met", "values", "share"],
        ["a&lt;b", "<span class=good>met</span>", "1, x", ""],
        ["c", "<span class=bad>missed</span>", "", "0.1235"],
    ]
    assert cells(page, "Mining of days") == [["pairs", "1234"], ["share", "0.5"]]
    # Five columns more than there are rows are turned; four are not.
    five = {f"s{number}": number for number in range(5)}
    assert cells(render({"jobs": [], "scores": [{"name": "x", **five}]}, [], [], []), "Scores")[0] == ["name", "x"]
    del five["s0"]
    assert cells(render({"jobs": [], "scores": [{"name": "x", **five}]}, [], [], []), "Scores")[0] == ["name", *five]


def test_samples_say_their_share_of_the_job():
    letters = [DeadLetter("k<", "rejected", "no_title", "d", "s")]
    groups = [
        samples.Rejected("extract", "no_title", "rejected", 3000, letters * 2),
        samples.Rejected("extract", "truncated", "failed", 1000, letters),
        samples.Rejected("clean", "no_author", "rejected", 5, letters),
    ]
    page = render({"jobs": []}, [], groups, [])
    shown = re.findall("<summary>(.*?) <span class=dim>(.*?)</span></summary>", page)
    assert shown == [
        ("extract: no_title", "3,000 rejected, 75.0% of the job's; 2 drawn at random"),
        ("extract: truncated", "1,000 failed, 25.0% of the job's; 1 drawn at random"),
        ("clean: no_author", "5 rejected, 100.0% of the job's; 1 drawn at random"),
    ]
    assert "<details id=extract-no_title>" in page
    assert cells(page, "Rejected and failed records, by reason")[1] == ["k&lt;", "d", "s"]


def test_yields_cell_by_cell():
    alarm = {
        "publisher": "p&q", "kind": "dropped", "before": 0.9, "judged_before": 1000, "now": 0.125, "judged_now": 2000,
        "reason": "no_author", "p_value": 0.00012345,
    }  # fmt: skip
    rejected = {"b": 1, "a": 1, "c": 1200, "near_duplicate": 2000, "d": 3}
    rows = [PublisherYield(f"p{number}", 5204, 2000 - number, rejected) for number in range(41)]
    page = render({"jobs": []}, [], [], [], Yields(rows, [alarm]))
    found = cells(page, "Clean articles by publisher")
    assert found[:4] == [
        ["publisher", "", "before", "now", "reason that grew", "p"],
        ["p&amp;q", "<span class=bad>dropped</span>", "90% of 1,000", "12% of 2,000", "no_author", "0.0001234"],
        ["publisher", "in", "kept", "duplicates", "yield", "rejected"],
        ["p0", "5,204", "2,000", "2,000", "62%", "near_duplicate 2,000, c 1,200, d 3"],
    ]
    assert len(found) == 3 + 40
    assert "and 1 more in clean/yields.tsv" in page
    assert "more in clean" not in render({"jobs": []}, [], [], [], Yields(rows[:40], []))
    assert "Yield dropped" not in render({"jobs": []}, [], [], [], Yields(rows[:40], []))
    assert top_reasons(PublisherYield("p", 9, 1, {"b": 1, "a": 1, "c": 1, "d": 1})) == "a 1, b 1, c 1"


def test_the_curves_of_a_training_are_its_losses_by_step(tmp_path):
    records = [{"step": 1, "loss": 2.0, "accuracy": 1}, {"step": 2, "loss/mlm/en": 1.5, "loss": 1.0, "eval/loss": 9}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    found = plots._loss_curves(str(tmp_path / "metrics.jsonl"))
    assert found == {"loss": [(1, 2.0), (2, 1.0)], "loss/mlm/en": [(2, 1.5)]}


def test_rejected_records_are_in_the_order_of_jobs_and_then_of_their_number(tmp_path):
    letters = {"clean": ["b", "a", "c", "c"], "aaa": ["z"], "zzz": ["y"] * 30}
    for job, reasons in letters.items():
        rows = [DeadLetter(f"{job} {number}", "rejected", reason, "", "") for number, reason in enumerate(reasons)]
        parquet.write_shard(f"{tmp_path}/{job}/dead_letters/x/part-00000-of-00001.parquet", rows, DeadLetter)
    found = samples.rejected(str(tmp_path), 2)
    assert [(one.job, one.reason, one.count, len(one.letters)) for one in found] == [
        ("aaa", "z", 1, 1), ("clean", "c", 2, 2), ("clean", "a", 1, 1), ("clean", "b", 1, 1), ("zzz", "y", 30, 2),
    ]  # fmt: skip
    (alone,) = samples.rejected(f"{tmp_path}/zzz", 30)
    assert (alone.job, sorted(letter.key for letter in alone.letters)) == ("zzz", sorted(f"zzz {n}" for n in range(30)))
