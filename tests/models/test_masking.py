"""Whole-word masking: whole words, the right shares, nothing else touched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.models.masking import choose_whole_words, mask_whole_words, masked_position_count, whole_word_ids

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


def test_words_are_numbered_by_where_no_piece_goes_on():
    #  [CLS] flood ##ed river [SEP] ##s bank ##s [PAD]
    tokens = jnp.array([[2, 10, 20, 11, 3, 21, 12, 21, 0]])
    is_word = jnp.isin(tokens, jnp.array([0, 2, 3]), invert=True)
    continuations = jnp.arange(30) >= 20
    np.testing.assert_array_equal(whole_word_ids(tokens, is_word, continuations), [[0, 1, 1, 2, 0, 3, 4, 4, 0]])


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
