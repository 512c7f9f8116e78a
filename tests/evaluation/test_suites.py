"""The run over encoders and benchmarks: failures stay in their cell, results are read as written, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarking import parse, write_events
from newsembed.errors import InputError
from newsembed.evaluation import command
from newsembed.evaluation.benchmark import Result, Results, Score
from newsembed.evaluation.benchmarks.classification import Clustering
from newsembed.evaluation.benchmarks.retrieval import SameEventRetrieval
from newsembed.evaluation.benchmarks.sts import Sts
from newsembed.evaluation.encoders import TfidfEncoder
from newsembed.evaluation.suites import read_results, run_suites, write_results
from refusals import refuses

STSB = Path(__file__).parents[2] / "../shared/data/benchmarks/sts/stsbenchmark/sts-test.csv"


@pytest.fixture
def events(tmp_path):
    return write_events(tmp_path / "events.jsonl")


class Broken:
    digest = "broken"

    def encode(self, documents):
        return np.full((len(documents), 2), np.nan)


def no_model():
    raise InputError("no model", path="work/model")


def run(events, tmp_path, **options):
    encoders = {"tfidf": TfidfEncoder, "nan": Broken, "absent": no_model}
    benchmarks = [
        SameEventRetrieval(events, "events"),
        Sts(str(tmp_path / "absent.tsv"), "sts"),
        Clustering(events, "clustering", seeds=2),
    ]
    return run_suites(encoders, benchmarks, **options)


def test_failures_stay_in_their_cell(events, tmp_path, capsys):
    seen = []
    results = run(events, tmp_path, on_result=seen.append)
    assert capsys.readouterr().err.startswith("tfidf on events: scoring\ntfidf on clustering: scoring\n")
    assert tuple(seen) == results.results
    status = {(r.encoder, r.benchmark): r.status for r in results.results}
    assert [key for key, value in status.items() if value == "ok"] == [("tfidf", "events"), ("tfidf", "clustering")]
    assert len(status) == 9
    assert results.score("tfidf", "events", "mAP") == 1.0
    errors = {(r.encoder, r.benchmark): r.error for r in results.failed}
    assert "NaN" in errors["nan", "events"]
    assert "no model" in errors["absent", "clustering"]
    assert "cannot be read" in errors["tfidf", "sts"]
    with pytest.raises(KeyError):
        results.score("nan", "events", "mAP")


def test_results_come_back_as_written(events, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["newsembed", "evaluate", "--cache", "c"])
    results = run(events, tmp_path)
    write_results(results, str(tmp_path / "out"))
    assert read_results(str(tmp_path / "out")) == results
    manifest = json.loads((tmp_path / "out/results.json").read_text())
    assert manifest["command"] == ["newsembed", "evaluate", "--cache", "c"]
    assert manifest["versions"]["scikit-learn"]
    assert manifest["benchmarks"]["clustering"]["protocol"]["seeds"] == [0, 1]
    assert len(manifest["benchmarks"]["events"]["data"][0]["sha256"]) == 64
    assert manifest["benchmarks"]["sts"]["data"][0]["sha256"] is None
    assert manifest["encoders"]["tfidf"]["digest"].startswith("tfidf")
    refuses("results.json: cannot be read", read_results, str(tmp_path))


def test_all_of_a_score_comes_back_as_written(tmp_path):
    full = Score("AUC", 0.5, "de", 3, 0.25, 2, 0.25, 0.75, folds=(0.25, 0.75), draws=(0.5, 0.125, 0.5))
    rows = (Result("a", "x", "ok", (full, Score("mAP", 1.0)), "", 9, 7, 0.5, 0.25, from_cache=True),)
    results = Results((*rows, Result("b", "x", "failed", error="no model")), {"version": 3})
    write_results(results, str(tmp_path))
    assert read_results(str(tmp_path)) == results
    first, plain = json.loads((tmp_path / "results.json").read_text())["results"][0]["scores"]
    assert (first["low"], first["folds"], len(first["draws"])) == (0.25, [0.25, 0.75], 3)
    assert set(plain) == {"metric", "value", "part", "count", "std", "runs"}


def test_names_must_differ(events):
    refuses("share a name", run_suites, {"t": TfidfEncoder}, [Sts(events), Sts(events)])
    refuses("nothing to run", run_suites, {}, [Sts(events)])


def test_command(events, tmp_path, capsys):
    output = str(tmp_path / "out")
    basis = ["--encoder", "words=tfidf", "--suite", "events", "clustering", "--data", events, "--output", output]
    basis += ["--seeds", "2"]
    assert command.run(parse(*basis), {}) == 0
    assert "words" in capsys.readouterr().out
    assert read_results(output).score("words", "events", "hit@1") == 1.0
    made = []
    factories = {"model": lambda rest: made.append(rest) or Broken()}
    more = ["--encoder", "m=model:some/dir@100", "--cache", str(tmp_path / "cache")]
    assert command.run(parse(*basis, *more), factories) == 1
    assert made == ["some/dir@100"]
    assert len(read_results(output).failed) == 2


def test_a_broken_function_fails_its_own_row(events, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "def good(texts): return [[len(t), 1.0] for t in texts]\ndef short(texts): return [[1.0]]\n"
    )
    monkeypatch.chdir(tmp_path)
    output = str(tmp_path / "out")
    basis = ("--suite", "events", "--data", events, "--output", output, "--cache", str(tmp_path / "cache"))
    assert command.run(parse("--encoder", "good=mine.py:good", "--encoder", "short=mine.py:short", *basis), {}) == 1
    good, short = read_results(output).results
    shown = capsys.readouterr().out.splitlines()
    failed = next(line for line in shown if line.startswith("short on events failed: "))
    assert "returned an array of shape (1, 1) for 9 texts" in failed  # not wrapped at the width of the table
    assert shown[-1] == f"tables: {output}/results.md   all numbers: {output}/results.json"
    assert good.status == "ok"
    assert good.scores
    assert "returned an array of shape (1, 1) for 9 texts" in short.error
    assert not short.scores
    assert "| short | failed |" in (tmp_path / "out/results.md").read_text()
    command.run(parse("--encoder", "good=mine.py:good", *basis), {})
    assert read_results(output).results[0].from_cache
