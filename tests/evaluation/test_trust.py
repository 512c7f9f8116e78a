"""Leakage is found and removed, published numbers appear below ours with their source, and the report shows both."""

import json
from pathlib import Path

import pytest
from benchmarking import parse
from newsembed.evaluation import command
from newsembed.evaluation.benchmark import discover
from newsembed.evaluation.benchmarks.sts import Sts
from newsembed.evaluation.encoders import TfidfEncoder
from newsembed.evaluation.statistics import beside, published
from newsembed.evaluation.suites import read_results, run_suites
from newsembed.evaluation.table import grids
from refusals import refuses

BENCHMARKS = Path(__file__).parents[2] / "../shared/data/benchmarks"
LONG = " ".join(f"word{number}" for number in range(100))
STS = "5\tstorm hits coast\tstorm at coast\n3\tvote on budget\tbudget storm\n1\tcup final\train\n"


def run(tmp_path, *arguments):
    sts = ("--suite", "sts", "--data", str(tmp_path / "s.tsv"), "--output", str(tmp_path / "o"))
    code = command.run(parse("--encoder", "tfidf=tfidf", "--encoder", "lsa=lsa:2", *sts, *arguments), {})
    return code, read_results(str(tmp_path / "o")), (tmp_path / "o/results.md").read_text()


def test_the_command_reports_leakage_and_drops_it_when_told(tmp_path):
    (tmp_path / "s.tsv").write_text(STS + "2\tcoast rain\tcup\n")
    (tmp_path / "train.jsonl").write_text(json.dumps({"title": "Cup final", "body": "x"}))
    leak = ("--leakage", str(tmp_path / "train.jsonl"))
    code, results, text = run(tmp_path, *leak)
    assert code == 0
    counts = {"texts": 8, "exact": 1, "near": 0, "training_articles": 1}
    assert results.manifest["leakage"]["benchmarks"]["sts"] == counts
    assert results.results[0].scores[0].count == 4
    assert "## Texts among the training articles (kept)\n\n| benchmark | texts | exact | near |" in text
    assert "| sts | 8 | 1 | 0 |" in text
    _, results, text = run(tmp_path, *leak, "--drop_leaked")
    assert results.results[0].scores[0].count == 3
    assert results.manifest["benchmarks"]["sts"]["protocol"]["excluded"] == 1
    assert "(left out)" in text
    refuses("without --leakage", run, tmp_path, "--drop_leaked")


def test_published_numbers_have_a_source_and_a_range():
    for row in published():
        assert row["source"]
        assert bool(row["sets"]) == bool(row["suite"])
        # Why ours is missing: nothing runs it, or only a training does.
        assert ("why" in row) == (not row["suite"] or row["suite"].startswith("finetune "))
        assert all(-1 <= value <= 1 for value in row["values"].values()) or row["metric"] == "z-score"


def test_published_numbers_stand_beside_ours(tmp_path):
    (tmp_path / "sts-test.csv").write_text(
        "".join(f"main-news\tx\t2014\t{n}\t{n}\tword{n} a\tword{n} b{n % 3}\n" for n in range(5))
    )
    results = run_suites({"tfidf": TfidfEncoder}, [Sts(str(tmp_path / "sts-test.csv"), "sts")])
    (grid,) = grids(results)
    rows = {row[0]: row[1] for row in grid.rows}
    assert rows["Avg. GloVe embeddings (published)"] == "0.5802"
    assert "sbert.net" in grid.notes[0]
    facts = results.manifest["benchmarks"]["sts"]
    assert not beside({**facts, "protocol": {**facts["protocol"], "excluded": 2}}, [("Spearman", "all")])
    (tmp_path / "sts-dev.csv").write_text((tmp_path / "sts-test.csv").read_text())
    assert not grids(run_suites({"tfidf": TfidfEncoder}, [Sts(str(tmp_path / "sts-dev.csv"), "sts")]))[0].notes


@pytest.mark.real_data
def test_the_benchmarks_on_disk_have_the_sizes_of_their_papers():
    if not BENCHMARKS.exists():
        pytest.skip("../shared/data/benchmarks is absent")
    sizes = {benchmark.name: len(benchmark.documents()) for benchmark in discover(str(BENCHMARKS))}
    assert sizes["bbc (bbc/bbc)"] == 2225
    assert sizes["agnews (ag_news)"] == 7600
    assert sizes["sts (sts/semeval/2014)"] == 2 * 3750
    assert sizes["sts (sts/sick2014)"] == 2 * 4927
    assert sizes["sts (sts/stsbenchmark)"] == 2 * 1379
    assert sizes["tatoeba (tatoeba/v1)"] == 2 * 7390
    assert sizes["masakhanews_xy (masakhanews)"] == sum(
        sizes[f"masakhanews (masakhanews/{name})"] for name in ("eng", "fra", "swa", "yor")
    )


def printed(file, suite, *columns):
    facts = {"protocol": {"suite": suite}, "data": [{"path": f"data/{file}"}]}
    return {(name, metric, part): value for name, (metric, part), value, _ in beside(facts, columns)}


def test_the_figures_of_okura_stand_beside_pairs_that_people_labelled():
    columns = [("AUC", f"level ≥ {level}") for level in (2, 3, 4, 5)]
    found = printed("okura.jsonl", "duplicates", *columns)
    assert len(found) == 12
    assert found["vector cosine", "AUC", "level ≥ 2"] == 0.94
    assert found["headline cosine", "AUC", "level ≥ 4"] == 0.778
    assert not printed("okura.jsonl", "day_duplicates", *columns)
    assert not printed("other.jsonl", "duplicates", *columns)


def test_the_figures_of_ast_stand_beside_posts_and_their_mean_is_the_printed_mrp():
    depths = (50, 100, 200, 500, 1000, 2000, 3000, 3300)
    found = printed("tweetlinking.jsonl.zst", "links", *((f"P@{depth}", "all") for depth in depths), ("mRP", "all"))
    for name in ("CNN", "GRU", "Bi-GRU", "AST"):
        mean = sum(found[name, f"P@{depth}", "all"] for depth in depths) / len(depths)
        assert found[name, "mRP", "all"] == pytest.approx(mean, abs=6e-5)
