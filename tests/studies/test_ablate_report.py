"""The report of an ablation, line by line, from numbers that are written here."""

import dataclasses

import numpy as np
import pytest
from newsembed.evaluation.benchmark import Result, Results, Score
from newsembed.evaluation.statistics import Interval
from newsembed.studies.ablate import report as module
from newsembed.studies.ablate.report import Line, counted, report_of, report_text, statement
from newsembed.studies.ablate.table import Row, Table
from newsembed.studies.shared.study import Outcome
from scipy.stats import t, zscore

ROWS = (
    Row(name="full", removes="nothing"),
    Row(name="low", removes="a part", gin_file="low.gin"),
    Row(name="high", removes="another", expected="higher"),
    Row(name="lost", removes="a third"),
    Row(name="idle", removes="what is not there"),
)
TABLE = Table(
    name="toy", title="A toy", rows=ROWS, note="As the test wants.", printed={"p": {"mAP": 0.25}, "o": {"F1": 0.5}}
)
EXAMPLES = {"full": {"triplets": 1234, "topics": 5}, "low": {"triplets": 0, "topics": 0}}


def results(*cells):
    """Results of (step, benchmark, score)."""
    metrics = {"events": "mAP", "sts": "Spearman"}
    return Results(tuple(Result(step, name, "ok", (Score(metrics[name], value),)) for step, name, value in cells), {})


SCORES = {
    "full": {seed: results(("9", "events", 0.9), ("10", "events", 0.5), ("10", "sts", 0.25)) for seed in (3, 4)},
    "low": {
        3: results(("9", "events", 0.1), ("10", "events", 0.25), ("10", "sts", 0.0)),
        4: results(("9", "events", 0.1), ("10", "events", 0.75), ("10", "sts", 0.5)),
    },
    "high": {3: results(("9", "events", 0.1), ("10", "events", 1.0), ("10", "sts", 0.125))},
}
PROBLEMS = {"high": {"seed 1": "no | memory"}, "lost": {"mining": "no data"}}
LINES = [
    Line(
        row,
        Outcome(row.name, PROBLEMS.get(row.name, {}), SCORES.get(row.name, {}), seconds=7.5),
        examples=EXAMPLES.get(row.name, {}),
    )
    for row in ROWS[:-1]
] + [Line(ROWS[-1], Outcome("idle", {}), "nothing to remove")]
MADE = dataclasses.replace(
    report_of(TABLE, LINES),
    z={"full": np.array([1.0, 2.0]), "low": np.array([-1.0, 0.0]), "high": np.array([-0.25])},
    gaps={"low": Interval(-2.0, -3.0, -1.0, 0.0004), "high": Interval(-0.5, -1.5, 0.5, 0.25)},
)


def half(first, second):
    """Half the interval of the mean of two numbers."""
    return t.ppf(0.975, 1) * abs(first - second) / 2


def blocks(text):
    """The lines of a report without empty ones."""
    return [line for line in text.splitlines() if line]


def test_the_report_line_by_line():
    lines = blocks(report_text(MADE))
    spread = half(1.0, 2.0)
    assert lines[:8] == [
        "# A toy",
        "| row | leaves out | z | minus full | p | expected | measured | verdict | seeds | triplets | topics |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | --- | ---: | ---: | ---: |",
        f"| full | nothing | +1.50 ± {spread:.2f} | - | - | - | - | - | 2 of 2 | 1,234 | 5 |",
        (
            f"| low | a part | -0.50 ± {spread:.2f} | -2.00 (-3.00 to -1.00) | < 0.001 | lower | lower | agrees "
            "| 2 of 2 | 0 | 0 |"
        ),
        "| high | another | -0.25 | -0.50 (-1.50 to +0.50) | 0.250 | higher | lower | within error | 1 of 2 | - | - |",
        "| lost | a third | - | - | - | lower | - | failed | 0 of - | - | - |",
        "| idle | what is not there | - | - | - | lower | - | not applicable | 0 of - | - | - |",
    ]
    assert lines[8].startswith("z: mean over steps and benchmarks")
    assert "The difference from full has Dunnett's" in lines[8]
    assert lines[8].endswith("or other test sets. As the test wants.")
    assert lines[9:] == [
        (
            "Of 4 rows: 1 agrees, 1 within error, 1 failed, 1 not applicable. "
            "1 of 2 measured means differ in the expected direction."
        ),
        "Scores after the last step, mean over seeds ± half the 95 % interval:",
        "| row | events, mAP | sts, Spearman |",
        "| --- | ---: | ---: |",
        "| full | 0.5000 ± 0.0000 | 0.2500 ± 0.0000 |",
        f"| low | 0.5000 ± {half(0.25, 0.75):.4f} | 0.2500 ± {half(0.0, 0.5):.4f} |",
        "| high | 1.0000 | 0.1250 |",
        "Printed figures:",
        "| row | mAP | F1 |",
        "| --- | ---: | ---: |",
        "| p | 0.2500 | - |",
        "| o | - | 0.5000 |",
        "Failed or not applicable:",
        "- idle: nothing to remove",
        "- high, seed 1: no | memory",
        "- lost, mining: no data",
    ]


