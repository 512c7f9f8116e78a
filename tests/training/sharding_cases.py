"""Several devices compute what one does; run by `test_sharding.py` in a process with eight."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from newsembed.errors import InputError
from newsembed.formats.teacher import Teacher, write_teacher
from newsembed.learning.objectives import Model as LossModel
from newsembed.learning.objectives import Objectives
from newsembed.learning.objectives.bilingual import BilingualTranslation
from newsembed.learning.objectives.denoising import Denoising
from newsembed.learning.objectives.distillation import Distillation
from newsembed.learning.objectives.linking import Linking
from newsembed.learning.objectives.translation import Translation
from newsembed.learning.partitioning import Partitioner, check_batch_size, shard_batch
from newsembed.models.encoders import (
    AutoencoderConfig,
    BilingualConfig,
    ConvolutionConfig,
    LaserConfig,
    RecurrentConfig,
    StarConfig,
    TranslatorConfig,
)
from newsembed.models.encoders.news import NewsEncoder
from newsembed.models.losses import DocumentIds, info_nce, masked_language_model, mean_cross_entropy
from newsembed.models.softmax import softmax_terms
from newsembed.training.train_state import plan_state
from newsembed.training.train_step import make_train_step
from toy_corpus import VOCAB_SIZE, first_batch, toy_config, toy_objectives, write_corpus

MODEL = NewsEncoder(toy_config(dropout_rate=0.1))
OPTIMIZER = optax.sgd(0.1)  # Adam would divide rounding errors by their own size


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("sharding") / "data")


def one_step(task, corpus, devices, model_parallel, dropout=0.1, rows=8, shape=types.MappingProxyType({}), **options):
    partitioner = Partitioner(model_parallel=model_parallel)
    mesh = partitioner.make_mesh(jax.devices()[:devices])
    model = NewsEncoder(dataclasses.replace(MODEL.config, dropout_rate=dropout, **shape))
    objectives = toy_objectives(model.config, task, **options)
    layout = plan_state(model, OPTIMIZER, partitioner, mesh, objectives.initial_parameters())
    batch = first_batch(corpus, task, rows)
    step = make_train_step(task, objectives, OPTIMIZER, layout.abstract, partitioner, mesh)
    state, metrics = step(layout.create(jax.random.key(0)), shard_batch(batch, mesh), jax.random.key(1))
    return jax.tree.map(np.asarray, (state.params, metrics)), state


@functools.cache
def alone_without_dropout(task, corpus, options):
    return one_step(task, corpus, 1, 1, 0.0, 16, **dict(options))[0]


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


@pytest.mark.parametrize("task", ["mlm", "triplets"])
def test_a_step_on_4_x_2_devices_equals_one_device(corpus, task):
    alone, _ = one_step(task, corpus, 1, 1)
    together, state = one_step(task, corpus, 8, 2)
    assert_close(alone, together)
    table = state.params["token_embedding"]
    assert table.sharding.shard_shape(table.shape) == (VOCAB_SIZE // 2, 16)


@pytest.mark.parametrize(("devices", "model_parallel", "chunk"), [(8, 1, 0), (8, 2, 0), (8, 2, 20)])
def test_a_denoising_step_on_several_devices_equals_one_device(corpus, devices, model_parallel, chunk):
    config = AutoencoderConfig(vocab_size=VOCAB_SIZE, embedding_size=8)
    objectives = Objectives(LossModel(config), {"triplets": Denoising(alpha=5.0, vocabulary_chunk=chunk)})

    def after_a_step(devices, model_parallel):
        partitioner = Partitioner(model_parallel=model_parallel)
        mesh = partitioner.make_mesh(jax.devices()[:devices])
        layout = plan_state(config.module(), OPTIMIZER, partitioner, mesh)
        step = make_train_step("triplets", objectives, OPTIMIZER, layout.abstract, partitioner, mesh)
        batch = shard_batch(first_batch(corpus, "triplets", 8), mesh)
        state, metrics = step(layout.create(jax.random.key(0)), batch, jax.random.key(1))
        return jax.tree.map(np.asarray, (state.params, metrics))

    assert_close(after_a_step(1, 1), after_a_step(devices, model_parallel))


OPTIONS = {
    "mlm": {},
    "triplets": {"learn_temperature": True, "symmetric": True, "mlm_weight": 0.1},
    "topics": {},
}
CHUNKS = {
    "mlm": {"vocabulary_chunk": 10, "gradient_chunk": 8},
    "triplets": {"vocabulary_chunk": 13, "gradient_chunk": 24},
    "topics": {"gradient_chunk": 8},
}


@pytest.mark.parametrize("task", list(OPTIONS))
def test_a_step_on_8_x_1_devices_equals_one_device(corpus, task):
    together, _ = one_step(task, corpus, 8, 1, 0.0, 16, **OPTIONS[task])
    assert_close(alone_without_dropout(task, corpus, tuple(OPTIONS[task].items())), together)


def test_layers_in_a_loop_on_4_x_2_devices_equal_layers_one_by_one_on_one(corpus):
    alone, _ = one_step("triplets", corpus, 1, 1, shape={"num_layers": 3}, mlm_weight=0.1)
    together, _ = one_step(
        "triplets", corpus, 8, 2, shape={"num_layers": 3, "scan_layers": True, "remat": "full"}, mlm_weight=0.1
    )
    assert_close(alone, together)


@pytest.mark.parametrize("task", list(OPTIONS))
def test_a_step_in_chunks_on_4_x_2_devices_equals_the_whole_on_one(corpus, task):
    together, state = one_step(task, corpus, 8, 2, 0.0, 16, **OPTIONS[task], **CHUNKS[task])
    assert_close(alone_without_dropout(task, corpus, tuple(OPTIONS[task].items())), together)
    table = state.params["token_embedding"]
    assert table.sharding.shard_shape(table.shape) == (VOCAB_SIZE // 2, 16)


@pytest.mark.parametrize(("devices", "model_parallel"), [(8, 1), (8, 2)])
def test_the_softmax_in_chunks_keeps_a_sharded_table_where_it_is(devices, model_parallel):
    """Loss and gradients of one device; and the compiled program gathers neither the table nor the logits."""
    rows, pieces, width = 16, 52, 8
    keys = jax.random.split(jax.random.key(3), 4)
    states, table = jax.random.normal(keys[0], (rows, width)), jax.random.normal(keys[1], (pieces, width))
    bias, targets = jax.random.normal(keys[2], (pieces,)), jax.random.randint(keys[3], (rows,), 0, pieces)
    weights = jnp.arange(rows) % 3 / 2

    def chunked(states, table, bias):
        return mean_cross_entropy(softmax_terms(states, table, bias, targets, chunk=7), weights).loss

    def plain(states, table, bias):
        return masked_language_model(states @ table.T + bias, targets, weights).loss

    partitioner = Partitioner(model_parallel=model_parallel)
    mesh = partitioner.make_mesh(jax.devices()[:devices])
    places = [NamedSharding(mesh, PartitionSpec(axis)) for axis in ("data", "model", "model")]
    step = jax.jit(jax.value_and_grad(chunked, argnums=(0, 1, 2)), in_shardings=places)
    lowered = partitioner.wrap(step.lower, mesh)(states, table, bias)
    expected = jax.value_and_grad(plain, argnums=(0, 1, 2))(states, table, bias)
    compiled = lowered.compile()
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6),
        compiled(states, table, bias),
        expected,
    )
    assert "all-gather" not in compiled.as_text()


def test_info_nce_over_the_global_batch_equals_its_shard_map_twin():
    keys = jax.random.split(jax.random.key(0), 3)
    towers = jnp.stack([jax.random.normal(key, (16, 8)) for key in keys])
    towers = towers / jnp.linalg.norm(towers, axis=-1, keepdims=True)
    names = jax.random.randint(jax.random.key(1), (3, 16, 2), 0, 4)
    mesh = Partitioner().make_mesh(jax.devices()[:8])

    def local(towers, names):
        """Each device gathers the others' candidates itself and sums over its own anchors."""
        gather = functools.partial(jax.lax.all_gather, axis_name="data", axis=1, tiled=True)
        _, positive, negative = gather(towers)
        _, all_positive, all_negative = gather(names)
        anchor, own_positive, _ = towers
        row = jax.lax.axis_index("data") * 2 + jnp.arange(2)

        def same(left, right):
            return (left[:, None] == right[None]).all(-1)

        mask = (same(names[0], all_positive) | same(names[1], all_positive)) & (row[:, None] != jnp.arange(16))
        masks = jnp.concatenate([mask, same(names[0], all_negative) | same(names[1], all_negative)], axis=1)
        scores = jnp.concatenate([anchor @ positive.T, anchor @ negative.T], axis=1) / 0.05
        own = (anchor * own_positive).sum(-1) / 0.05
        return jax.lax.psum((jax.nn.logsumexp(jnp.where(masks, -jnp.inf, scores), axis=1) - own).sum() / 16, "data")

    spec = PartitionSpec(None, "data")
    twin = jax.shard_map(local, mesh=mesh, in_specs=(spec, spec), out_specs=PartitionSpec())
    whole = jax.jit(jax.value_and_grad(lambda towers: info_nce(*towers, doc_ids=DocumentIds(*names)).loss))
    (expected, expected_gradient), (loss, gradient) = (
        whole(towers),
        jax.jit(jax.value_and_grad(lambda towers: twin(towers, names)))(towers),
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-6)


