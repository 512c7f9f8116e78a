"""The report of an ablation, line by line, from numbers that are written here."""

import dataclasses

import numpy as np
import pytest
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.paired import PairedTest
from newsembed.evaluation.results import Result
from newsembed.studies.ablate import parts
from newsembed.studies.ablate import report as module
from newsembed.studies.ablate.conduct import RowResult
from newsembed.studies.ablate.paired import RowTest, p_text, section, sentence
from newsembed.studies.ablate.parts import PartScore
from newsembed.studies.ablate.report import Line, _to_json, lines_of, markdown, plot, statement
from newsembed.studies.ablate.table import Row, Table
from newsembed.studies.ablate.zscores import Difference
from scipy.stats import t

ROWS = (
    Row("full", "nothing"),
    Row("low", "a part", "low.gin"),
    Row("high", "another", "high.gin", expected="higher"),
    Row("lost", "a third"),
    Row("idle", "what is not there"),
)
TABLE = Table("toy", "A toy", ROWS, note="As the test wants.", printed={"paper": {"mAP": 0.25}, "old": {"F1": 0.5}})
SEED_SCORES = {
    "full": ({("9", "events"): 0.9, ("10", "events"): 0.5, ("10", "sts"): 0.25},) * 2,
    "low": (
        {("9", "events"): 0.1, ("10", "events"): 0.25, ("10", "sts"): 0.0},
        {("9", "events"): 0.1, ("10", "events"): 0.75, ("10", "sts"): 0.5},
    ),
    "high": ({("9", "events"): 0.1, ("10", "events"): 1.0, ("10", "sts"): 0.125},),
}


def result(name, status="ok", **changes):
    scores = dict(enumerate(SEED_SCORES.get(name, ()), 3))
    metrics = {"events": "mAP", "sts": "Spearman"} if scores else {}
    return RowResult(TABLE.row(name), status, scores=scores, metrics=metrics, **changes)


LINES = [
    Line(result("full", examples={"triplets": 1234, "topics": 5}, seconds=7.5), True, np.array([1.0, 2.0])),
    Line(result("low"), False, np.array([-1.0, 0.0]), Difference(-2.0, -3.0, -1.0, 0.0004)),
    Line(result("high", problems={1: "no | memory"}), False, np.array([-0.25]), Difference(-0.5, -1.5, 0.5, 0.25)),
    Line(result("lost", "failed", reason="no data", problems={0: "a", 1: "b"}), False),
    Line(result("idle", "not applicable"), False),
]
SPREAD = t.ppf(0.975, 1) * np.sqrt(0.5) / np.sqrt(2)  # half the interval of the mean of two seeds that are 1 apart


def half(first, second):
    """Half the interval of the mean of two numbers."""
    return t.ppf(0.975, 1) * abs(first - second) / 2


def test_the_report_line_by_line():
    lines = markdown(TABLE, LINES).splitlines()
    assert lines[:9] == [
        "# A toy",
        "",
        "| row | leaves out | z | minus full | p | expected | measured | verdict | seeds | triplets | topics |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | --- | ---: | ---: | ---: |",
        f"| full | nothing | +1.50 ± {SPREAD:.2f} | - | - | - | - | - | 2 of 2 | 1,234 | 5 |",
        (
            f"| low | a part | -0.50 ± {SPREAD:.2f} | -2.00 (-3.00 to -1.00) | < 0.001 | lower | lower | agrees "
            "| 2 of 2 | 0 | 0 |"
        ),
        "| high | another | -0.25 | -0.50 (-1.50 to +0.50) | 0.250 | higher | lower | within error | 1 of 2 | 0 | 0 |",
        "| lost | a third | - | - | - | lower | - | failed | 0 of 2 | - | - |",
        "| idle | what is not there | - | - | - | lower | - | not applicable | 0 of - | - | - |",
    ]
    assert lines[10].startswith("z: mean over steps and benchmarks")
    assert "The difference from full has Dunnett's" in lines[10]
    assert lines[10].endswith("or other test sets. As the test wants.")
    assert lines[12:] == [
        (
            "Of 4 rows: 1 agrees, 1 within error, 1 failed, 1 not applicable. "
            "1 of 2 measured means differ in the expected direction."
        ),
        "",
        "Scores after 10 steps, mean over seeds ± half the 95 % interval:",
        "",
        "| row | events, mAP | sts, Spearman |",
        "| --- | ---: | ---: |",
        "| full | 0.5000 ± 0.0000 | 0.2500 ± 0.0000 |",
        f"| low | 0.5000 ± {half(0.25, 0.75):.4f} | 0.2500 ± {half(0.0, 0.5):.4f} |",
        "| high | 1.0000 | 0.1250 |",
        "",
        "Printed figures:",
        "",
        "| row | mAP | F1 |",
        "| --- | ---: | ---: |",
        "| paper | 0.2500 | - |",
        "| old | - | 0.5000 |",
        "",
        "Failed or not applicable:",
        "",
        "- high: seed 1: no | memory",
        "- lost: no data",
        "- lost: seed 0: a",
        "- lost: seed 1: b",
    ]


