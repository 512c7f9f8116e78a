"""What the objectives share: chunks, the masked language model next to another loss, and checks of options."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import VocabularyFile
from newsembed.learning.objectives import OBJECTIVES, Model, Objectives, continuation_pieces
from newsembed.learning.objectives.contrastive import Contrastive
from newsembed.learning.objectives.distillation import Distillation
from objective_runs import CONFIG, KEY, assert_close, loss_of, with_gradient
from toy_corpus import VOCAB_SIZE, toy_objectives


@pytest.mark.parametrize(
    ("task", "options"),
    [("mlm", {"gradient_chunk": 4, "vocabulary_chunk": 13}), ("topics", {"gradient_chunk": 5})],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_in_chunks_loss_gradient_and_metrics_stay_those_of_the_whole_batch(batches, task, options):
    whole = {name: value for name, value in options.items() if not name.endswith("chunk")}
    expected = with_gradient(task, batches[task], dropout=0.0, **whole)
    assert_close(with_gradient(task, batches[task], dropout=0.0, **options), expected)


def test_8192_triplets_fit_where_the_whole_batch_does_not():
    """What the compiler reserves for loss and gradient; nothing runs."""
    config = dataclasses.replace(CONFIG, hidden_size=64, mlp_size=256, num_layers=2, max_length=64)
    rows, length = 8192, 64
    params = nn.unbox(jax.eval_shape(config.module().init, KEY, jnp.zeros((1, 1), jnp.int32)))["params"]
    batch = {f"{name}_tokens": (rows, length) for name in ("anchor", "positive", "negative")}
    batch |= {f"{name}_doc_id": (rows, 2) for name in ("anchor", "positive", "negative")}
    batch |= {"translated": (rows,), "augmentation": (rows,)}
    batch = {name: jax.ShapeDtypeStruct(shape, jnp.int32) for name, shape in batch.items()}

    def temporary_bytes(**options):
        objectives = toy_objectives(config, "triplets", **options)
        gradient = jax.grad(lambda params, batch: objectives.loss("triplets", params, batch, KEY)[0])
        compiled = jax.jit(gradient).lower(params, batch).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    whole, cached = temporary_bytes(), temporary_bytes(gradient_chunk=384)
    assert whole > 8e9
    assert cached < 0.05 * whole


def test_a_masked_language_model_beside_adds_its_weight_times_its_loss(batches):
    batch = batches["triplets"]
    alone = loss_of("triplets", batch)
    loss, metrics = loss_of("triplets", batch, mlm_weight=0.1)
    assert loss == pytest.approx(alone[0] + 0.1 * metrics["mlm_loss"], rel=1e-5)
    assert metrics["mlm_loss"] == pytest.approx(np.log(VOCAB_SIZE), rel=0.1)
    assert set(metrics) == {*alone[1], "mlm_loss", "mlm_accuracy"}


def test_a_masked_language_model_beside_reads_no_translation(batches):
    batch = dict(batches["triplets"])
    marker = 39  # the last piece that begins a word
    for name in ("anchor_tokens", "positive_tokens", "negative_tokens"):
        batch[name] = np.where(batch[name] == marker, marker - 1, batch[name])
    batch["positive_tokens"][:, 1] = marker
    for translated in (0, 1):
        batch["translated"] = np.full(12, translated, np.int32)
        bias = with_gradient("triplets", batch, mlm_weight=1.0, masking_rate=0.9)[1]["mlm_bias"]
        # The bias of a piece that is never a target has no gradient but the softmax's, which is positive.
        assert (bias[marker] < 0) == (not translated)


def test_continuation_pieces_are_those_that_the_vocabulary_marks():
    file = VocabularyFile("v", b"[PAD]\nflood\n##ed\n##\n#s\n", 5)
    assert continuation_pieces(file).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Contrastive, "temperature", 0.0),
        (Contrastive, "augmentations", ()),
        (Contrastive, "matryoshka_sizes", (8, 4)),
        (Distillation, "teacher", ""),
    ],
)
def test_an_option_that_makes_no_sense_is_named(kind, name, value):
    with pytest.raises(InputError, match=rf"{kind.__name__}\.{name}: got"):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("triplets", {"matryoshka_sizes": (2, 4)}, "Contrastive.matryoshka_sizes: got .* size, 8, as the last"),
        ("topics", {"mlm_weight": 0.1}, "Topics.mlm_weight: whole words need the vocabulary's continuation pieces"),
    ],
)
def test_an_option_that_does_not_fit_the_model_is_named(task, options, message):
    with pytest.raises(InputError, match=message):
        Objectives(Model(CONFIG), {task: OBJECTIVES[task](**options)})


def test_a_batch_that_an_option_does_not_fit_is_named(batches):
    message = "Contrastive.gradient_chunk: got 2 for a batch of 12 rows with 3 texts each"
    with pytest.raises(InputError, match=message):
        with_gradient("triplets", batches["triplets"], gradient_chunk=2)