def test_no_gradient_flows_into_translated_documents(corpus):
    objectives = toy_objectives(MODEL.config, "triplets")
    batch = first_batch(corpus, "triplets", 8)
    marker = VOCAB_SIZE - 1  # a piece that only the positives contain
    for name in ("anchor_tokens", "positive_tokens", "negative_tokens"):
        batch[name] = np.where(batch[name] == marker, marker - 1, batch[name])
    batch["positive_tokens"][:, 1] = marker
    gradient = jax.jit(jax.grad(lambda params, batch: objectives.loss("triplets", params, batch, jax.random.key(0))[0]))
    partitioner = Partitioner()
    params = (
        plan_state(MODEL, OPTIMIZER, partitioner, partitioner.make_mesh(jax.devices()[:1]))
        .create(jax.random.key(0))
        .params
    )
    norms = [
        np.abs(gradient(params, batch | {"translated": np.full(8, flag, np.int32)})["token_embedding"][marker]).max()
        for flag in (0, 1)
    ]
    assert norms[0] > 0
    assert norms[1] == 0


def test_a_batch_that_does_not_divide_the_mesh_is_named():
    with pytest.raises(InputError, match="BATCH_SIZE: got 12, expected a multiple of 8") as raised:
        check_batch_size(12, Partitioner().make_mesh(jax.devices()[:8]))
    assert raised.value.remedy == "Set BATCH_SIZE = 16."
    with pytest.raises(InputError, match="got 3, expected a divisor of the 8 devices"):
        Partitioner(model_parallel=3).make_mesh(jax.devices()[:8])


