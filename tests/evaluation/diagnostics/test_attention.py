"""The attention that each part of speech gets."""

import numpy as np
import pytest
from newsembed.evaluation.tokens import SPECIAL, attention_by_tag, tag_tokens


def row(*ids):
    return np.array(ids, np.int32)


def test_tokens_get_the_tag_of_their_word():
    own = [("Storm", "NOUN"), ("hits", "VERB"), ("Köln", "PROPN")]
    pieces = [row(10), row(11, 12), row(1)]
    for tokens, tags, words in (
        ((11, 12, 1), ["VERB", "VERB", "PROPN"], 3),
        ((11,), ["VERB"], 2),  # cut inside a word
        ((11, 12), ["VERB", "VERB"], 2),
    ):
        expected = [SPECIAL, "NOUN", SPECIAL, *tags, SPECIAL]
        assert tag_tokens(row(2, 10, 3, *tokens, 3), own, pieces) == (expected, words)
    assert tag_tokens(row(2, 10, 3, 12, 11, 1, 3), own, pieces) is None
    assert tag_tokens(row(2, 10, 11, 12, 1, 1, 3), own, pieces) is None


def test_attention_by_tag_by_hand():
    attention = [
        np.array([[0.5, 0.25, 0.25, 0.0], [0.1, 0.6, 0.2, 0.1]], np.float32),
        np.array([[0.5, 0.5], [0.3, 0.7]], np.float32),
    ]
    tags = [[SPECIAL, "NOUN", "VERB", SPECIAL], [SPECIAL, "NOUN"]]
    found = {one.tag: one for one in attention_by_tag(attention, tags, [["NOUN", "VERB"], ["NOUN"]])}
    assert list(found) == ["NOUN", SPECIAL, "VERB"]
    assert [found[tag].words for tag in found] == [2, 3, 1]
    assert found["NOUN"].tokens == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert found["NOUN"].attention == pytest.approx((0.375, 0.65))
    assert found["VERB"].attention == pytest.approx((0.125, 0.1))
    assert found["NOUN"].per_word == pytest.approx(((0.25 + 0.5) / 2, (0.6 + 0.7) / 2))
    assert found[SPECIAL].per_word[0] == pytest.approx((0.5 + 0.0 + 0.5) / 3)
    assert found["NOUN"].lift[1] == pytest.approx(0.65 / 0.375)
    for layer in range(2):
        assert sum(one.attention[layer] for one in found.values()) == pytest.approx(1)
