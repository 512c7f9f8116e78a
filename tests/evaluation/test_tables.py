"""The papers' tables: the printed numbers, ours beside them, and what was not run."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from benchmarking import write_bbc
from newsembed.evaluation.benchmark import Result, Results, Score
from newsembed.evaluation.encoders import TfidfEncoder
from newsembed.evaluation.suites import run_suites
from newsembed.evaluation.tables import FORMATS, chosen_tables, filled, joined, lacking, needed, printed_tables, text_of
from newsembed.launch import cli
from newsembed.studies.ablate.table import load
from refusals import refuses

PAPER = Path(__file__).parents[3] / "shared" / "PAPER.md"
GENRES = ("main-news", "main-captions", "main-forums")


@pytest.fixture
def benchmarks(tmp_path):
    """STS-B in three parts, whose pairs agree most in the news."""
    folder = tmp_path / "stsbenchmark"
    folder.mkdir()
    for part in ("train", "dev", "test"):
        lines = [
            f"{genre}\tx\t2014\t{n}\t{n}\tword{n} a b\tword{n if n > place else 0} a {part}"
            for place, genre in enumerate(GENRES)
            for n in range(5)
        ]
        (folder / f"sts-{part}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_tables_are_named_by_paper_and_number_in_the_order_of_the_papers():
    names = [*printed_tables()]
    assert names[:9] == [f"newsembed-{number}" for number in (2, 3, 4, 5, 6, 8, 9, 10, 11)]
    assert {"simlte-2", "okura-1", "thesis-4.2", "ast-1"} <= set(names)
    assert [table.name for table in chosen_tables(["newsembed-3", "okura"])] == ["newsembed-3", "okura-1"]
    assert [table.name for table in chosen_tables([])] == names
    refuses("got newsembed-7", chosen_tables, ["newsembed-7"])


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's tables are not here")
def test_every_number_of_the_paper_is_in_its_table():
    sections = re.split(r"^## ", PAPER.read_text(encoding="utf-8"), flags=re.MULTILINE)
    checked = 0
    for section in sections:
        found = re.match(r"Tables? (\d+)(?:.*?Table (\d+))?(?:.*?and (\d+))?", section.splitlines()[0])
        if not found:
            continue
        wanted = {f"newsembed-{number}" for number in found.groups() if number}
        known = {
            round(100 * value if column[0].get("percent") else value, 2)
            for name, table in printed_tables().items()
            if name in wanted
            for column in table.columns
            for value in column[0]["values"].values()
        }
        for line in section.splitlines():
            cells = [cell.strip().replace("−", "-") for cell in line.strip("|").split("|")[1:]]
            for cell in cells if line.startswith("| ") and "classes" not in line else ():
                if re.fullmatch(r"-?\d+(\.\d+)?", cell) and cell not in ("12", "13", "14", "15", "16"):
                    checked += 1
                    assert float(cell) in known, (section.splitlines()[0], line)
    assert checked > 180


def test_ours_stand_below_the_printed_rows_and_what_is_missing_has_a_reason(benchmarks):
    tables = chosen_tables(["newsembed-4", "newsembed-8"])
    found = needed(tables, str(benchmarks))
    assert [one.protocol["suite"] for one in found] == ["stsb_genres"]
    results = run_suites({"tfidf": TfidfEncoder}, found)
    genres, classes = (filled(table, results) for table in tables)
    assert genres.rows[-2][:2] == ["NewsEmbed (printed)", "80.9"]
    ours = [100 * results.score("tfidf", found[0].name, "Spearman", genre) for genre in GENRES]
    assert genres.rows[-1] == ["tfidf", *(f"{value:.1f}" for value in ours)]
    assert results.results[0].scores[0].count == 45
    assert genres.notes == ["ours: news, captions, forums: stsb_genres (stsbenchmark), 90 texts"]
    assert classes.rows[-1][0] == "NewsEmbed (printed)"  # an encoder that ran on nothing of a table has no row
    assert classes.notes[0] == "not run: BBC: no data; --suite bbc reads a folder or file bbc"
    assert lacking(tables[0], []) == [
        "not run: news, captions, forums: no data; --suite stsb_genres reads a folder or file stsbenchmark"
    ]


def test_the_table_of_simlte_takes_its_own_head_and_that_of_newsembed_the_other(tmp_path):
    write_bbc(tmp_path / "bbc", {label: label for label in ("business", "sport", "tech")}, 6)
    tables = chosen_tables(["newsembed-8", "simlte-2"])
    found = needed(tables, str(tmp_path))
    assert [one.name for one in found] == ["bbc (bbc)", "bbc (bbc), SimLTE's head"]
    quick = [dataclasses.replace(one, seeds=1, repeats=1) for one in found]
    results = run_suites({"tfidf": TfidfEncoder}, quick)
    rows = [row for table in tables for row in filled(table, results).rows if row[0] == "tfidf"]
    first, *others = rows
    assert first[1] == f"{100 * results.score('tfidf', 'bbc (bbc)', 'accuracy'):.1f}"
    assert len(first) - first.count("-") == 2
    metrics = [f"{kind} {metric}" for metric in ("accuracy", "macro-F1") for kind in ("MLP", "5-shot")]
    own = [f"{results.score('tfidf', found[1].name, metric):.4f}" for metric in metrics]
    assert sorted(cell for row in others for cell in row[1:] if cell != "-") == sorted(own)


def test_the_mean_of_all_columns_is_that_of_ours_if_there_are_all():
    table = printed_tables()["newsembed-3"]
    years = [column[0] for column in table.columns[:-1]]

    class Given:
        results = (Result("ours", "b0", "failed"),)

        def __init__(self, count):
            rows = [{"path": f"/data/{year['sets'][0]}"} for year in years[:count]]
            facts = [{"protocol": {"suite": "sts"}, "data": [row]} for row in rows]
            self.manifest = {"benchmarks": {f"b{n}": fact for n, fact in enumerate(facts)}}

        def score(self, _encoder, benchmark, _metric, _part):
            return int(benchmark[1:]) / 10

    assert filled(table, Given(5)).rows[-1] == ["ours", "0.0", "10.0", "20.0", "30.0", "40.0", "20.0"]
    assert filled(table, Given(4)).rows[-1][-1] == "-"


def test_results_of_several_runs_fill_one_table():
    def run(name, encoder, value):
        protocol, data = {"suite": f"finetune {name}", "languages": ["en", "de"]}, [{"path": f"/download/{name}"}]
        metric = "accuracy" if name == "xnli" else "F1"
        scores = (Score(metric, value), Score(metric, 0.0, "de"))
        facts = {"benchmarks": {name: {"protocol": protocol, "data": data}}}
        return Results((Result(encoder, name, "ok", scores, texts=12),), facts)

    both = joined([run("xnli", "before", 0.7), run("panx", "before", 0.6), run("panx", "after", 0.5)])
    for name, columns in (("newsembed-2", 9), ("newsembed-9", 8)):
        table = filled(printed_tables()[name], both)
        assert table.rows[-2] == ["before", "70.0", "-", "-", "60.0", *["-"] * (columns - 4)]
        assert table.rows[-1][:5] == ["after", "-", "-", "-", "50.0"]
        assert table.notes[:2] == [
            "ours: XNLI accuracy: xnli, 12 texts in 2 languages",
            "ours: PANX F1: panx, 12 texts in 2 languages",
        ]
        assert "not run: PAWS-X accuracy: `newsembed finetune --task pawsx` trains it, see --finetuned" in table.notes
    assert joined([]) is None


def test_every_form_holds_every_cell():
    tables = [filled(table, None) for table in printed_tables().values()]
    texts = {form: text_of(tables, form) for form in FORMATS}
    assert [len(one["rows"]) for one in json.loads(texts["json"])] == [len(table.rows) for table in tables]
    assert texts["tex"].count(r"\begin{tabular}") == len(tables) == texts["md"].count("## ")
    assert "80.1" in texts["md"]
    assert "| vector cosine (printed) | 0.940 | 0.829 |" in texts["md"]  # as many decimals as in the rest of the column


def test_the_command_prints_writes_and_checks(benchmarks, tmp_path, capsys):
    assert cli.main(["tables", "newsembed-11"]) == 0
    assert "-2.16" in capsys.readouterr().out
    assert cli.main(["tables", "newsembed-4", "--check", "--data", str(benchmarks)]) == 0
    assert capsys.readouterr().out.startswith("there: stsb_genres (stsbenchmark)")
    (tmp_path / "empty").mkdir()
    for data in ([], ["--data", str(tmp_path / "empty")]):  # what to get, before anything is there
        assert cli.main(["tables", "newsembed-4", "--check", *data]) == 0
        lack, source = capsys.readouterr().out.splitlines()
        assert "newsembed-4: not run: news, captions, forums: no data; --suite stsb_genres" in lack
        assert source.startswith("stsb_genres: get it from SemEval STS and STS-B: https://")
    output = tmp_path / "out"
    given = ["--encoder", "tfidf=tfidf", "--data", str(benchmarks), "--output", str(output)]
    assert cli.main(["tables", "newsembed-4", *given]) == 0
    assert f"1 table: {output}/tables.md, and as json, tex, html\n" in capsys.readouterr().out
    assert sorted(path.name for path in output.iterdir()) == sorted(f"tables.{form}" for form in (*FORMATS, "html"))
    shown = (output / "tables.html").read_text()
    (table,) = json.loads((output / "tables.json").read_text())
    assert shown.count("<tr>") == 1 + len(table["rows"])
    assert all(cell in shown for row in table["rows"] for cell in row)
    assert shown.count("<li") == len(table["notes"]) > 0
    assert "| tfidf | " in (output / "tables.md").read_text()
    assert cli.main(["tables", "--output", str(tmp_path / "all")]) == 0
    _, *shown = (tmp_path / "all" / "tables.html").read_text().split("<table>")
    written = json.loads((tmp_path / "all" / "tables.json").read_text())
    assert [part.count("<tr>") - 1 for part in shown] == [len(one["rows"]) for one in written]
    assert cli.main(["tables", "newsembed-4", "--encoder", "tfidf=tfidf"]) == 2
    capsys.readouterr()
    assert cli.main(["tables", "newsembed-4", "--data", str(benchmarks)]) == 2
    assert "--data: given without --encoder or --check" in capsys.readouterr().err


def test_tables_that_are_trained_show_the_results_of_their_studies(tmp_path, capsys, monkeypatch):
    facts = {"command": ["newsembed", "x"], "written_at": "2026-11-26T10:00:00"}
    gap = {"value": -1.5, "low": -2.0, "high": -1.0, "p": 0.01}
    rows = [{"row": "full", "minus_full": None, "verdict": "-", "by_language": {}}]
    english = {"English": gap | {"value": -1.25}}
    rows += [{"row": "without_topics", "minus_full": gap, "verdict": "agrees", "by_language": english}]
    fall = {"effect": gap, "by_seed": [-1.5]}
    parts = {"English": fall, "other languages": None}
    cutoffs = [{"cutoff": "2019-01", "staleness": fall, "verdict": "agrees", "by_language": parts}]
    cutoffs += [{"cutoff": "2019-07", "staleness": None, "verdict": "failed", "by_language": {}}]
    written = {"ablate": {"rows": rows}, "staleness": {"cutoffs": cutoffs}}
    asked = []

    def write(arguments):
        asked.append(arguments)
        folder = Path(arguments[arguments.index("--output") + 1])
        folder.mkdir(parents=True)
        (folder / "table.json").write_text(json.dumps({**facts, **written[arguments[0]]}))
        return 0

    real = cli.main
    monkeypatch.setattr(cli, "main", write)
    words = ["tables", "newsembed-10", "newsembed-11", "newsembed-3", "--train", str(tmp_path)]
    assert real(words) == 0
    first = capsys.readouterr().out
    assert [one[:2] for one in asked] == [["ablate", "--newsroom"], ["staleness", "--newsroom"]]
    (printed,) = chosen_tables(["newsembed-10"])
    assert len(load("newsembed").choose(asked[0][-1])) - 1 == len(printed.columns[0][0]["values"])
    assert "| without_topics | -1.500 (-2.000 to -1.000) | -1.250 (-2.000 to -1.000) | agrees |" in first
    assert "| 2019-01 | -1.500 (-2.000 to -1.000) | -1.500 (-2.000 to -1.000) | - | agrees |" in first
    assert "newsembed x, 2026-11-26" in first
    assert "--train DIR" not in first  # the note of what could not be run
    assert first.count("## ") == 5
    assert real(words) == 0
    assert capsys.readouterr().out == first
    assert len(asked) == 2
    monkeypatch.setattr(cli, "main", lambda _arguments: 2)  # the study said why
    assert real(["tables", "newsembed-10", "--train", str(tmp_path / "new")]) == 2
    assert "remedy: do what `newsembed ablate` says; the same command then continues" in capsys.readouterr().err