def test_english_and_the_other_languages_have_z_scores_of_their_own():
    """Genres and means are neither, and parts of a metric that does not count are left out."""

    def run(english, german, russian):
        parts = [("all", 9 * english), ("en", english), ("de", german), ("ru", russian), ("news", 5 * german)]
        scores = (*(Score("mAP", value, part) for part, value in parts), Score("hit@1", -english, "en"))
        return Results((Result("10", "events", "ok", scores),), {})

    scores = {
        "full": {0: run(0.5, 0.5, 0.1), 1: run(0.7, 0.6, 0.2)},
        "low": {0: run(0.1, 0.5, 0.2), 1: run(0.2, 0.6, 0.4)},
    }
    lines = [Line(row, Outcome(row.name, {}, scores[row.name])) for row in ROWS[:2]]
    made = report_of(TABLE, lines)
    english = zscore([0.5, 0.7, 0.1, 0.2])
    others = (zscore([0.5, 0.6, 0.5, 0.6]) + zscore([0.1, 0.2, 0.2, 0.4])) / 2
    for group, z in (("English", english), ("other languages", others)):
        assert made.by_language[group]["low"].value == pytest.approx(z[2:].mean() - z[:2].mean())
    shown = blocks(report_text(made))
    headings = "| row | English: minus full | English: p | other languages: minus full | other languages: p |"
    assert headings in shown
    assert shown[shown.index(headings) + 2] == "| full | - | - | - | - |"


def test_a_report_without_scores_has_no_empty_tables():
    bare = dataclasses.replace(TABLE, printed={}, note="")
    made = report_of(bare, [dataclasses.replace(LINES[0], outcome=Outcome("full", {"seed 0": "a"})), LINES[4]])
    text = report_text(made)
    assert "Scores after" not in text
    assert text.count("\n| ") == 4
    rest = "1 not applicable. 0 of 0 measured means differ in the expected direction."
    assert statement(made) == f"Of 1 rows: {rest}"
    assert statement(dataclasses.replace(made, lines=made.lines[:1])).startswith("Of 0 rows: none compared. ")


@pytest.mark.parametrize(
    ("difference", "expected", "verdict"),
    [
        (Interval(-1.0, -2.0, -0.5), "lower", "agrees"),
        (Interval(-1.0, -2.0, -0.5), "higher", "differs"),
        (Interval(1.0, 0.5, 2.0), "higher", "agrees"),
        (Interval(1.0, 0.5, 2.0), "lower", "differs"),
        (Interval(1.0, 0.0, 2.0), "higher", "within error"),
        (Interval(-1.0, -2.0, 0.0), "lower", "within error"),
        (Interval(1.0, None, 2.0), "higher", "no error bar"),
        (Interval(1.0, 0.5, None), "higher", "no error bar"),
    ],
)
def test_a_verdict_needs_an_interval_without_zero(difference, expected, verdict):
    assert difference.verdict(expected) == verdict


def test_the_numbers_of_a_row_as_json():
    found = module._to_json(MADE, LINES[1])
    assert found["z"] == {"mean": -0.5, "half_interval": pytest.approx(half(0, 1))}
    assert found["z_by_seed"] == {"3": -1.0, "4": 0.0}
    assert found["minus_full"] == {"value": -2.0, "low": -3.0, "high": -1.0, "p": 0.0004}
    assert (found["verdict"], found["expected"]) == ("agrees", "lower")
    assert found["scores"][0] == {"seed": 3, "step": 9, "benchmark": "events", "value": 0.1}
    assert len(found["scores"]) == 6
    plain = module._to_json(MADE, LINES[0])
    assert (plain["expected"], plain["minus_full"], plain["verdict"]) == ("-", None, "-")
    assert (plain["examples"], plain["training_seconds"]) == ({"triplets": 1234, "topics": 5}, 7.5)
    lost = module._to_json(MADE, LINES[3])
    assert (lost["z"], lost["z_by_seed"], lost["problems"]) == (None, None, {"mining": "no data"})


