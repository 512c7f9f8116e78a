"""The weights by place and copies, against a loop over tokens; packed texts keep to themselves."""

import math
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.models.attention import largest_of_pieces, piece_ends, piece_starts, term_weights

LENGTH = 16  # one shape, one compilation


def one_by_one(text, lead_length, sublinear):
    weights = [1 / (1 + place / lead_length) if lead_length else 1.0 for place in range(len(text))]
    if not sublinear:
        return weights
    total = Counter()
    for token, weight in zip(text, weights, strict=True):
        total[token] += weight
    return [weight * math.log(1 + total[token]) / total[token] for token, weight in zip(text, weights, strict=True)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=3).filter(
        lambda texts: sum(map(len, texts)) <= LENGTH
    ),
    st.sampled_from([0, 1, 4, 64]),
    st.booleans(),
)
def test_every_text_of_a_row_is_weighed_by_itself(texts, lead_length, sublinear):
    flat = [token for text in texts for token in text]
    tokens = np.zeros((1, LENGTH), np.int32)
    segments = np.zeros((1, LENGTH), np.int32)
    tokens[0, : len(flat)] = flat
    segments[0, : len(flat)] = [number for number, text in enumerate(texts, 1) for _ in text]
    weights = np.asarray(term_weights(tokens, segments, lead_length=lead_length, sublinear=sublinear))[0]
    expected = [weight for text in texts for weight in one_by_one(text, lead_length, sublinear)]
    np.testing.assert_allclose(weights[: len(flat)], expected, rtol=1e-5)
    assert np.isfinite(weights).all()


def test_pieces_and_padding_begin_and_end_where_the_number_changes():
    segments = np.array([[0, 0, 1, 1, 2], [1, 2, 2, 0, 0]])
    assert piece_starts(segments).tolist() == [[True, False, True, False, True], [True, True, False, True, False]]
    assert piece_ends(segments).tolist() == [[False, True, False, True, True], [True, False, True, False, True]]


def test_each_token_gets_the_largest_values_of_its_piece():
    hidden = np.float32([[[1, 9], [3, 2], [-5, -1], [-7, 0]]])
    found = largest_of_pieces(hidden, np.array([[1, 1, 4, 4]]))
    np.testing.assert_array_equal(found, [[[3, 9], [3, 9], [-5, 0], [-5, 0]]])
