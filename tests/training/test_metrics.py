"""Reports of a run: the file over restarts, what counts as padding, and the lines for people."""

import io
import json
import sys

import numpy as np
import pytest
import tensorboardX
from newsembed.formats.manifest import DataSet
from newsembed.learning.mixture import Draw
from newsembed.training import metrics
from newsembed.training.metrics import Means, MetricWriter, Progress, Report, StepCost, count_tokens

ENGLISH = DataSet("topics", "en")


def records(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_tokens_are_counted_in_the_texts_of_a_batch():
    batch = {"tokens": np.array([[2, 5, 3, 0], [2, 3, 0, 0]]), "topic_ids": np.zeros((2, 9)), "labels": np.ones((2, 9))}
    assert count_tokens(Draw(ENGLISH, batch)) == (5, 8)


def test_a_cost_needs_neither_flops_nor_a_time():
    means = Means(peak_flops=1.0)
    means.add(ENGLISH, {}, StepCost(3, 4))
    assert means.take() == {"padding": 0.25, "model_flops_per_step": 0.0}


def test_a_run_that_resumes_replaces_the_records_after_its_first_step(tmp_path):
    with MetricWriter(str(tmp_path), 0) as writer:
        for step in (1, 2, 3):
            writer.write(step, {"loss": 1.0 * step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1, "lo')  # a kill cut it off
    with MetricWriter(str(tmp_path), 2) as writer:
        assert records(tmp_path) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]
        writer.write(3, {"loss": 9.0})
        assert records(tmp_path)[2:] == [{"step": 3, "loss": 9.0}], "a record is on disk at once"
    assert not (tmp_path / "metrics.jsonl.tmp").exists()


def test_tensorboard_gets_every_value_and_drops_those_after_the_first_step(tmp_path, monkeypatch):
    calls = []

    class Events:
        def __init__(self, folder, *, purge_step, flush_secs):
            calls.append((folder, purge_step, flush_secs))

        def add_scalar(self, name, value, step):
            calls.append((name, value, step))

        def close(self):
            calls.append("closed")

    monkeypatch.setattr(tensorboardX, "SummaryWriter", Events)
    with MetricWriter(str(tmp_path), 4) as writer:
        writer.write(5, {"loss": 3.0, "learning_rate": 0.5})
    assert calls == [(str(tmp_path), 5, 30), ("loss", 3.0, 5), ("learning_rate", 0.5, 5), "closed"]


def test_other_hosts_write_and_show_nothing(tmp_path, capsys):
    with MetricWriter(str(tmp_path), 0, enabled=False) as writer, Progress(9, 0, enabled=False).shown() as progress:
        Report(writer, progress, Means(), lambda _: None, 1).write(1)
        progress.say("a line")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_a_report_has_the_means_the_learning_rate_and_the_memory(tmp_path, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(metrics, "peak_device_bytes", lambda: 7.0)
    means = Means()
    means.add(ENGLISH, {"loss": 2.0, "accuracy": 0.5}, StepCost(1, 2))
    with MetricWriter(str(tmp_path), 10) as writer, Progress(30, 10).shown() as progress:
        now[0] = 108.0
        Report(writer, progress, means, lambda step: step / 100, 4).write(14)
        Report(writer, progress, means, lambda _: None, 4).evaluated(14, {"eval/loss": 1.0})
    assert records(tmp_path) == [
        {
            "step": 14,
            "accuracy/topics/en": 0.5,
            "loss/topics/en": 2.0,
            "padding": 0.5,
            "model_flops_per_step": 0.0,
            "learning_rate": 0.14,
            "peak_device_bytes": 7.0,
        },
        {"step": 14, "eval/loss": 1.0},
    ]
    # 4 steps took 8 seconds, 16 are left.
    assert capsys.readouterr().err.splitlines() == [
        "step 14/30  loss/topics/en 2.0000  32 s left",
        "step 14  eval/loss 1.0000",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("enabled", [True, False])
def test_a_terminal_gets_a_bar_on_the_first_host_only(monkeypatch, enabled):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress(9, 2, enabled=enabled).shown() as progress:
        progress.advance(5)
        progress.record(5, {"loss/topics": 1.0, "padding": 0.5})
        progress.say("a line")
    shown = terminal.getvalue()
    if enabled:
        assert "5/9" in shown
        assert "loss/topics 1.0000" in shown
        assert "a line\n" in shown
        assert "padding" not in shown
    else:
        assert shown == ""


def test_rates_are_over_the_seconds_of_all_timed_steps():
    means = Means(peak_flops=8.0)
    means.add(ENGLISH, {}, StepCost(30, 40, flops=100.0, seconds=1.5, wait_seconds=0.25))
    means.add(ENGLISH, {}, StepCost(10, 40, flops=60.0, seconds=2.5))
    means.add_skipped(StepCost(40, 40, flops=80.0))
    means.add_skipped(StepCost(40, 40, flops=80.0))
    assert means.take() == {
        "padding": 0.25,
        "skipped_steps": 2.0,
        "model_flops_per_step": 80.0,
        "tokens_per_second": 10.0,
        "seconds_per_step": 2.0,
        "input_wait": 0.0625,
        "mfu": 5.0,
    }
    means.add(ENGLISH, {}, StepCost(3, 4, seconds=0.0))
    assert means.take() == {"padding": 0.25, "model_flops_per_step": 0.0}
    assert list(means.take()) == []


def test_the_time_left_is_that_of_the_steps_of_this_run(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    progress = Progress(30, 10)
    now[0] = 108.0
    progress.record(11, {})  # one step in 8 seconds
    now[0] = 111.0
    progress.record(13, {})  # two more in 3
    assert capsys.readouterr().err.splitlines() == ["step 11/30    152 s left", "step 13/30    26 s left"]
    Progress(30, 10).record(10, {})  # no step yet
    assert capsys.readouterr().err == "step 10/30    0 s left\n"


def test_the_time_left_does_not_count_compilation(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    progress = Progress(24, 0)
    now[0] = 60.0  # most of it was spent on compiling
    progress.record(4, {"seconds_per_step": 0.5})
    now[0] = 68.0  # with an evaluation
    progress.record(8, {"seconds_per_step": 0.5})
    now[0] = 70.0
    progress.record(12, {"seconds_per_step": 0.5})
    lefts = [line.split("    ")[1] for line in capsys.readouterr().err.splitlines()]
    assert lefts == ["10 s left", "32 s left", "15 s left"]


def test_the_bar_of_a_resumed_run_starts_where_it_does_and_lines_are_plain(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress(9, 2).shown() as progress:
        progress.say("took 5 s")
    assert "2/9" in terminal.getvalue()
    assert "took 5 s\n" in terminal.getvalue()


@pytest.mark.parametrize(
    ("stats", "expected"), [([{"peak_bytes_in_use": 3}, {}, None, {"peak_bytes_in_use": 5}], 5.0), ([None], None)]
)
def test_the_memory_of_a_run_is_that_of_its_fullest_device(monkeypatch, stats, expected):
    class Device:
        def __init__(self, found):
            self.memory_stats = lambda: found

    monkeypatch.setattr(metrics.jax, "local_devices", lambda: [Device(found) for found in stats])
    assert metrics.peak_device_bytes() == expected
