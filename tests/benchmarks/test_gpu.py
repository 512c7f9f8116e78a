"""The table of an accelerator: batches that do not fit, rows that fail, and the time that is left."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def benchmark(script, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--minutes=3"])
    return script("gpu")


def answering(benchmark, monkeypatch, answer):
    """Runs no process; returns the cases that one would have been started for."""
    cases = []

    def run(command, **options):
        cases.append(benchmark.Case(**json.loads(command[-1])))
        code, out, error = answer(cases[-1], options)
        return subprocess.CompletedProcess(command, code, out, error)

    monkeypatch.setattr(benchmark.subprocess, "run", run)
    return cases


def test_a_batch_that_does_not_fit_is_halved(benchmark, monkeypatch, capsys):
    def answer(case, options):
        if case.batch > 512:
            return 1, "", "jax: RESOURCE_EXHAUSTED: out of memory"
        return 0, f"noise\n{benchmark.MARK}{json.dumps(['1 x GPU', '9.0'])}\n", ""

    cases = answering(benchmark, monkeypatch, answer)
    assert benchmark.show(benchmark.CASES["gpu"][-1], 60)
    assert [(case.batch, case.chunk) for case in cases] == [(2_048, 192), (1_024, 192), (512, 192)]
    assert "512 triplets x 512, 192 texts at a time | 1 x GPU | 9.0 |" in capsys.readouterr().out


def test_the_texts_at_a_time_are_at_most_those_of_the_batch(benchmark, monkeypatch):
    case = benchmark.Case("triplets", 2, 32, 2, 64, 8, 16, chunk=24)
    cases = answering(benchmark, monkeypatch, lambda case, options: (1, "", "RESOURCE_EXHAUSTED"))
    assert not benchmark.show(case, 60)
    assert [(case.batch, case.chunk) for case in cases] == [(8, 24), (4, 12), (2, 6), (1, 3)]


def test_another_error_is_shown_and_not_repeated(benchmark, monkeypatch, capsys):
    cases = answering(benchmark, monkeypatch, lambda case, options: (1, "", "Traceback\nValueError: no kernel\n"))
    assert not benchmark.show(benchmark.TEXTS["gpu"][0], 60)
    assert len(cases) == 1
    found = capsys.readouterr()
    assert "encode 1024 x 128 | failed: ValueError: no kernel |" in found.out
    assert "Traceback" in found.err


def test_a_row_has_the_seconds_that_are_left_and_most_of_the_memory(benchmark, monkeypatch, capsys):
    def answer(case, options):
        assert options["env"]["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.92"
        raise subprocess.TimeoutExpired("gpu.py", options["timeout"])

    answering(benchmark, monkeypatch, answer)
    assert not benchmark.show(benchmark.TEXTS["tiny"][0], 7.4)
    assert "not finished in the 7 s that were left" in capsys.readouterr().out
