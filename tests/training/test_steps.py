"""The losses of the steps with every option: against plain references, in chunks, packed, and what each option leaves out."""

import dataclasses
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import PAD_ID, VocabularyFile
from newsembed.models.encoders.news import NewsEncoder
from newsembed.models.losses import DocumentIds, info_nce, normalized_prefix
from newsembed.tasks.triplets import Augmentation
from newsembed.training.batches import BatchOptions, DataSet, GrainBatches
from newsembed.training.partitioning import Partitioner, shard_batch
from newsembed.training.steps import Losses, TaskLosses, continuation_pieces, make_train_step
from newsembed.training.train_state import LOG_TEMPERATURE, plan_state
from toy_corpus import BOUNDS, LENGTHS, VOCAB_SIZE, toy_config, write_corpus

CONFIG = toy_config(dropout_rate=0.1, pooling="mean")
CONTINUATIONS = np.arange(VOCAB_SIZE) >= 40
KEY = jax.random.key(7)
# These programs are compiled once and run once: the older emitters compile them in less than half the time.
jit = functools.partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": False})


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    corpus = write_corpus(tmp_path_factory.mktemp("steps") / "data")

    def batch_of(task):
        batch = next(GrainBatches(DataSet(task, "en"), BatchOptions(corpus, LENGTHS, 12, BOUNDS)))
        return {name: np.array(values) for name, values in batch.items()}

    return {task: batch_of(task) for task in ("mlm", "triplets", "topics")}


@functools.cache
def parameters():
    partitioner = Partitioner()
    layout = plan_state(NewsEncoder(CONFIG), optax.sgd(0.1), partitioner, partitioner.make_mesh(jax.devices()[:1]))
    return layout.create(jax.random.key(0)).params


@functools.cache
def compiled(task, dropout, gradient, options):
    losses = TaskLosses(
        NewsEncoder(dataclasses.replace(CONFIG, dropout_rate=dropout)), Losses(**dict(options)), CONTINUATIONS
    )

    def loss(params, batch):
        return losses.loss(task, params, batch, KEY)

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


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("mlm", {"gradient_chunk": 4, "vocabulary_chunk": 13}),
        ("triplets", {"gradient_chunk": 9}),
        ("topics", {"gradient_chunk": 5}),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_in_chunks_loss_gradient_and_metrics_stay_those_of_the_whole_batch(batches, task, options):
    whole = {name: value for name, value in options.items() if not name.endswith("chunk")}
    expected = with_gradient(task, batches[task], dropout=0.0, **whole)
    assert_close(with_gradient(task, batches[task], dropout=0.0, **options), expected)


def test_cached_gradients_with_dropout_equal_a_plain_loop_over_the_same_chunks(batches):
    """No cache, no rematerialisation: each chunk is encoded in turn and the whole is differentiated."""
    batch, chunks = batches["triplets"], 4
    model = NewsEncoder(CONFIG)

    def plain(params):
        towers = [batch[f"{name}_tokens"] for name in ("anchor", "positive", "negative")]
        stacked = np.stack(towers, axis=1)
        embeddings = jnp.zeros((12, 3, 8))
        for number, key in enumerate(jax.random.split(KEY, chunks)):
            rows = stacked[number::chunks]
            own = model.apply(
                {"params": params}, rows.reshape(9, -1), deterministic=False, rngs={"dropout": key}, method="embed"
            )
            embeddings = embeddings.at[number::chunks].set(own.reshape(3, 3, -1))
        stopped = jnp.where((batch["translated"] > 0)[:, None, None], jax.lax.stop_gradient(embeddings), embeddings)
        doc_ids = DocumentIds(*(batch[f"{name}_doc_id"] for name in ("anchor", "positive", "negative")))
        return info_nce(embeddings[:, 0], stopped[:, 1], stopped[:, 2], doc_ids=doc_ids).loss

    expected = jit(jax.value_and_grad(plain))(parameters())
    loss, gradient, _ = with_gradient("triplets", batch, gradient_chunk=9)
    assert_close((loss, gradient), expected)
    assert loss != loss_of("triplets", batch)[0]


def test_8192_triplets_fit_where_the_whole_batch_does_not():
    """What the compiler reserves for loss and gradient; nothing runs."""
    config = dataclasses.replace(CONFIG, hidden_size=64, mlp_size=256, num_layers=2, max_length=64)
    model, rows, length = NewsEncoder(config), 8192, 64
    params = nn.unbox(jax.eval_shape(model.init, KEY, jnp.zeros((1, 1), jnp.int32)))["params"]
    batch = {f"{name}_tokens": (rows, length) for name in ("anchor", "positive", "negative")}
    batch |= {f"{name}_doc_id": (rows, 2) for name in ("anchor", "positive", "negative")} | {
        "translated": (rows,),
        "augmentation": (rows,),
    }
    batch = {name: jax.ShapeDtypeStruct(shape, jnp.int32) for name, shape in batch.items()}

    def temporary_bytes(**options):
        losses = TaskLosses(model, Losses(**options))
        gradient = jax.grad(lambda params, batch: losses.loss("triplets", params, batch, KEY)[0])
        compiled = jax.jit(gradient).lower(params, batch).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    whole, cached = temporary_bytes(), temporary_bytes(gradient_chunk=384)
    assert whole > 8e9
    assert cached < 0.05 * whole


