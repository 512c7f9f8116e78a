"""Compiled losses of the registered objectives on a toy model, for the tests here."""

import dataclasses
import functools

import jax
import numpy as np
import optax
from newsembed.learning.objectives.texts import documents_of
from newsembed.learning.partitioning import Partitioner
from newsembed.models.losses import Documents
from newsembed.training.train_state import plan_state
from toy_corpus import toy_config, toy_objectives

CONFIG = toy_config(dropout_rate=0.1, pooling="mean")
WITHOUT_DROPOUT = dataclasses.replace(CONFIG, dropout_rate=0.0)
KEY = jax.random.key(7)
# These programs are compiled once and run once: the older emitters compile them in less than half the time.
jit = functools.partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": False})


@functools.cache
def parameters():
    partitioner = Partitioner()
    layout = plan_state(CONFIG.module(), optax.sgd(0.1), partitioner, partitioner.make_mesh(jax.devices()[:1]))
    return layout.create(jax.random.key(0)).params


@functools.cache
def compiled(task, dropout, gradient, options):
    objectives = toy_objectives(dataclasses.replace(CONFIG, dropout_rate=dropout), task, **dict(options))

    def loss(params, batch):
        return objectives.loss(task, params, batch, KEY)

    return jit(jax.value_and_grad(loss, has_aux=True) if gradient else loss)


def with_gradient(task, batch, *, dropout=0.1, params=None, **options):
    (loss, metrics), gradient = compiled(task, dropout, True, tuple(options.items()))(params or parameters(), batch)
    return jax.tree.map(np.asarray, (loss, gradient, metrics))


def loss_of(task, batch, *, params=None, **options):
    return jax.tree.map(np.asarray, compiled(task, 0.0, False, tuple(options.items()))(params or parameters(), batch))


def assert_close(left, right):
    """Equal up to rounding, measured against the largest number of each array."""
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one, two, rtol=0, atol=1e-5 * np.abs(two).max() + 1e-7), left, right
    )


@functools.cache
def method_of(name):
    """A method of the module on tokens, compiled, without dropout."""
    module = WITHOUT_DROPOUT.module()
    params = parameters()  # not in the function: parameters cannot be created while JAX traces it
    return jit(lambda tokens: module.apply({"params": params}, tokens, method=name))


def embeddings_of(batch):
    return [method_of("embed")(batch[f"{name}_tokens"]) for name in ("anchor", "positive", "negative")]


def ids_of(batch):
    return Documents(*(documents_of(batch, name, events=False) for name in ("anchor", "positive", "negative")))


def pair_rows(batches):
    """The anchors and positives of triplets, as a batch of pairs."""
    names = ("anchor_tokens", "positive_tokens", "anchor_doc_id", "positive_doc_id")
    return {name: np.array(batches["triplets"][name]) for name in names} | {"day": np.zeros(12, np.int32)}


def translation_rows(languages):
    """A batch of translation: random pieces from 5 to 39 of random lengths between [CLS] (2) and [SEP] (3)."""
    rng = np.random.default_rng(0)
    rows = {}
    for name, length in (("source_tokens", 7), ("target_tokens", 6)):
        tokens = rng.integers(5, 40, (len(languages), length)).astype(np.int32)
        tokens[:, 0] = 2
        for row, end in enumerate(rng.integers(3, length + 1, len(languages))):
            tokens[row, end - 1] = 3
            tokens[row, end:] = 0
        rows[name] = tokens
    return rows | {"target_language": np.array(languages, np.int32)}
