"""Several devices compute what one does; run by `test_sharding.py` in a process with eight."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from newsembed.formats.arrays import Teacher, write_teacher
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.denoising import Denoising
from newsembed.learning.objectives.distillation import Distillation
from newsembed.learning.objectives.linking import Linking
from newsembed.learning.objectives.translation import BilingualTranslation, Translation
from newsembed.learning.partitioning import Partitioner, shard_batch
from newsembed.models.encoders import AutoencoderConfig, BilingualConfig, StarConfig, TranslatorConfig
from newsembed.models.losses import mean_cross_entropy, terms_of_logits
from newsembed.models.softmax import softmax_terms
from newsembed.training.train_state import make_train_step, plan_state
from toy_corpus import VOCAB_SIZE, first_batch, toy_config, toy_objectives, write_corpus

OPTIMIZER = optax.sgd(0.1)  # Adam would divide rounding errors by their own size


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("sharding") / "data")


def one_step(objectives, task, batch, devices, model_parallel=1):
    """The parameters after a step with the metrics, and how the table is divided."""
    partitioner = Partitioner(model_parallel=model_parallel)
    mesh = partitioner.make_mesh(jax.devices()[:devices])
    layout = plan_state(objectives.model.module, OPTIMIZER, partitioner, mesh)
    step = make_train_step(task, objectives, OPTIMIZER, layout)
    state, metrics = step(layout.create(jax.random.key(0)), shard_batch(batch, mesh), jax.random.key(1))
    table = state.params.get("token_embedding")
    shape = None if table is None else table.sharding.shard_shape(table.shape)
    return jax.tree.map(np.asarray, (state.params, metrics)), shape


def assert_close(alone, together):
    """Parameters after a step of plain gradient descent, so gradients, and metrics.

    Sums over devices are rounded in another order, by as much as the terms are large, and on each processor
    differently.
    """
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5 * max(1, np.abs(left).max())),
        alone,
        together,
    )


@functools.cache
def alone(task, corpus, dropout, options):
    objectives = toy_objectives(toy_config(dropout_rate=dropout), task, **dict(options))
    return one_step(objectives, task, first_batch(corpus, task, 16), 1)[0]


OPTIONS = {"mlm": {}, "triplets": {"symmetric": True, "mlm_weight": 0.1}, "topics": {}}
CHUNKS = {
    "mlm": {"vocabulary_chunk": 10, "gradient_chunk": 8},
    "triplets": {"vocabulary_chunk": 13, "gradient_chunk": 24},
}


@pytest.mark.parametrize(
    ("task", "model_parallel", "dropout", "chunked"),
    [
        pytest.param("mlm", 2, 0.1, False, marks=pytest.mark.long),
        *(("triplets", 1, 0.1, False), ("topics", 1, 0.0, False)),
        *(("mlm", 2, 0.0, True), ("triplets", 2, 0.0, True)),
    ],
)
def test_a_step_on_8_devices_equals_one_device(corpus, task, model_parallel, dropout, chunked):
    options = OPTIONS[task] | (CHUNKS[task] if chunked else {})
    objectives = toy_objectives(toy_config(dropout_rate=dropout), task, **options)
    together, table = one_step(objectives, task, first_batch(corpus, task, 16), 8, model_parallel)
    assert_close(alone(task, corpus, dropout, tuple(OPTIONS[task].items())), together)
    assert table == (VOCAB_SIZE // model_parallel, 16)


@pytest.mark.long
def test_layers_in_a_loop_on_4_x_2_devices_equal_layers_one_by_one_on_one(corpus):
    shapes = ({"num_layers": 3}, {"num_layers": 3, "scan_layers": True, "remat": "full"})
    first, second = (toy_objectives(toy_config(**shape), "triplets", mlm_weight=0.1) for shape in shapes)
    batch = first_batch(corpus, "triplets", 8)
    assert_close(one_step(first, "triplets", batch, 1)[0], one_step(second, "triplets", batch, 8, 2)[0])


def teacher_of(batch, size, path):
    """Every device compares its texts with all keys."""
    rng = np.random.default_rng(0)
    ids = np.unique(np.concatenate([batch["anchor_doc_id"], batch["positive_doc_id"]]), axis=0)
    keys = rng.normal(size=(len(ids), size))
    keys = (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)
    neighbors = (np.arange(len(ids))[:, None] + [1, 3]) % len(ids)
    days, shares = rng.integers(0, 5, len(ids)).astype(np.int32), np.full(neighbors.shape, 0.3, np.float32)
    languages, lengths = rng.integers(0, [[2], [2_000]], (2, len(ids))).astype(np.int32)
    tables = ids.astype(np.int32), keys, days, languages, lengths, neighbors.astype(np.int32), shares
    write_teacher(path, Teacher(*tables))
    return path


def translation_batch():
    """Negatives come from the whole batch, on whichever device they are."""
    rng = np.random.default_rng(0)
    source, target = (rng.integers(5, VOCAB_SIZE, (16, 6)).astype(np.int32) for _ in range(2))
    languages = np.arange(16, dtype=np.int32) % 2
    return {"source_tokens": source, "target_tokens": target, "target_language": languages}


def linking_batch():
    """Triplets are mined over the global batch."""
    rng = np.random.default_rng(0)
    batch = {f"{role}_tokens": rng.integers(5, VOCAB_SIZE, (16, 8)).astype(np.int32) for role in ("anchor", "positive")}
    ids = np.stack([np.zeros(16), np.arange(16) % 7], axis=1).astype(np.int32)
    return batch | {"anchor_doc_id": ids, "positive_doc_id": ids, "day": np.zeros(16, np.int32)}


SYSTEMS = {
    "T-MDE": (
        TranslatorConfig(vocab_size=VOCAB_SIZE, hidden_size=16, num_layers=1, num_heads=2, mlp_size=32),
        Translation(distance_weight=0.5),
    ),
    "NTDV": (
        BilingualConfig(VOCAB_SIZE, token_size=8, hidden_size=8, vector_size=8, num_heads=2),
        BilingualTranslation(margin=2.0, negatives=5),
    ),
    "AST": (StarConfig(VOCAB_SIZE, hidden_size=8, num_heads=2), Linking()),
    "Okura": (AutoencoderConfig(VOCAB_SIZE, embedding_size=8), Denoising(alpha=5.0, vocabulary_chunk=20)),
    "lift": (toy_config(dropout_rate=0.0), None),
}


# Those that take longest to compile are for `make attack`.
@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=[pytest.mark.long] if name in ("T-MDE", "NTDV", "AST") else []) for name in SYSTEMS],
)
def test_a_step_of_every_system_on_8_devices_equals_one_device(corpus, tmp_path, system):
    config, objective = SYSTEMS[system]
    if objective is None or isinstance(objective, Denoising):
        task, batch = "triplets", first_batch(corpus, "triplets", 16)
    elif isinstance(objective, Linking):
        task, batch = "pairs", linking_batch()
    else:
        task, batch = "translation", translation_batch()
    if objective is None:
        objective = Distillation(teacher=teacher_of(batch, config.embedding_size, str(tmp_path / "teacher.npz")))
    objectives = Objectives(Model(config), {task: objective})
    model_parallel = 1 if task == "pairs" else 2
    found = [one_step(objectives, task, batch, *mesh)[0] for mesh in ((1, 1), (8, model_parallel))]
    assert_close(*found)
    assert found[0][1].get("triplets", 1) > 0
    assert found[0][1].get("known", 1) == 1


def test_the_softmax_in_chunks_keeps_a_sharded_table_where_it_is():
    """Loss and gradients of one device; and the compiled program gathers neither the table nor the logits."""
    rows, pieces, width = 16, 52, 8
    keys = jax.random.split(jax.random.key(3), 4)
    states, table = jax.random.normal(keys[0], (rows, width)), jax.random.normal(keys[1], (pieces, width))
    bias, targets = jax.random.normal(keys[2], (pieces,)), jax.random.randint(keys[3], (rows,), 0, pieces)
    weights = jnp.arange(rows) % 3 / 2

    def chunked(states, table, bias):
        return mean_cross_entropy(softmax_terms(states, table, bias, targets, chunk=7), weights).loss

    def plain(states, table, bias):
        return mean_cross_entropy(terms_of_logits(states @ table.T + bias, targets), weights).loss

    partitioner = Partitioner(model_parallel=2)
    mesh = partitioner.make_mesh(jax.devices()[:8])
    places = [NamedSharding(mesh, PartitionSpec(axis)) for axis in ("data", "model", "model")]
    step = jax.jit(jax.value_and_grad(chunked, argnums=(0, 1, 2)), in_shardings=places)
    compiled = partitioner.wrap(step.lower, mesh)(states, table, bias).compile()
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6),
        compiled(states, table, bias),
        jax.value_and_grad(plain, argnums=(0, 1, 2))(states, table, bias),
    )
    assert "all-gather" not in compiled.as_text()
