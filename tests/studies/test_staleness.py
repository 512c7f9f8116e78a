"""Staleness: what a cutoff leaves, months since it, decay told from small training sets, failures and bad input."""

import datetime
import json

import numpy as np
import pytest
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, make_doc_id
from newsembed.studies import staleness
from newsembed.studies.staleness import report
from refusals import refuses

CUTOFF = report.Cutoff(datetime.date(2021, 6, 30), "2021-06")


@pytest.fixture
def days(build):
    """Writes the clean articles of the build: how many, by day."""

    def write(counts):
        each = [(day, n) for day, count in counts.items() for n in range(count)]
        rows = [Article(make_doc_id(f"{day} {n}"), "u", "p", "t", "b", byline_date=day) for day, n in each]
        parquet.write_shard(f"{build}/clean/articles/part-00000-of-00001.parquet", rows, Article)

    return write


@pytest.fixture
def study(build, heldout, tmp_path, days, bench, parsed):
    """The exit status of a study of two cutoffs with more words; the articles of the build are one a day."""
    days({datetime.date(2020, 1, 1) + datetime.timedelta(days=day): 1 for day in range(1000)})
    bases = ["--base", "runs/train_demo.gin", "--pretrain_base", "runs/pretrain_demo.gin", "--steps", 40]
    places = ["--articles", build, "--events", heldout, "--output", tmp_path / "study"]
    words = [*places, "--cutoffs", "2021-12,2021-06", *bases, "--seeds", 2]
    return lambda *more: staleness.run(parsed(staleness.OPTIONS, *words, *more), bench.tools())


def numbers(tmp_path):
    return json.loads((tmp_path / "study" / "table.json").read_text())


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2018-01", ["2018-01-31"]),
        ("2020-02,2019-12", ["2019-12-31", "2020-02-29"]),
        (" 2018-07-15 ,2018-01", ["2018-01-31", "2018-07-15"]),
    ],
)
def test_a_month_means_its_last_day(text, days):
    assert [cutoff.last_day.isoformat() for cutoff in report.parse_cutoffs(text)] == days


@pytest.mark.parametrize("text", ["", "2018", "2018-13", "2018-02-30", "yesterday", "2018-01,2018-01-31"])
def test_what_is_no_cutoff_is_refused(text):
    refuses("--cutoffs", report.parse_cutoffs, text)


def test_months_are_counted_from_the_day_after_the_cutoff():
    days = {"2021-06-30": 0, "2021-07-01": 1, "2021-07-30": 1, "2021-07-31": 2, "2021-05-01": -1}
    days |= {"2022-06-30": 12, "2022-07-01": 13}  # 365 and 366 days after
    assert report.months_since([*map(datetime.date.fromisoformat, days)], CUTOFF).tolist() == [*days.values()]


def test_a_cutoff_that_leaves_too_little_is_refused_with_what_there_is(days, build):
    days({datetime.date(2021, 6, 1): 40, datetime.date(2021, 7, 1): 60})
    assert staleness.count_articles(build, [CUTOFF], 40) == {"2021-06": 40}
    refuses("leaves 40 of 100 articles, dated from 2021-06-01 to 2021-07-01", staleness.count_articles, build, [CUTOFF])


# Two queries of each of four events; months -1, 0 (up to the cutoff) and 1, 2 (after it).
EVENTS = ["a", "a", "b", "b", "c", "c", "d", "d"]
MONTHS = np.array([-1, -1, 0, 0, 1, 1, 2, 2])
FRESH = np.array([[0.8, 0.6, 0.9, 0.7, 0.8, 0.6, 0.9, 0.7]])


def test_staleness_is_the_loss_after_the_cutoff_beyond_the_loss_before_it():
    gaps = np.array([[-0.1, -0.1, -0.2, -0.2, -0.4, -0.4, -0.5, -0.5]])
    found = report.effect_of([(FRESH + gaps, FRESH, MONTHS)], EVENTS)
    assert found.effect.value == pytest.approx(-0.45 - -0.15)
    assert found.by_seed == pytest.approx([-0.3])
    # Each side holds two events: every draw that has both sides is a mean of theirs.
    assert found.effect.low == pytest.approx(-0.5 - -0.1)
    assert found.effect.high == pytest.approx(-0.4 - -0.2)
    assert found.verdict == "agrees"


def test_queries_without_a_score_and_one_sided_sets_are_left_out():
    gaps = np.array([[-0.1, np.nan, -0.2, -0.2, -0.4, np.nan, -0.5, -0.5]])
    found = report.effect_of([(FRESH + gaps, FRESH, MONTHS)], EVENTS)
    assert found.effect.value == pytest.approx(np.mean([-0.4, -0.5, -0.5]) - np.mean([-0.1, -0.2, -0.2]))
    assert report.effect_of([(FRESH, FRESH, np.abs(MONTHS) + 1)], EVENTS) is None


