"""FLOPs against the compiler's own count, peaks of devices, and what the records say of speed."""

import jax
import jax.numpy as jnp
import optax
import pytest
from newsembed.formats.manifest import DataSet
from newsembed.learning.objectives import Model, Objectives, objectives_of
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from newsembed.training.costs import PEAK_FLOPS, peak_flops, step_flops
from newsembed.training.metrics import Means, StepCost
from newsembed.training.train_state import plan_state

CONFIG = EncoderConfig(
    1024,
    hidden_size=128,
    num_layers=2,
    num_heads=2,
    mlp_size=512,
    max_length=64,
    embedding_size=128,
    num_topics=64,
    dropout_rate=0.0,
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
    assert step_flops(task, objectives.of_task[task], CONFIG, LENGTHS, ROWS) == pytest.approx(counted, rel=0.15)


def test_flops_of_the_body_are_six_times_parameters_times_tokens():
    short = EncoderConfig(
        5, hidden_size=64, num_layers=3, num_heads=1, mlp_size=256, max_length=1, embedding_size=1, num_topics=1
    )
    body = 3 * (4 * 64 * 64 + 2 * 64 * 256)  # parameters in products
    heads = 3 * 10 * 2 * 64 * 1
    attention = 3 * 10 * 3 * 4 * 64
    flops = step_flops("topics", objectives_of(["topics"])["topics"], short, {"tokens": 1, "topic_ids": 1}, 10)
    assert flops == 6 * body * 10 + heads + attention


def test_the_peak_is_that_of_the_longest_name():
    assert peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    assert peak_flops("NVIDIA H100 PCIe") == 756e12
    assert peak_flops("NVIDIA L40S") == 362e12
    assert peak_flops("TPU v5 lite") == 197e12
    assert peak_flops("TPU v5p") == 459e12
    assert peak_flops("cpu") is None
    for number, (name, _) in enumerate(PEAK_FLOPS):
        assert not any(name.startswith(earlier) for earlier, _ in PEAK_FLOPS[:number]), f"{name} is never reached"


def test_rates_leave_out_what_was_not_timed():
    means = Means(peak_flops=100.0)
    english = DataSet("topics", "en")
    means.add(english, {"loss": 1.0, "gradient_norm": 4.0}, StepCost(5, 10, flops=7.0))
    means.add(english, {"loss": 3.0, "gradient_norm": 2.0}, StepCost(8, 10, flops=10.0, seconds=0.5, wait_seconds=0.1))
    means.add_skipped(StepCost(8, 10, flops=10.0, seconds=0.5, wait_seconds=0.0))
    record = means.take()
    assert record == pytest.approx(
        {
            "loss/topics/en": 2.0,
            "gradient_norm": 3.0,
            "padding": 0.3,
            "skipped_steps": 1.0,
            "model_flops_per_step": 9.0,
            "tokens_per_second": 16.0,
            "seconds_per_step": 0.5,
            "input_wait": 0.1,
            "mfu": 0.2,
        }
    )
    assert means.take() == {}
    unknown = Means()
    unknown.add(english, {"loss": 1.0}, StepCost(5, 10, flops=7.0, seconds=1.0))
    assert "mfu" not in unknown.take()
