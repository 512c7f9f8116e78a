"""Counts of word pieces in a corpus, as the weighted mean of a static model counts them."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.articles import ArticleText
from newsembed.models.pooling import term_weights
from newsembed.studies.shared.static import count_pieces, term_counts
from newsembed.tasks.vocabulary import Vocabulary

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc")


def text(title, body):
    return ArticleText("", "", "", title, body)


def test_terms_count_as_the_model_weighs_tokens():
    row = np.array([2, 7, 9, 7, 3, 9, 11, 3], np.int32)
    for lead_length in (0, 3):
        weights = np.asarray(term_weights(row[None], np.ones_like(row)[None], lead_length=lead_length, sublinear=True))[
            0
        ]
        pieces, terms = term_counts(row, lead_length)
        np.testing.assert_array_equal(pieces, [7, 9, 11])
        np.testing.assert_allclose(terms, [weights[row == piece].sum() for piece in pieces], rtol=1e-6)


def test_pieces_are_counted_in_the_tokens_that_are_read():
    vocabulary = Vocabulary(PIECES)
    found = count_pieces(
        iter([text("a", "b b c"), text("", ""), text("b", "")]), vocabulary, max_length=5, lead_length=0
    )
    ids = [PIECES.index(letter) for letter in "abc"]
    assert found.counts[ids].tolist() == [1, 2, 0]  # [CLS] a [SEP] b, and a closing [SEP]; [CLS] b [SEP]
    assert found.texts[ids].tolist() == [1, 2, 0]
    assert found.texts[-1] == 3
    assert found.counts.sum() == 3
    np.testing.assert_allclose(found.terms.toarray()[:, ids], np.log1p([[1, 1, 0], [0, 1, 0]]))
    with pytest.raises(InputError, match="no article of the corpus has a word"):
        count_pieces(iter([text("", "")]), vocabulary, max_length=5, lead_length=0)
