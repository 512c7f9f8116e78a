"""Tables of results, cell by cell: what each number is called, where it stands, and what is said under it."""

from newsembed.evaluation import table
from newsembed.evaluation.benchmark import Result, Results, Score
from newsembed.evaluation.table import console, grids, main_scores, report, summary
from scipy.stats import t, ttest_1samp, ttest_rel

# Half the width of an interval over 4 runs with a deviation of 0.1.
HALF = t.ppf(0.975, 3) * 0.1 / 2


def ok(encoder, benchmark, *scores, seconds=2.0, texts=9):
    return Result(encoder, benchmark, "ok", scores, texts=texts, dimensions=7, seconds=seconds)


def failed(encoder, benchmark, error="no | file\nhere"):
    return Result(encoder, benchmark, "failed", error=error)


MAP = Score("mAP", 0.25, "all", 9, low=0.125, high=0.5), Score("mAP", 0.75, "de", 3)
ROWS = (
    ok("a", "events", *MAP, Score("hit@1", 0.5, "all", 9)),
    ok("a", "bbc", Score("accuracy", 0.5, "all", 9, 0.1, 4), Score("F1", 0.25, "Cross"), seconds=0.0),
    ok("b", "events", Score("mAP", 0.375), seconds=1.5, texts=30),
    failed("b", "bbc"),
)
RESULTS = Results(ROWS, {})


def test_the_terminal_has_a_column_for_each_encoder_and_marks_failures():
    _, bbc = console(RESULTS)
    assert [column.header for column in bbc.columns] == ["", "a", "b"]
    assert [column.style for column in bbc.columns[1:]] == ["", "red"]
    assert list(bbc.columns[0].cells) == ["accuracy", "F1 Cross", "width", "seconds"]  # nobody has a rate
    assert list(bbc.columns[2].cells) == ["failed", "failed", "-", "-"]


def test_more_encoders_than_a_terminal_holds_are_in_several_tables():
    shown = console(Results(tuple(ok(name, "bbc", Score("F1", 0.5)) for name in "abcdefg"), {}))
    assert [[column.header for column in one.columns] for one in shown] == [["", *"abcde"], ["", *"fg"]]
    assert list(shown[1].columns[0].cells) == ["F1", "width", "seconds", "texts/s"]


def cells(grid):
    return [list(grid.headings), *(list(row) for row in grid.rows)]


def test_the_table_of_a_benchmark_and_its_markdown():
    events, bbc = grids(RESULTS)
    assert (events.caption, bbc.caption, events.notes) == ("events", "bbc", [])
    assert cells(events) == [
        ["encoder", "mAP", "mAP de", "hit@1", "width", "seconds", "texts/s"],
        ["a", "0.2500 [0.1250, 0.5000]", "0.7500", "0.5000", "7", "2.0", "4"],
        ["b", "0.3750", "-", "-", "7", "1.5", "20"],
    ]
    assert bbc.section().splitlines() == [
        "## bbc",
        "",
        "| encoder | accuracy | F1 Cross | width | seconds | texts/s |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        f"| a | 0.5000 ± {HALF:.4f} | 0.2500 | 7 | 0.0 | - |",
        "| b | failed | failed | - | - | - |",
        "",
        "- b failed: no \\| file here",
    ]
    (alone,) = grids(Results((failed("b", "bbc"),), {}))
    assert cells(alone) == [["encoder", "score", "width", "seconds", "texts/s"], ["b", "failed", "-", "-", "-"]]


def test_published_figures_have_rows_of_their_own_and_each_source_once(monkeypatch):
    found = [("old", ("mAP", "all"), 0.0625, "one"), ("new", ("hit@1", "all"), 0.125, "two")]
    found += [("old", ("hit@1", "all"), 0.5, "one")]
    monkeypatch.setattr(table, "beside", lambda facts, keys: found if facts == {"protocol": 1} else [])
    results = Results(ROWS, {"benchmarks": {"events": {"protocol": 1}}})
    events, bbc = grids(results)
    assert cells(events)[3:] == [
        ["old (published)", "0.0625", "-", "0.5000", "-", "-", "-"],
        ["new (published)", "-", "-", "0.1250", "-", "-", "-"],
    ]
    assert events.notes == ["published: one", "published: two"]
    assert len(bbc.rows) == 2
    found.append(("third", ("mAP", "all"), 0.25, "one"))
    ours, theirs, _ = console(results)  # their names are long, and most of our figures were not published
    assert [column.header for column in ours.columns] == ["", "a", "b", "old (published)", "new (published)"]
    assert [list(column.cells) for column in theirs.columns] == [["mAP"], ["0.2500"]]


