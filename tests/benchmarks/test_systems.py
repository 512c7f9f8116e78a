"""The table of all systems: its minutes, and the cells of systems that do not apply or failed."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def benchmark():
    folder = Path(__file__).parents[2] / "benchmarks"
    spec = importlib.util.spec_from_file_location("systems", folder / "systems.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))  # it shares a function with quality.py
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def test_minutes_are_those_of_a_model_and_of_what_it_holds(benchmark, tmp_path):
    rows = {"ntdv": [(10, 3.0), (30, 6.0)], "de-en": [(20, 1.5)]}
    for name, steps in rows.items():
        (tmp_path / name).mkdir()
        lines = [json.dumps({"step": step, "seconds_per_step": seconds}) for step, seconds in steps]
        (tmp_path / name / "metrics.jsonl").write_text("\n".join([*lines, json.dumps({"eval/loss": 1.0})]) + "\n")
    # 10 steps of 3 s and 20 of 6 s, and 20 of 1.5 s.
    assert benchmark.minutes([str(tmp_path / "ntdv")]) == "2.5"
    assert benchmark.minutes([str(tmp_path / "ntdv"), str(tmp_path / "de-en")]) == "3.0"
    assert benchmark.minutes([str(tmp_path)]) == benchmark.minutes([]) == "-"


def test_a_system_has_a_blank_where_it_does_not_apply(benchmark):
    def row(encoder, column, status="ok"):
        metric, part = benchmark.SCORES[column]
        scores = [{"metric": metric, "part": part, "value": 0.25}, {"metric": metric, "part": "other", "value": 0.5}]
        return {"encoder": encoder, "benchmark": column, "status": status, "scores": scores}

    columns = [benchmark.BBC, benchmark.ACROSS]
    results = [row("both", column) for column in columns]
    results += [row("english", benchmark.BBC, "failed"), row("english", benchmark.ACROSS)]
    blank = {"both": set(), "english": {benchmark.ACROSS}}
    found = benchmark.table(results, columns, blank, {"both": ["1.0", "9"], "english": ["-", "8"]})
    assert found.splitlines()[2:] == ["| both | 0.250 | 0.250 | 1.0 | 9 |", "| english | failed | - | - | 8 |"]