def test_packed_topics_equal_unpacked_ones(batches):
    batch = dict(batches["topics"])
    batch["tokens"] = batch["tokens"][:, :5].copy()
    batch["tokens"][3, 2:] = PAD_ID  # a short one between longer ones
    expected = with_gradient("topics", batch, dropout=0.0)
    assert loss_of("topics", batch, topics_per_row=3)[0] == pytest.approx(expected[0], rel=1e-5)
    assert_close(with_gradient("topics", batch, dropout=0.0, topics_per_row=3, gradient_chunk=6), expected)


def test_packed_rows_of_the_masked_language_model_equal_rows_of_their_own():
    """Two pieces in one row or in two: with every word masked alike, the terms of the loss are the same."""
    losses = TaskLosses(NewsEncoder(dataclasses.replace(CONFIG, dropout_rate=0.0)), Losses(vocabulary_chunk=10))
    pieces = np.array([[2, 10, 11, 12, 3], [2, 20, 21, 22, 3]], np.int32)
    places, targets = np.array([[1, 3], [2, 3]], np.int32), np.array([[9, 8], [7, 6]], np.int32)
    layout = np.repeat([[1, 2]], 5, axis=1).astype(np.int32), np.tile(np.arange(5, dtype=np.int32), (1, 2))
    terms = jit(losses._mlm_terms)
    packed = terms(
        parameters(),
        (pieces.reshape(1, -1), (places + [[0], [5]]).reshape(1, -1), targets.reshape(1, -1), *layout),
        KEY,
    )
    alone = terms(parameters(), (pieces, places, targets), KEY)
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one.reshape(-1), two.reshape(-1), rtol=1e-5), packed, alone
    )


@functools.cache
def embed():
    model = NewsEncoder(dataclasses.replace(CONFIG, dropout_rate=0.0))
    return jit(lambda tokens: model.apply({"params": parameters()}, tokens, method="embed"))


def embeddings_of(batch):
    return [embed()(batch[f"{name}_tokens"]) for name in ("anchor", "positive", "negative")]


def ids_of(batch):
    return DocumentIds(*(batch[f"{name}_doc_id"] for name in ("anchor", "positive", "negative")))


def test_without_hard_negatives_they_are_not_even_read(batches):
    batch = batches["triplets"]
    anchor, positive, _ = embeddings_of(batch)
    loss, _ = loss_of("triplets", batch, hard_negatives=False)
    assert loss == pytest.approx(float(info_nce(anchor, positive, doc_ids=ids_of(batch)).loss), rel=1e-5)
    other = batch | {"negative_tokens": np.full_like(batch["negative_tokens"], 9)}
    assert loss_of("triplets", other, hard_negatives=False)[0] == loss


def test_triplets_of_other_rows_of_table_1_and_translated_ones_have_no_part(batches):
    batch = dict(batches["triplets"])
    batch["augmentation"] = np.arange(12, dtype=np.int32) % 4
    kept = (batch["augmentation"] != Augmentation.DOCUMENT_TO_DOCUMENT) & (batch["translated"] == 0)
    names = tuple(row.name.lower() for row in Augmentation if row is not Augmentation.DOCUMENT_TO_DOCUMENT)
    loss, metrics = loss_of("triplets", batch, augmentations=names, translated_triplets=False)
    assert 0 < kept.sum() < 12
    alone = [vectors[kept] for vectors in embeddings_of(batch)]
    expected = info_nce(*alone, doc_ids=DocumentIds(*(values[kept] for values in ids_of(batch))))
    assert loss == pytest.approx(float(expected.loss), rel=1e-5)
    assert metrics["alignment"] == pytest.approx(float(((alone[0] - alone[1]) ** 2).sum(1).mean()), rel=1e-5)


def test_matryoshka_and_symmetry_add_up_to_what_info_nce_gives_each(batches):
    batch = batches["triplets"]
    whole = embeddings_of(batch)
    options = {"matryoshka_sizes": (2, 8), "matryoshka_weights": (0.5, 2.0), "symmetric": True}
    loss, _ = loss_of("triplets", batch, **options)
    small = [normalized_prefix(vectors, 2) for vectors in whole]
    parts = [float(info_nce(*vectors, doc_ids=ids_of(batch), symmetric=True).loss) for vectors in (small, whole)]
    assert loss == pytest.approx(0.5 * parts[0] + 2 * parts[1], rel=1e-5)