def test_the_score_that_counts_is_the_table_s():
    scores = (
        Score("accuracy", 0.1, "Same"),
        Score("accuracy", 0.3, "All"),
        Score("5-shot", 0.2, "All"),
        Score("accuracy", 0.4, "Cross"),
    )
    result, bare = Result("4", "mldoc", "ok", scores), Result("4", "sts", "ok", scores[:1])
    for group, metric, expected in (("all", "", 0.3), ("all", "5-shot", 0.2), ("Cross", "5-shot", 0.4)):
        table = dataclasses.replace(TABLE, group=group, metric=metric)
        assert (counted(result, table).value, counted(bare, table).value) == (expected, 0.1)


# Comparisons with the control, over seeds and over test data

GERMAN = {"full": (0.3, 0.5, 0.4), "low": (0.4, 0.7, 0.5), "high": (0.2, 0.1, 0.3)}
DRAWS = {"full": (0.2, 0.3, 0.4), "low": (0.4, 0.4, 0.5), "high": (0.1, 0.2, 0.3)}


def compared(table, seeds=None):
    """A report in which every row has resamples in German, and none over all languages."""
    lines = []
    for row in ROWS[:3]:
        scores = {}
        for seed, value in enumerate(GERMAN[row.name]):
            parts = (
                Score("hit@1", 0.9),
                Score("mAP", value + 0.1, count=20),
                Score("mAP", value, "de", 8, draws=DRAWS[row.name]),
            )
            found = Result("4", "events", "ok", parts), Result("4", "sts", "ok", (Score("Spearman", 0.5),))
            if seed in (seeds or {}).get(row.name, range(3)):
                scores[seed] = Results(found, {})
        lines.append(Line(row, Outcome(row.name, {}, scores)))
    return report_of(table, lines)


BY_PART = dataclasses.replace(TABLE, metric="mAP", by_part=True, test="paired bootstrap over events")


def test_parts_are_compared_over_seeds_and_over_test_data():
    made = compared(BY_PART)
    found = {(one.benchmark, one.part, one.row): one for one in made.comparisons}
    assert {key[:2] for key in found} == {("events", "all"), ("events", "de"), ("sts", "all")}
    one = found["events", "de", "low"]
    assert (one.count, one.metric, list(one.values.values())) == (8, "mAP de", list(GERMAN["low"]))
    gap = np.mean(GERMAN["low"]) - np.mean(GERMAN["full"])
    assert one.difference.value == pytest.approx(gap)
    assert one.difference.p is not None
    # By hand: gaps of the draws are .2 .1 .1, whose 2.5 % and 97.5 % quantiles are .1 and .195.
    assert (one.test.value, one.test.low, one.test.high) == pytest.approx((gap, 0.1, 0.195))
    assert found["events", "de", "full"].difference is found["events", "de", "full"].test is None
    assert found["events", "all", "low"].test is None  # no resamples were kept
    text = report_text(made)
    assert "| benchmark | score | row | queries | mean | over seeds | p | over test data | p | verdict |" in text
    assert "data: paired bootstrap over events. A fold" in text
    assert f"| events | mAP de | full | 8 | 0.4000 ± {t.ppf(0.975, 2) * 0.1 / 3**0.5:.4f} | - | - | - | - | - |" in text
    assert "| +0.1333 (+0.1000 to +0.1950) | 0.333 | differs |" in text


def test_a_seed_that_one_of_both_lacks_is_not_paired_and_leaves_no_error_bar():
    made = compared(BY_PART, {"low": (0, 2)})
    one = next(one for one in made.comparisons if (one.part, one.row) == ("de", "low"))
    assert one.test.value == pytest.approx(0.1)  # seeds 0 and 2
    assert (one.difference.value, one.difference.p) == (pytest.approx(0.05), None)
    without = report_of(BY_PART, compared(BY_PART).lines[1:])
    assert all(one.difference is one.test is None for one in without.comparisons)


def test_without_parts_only_the_part_that_counts_is_compared():
    made = compared(dataclasses.replace(BY_PART, group="de", by_part=False, test=""))
    assert [(one.row, one.verdict) for one in made.comparisons if one.test] == [("low", "differs"), ("high", "differs")]
    assert {one.part for one in made.comparisons} == {"de", "all"}  # of events, and of sts
    assert all(one.difference is None for one in made.comparisons)
    assert "Over test data: the paired test over folds" in report_text(made)
    bare = compared(dataclasses.replace(TABLE, metric="mAP"))  # all languages together have no resamples
    assert not any(one.test for one in bare.comparisons)
    assert "Over test data" not in report_text(bare)