def test_a_report_without_scores_has_no_empty_tables():
    bare = dataclasses.replace(TABLE, printed={}, note="")
    lines = [Line(one.result, one.is_control) for one in (dataclasses.replace(LINES[3], is_control=True), LINES[4])]
    text = markdown(bare, lines)
    assert "Scores after" not in text
    assert "Printed" not in text
    assert text.count("\n| ") == 4
    assert statement(bare, lines) == (
        "Of 1 rows: 1 not applicable. 0 of 0 measured means differ in the expected direction."
    )
    assert statement(bare, [dataclasses.replace(line, is_control=True) for line in lines]).startswith(
        "Of 0 rows: none compared. "
    )


@pytest.mark.parametrize(
    ("difference", "expected", "verdict"),
    [
        (Difference(-1.0, -2.0, -0.5), "lower", "agrees"),
        (Difference(-1.0, -2.0, -0.5), "higher", "differs"),
        (Difference(1.0, 0.5, 2.0), "higher", "agrees"),
        (Difference(1.0, 0.5, 2.0), "lower", "differs"),
        (Difference(1.0, 0.0, 2.0), "higher", "within error"),
        (Difference(-1.0, -2.0, 0.0), "lower", "within error"),
        (Difference(1.0, None, 2.0), "higher", "no error bar"),
        (Difference(1.0, 0.5, None), "higher", "no error bar"),
    ],
)
def test_a_verdict_needs_an_interval_without_zero(difference, expected, verdict):
    assert difference.verdict(expected) == verdict


def test_the_numbers_of_a_row_as_json():
    folds = [
        Result("10", "bbc", "ok", (Score("accuracy", 0.5, "Cross", folds=values),))
        for values in ((0.1, 0.4, 0.2), (0.3, 0.5, 0.6))
    ]
    control = Line(dataclasses.replace(LINES[0].result, results={3: folds[:1]}), True, LINES[0].values)
    low = Line(
        dataclasses.replace(LINES[1].result, results={3: folds[1:], 4: folds}),
        False,
        LINES[1].values,
        LINES[1].difference,
    )
    tests = [
        RowTest(name, "events", "AP", 2, "lower", PairedTest(-0.5, -1.0, 0.0, 0.05, "draws", 9))
        for name in ("low", "high")
    ]
    found = _to_json(TABLE, low, [control, low], tests)
    shown = ("row", "removes", "gin_file", "status", "reason", "problems", "expected")
    assert {name: found[name] for name in shown} == {
        "row": "low", "removes": "a part", "gin_file": "low.gin", "status": "ok", "reason": "", "problems": {},
        "expected": "lower",
    }  # fmt: skip
    assert found["z"] == {
        "mean": -0.5,
        "std": pytest.approx(np.sqrt(0.5)),
        "half_interval": pytest.approx(SPREAD),
        "runs": 2,
    }
    assert found["z_by_seed"] == {"3": -1.0, "4": 0.0}
    assert found["minus_full"] == {"mean": -2.0, "low": -3.0, "high": -1.0, "p": 0.0004}
    assert found["verdict"] == "agrees"
    ((fold,),) = (found["folds"],)
    assert (fold["seed"], fold["first"], fold["second"], fold["difference"]) == (
        3,
        "low",
        "full",
        pytest.approx(0.7 / 3),
    )
    ((test,),) = (found["paired"],)
    assert (test["row"], test["verdict"], test["test"]["method"]) == ("low", "within error", "draws")
    assert found["metrics"] == {"events": "mAP", "sts": "Spearman"}
    assert found["scores"][0] == {"seed": 3, "step": 9, "benchmark": "events", "value": 0.1}
    assert len(found["scores"]) == 6
    plain = _to_json(TABLE, control, [control, low], tests)
    assert (plain["expected"], plain["minus_full"], plain["verdict"]) == (None, None, "-")
    assert (plain["examples"], plain["training_seconds"]) == ({"triplets": 1234, "topics": 5}, 7.5)
    assert (plain["folds"], plain["paired"]) == ([], [])
    lost = _to_json(TABLE, LINES[3], LINES, tests)
    assert (lost["z"], lost["z_by_seed"], lost["problems"]) == (None, None, {"0": "a", "1": "b"})


