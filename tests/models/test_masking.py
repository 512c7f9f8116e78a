"""Whole-word masking: whole words, the right shares, nothing else touched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.models.masking import (
    choose_whole_words,
    gather_positions,
    mask_whole_words,
    masked_position_count,
    whole_word_ids,
)

LENGTH, VOCAB, MASK, FIRST = 64, 100, 4, 5


def rows_of_words(sizes):
    """[CLS] words… [SEP] [PAD]…, one row for each list of word sizes."""
    tokens, words = np.zeros((2, len(sizes), LENGTH), np.int32)
    for row, lengths in enumerate(sizes):
        flat = np.repeat(np.arange(1, len(lengths) + 1), lengths)[: LENGTH - 2]
        words[row, 1 : 1 + len(flat)] = flat
        tokens[row, 1 : 1 + len(flat)] = FIRST + (np.arange(len(flat)) * 7 + row) % (VOCAB - FIRST)
        tokens[row, 0], tokens[row, 1 + len(flat)] = 2, 3
    return jnp.array(tokens), jnp.array(words)


masking = jax.jit(
    lambda key, tokens, words: mask_whole_words(
        key, tokens, words, vocab_size=VOCAB, mask_id=MASK, first_piece_id=FIRST
    )
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=60), min_size=3, max_size=3), st.integers(0, 1000))
def test_words_are_chosen_whole_and_positions_lead_back_to_the_original(sizes, seed):
    tokens, words = rows_of_words(sizes)
    batch = masking(jax.random.key(seed), tokens, words)
    assert batch.positions.shape == (3, masked_position_count(LENGTH))
    for row in range(3):
        chosen = np.asarray(batch.positions[row])[np.asarray(batch.weights[row]) > 0]
        assert len(set(chosen)) == len(chosen)
        whole = np.isin(words[row], np.asarray(words[row])[chosen]) & (np.asarray(words[row]) > 0)
        np.testing.assert_array_equal(np.flatnonzero(whole), chosen)  # ascending
        np.testing.assert_array_equal(np.asarray(batch.targets[row])[: len(chosen)], np.asarray(tokens[row])[chosen])
        untouched = np.setdiff1d(np.arange(LENGTH), chosen)
        np.testing.assert_array_equal(np.asarray(batch.tokens[row])[untouched], np.asarray(tokens[row])[untouched])
    kept_special = np.isin(tokens, [0, 2, 3])
    np.testing.assert_array_equal(np.asarray(batch.tokens)[kept_special], np.asarray(tokens)[kept_special])


def test_shares_are_15_percent_and_80_10_10():
    tokens, words = rows_of_words([[1, 2, 3, 1] * 8] * 64)
    masks = [masking(jax.random.key(seed), tokens, words) for seed in range(20)]
    weights = np.concatenate([batch.weights for batch in masks])
    eligible = float((words > 0).sum()) * len(masks)
    assert weights.sum() / eligible == pytest.approx(0.15, abs=0.004)
    after = np.concatenate(
        [np.take_along_axis(np.asarray(batch.tokens), np.asarray(batch.positions), axis=1) for batch in masks]
    )[weights > 0]
    before = np.concatenate([batch.targets for batch in masks])[weights > 0]
    assert (after == MASK).mean() == pytest.approx(0.8, abs=0.02)
    assert (after == before).mean() == pytest.approx(0.1, abs=0.02)
    drawn = after[(after != MASK) & (after != before)]
    assert drawn.min() >= FIRST
    assert drawn.max() < VOCAB


def test_every_word_is_as_likely_as_any_other():
    _, words = rows_of_words([[2] * 20] * 64)
    choose = jax.jit(lambda key, words: choose_whole_words(key, words, 0.15, 64))
    chosen = np.concatenate([choose(jax.random.key(seed), words) for seed in range(40)])
    shares = chosen.mean(axis=0)[1:41]
    assert shares.min() > 0.11
    assert shares.max() < 0.19


def test_a_row_without_words_predicts_nothing():
    tokens, words = jnp.array([[2, 3] + [0] * 62]), jnp.zeros((1, LENGTH), jnp.int32)
    batch = masking(jax.random.key(0), tokens, words)
    assert batch.weights.sum() == 0
    np.testing.assert_array_equal(batch.tokens, tokens)


def test_the_key_decides():
    tokens, words = rows_of_words([[1] * 40] * 4)
    first, again, other = (masking(jax.random.key(seed), tokens, words).tokens for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_words_are_numbered_by_where_no_piece_goes_on():
    #  [CLS] flood ##ed river [SEP] ##s bank ##s [PAD]
    tokens = jnp.array([[2, 10, 20, 11, 3, 21, 12, 21, 0]])
    is_word = jnp.isin(tokens, jnp.array([0, 2, 3]), invert=True)
    continuations = jnp.arange(30) >= 20
    np.testing.assert_array_equal(whole_word_ids(tokens, is_word, continuations), [[0, 1, 1, 2, 0, 3, 4, 4, 0]])


def test_the_first_piece_of_a_row_begins_a_word():
    tokens = jnp.array([[21, 20, 10]])
    found = whole_word_ids(tokens, jnp.ones_like(tokens, bool), jnp.arange(30) >= 20)
    np.testing.assert_array_equal(found, [[1, 1, 2]])


def test_words_of_each_row_are_numbered_from_1():
    tokens = jnp.array([[2, 10, 20, 11, 3], [2, 12, 13, 3, 0]])
    is_word = jnp.isin(tokens, jnp.array([0, 2, 3]), invert=True)
    found = whole_word_ids(tokens, is_word, jnp.arange(30) >= 20)
    np.testing.assert_array_equal(found, [[0, 1, 1, 2, 0], [0, 1, 2, 0, 0]])


def test_a_row_of_words_without_special_tokens_can_lose_each_of_them():
    words = jnp.arange(1, 17)[None]
    choose = jax.jit(lambda key: choose_whole_words(key, words, 0.5, 16))
    chosen = np.concatenate([choose(jax.random.key(seed)) for seed in range(40)])
    assert chosen.any(axis=0).all()
    assert chosen.sum(axis=1).tolist() == [8] * 40


@pytest.mark.parametrize(
    ("length", "rate", "count"),
    [(8, 0.15, 8), (16, 0.15, 8), (64, 0.15, 16), (128, 0.15, 24), (512, 0.15, 88), (512, 0.3, 160), (100, 0.5, 56)],
)
def test_positions_are_the_rate_and_four_more_rounded_up_to_eight(length, rate, count):
    assert masked_position_count(length, rate) == count


choosing = jax.jit(choose_whole_words)


def chosen_tokens(words, rate, capacity, draws=2_000):
    """The number of chosen tokens in each of many draws of one row."""
    rows = jnp.tile(jnp.array([words]), (draws, 1))
    return np.asarray(choosing(jax.random.key(0), rows, rate, capacity)).sum(axis=1)


@pytest.mark.parametrize("words", [range(1, 11), [1, 1, 1, 2, 2, 2, 3, 3, 3, 0]], ids=["one piece", "three pieces"])
def test_the_word_on_the_border_makes_the_expected_number_exact(words):
    found = chosen_tokens(list(words), 0.25, 16)
    tokens = sum(word > 0 for word in words)
    # Each draw has a whole number of words, so the standard error of the mean is at most 1.5 / sqrt(2,000).
    assert found.mean() == pytest.approx(0.25 * tokens, abs=0.13)
    assert set(found.tolist()) == ({2, 3} if tokens == 10 else {0, 3})


@pytest.mark.parametrize(("capacity", "fits"), [(7, False), (8, True)])
def test_a_word_that_does_not_fit_is_left_out(capacity, fits):
    assert (chosen_tokens([1] * 8 + [0, 0], 0.9, capacity).mean() > 0.8) == fits


def test_the_rate_and_the_range_of_random_pieces_can_be_given():
    tokens, words = jnp.full((64, LENGTH), 5), jnp.tile(jnp.arange(1, LENGTH + 1), (64, 1))
    given = {"vocab_size": 9, "mask_id": MASK, "first_piece_id": 6, "rate": 0.5}
    batch = jax.jit(lambda key: mask_whole_words(key, tokens, words, **given))(jax.random.key(0))
    assert batch.weights.sum(axis=1).tolist() == [32] * 64
    assert batch.positions.shape == (64, 40)  # 32 and 4 more, rounded up to eight
    assert set(np.unique(batch.tokens).tolist()) == {MASK, 5, 6, 7, 8}


def test_the_vectors_of_the_positions_are_gathered():
    hidden = jnp.arange(24.0).reshape(2, 4, 3)
    found = gather_positions(hidden, jnp.array([[3, 0], [1, 1]]))
    np.testing.assert_array_equal(found, [[[9, 10, 11], [0, 1, 2]], [[15, 16, 17], [15, 16, 17]]])