def test_several_negatives_of_an_anchor_and_empty_places_among_them(batches):
    batch = dict(batches["triplets"])
    first, second = batch["negative_tokens"], np.roll(batch["negative_tokens"], 3, axis=0)
    second_ids = batch["negative_doc_id"] + 100
    second[4:] = PAD_ID
    several = batch | {
        "negative_tokens": np.stack([first, second], axis=1),
        "negative_doc_id": np.concatenate([batch["negative_doc_id"], second_ids], axis=1),
    }
    anchor, positive, negative = embeddings_of(batch)
    more = embed()(second)[:4]
    scores = (
        np.float64(anchor) @ np.concatenate([positive, negative, more]).T / 0.05
    )  # the toy corpus repeats no document
    expected = np.mean(np.log(np.exp(scores).sum(1)) - np.diag(scores))
    assert loss_of("triplets", several)[0] == pytest.approx(expected, rel=1e-5)
    loss, gradient, _ = with_gradient("triplets", several, dropout=0.0, gradient_chunk=8)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert all(np.isfinite(array).all() for array in jax.tree.leaves(gradient))


def test_a_learned_temperature_is_a_parameter_that_only_its_own_runs_have(batches):
    batch, params = batches["triplets"], parameters() | {LOG_TEMPERATURE: jnp.log(jnp.float32(0.2))}
    loss, gradient, metrics = with_gradient("triplets", batch, dropout=0.0, params=params, learn_temperature=True)
    assert loss == pytest.approx(float(loss_of("triplets", batch, temperature=0.2)[0]), rel=1e-6)
    assert metrics["temperature"] == pytest.approx(0.2)
    vectors = [np.float64(array) for array in embeddings_of(batch)]
    up, down = (plain_loss(*vectors, np.exp(np.log(0.2) + sign * 1e-4)) for sign in (1, -1))
    assert gradient[LOG_TEMPERATURE] == pytest.approx((up - down) / 2e-4, rel=1e-3)
    model = NewsEncoder(CONFIG)
    assert TaskLosses(model, Losses()).initial_parameters() == {}
    assert LOG_TEMPERATURE not in parameters()


def plain_loss(anchor, positive, negative, temperature):
    scores = anchor @ np.concatenate([positive, negative]).T / temperature
    return np.mean(np.log(np.exp(scores).sum(1)) - np.diag(scores))


def test_a_step_moves_the_temperature_and_keeps_it_within_its_bounds(batches):
    losses = TaskLosses(NewsEncoder(CONFIG), Losses(learn_temperature=True, temperature=0.02))
    partitioner, optimizer = Partitioner(), optax.sgd(1e3)
    mesh = partitioner.make_mesh(jax.devices()[:1])
    layout = plan_state(losses.model, optimizer, partitioner, mesh, losses.initial_parameters())
    step = make_train_step("triplets", losses, optimizer, layout.abstract, partitioner, mesh)
    state, _ = step(layout.create(KEY), shard_batch(batches["triplets"], mesh), KEY)
    assert float(jnp.exp(state.params[LOG_TEMPERATURE])) == pytest.approx(1.0)


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
    ("options", "message"),
    [
        ({"temperature": 0.0}, "Losses.temperature: got 0.0"),
        (
            {"temperature": 0.001, "learn_temperature": True},
            "Losses.temperature: got 0.001, expected a number from 0.01 to 1",
        ),
        ({"masking_rate": 1.0}, "Losses.masking_rate: got 1.0"),
        ({"augmentations": ("title",)}, "Losses.augmentations: got .*title_to_body"),
        ({"augmentations": ()}, "Losses.augmentations: got"),
        ({"matryoshka_sizes": (8, 4)}, "Losses.matryoshka_sizes: got .*ascending"),
        ({"matryoshka_sizes": (4, 8), "matryoshka_weights": (1.0,)}, "Losses.matryoshka_weights: got"),
        ({"matryoshka_sizes": (2, 4)}, "Losses.matryoshka_sizes: got .* the embedding's size, 8, as the last"),
        ({"mlm_weight": -1.0}, "Losses.mlm_weight: got -1.0"),
        ({"mlm_weight": 0.1}, "Losses.mlm_weight: whole words need the vocabulary's continuation pieces"),
        ({"gradient_chunk": -1}, "Losses.gradient_chunk: got -1"),
        ({"vocabulary_chunk": -1}, "Losses.vocabulary_chunk: got -1"),
        ({"topics_per_row": 0}, "Losses.topics_per_row: got 0"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options, message):
    with pytest.raises(InputError, match=message):
        TaskLosses(NewsEncoder(CONFIG), Losses(**options))


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (
            "triplets",
            {"gradient_chunk": 2},
            "Losses.gradient_chunk: got 2 for a batch of 12 rows with 3 texts each",
        ),
        ("topics", {"topics_per_row": 2}, "Losses.topics_per_row: got 2 documents of 16 tokens in a row"),
    ],
)
def test_a_batch_that_an_option_does_not_fit_is_named(batches, task, options, message):
    with pytest.raises(InputError, match=message):
        with_gradient(task, batches[task], **options)


def test_a_batch_that_rows_of_several_documents_do_not_divide_is_named(batches):
    batch = dict(batches["topics"])
    batch["tokens"] = batch["tokens"][:, :3]
    with pytest.raises(InputError, match="BATCH_SIZE: got 12, expected a multiple of 5"):
        with_gradient("topics", batch, topics_per_row=5)