TRANSLATIONS = {
    "T-MDE": (
        TranslatorConfig(vocab_size=VOCAB_SIZE, hidden_size=16, num_layers=1, num_heads=2, mlp_size=32),
        Translation(distance_weight=0.5),
    ),
    "LASER": (
        LaserConfig(vocab_size=VOCAB_SIZE, token_size=8, hidden_size=8, num_layers=1, decoder_size=8),
        Translation(distance_weight=0.5),
    ),
    "NTDV": (
        BilingualConfig(VOCAB_SIZE, token_size=8, hidden_size=8, vector_size=8, num_heads=2),
        BilingualTranslation(margin=2.0, negatives=5),
    ),
}


@pytest.mark.parametrize("system", TRANSLATIONS)
def test_translation_on_eight_devices_is_that_on_one(system):
    """Negatives come from the whole batch, on whichever device they are; the tables are divided by the vocabulary."""
    config, objective = TRANSLATIONS[system]
    rng = np.random.default_rng(0)
    source, target = (rng.integers(5, VOCAB_SIZE, (16, 6)).astype(np.int32) for _ in range(2))
    languages = np.arange(16, dtype=np.int32) % 2
    batch = {"source_tokens": source, "target_tokens": target, "target_language": languages}
    results = []
    for devices, model_parallel in ((1, 1), (8, 2)):
        partitioner = Partitioner(model_parallel=model_parallel)
        mesh = partitioner.make_mesh(jax.devices()[:devices])
        objectives = Objectives(LossModel(config), {"translation": objective})
        layout = plan_state(config.module(), OPTIMIZER, partitioner, mesh)
        step = make_train_step("translation", objectives, OPTIMIZER, layout.abstract, partitioner, mesh)
        state, metrics = step(layout.create(jax.random.key(0)), shard_batch(batch, mesh), jax.random.key(1))
        results.append(jax.tree.map(np.asarray, (state.params, metrics)))
    assert_close(results[0], results[1])


