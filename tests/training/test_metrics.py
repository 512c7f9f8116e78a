"""Reports of a run: files over restarts, padding, lines for people, and FLOPs against the compiler's own count."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from json_lines import read_rows
from newsembed.formats.manifest import DataSet
from newsembed.learning.mixture import Draw
from newsembed.learning.objectives import Model, Objectives, objectives_of
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from newsembed.training import metrics
from newsembed.training.metrics import (
    PEAK_TERAFLOPS,
    Means,
    MetricWriter,
    Progress,
    Report,
    StepCost,
    count_tokens,
    peak_flops,
    step_flops,
)
from newsembed.training.train_state import plan_state

ENGLISH = DataSet("topics", "en")


def records(folder):
    return read_rows(folder / "metrics.jsonl")


def test_tokens_are_counted_in_the_texts_of_a_batch():
    batch = {"tokens": np.array([[2, 5, 3, 0], [2, 3, 0, 0]]), "topic_ids": np.zeros((2, 9)), "labels": np.ones((2, 9))}
    assert count_tokens(Draw(ENGLISH, batch)) == (5, 8)


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


def test_tensorboard_reads_them_at_once_and_forgets_the_steps_that_come_again(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def shown():
        events = EventAccumulator(str(tmp_path)).Reload()
        return {name: [(one.step, one.value) for one in events.Scalars(name)] for name in events.Tags()["scalars"]}

    with MetricWriter(str(tmp_path), 0) as writer:
        writer.write(1, {"loss/triplets/en": 4.0, "learning_rate": 0.5})
        writer.write(2, {"loss/triplets/en": 3.0})
        assert shown() == {"loss/triplets/en": [(1, 4.0), (2, 3.0)], "learning_rate": [(1, 0.5)]}
    (events,) = tmp_path.glob("events.out.tfevents*")
    events.rename(tmp_path / "events.out.tfevents.1")  # the name of the next file may have the same second
    with MetricWriter(str(tmp_path), 1) as writer:
        writer.write(2, {"loss/triplets/en": 2.0})
    assert shown() == {"loss/triplets/en": [(1, 4.0), (2, 2.0)], "learning_rate": [(1, 0.5)]}


def test_a_clock_that_jumps_back_for_years_stops_no_training(tmp_path, monkeypatch):
    with MetricWriter(str(tmp_path), 0) as writer:
        for step, now in enumerate((2.2e9, 3.1e7, *range(30)), 1):
            monkeypatch.setattr(metrics.time, "time", lambda now=now: now)
            writer.write(step, {"loss": 1.0})
    assert len(records(tmp_path)) == 32


def test_other_hosts_write_and_show_nothing(tmp_path, capsys):
    progress = Progress(9, 0, enabled=False)
    with MetricWriter(str(tmp_path), 0, enabled=False) as writer:
        Report(writer, progress, Means(), lambda _: None, 1).write(1)
        progress.say("a line")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_a_report_has_the_means_the_learning_rate_and_the_memory(tmp_path, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(metrics, "peak_device_bytes", lambda: 7.0)
    means = Means()
    means.add(StepCost(1, 2), ENGLISH, {"loss": 2.0, "accuracy": 0.5})
    progress = Progress(30, 10)
    with MetricWriter(str(tmp_path), 10) as writer:
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
        "step 14/30  loss/topics/en 2.0000  0:00:32 left",
        "step 14  eval/loss 1.0000",
    ]


def test_rates_are_over_the_seconds_of_all_timed_steps():
    means = Means(peak_flops=8.0)
    means.add(StepCost(30, 40, flops=100.0, seconds=1.5, wait_seconds=0.25), ENGLISH, {})
    means.add(StepCost(10, 40, flops=60.0, seconds=2.5), ENGLISH, {})
    means.add(StepCost(40, 40, flops=80.0))
    means.add(StepCost(40, 40, flops=80.0))
    assert means.take() == {
        "padding": 0.25,
        "skipped_steps": 2.0,
        "model_flops_per_step": 80.0,
        "tokens_per_second": 10.0,
        "seconds_per_step": 2.0,
        "input_wait": 0.0625,
        "mfu": 5.0,
    }
    assert list(means.take()) == []


CONFIG = EncoderConfig(
    1024, hidden_size=128, num_layers=2, num_heads=2, mlp_size=512, max_length=64, embedding_size=128, num_topics=64
)
ROWS, LENGTH = 16, 64
TOKENS = jax.ShapeDtypeStruct((ROWS, LENGTH), jnp.int32)
PAIR, ONE = jax.ShapeDtypeStruct((ROWS, 2), jnp.int32), jax.ShapeDtypeStruct((ROWS,), jnp.int32)
BATCHES = {
    "mlm": dict.fromkeys(("tokens", "segment_ids", "positions", "word_ids"), TOKENS),
    "triplets": {
        **{f"{name}_tokens": TOKENS for name in ("anchor", "positive", "negative")},
        **{f"{name}_doc_id": PAIR for name in ("anchor", "positive", "negative")},
        "augmentation": ONE,
        "translated": ONE,
    },
}
LENGTHS = {f"{name}tokens": LENGTH for name in ("", "anchor_", "positive_", "negative_")}


@pytest.mark.parametrize("task", BATCHES)
def test_flops_are_those_that_the_compiler_counts(task):
    partitioner, optimizer = Partitioner(), optax.sgd(0.1)
    mesh = partitioner.make_mesh(jax.devices()[:1])
    layout = plan_state(NewsEncoder(CONFIG), optimizer, partitioner, mesh)
    objectives = Objectives(Model(CONFIG), objectives_of([task]))

    def gradient(params, batch, key):
        return jax.grad(lambda params: objectives.loss(task, params, batch, key)[0])(params)

    lowered = partitioner.wrap(jax.jit(gradient).lower, mesh)(layout.abstract.params, BATCHES[task], jax.random.key(0))
    # Softmax, norms and the like come on top; at this width they are a few per cent of the products.
    counted = lowered.cost_analysis()["flops"]
    found = step_flops(objectives, task, layout.abstract.params, LENGTHS, ROWS)
    assert found == pytest.approx(counted, rel=0.15)


def test_the_peak_is_that_of_the_longest_name():
    assert peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    assert peak_flops("TPU v5p") == 459e12
    assert peak_flops("cpu") is None
    names = list(PEAK_TERAFLOPS)
    for number, name in enumerate(names):
        assert not name.startswith(tuple(names[:number])), f"{name} is never reached"
