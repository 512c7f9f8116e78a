"""The report of a staleness study, line by line, from numbers that are written here."""

import datetime
import json

import numpy as np
import pytest
from newsembed.evaluation.statistics import Interval
from newsembed.studies.shared.study import Outcome
from newsembed.studies.staleness.report import (
    FRESH,
    Cutoff,
    Effect,
    Line,
    Point,
    Queries,
    lines_of,
    report_text,
    write_report,
)

EARLY, LATE, LOST = (Cutoff(datetime.date(2021, month, 28), f"2021-{month:02}") for month in (2, 6, 9))
POINTS = (
    Point(-2, 0, Interval(0.75, 0.5, 1.0), Interval(-0.125, -0.25, 0.0), 40, 7),
    Point(1, 3, Interval(0.5), Interval(-0.25), 30, 1),
)
FALLS = Effect(Interval(-0.125, -0.25, -0.0625), (-0.25, -0.0625))
PARTS = {"English": None, "other languages": Effect(Interval(-0.5), (-0.5,))}
LINES = [
    Line(
        EARLY, 1234, 5678, Outcome(EARLY.name, {}, {0: np.array([0.5, np.nan, 1.0])}, seconds=9.5), POINTS, FALLS, PARTS
    ),
    Line(LATE, 5, 0, Outcome(LATE.name, {}, {0: np.ones(3)}), POINTS[1:]),
    Line(LOST, 6, 0, Outcome(LOST.name, {"mining": "no days"})),
]
FRESH_RESULT = Outcome(FRESH, {"seed 1": "slow"}, {0: np.array([0.25, 0.75]), 1: np.ones(2)})


def test_the_report_line_by_line():
    pooled = Effect(Interval(0.125, -0.25, 0.5), (0.125,))
    lines = report_text(LINES, pooled, FRESH_RESULT).splitlines()
    assert lines[:8] == [
        "# Staleness",
        "",
        (
            "| cutoff | articles | triplets | staleness | by seed | expected | measured | verdict | English "
            "| other languages |"
        ),
        "| --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- | ---: |",
        (
            "| 2021-02 | 1,234 | 5,678 | -0.1250 (-0.2500 to -0.0625) | -0.2500, -0.0625 | falls | falls | agrees | - "
            "| -0.5000 |"
        ),
        "| 2021-06 | 5 | 0 | - | - | falls | - | no queries on both sides | - | - |",
        "| 2021-09 | 6 | 0 | - | - | falls | - | failed | - | - |",
        "| all |  |  | +0.1250 (-0.2500 to +0.5000) | +0.1250 | falls | rises | within error |  |  |",
    ]
    assert lines[9].startswith("mAP: same-event retrieval")
    assert lines[10:] == [
        "",
        "| cutoff | months since | mAP | minus fresh | queries | events |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 2021-02 | -2 to 0 | 0.7500 (0.5000 to 1.0000) | -0.1250 (-0.2500 to +0.0000) | 40 | 7 |",
        "| 2021-02 | 1 to 3 | 0.5000 | -0.2500 | 30 | 1 |",
        "| 2021-06 | 1 to 3 | 0.5000 | -0.2500 | 30 | 1 |",
        "",
        "Failed:",
        "",
        f"- {LOST.name}, mining: no days",
        "- fresh, seed 1: slow",
    ]
    bare = report_text(LINES[2:], None, Outcome(FRESH, {}))
    assert "months since" not in bare.partition("by seed")[2].partition("mAP: same-event")[0]
    assert "| all |" not in bare
    assert "| cutoff | months since" not in bare


def test_numbers_and_plot_are_written(tmp_path, monkeypatch):
    write_report(str(tmp_path), LINES, None, FRESH_RESULT, {"version": 3})
    found = json.loads((tmp_path / "table.json").read_text())
    assert (found["version"], found["all"]) == (3, None)
    first, second, third = found["cutoffs"]
    assert {name: first[name] for name in ("cutoff", "last_day", "articles", "verdict", "problems", "triplets")} == {
        "cutoff": "2021-02", "last_day": "2021-02-28", "articles": 1234, "verdict": "agrees", "problems": {},
        "triplets": 5678,
    }  # fmt: skip
    assert first["staleness"] == {
        "effect": {"value": -0.125, "low": -0.25, "high": -0.0625, "p": None}, "by_seed": [-0.25, -0.0625],
        "expected": "falls", "verdict": "agrees",
    }  # fmt: skip
    assert (first["training_seconds"], first["mAP_by_seed"]) == (9.5, {"0": 0.75})  # without the query of no score
    assert [point["first_month"] for point in first["months"]] == [-2, 1]
    assert (second["staleness"], third["verdict"], third["mAP_by_seed"]) == (None, "failed", {})
    assert found["fresh"]["mAP_by_seed"] == {"0": 0.5, "1": 1.0}
    assert found["fresh"]["problems"] == {"seed 1": "slow"}
    assert (tmp_path / "plot.svg").exists()
    write_report(str(tmp_path / "none"), LINES[2:], Effect(Interval(0.0), (0.0,)), FRESH_RESULT, {})
    assert not (tmp_path / "none" / "plot.svg").exists()
    assert json.loads((tmp_path / "none" / "table.json").read_text())["all"]["verdict"] == "no error bar"