def test_only_rows_with_scores_are_standardised_and_the_control_is_the_first():
    results = [result(name) for name in ("full", "low")] + [result("lost", "failed")]
    lines = lines_of(TABLE, results)
    assert [line.is_control for line in lines] == [True, False, False]
    # Of four runs, by cell (deviations from the mean, over the deviation of the population).
    cells = [[0.9, 0.9, 0.1, 0.1], [0.5, 0.5, 0.25, 0.75], [0.25, 0.25, 0.0, 0.5]]
    expected = np.mean([(np.array(cell) - np.mean(cell)) / np.std(cell) for cell in cells], axis=0)
    np.testing.assert_allclose(np.concatenate([line.values for line in lines[:2]]), expected)
    assert lines[1].difference.mean == pytest.approx(expected[2:].mean() - expected[:2].mean())
    assert (lines[0].difference, lines[2].values, lines[2].difference) == (None, None, None)


def test_the_plot_has_each_row_with_its_verdict_in_order(monkeypatch):
    sizes, make_axes = [], module.make_axes
    monkeypatch.setattr(module, "make_axes", lambda **size: sizes.append(size) or make_axes(**size))
    picture = plot(TABLE, LINES)
    assert sizes == [{"width": 7.5, "height": pytest.approx(0.32 * 2 + 1.1)}]
    assert picture.index("low (agrees)") < picture.index("high (within error)")
    assert "z-score minus that of full, with Dunnett's 95 % interval" in picture
    assert "lost" not in picture
    assert "full (" not in picture


def test_paired_tests_are_one_sentence_and_one_table():
    tests = [
        RowTest("low", "events", "AP", 2, "lower", PairedTest(-0.25, -0.5, -0.125, 0.0009, "draws", 9)),
        RowTest("high", "events", "AP", 3, "higher", PairedTest(-0.25, -0.5, -0.125, 0.001, "draws", 9)),
    ]
    assert sentence(TABLE, []) == ""
    assert section(TABLE, []) == []
    low, high = "-0.2500 (-0.5000 to -0.1250), p < 0.001, agrees", "-0.2500 (-0.5000 to -0.1250), p 0.001, differs"
    assert sentence(TABLE, tests) == f"Paired test of AP on events, minus full: low {low}; high {high}."
    other = dataclasses.replace(tests[1], benchmark="sts")
    named = dataclasses.replace(TABLE, test="over days")
    assert sentence(named, [tests[0], other]) == (
        f"Paired test (over days), minus full: low on events {low}; high on sts {high}."
    )
    heading, _, *rows = section(named, tests)[1:]
    assert rows == [
        "| row | benchmark | score | minus full, 95 % | p | seeds | verdict |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
        "| low | events | AP | -0.2500 (-0.5000 to -0.1250) | < 0.001 | 2 | agrees |",
        "| high | events | AP | -0.2500 (-0.5000 to -0.1250) | 0.001 | 3 | differs |",
    ]
    assert heading.startswith("Paired test at the last step: over days. ")
    assert "last step: over the folds or resamples of each benchmark. " in section(TABLE, tests)[1]
    assert [p_text(p) for p in (None, 0.0, 0.00099, 0.001, 1.0)] == ["-", "< 0.001", "< 0.001", "0.001", "1.000"]


def test_parts_are_a_table_of_their_own():
    lines = [
        PartScore("full", "events", "de", "mAP", 1200, np.array([0.5, 0.75]), None, None),
        PartScore(
            *("low", "events", "de", "mAP", 1200, np.array([0.25])),
            *(Difference(-0.375, -0.5, -0.25, 0.01), PairedTest(-0.3, -0.4, -0.2, 0.02, "draws", 9)),
        ),
    ]
    assert parts.section(TABLE, lines)[3:] == [
        "| benchmark | part | row | queries | score | minus full, over seeds | p | over test data | p |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        f"| events | de | full | 1,200 | 0.6250 ± {half(0.5, 0.75):.4f} | - | - | - | - |",
        (
            "| events | de | low | 1,200 | 0.2500 | -0.3750 (-0.5000 to -0.2500) | 0.010 "
            "| -0.3000 (-0.4000 to -0.2000) | 0.020 |"
        ),
    ]
    assert "the paired test over folds or resamples, of" in parts.section(TABLE, lines)[1]
    assert lines[0].to_dict()["values"] == [0.5, 0.75]