def test_bins_count_their_queries_and_events():
    points = report.by_month(FRESH[0] - 0.1, FRESH[0], MONTHS, EVENTS, 2)
    assert [(point.first_month, point.last_month, point.queries, point.events) for point in points] == [
        (-1, 0, 4, 2),
        (1, 2, 4, 2),
    ]
    assert points[1].score.value == pytest.approx(FRESH[0][4:].mean() - 0.1)
    assert points[1].minus_fresh.value == pytest.approx(-0.1)
    assert points[0].score.low <= points[0].score.value <= points[0].score.high


def test_the_pooled_effect_is_the_mean_of_the_cutoffs():
    one = np.array([[-0.1, -0.1, -0.2, -0.2, -0.4, -0.4, -0.5, -0.5]])
    both = [(FRESH + one, FRESH, MONTHS), (FRESH, FRESH, MONTHS)]
    assert report.effect_of(both, EVENTS).effect.value == pytest.approx(-0.15)


def test_every_cutoff_and_the_fresh_model_are_mined_trained_and_compared(study, bench, tmp_path):
    assert study() == 0
    mined = {output.split("/")[-1]: jobs for output, jobs in bench.mined}
    assert mined == dict.fromkeys(("2021-06", "2021-12"), [step.job for step in STEPS[1:]]) | {"fresh": ["pack"]}
    assert len(bench.trained) == len(set(bench.trained)) == 3 * 2 * 2
    table = numbers(tmp_path)
    assert [row["cutoff"] for row in table["cutoffs"]] == ["2021-06", "2021-12"]
    assert [row["articles"] for row in table["cutoffs"]] == [547, 731]
    assert set(table["cutoffs"][0]["mAP_by_seed"]) == {"0", "1"}
    assert (tmp_path / "study" / "plot.svg").read_text().startswith("<svg")


def test_a_model_that_does_not_know_later_events_is_stale(study, bench, tmp_path):
    def noise(run, _step):
        since = {"2021-06": 2, "2021-12": 4}
        first_unknown = next((number for name, number in since.items() if name in run.folder), 8)
        return lambda documents: np.array(
            [[3.0 if int(one.title.split()[1]) >= first_unknown else 0.05] for one in documents]
        )

    bench.noise = noise
    assert study() == 0
    table = numbers(tmp_path)
    assert [row["verdict"] for row in table["cutoffs"]] == ["agrees", "agrees"]
    assert table["all"]["verdict"] == "agrees"
    text = (tmp_path / "study" / "table.md").read_text()
    assert "| 2021-06 | 547 | 100 |" in text
    assert "falls" in text


def test_a_cutoff_without_triplets_fails_alone(study, bench, tmp_path):
    mine = bench.mine

    def without_triplets(*given, **more):
        jobs = mine(*given, **more)
        if "2021-06" in given[1]:
            manifest = files.read_json(f"{jobs['examples']}/manifest.json") | {"examples": {"topics/en": 5}}
            files.write_json(f"{jobs['examples']}/manifest.json", manifest)
        return jobs

    bench.mine = without_triplets
    assert study() == 1
    rows = numbers(tmp_path)["cutoffs"]
    assert [row["verdict"] == "failed" for row in rows] == [True, False]
    assert "no triplets are left" in rows[0]["problems"]["mining"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cutoffs", "soon"], "expected YYYY-MM"),
        (["--cutoffs", "2019-06"], "leaves 0 of 1000 articles"),
        (["--cutoffs", "2021-06,2099-06"], "no document is later than the cutoff 2099-06; their days are 20"),
        (["--articles", "/no/such"], "no finished build"),
        (["--newsroom", "x"], "either a build or a newsroom"),
        (["--events", "/no/such.jsonl"], "no/such"),
    ],
)
def test_bad_input_is_named_before_anything_runs(words, message, study, bench):
    refuses(message, study, *words)
    assert bench.trained == bench.mined == []


def test_without_any_option_the_articles_are_missed_first_not_the_cutoffs():
    refuses("give either a build or a newsroom", staleness.run, staleness.OPTIONS(output="o"))


def test_documents_without_a_day_are_refused(study, heldout):
    with open(heldout, "a") as file:
        file.write('{"id": "x", "title": "event 1", "body": "y", "event": "event-1", "byline_date": null}\n')
    refuses("1 of 25 documents have no date, the first is x", study)