def test_the_table_over_all_benchmarks_has_overall_scores_and_rates():
    assert summary(RESULTS).caption == "All benchmarks"
    assert cells(summary(RESULTS)) == [
        ["benchmark", "metric", "a", "b"],
        ["events", "mAP", "0.2500 [0.1250, 0.5000]", "0.3750"],
        ["events", "hit@1", "0.5000", "-"],
        ["events", "time, texts/s", "2.0 s, 4/s", "1.5 s, 20/s"],
        ["bbc", "accuracy", f"0.5000 ± {HALF:.4f}", "failed"],
        ["bbc", "F1 Cross", "0.2500", "failed"],
        ["bbc", "time, texts/s", "0.0 s, -/s", "-"],
    ]


def test_the_main_scores_of_a_recipe():
    recipe = {"metrics": {"events": "hit@1"}, "notes": {"bbc": "half", "events": "all"}}
    more = ok("c", "events", Score("hit@1", 1.0, "de")), ok("c", "bbc")
    results = Results((*ROWS, *more), {"recipe": recipe})
    assert cells(main_scores(results)) == [
        ["encoder", "events, hit@1", "bbc, accuracy"],
        ["a", "0.5000", f"0.5000 ± {HALF:.4f}"],
        ["b", "-", "failed"],
        ["c", "-", "-"],
    ]
    assert main_scores(results).notes == ["bbc: half", "events: all"]
    assert report(results).startswith("## Main scores\n\n| encoder | events, hit@1 | bbc, accuracy |\n")
    assert [one.title for one in console(results)] == ["Main scores", "events", "bbc"]


def titles(text):
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_a_report_explains_its_intervals_and_has_no_empty_tables():
    text = report(RESULTS)
    assert titles(text) == ["All benchmarks", "events", "bbc"]
    assert text.endswith(
        "± is half the width of the 95 % confidence interval of the mean over seeds, folds or repeats (Student's t)."
        "\n\n[low, high] is the 95 % bootstrap interval over events, or over pairs of sentences."
    )
    assert report(Results(ROWS[:1], {})).endswith("sentences.")
    assert "±" not in report(Results(ROWS[:1], {}))
    assert "[low" not in report(Results(ROWS[1:2], {}))
    assert titles(report(Results(ROWS[:1], {}))) == ["events"]


def test_tests_over_cells_and_folds_and_against_printed_figures_are_tables(monkeypatch):
    folds = {"a": (0.5, 0.75, 0.625), "b": (0.25, 0.75, 0.5)}
    cells = {"a": (0.5, 0.75), "b": (0.25, 0.625)}
    parts, results = ("de→en", "en→de"), []
    for name in ("a", "b"):
        own = (Score("accuracy", value, part) for part, value in zip(parts, cells[name], strict=True))
        results.append(ok(name, "x", Score("accuracy", 0.5, "Cross", folds=folds[name]), *own))
    monkeypatch.setattr(
        "newsembed.evaluation.statistics.beside", lambda facts, keys: [("old", ("accuracy", "Cross"), 0.4, "s")]
    )
    lines = report(Results(tuple(results), {})).splitlines()
    paired, over_folds = ttest_rel(cells["a"], cells["b"]), ttest_rel(folds["a"], folds["b"])
    corrected = over_folds.statistic / 2  # 1 / 3 + 1 in place of 1 / 3
    one, two = (ttest_1samp(folds[name], 0.4) for name in ("a", "b"))
    shown = f"{over_folds.statistic:.2f} | {over_folds.pvalue:.4f} | {corrected:.2f} | {2 * t.sf(corrected, 2):.4f}"
    start = lines.index("## Paired t-tests over X→Y cells")
    assert [line for line in lines[start:] if line and "---" not in line] == [
        "## Paired t-tests over X→Y cells",
        "| benchmark | cells | encoders | difference | t | p | count |",
        f"| x | Cross | a - b | +0.1875 | {paired.statistic:.2f} | {paired.pvalue:.4f} | 2 |",
        f"| x | All | a - b | +0.1875 | {paired.statistic:.2f} | {paired.pvalue:.4f} | 2 |",
        "## Paired t-tests over folds (corrected: Nadeau and Bengio)",
        "| benchmark | part | encoders | difference | t | p | corrected t | corrected p | folds |",
        f"| x | Cross | a - b | +0.1250 | {shown} | 3 |",
        "## One-sample t-tests of folds against printed figures",
        "| benchmark | part | encoder and printed system | difference | t | p | folds |",
        f"| x | Cross | a - old | +0.2250 | {one.statistic:.2f} | {one.pvalue:.4f} | 3 |",
        f"| x | Cross | b - old | +0.1000 | {two.statistic:.2f} | {two.pvalue:.4f} | 3 |",
        "- s",
    ]