def test_a_step_of_distillation_on_8_devices_equals_one_device(corpus, tmp_path):
    """Every device compares its texts with all keys."""
    batch, rng = first_batch(corpus, "triplets", 16), np.random.default_rng(0)
    ids = np.unique(np.concatenate([batch["anchor_doc_id"], batch["positive_doc_id"]]), axis=0)
    config = toy_config(dropout_rate=0.0)
    keys = rng.normal(size=(len(ids), config.embedding_size))
    keys = (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)
    neighbors = (np.arange(len(ids))[:, None] + [1, 3]) % len(ids)
    shares = np.full(neighbors.shape, 0.3, np.float32)
    path = str(tmp_path / "teacher.npz")
    days = rng.integers(0, 5, len(ids)).astype(np.int32)
    write_teacher(path, Teacher(ids.astype(np.int32), keys, days, neighbors.astype(np.int32), shares))
    objectives = Objectives(LossModel(config), {"triplets": Distillation(teacher=path)})
    found = []
    for devices, model_parallel in ((1, 1), (8, 1), (8, 2)):
        partitioner = Partitioner(model_parallel=model_parallel)
        mesh = partitioner.make_mesh(jax.devices()[:devices])
        layout = plan_state(config.module(), OPTIMIZER, partitioner, mesh)
        step = make_train_step("triplets", objectives, OPTIMIZER, layout.abstract, partitioner, mesh)
        state, metrics = step(layout.create(jax.random.key(0)), shard_batch(batch, mesh), jax.random.key(1))
        found.append(jax.tree.map(np.asarray, (state.params, metrics)))
    assert found[0][1]["known"] == 1
    assert_close(found[0], found[1])
    assert_close(found[0], found[2])


@pytest.mark.parametrize(
    "config",
    [
        StarConfig(VOCAB_SIZE, hidden_size=8, num_heads=2),
        ConvolutionConfig(VOCAB_SIZE, hidden_size=8, filters=4),
        RecurrentConfig(VOCAB_SIZE, hidden_size=8, bidirectional=True),
    ],
    ids=lambda config: config.kind,
)
def test_a_step_of_linking_on_8_devices_equals_one_device(config):
    """Triplets are mined over the global batch, and the alphas of the star are learned."""
    rng = np.random.default_rng(0)
    batch = {f"{role}_tokens": rng.integers(5, VOCAB_SIZE, (16, 8)).astype(np.int32) for role in ("anchor", "positive")}
    ids = np.stack([np.zeros(16), np.arange(16) % 7], axis=1).astype(np.int32)
    batch |= {"anchor_doc_id": ids, "positive_doc_id": ids, "day": np.zeros(16, np.int32)}
    found = []
    for devices in (1, 8):
        partitioner = Partitioner()
        mesh = partitioner.make_mesh(jax.devices()[:devices])
        objectives = Objectives(LossModel(config, None), {"pairs": Linking()})
        layout = plan_state(config.module(), OPTIMIZER, partitioner, mesh)
        step = make_train_step("pairs", objectives, OPTIMIZER, layout.abstract, partitioner, mesh)
        state, metrics = step(layout.create(jax.random.key(0)), shard_batch(batch, mesh), jax.random.key(1))
        found.append(jax.tree.map(np.asarray, (state.params, metrics)))
    assert found[0][1]["triplets"] > 0
    assert_close(*found)
