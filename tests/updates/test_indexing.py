"""The vectors of new articles."""

import numpy as np
import pytest
from newsembed.formats.records import Article
from newsembed.updates.indexing import unit_vectors
from stream import Words, told


def reported(number, body):
    return Article(f"{number:016x}", f"https://a.example/{number}", "a.example", f"Title {number}", body)


class Scaled(Words):
    """Vectors of other lengths than 1; none for the text "nothing"."""

    def encode(self, titles, bodies):
        lengths = [[0.0 if body == "nothing" else 7.0] for body in bodies]
        return super().encode(titles, bodies) * np.array(lengths, np.float32)


def test_vectors_have_length_1_and_a_vector_of_zeros_stays():
    articles = [reported(1, told("a", 1)), reported(2, "nothing"), reported(3, told("b", 3))]
    vectors = unit_vectors(Scaled(), articles)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[[0, 2]], Words().encode(["", ""], [told("a", 1), told("b", 3)]), atol=1e-6)
    assert not vectors[1].any()


def test_no_articles_have_no_vectors():
    assert unit_vectors(Words(), []).shape == (0, Words.dimensions)


def test_an_article_that_the_encoder_leaves_out_is_an_error():
    empty = Article("0" * 16, "https://a.example/0", "a.example", "", "")
    with pytest.raises(RuntimeError, match="1 vectors of 2 articles"):
        unit_vectors(Words(), [reported(1, told("a", 1)), empty])