EVENTS = ("a", "b", "a", "b")
DAYS = tuple(datetime.date(2021, month, 1) for month in (1, 2, 7, 8))
QUERIES = Queries(EVENTS, DAYS, ("en", "en", "de", "ru"))


TRIPLETS = {EARLY.name: 1, LATE.name: 2, LOST.name: 0}


def model(name, *seeds):
    return Outcome(name, {}, {seed: np.array(scores) for seed, scores in seeds})


def test_cutoffs_are_compared_over_the_seeds_that_both_models_have():
    early = model(EARLY.name, (0, [0.5, 0.5, 0.25, 0.25]), (2, [0.5, 0.5, 0.5, 0.5]), (3, [9.0] * 4))
    late = model(LATE.name, (0, [0.5] * 4), (2, [1.0] * 4))
    fresh = model(FRESH, (2, [0.75, 0.75, 1.0, 1.0]), (0, [0.5] * 4), (1, [9.0] * 4))
    articles = {EARLY.name: 7, LATE.name: 8, LOST.name: 9}
    lines, pooled = lines_of(
        (EARLY, LATE, LOST), articles, TRIPLETS, [late, early, fresh, model(LOST.name)], QUERIES, 12
    )
    assert [(line.cutoff.name, line.articles) for line in lines] == [("2021-02", 7), ("2021-06", 8), ("2021-09", 9)]
    # Seeds 0 and 2: after the cutoff -0.25 and -0.5, up to it 0 and -0.25.
    assert lines[0].staleness.by_seed == pytest.approx((-0.25, -0.25))
    assert lines[0].staleness.effect.value == pytest.approx(-0.25)
    assert [(point.first_month, point.last_month) for point in lines[0].points] == [(-11, 0), (1, 12)]
    assert [point.score.value for point in lines[0].points] == pytest.approx([0.5, 0.375])
    assert [point.minus_fresh.value for point in lines[0].points] == pytest.approx([-0.125, -0.375])
    assert lines[1].staleness.by_seed == pytest.approx((0.0, 0.0 - 0.25))
    assert (lines[2].points, lines[2].staleness, lines[2].verdict) == ((), None, "failed")
    assert pooled.by_seed == pytest.approx((-0.125, -0.25))
    _, alone = lines_of((EARLY,), articles, TRIPLETS, [early, fresh], QUERIES, 12)
    assert alone is None
    # English has no query after the cutoff, the other languages none up to it.
    assert lines[0].by_language == {"English": None, "other languages": None}
    mixed = Queries((*EVENTS, *EVENTS, "c"), (*DAYS, *DAYS, DAYS[0]), (*4 * ["en"], *4 * ["de"], ""))
    ours = model(EARLY.name, (0, [0.5, 0.5, 0.25, 0.25, 0.5, 0.5, 0.0, 0.5, 9.0]))
    (line,), _ = lines_of((EARLY,), articles, TRIPLETS, [ours, model(FRESH, (0, [0.5] * 9))], mixed, 12)
    found = {name: effect.effect.value for name, effect in line.by_language.items()}
    assert found == pytest.approx({"English": -0.25, "other languages": -0.25})
    assert line.by_language["English"].by_seed == pytest.approx([-0.25])
    fewer = model(LATE.name, (2, [1.0] * 4))
    _, uneven = lines_of((EARLY, LATE), articles, TRIPLETS, [early, fewer, fresh], QUERIES, 12)
    assert uneven is None


@pytest.mark.parametrize(
    ("effect", "seeds", "verdict"),
    [
        (Interval(-0.2, -0.3, -0.1), (-0.1, 0.0), "within error"),
        (Interval(-0.2, -0.3, 0.0), (-0.2,), "within error"),
        (Interval(-0.2, -0.3, -0.1), (-0.2, -0.1), "agrees"),
        (Interval(0.2, 0.1, 0.3), (0.1, 0.0), "within error"),
        (Interval(0.2, 0.0, 0.3), (0.2,), "within error"),
        (Interval(0.2, 0.1, 0.3), (0.2, 0.1), "differs"),
        (Interval(-0.2, None, -0.1), (-0.2,), "no error bar"),
        (Interval(-0.2, -0.3, None), (-0.2,), "no error bar"),
    ],
)
def test_a_verdict_needs_the_interval_and_every_seed_on_one_side(effect, seeds, verdict):
    assert Effect(effect, seeds).verdict == verdict


def test_the_direction_is_that_of_the_score():
    assert [Effect(Interval(value), ()).direction for value in (-0.1, 0.1, 0.0)] == ["falls", "rises", "stays"]
