"""InfoNCE on triplets: against plain references, and what each option leaves out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import PAD_ID
from newsembed.learning.objectives import Model, Objectives, objectives_of
from newsembed.models.attention import of_unit_length
from newsembed.models.losses import Documents, info_nce
from newsembed.tasks.kinds import Augmentation
from objective_runs import (
    CONFIG,
    KEY,
    WITHOUT_DROPOUT,
    assert_close,
    embeddings_of,
    ids_of,
    jit,
    loss_of,
    method_of,
    pair_rows,
    parameters,
    with_gradient,
)


def test_cached_gradients_with_dropout_equal_a_plain_loop_over_the_same_chunks(batches):
    """No cache, no rematerialisation: each chunk is encoded in turn and the whole is differentiated.

    The gradient of translated texts ends where the transformer does; the dense layer learns from them.
    """
    batch, chunks = batches["triplets"], 4
    model = CONFIG.module()
    assert 0 < (batch["translated"] > 0).sum() < 12
    stopped = (batch["translated"] > 0)[:, None] & np.array([False, True, True])

    def plain(params):
        towers = [batch[f"{name}_tokens"] for name in ("anchor", "positive", "negative")]
        stacked = np.stack(towers, axis=1)
        embeddings = jnp.zeros((12, 3, 8))
        for number, key in enumerate(jax.random.split(KEY, chunks)):
            rows = stacked[number::chunks].reshape(9, -1)
            options = {"deterministic": False, "rngs": {"dropout": key}}
            hidden = model.apply({"params": params}, rows, method="encode", **options)
            pooled = model.apply({"params": params}, hidden, rows, method="pool")
            ends = stopped[number::chunks].reshape(9, 1)
            head = params["embedding_head"]
            own = jnp.where(ends, jax.lax.stop_gradient(pooled), pooled) @ head["kernel"] + head["bias"]
            own /= jnp.linalg.norm(own, axis=1, keepdims=True)
            embeddings = embeddings.at[number::chunks].set(own.reshape(3, 3, -1))
        return info_nce(*embeddings.swapaxes(0, 1), documents=ids_of(batch)).loss

    expected = jit(jax.value_and_grad(plain))(parameters())
    loss, gradient, _ = with_gradient("triplets", batch, gradient_chunk=9)
    assert_close((loss, gradient), expected)
    assert loss != loss_of("triplets", batch)[0]


def test_what_cannot_stop_below_its_head_stops_at_the_embedding(batches, monkeypatch):
    batch = dict(batches["triplets"])
    batch["translated"] = np.ones(12, np.int32)
    usual = with_gradient("triplets", batch, dropout=0.0)
    monkeypatch.setattr(type(CONFIG), "capabilities", frozenset())
    # Another option, so that the loss is compiled again; it changes nothing of a sum of one.
    found = with_gradient("triplets", batch, dropout=0.0, matryoshka_sizes=(8,))
    assert found[0] == pytest.approx(usual[0], rel=1e-6)
    assert_close(found[1]["token_embedding"], usual[1]["token_embedding"])
    differs = np.abs(found[1]["embedding_head"]["kernel"] - usual[1]["embedding_head"]["kernel"]).max()
    assert differs > 0.1 * np.abs(usual[1]["embedding_head"]["kernel"]).max()


def test_the_encoder_masks_reports_of_the_same_event(batches):
    batch = dict(batches["triplets"])
    plain, _ = loss_of("triplets", batch)
    event = np.tile(np.array([0, 7, 17_000], np.int32), (12, 1))
    batch |= {f"{role}_event": event for role in ("anchor", "positive", "negative")}
    assert loss_of("triplets", batch, mask_same_event=False)[0] == pytest.approx(plain, rel=1e-6)
    assert loss_of("triplets", batch)[0] == pytest.approx(0, abs=1e-6)  # all report one event: no negative is left
    batch["positive_event"] = event + np.array([0, 0, 1], np.int32)
    assert loss_of("triplets", batch, event_days=0)[0] == pytest.approx(0, abs=1e-6)  # the positive has the other day
    batch["negative_event"] = event + np.array([0, 0, 3], np.int32)
    with_negatives, _ = loss_of("triplets", batch)
    assert 0 < with_negatives < plain


def test_without_hard_negatives_they_are_not_even_read(batches):
    batch = batches["triplets"]
    anchor, positive, _ = embeddings_of(batch)
    loss, _ = loss_of("triplets", batch, hard_negatives=False)
    assert loss == pytest.approx(float(info_nce(anchor, positive, documents=ids_of(batch)).loss), rel=1e-5)
    other = batch | {"negative_tokens": np.full_like(batch["negative_tokens"], 9)}
    assert loss_of("triplets", other, hard_negatives=False)[0] == loss


def test_negatives_of_the_own_part_of_the_batch(batches):
    """The loss is the mean over the parts, as each device would compute it for its own rows."""
    batch = batches["triplets"]
    loss, metrics = loss_of("triplets", batch, negative_groups=3)
    parts = [
        info_nce(
            *(vectors[rows] for vectors in embeddings_of(batch)),
            documents=Documents(*(values[rows] for values in ids_of(batch)[:3])),
        )
        for rows in (slice(0, 4), slice(4, 8), slice(8, 12))
    ]
    assert loss == pytest.approx(np.mean([float(one.loss) for one in parts]), rel=1e-5)
    assert metrics["accuracy"] == pytest.approx(np.mean([float(one.accuracy) for one in parts]))
    assert loss < loss_of("triplets", batch)[0]
    with pytest.raises(InputError, match="negative_groups: got 5, expected a divisor of the batch of 12 rows"):
        loss_of("triplets", batch, negative_groups=5)


def test_triplets_of_other_rows_of_table_1_and_translated_ones_have_no_part(batches):
    batch = dict(batches["triplets"])
    batch["augmentation"] = np.arange(12, dtype=np.int32) % 4
    kept = (batch["augmentation"] != Augmentation.DOCUMENT_TO_DOCUMENT) & (batch["translated"] == 0)
    names = tuple(row.name.lower() for row in Augmentation if row is not Augmentation.DOCUMENT_TO_DOCUMENT)
    loss, metrics = loss_of("triplets", batch, augmentations=names, translated_triplets=False)
    assert 0 < kept.sum() < 12
    alone = [vectors[kept] for vectors in embeddings_of(batch)]
    expected = info_nce(*alone, documents=Documents(*(values[kept] for values in ids_of(batch)[:3])))
    assert loss == pytest.approx(float(expected.loss), rel=1e-5)
    assert metrics["alignment"] == pytest.approx(float(((alone[0] - alone[1]) ** 2).sum(1).mean()), rel=1e-5)


def test_matryoshka_and_symmetry_add_up_to_what_info_nce_gives_each(batches):
    batch = batches["triplets"]
    whole = embeddings_of(batch)
    options = {"matryoshka_sizes": (2, 8), "symmetric": True}
    loss, _ = loss_of("triplets", batch, **options)
    small = [of_unit_length(vectors[..., :2]) for vectors in whole]
    parts = [float(info_nce(*vectors, documents=ids_of(batch), symmetric=True).loss) for vectors in (small, whole)]
    assert loss == pytest.approx(sum(parts), rel=1e-5)


def test_several_negatives_of_an_anchor_and_empty_places_among_them(batches):
    batch = dict(batches["triplets"])
    first, second = batch["negative_tokens"], np.roll(batch["negative_tokens"], 3, axis=0)
    second_ids = batch["negative_doc_id"] + 100
    second[4:] = PAD_ID
    several = batch | {
        "negative_tokens": np.stack([first, second], axis=1),
        "negative_doc_id": np.concatenate([batch["negative_doc_id"], second_ids], axis=1),
        "negative_event": np.tile(batch["negative_event"], 2),
    }
    anchor, positive, negative = embeddings_of(batch)
    more = method_of("embed")(second)[:4]
    # The toy corpus repeats no document.
    scores = np.float64(anchor) @ np.concatenate([positive, negative, more]).T / 0.05
    expected = np.mean(np.log(np.exp(scores).sum(1)) - np.diag(scores))
    assert loss_of("triplets", several)[0] == pytest.approx(expected, rel=1e-5)
    loss, gradient, _ = with_gradient("triplets", several, dropout=0.0, gradient_chunk=8)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert all(np.isfinite(array).all() for array in jax.tree.leaves(gradient))


def test_pairs_have_the_positives_of_the_batch_as_candidates_and_not_those_of_their_own_document(batches):
    pairs = pair_rows(batches)
    pairs["anchor_doc_id"] = pairs["positive_doc_id"]
    pairs["anchor_doc_id"][3] = pairs["positive_doc_id"][3] = pairs["anchor_doc_id"][5]  # two halves of one article
    loss, metrics = loss_of("pairs", pairs, temperature=0.1)
    anchor, positive = (np.float64(method_of("embed")(pairs[f"{name}_tokens"])) for name in ("anchor", "positive"))
    scores = np.exp(anchor @ positive.T / 0.1)
    own = np.diag(scores).copy()
    scores[3, 5] = scores[5, 3] = 0
    assert loss == pytest.approx(np.mean(np.log(scores.sum(1) / own)), rel=1e-5)
    assert metrics["accuracy"] == np.mean(own >= scores.max(1))


def test_pairs_learn_in_chunks_and_with_masked_words_and_are_ranked(batches):
    pairs = pair_rows(batches)
    whole = with_gradient("pairs", pairs, dropout=0.0)
    chunked = with_gradient("pairs", pairs, dropout=0.0, gradient_chunk=8)
    assert_close(chunked[:2], whole[:2])
    more, _ = loss_of("pairs", pairs, mlm_weight=0.1)
    assert more > whole[0] + 0.1
    found = Objectives(Model(WITHOUT_DROPOUT), objectives_of(["pairs"])).pairs("pairs", parameters(), pairs)
    np.testing.assert_array_equal(found.query_ids[:, :2], pairs["anchor_doc_id"])
    assert not np.any(found.answer_ids[:, 2:])
