"""Counts of word pieces in a corpus, as the weighted mean of a static model counts them."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.articles import ArticleText
from newsembed.models.attention import term_weights
from newsembed.studies.shared import static
from newsembed.studies.shared.static import count_pieces, term_counts
from newsembed.tasks.vocabulary import Vocabulary

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc")


def text(title, body, language=""):
    return ArticleText("", "", "", title, body, language)


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


def test_a_piece_is_as_rare_as_in_the_language_that_has_it_most(monkeypatch):
    monkeypatch.setattr(static, "LEAST_OF_LANGUAGE", 2)
    texts = [("a b", "en"), ("a", "en-GB"), ("a c", "en"), ("b", "de"), ("c", "de"), ("b", "fr"), ("b", ""), ("b", "")]
    articles = iter([text(words, "", language) for words, language in texts])
    found = count_pieces(articles, Vocabulary(PIECES), max_length=5, lead_length=0)
    assert found.languages == ["en", "en", "en", "de", "de", "fr", "", ""]
    assert found.of_language[:, [*range(5, 8), -1]].tolist() == [[0, 1, 1, 2], [3, 1, 1, 3]]  # de, en; too few of fr
    # "a": 3 of 3 in English; "b": 5 of 8 in all; "c": 1 of 2 in German.
    np.testing.assert_allclose(found.rarity[5:], 1 - np.log([4 / 4, 6 / 9, 2 / 3]))


def test_of_one_language_rarity_is_the_smooth_inverse_document_frequency():
    articles = iter([text(words, "", "en") for words in ("a b", "a", "a c", "c")])
    found = count_pieces(articles, Vocabulary(PIECES), max_length=5, lead_length=0)
    np.testing.assert_allclose(found.rarity[5:], np.log(5 / np.array([4, 2, 3])) + 1)


@pytest.mark.parametrize(("share", "texts"), [(0.9, 1 - np.exp(-400 * 0.9 / 0.02)), (1e-3, 1 / 3), (0.0, 1 / 3)])
def test_a_piece_of_a_language_that_the_articles_lack_is_as_rare_as_in_its_language(monkeypatch, share, texts):
    """One piece of 81 is "b". Where a text of the tokenizer has 0.9 of it, that is a foreign word; 0.001 is less."""
    monkeypatch.setattr(Vocabulary, "shares", np.array([0, 0, 0, 0, 0, 0.1, share, 0]))
    articles = iter([text("a " * 40, body, "en") for body in ("b", "")])
    found = count_pieces(articles, Vocabulary(PIECES), max_length=50, lead_length=0)
    np.testing.assert_allclose(found.rarity[5:], 1 - np.log([1, max(texts, 2 / 3), 1 / 3]))
