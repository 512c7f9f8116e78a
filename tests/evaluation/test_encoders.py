"""Embedding with checks and cache: what the encoder returned must be whole, finite, and read back bit by bit."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.encoders import (
    Document,
    TfidfEncoder,
    cosine_similarities,
    encode_checked,
    normalised,
    paired_cosines,
)
from refusals import refuses

DOCUMENTS = [
    Document("Storm hits coast", "Wind and rain."),
    Document("Storm", "Rain on the coast"),
    Document("Budget vote", "Parliament met."),
]


class Fixed:
    def __init__(self, array, digest="fixed"):
        self.array, self.digest, self.calls = array, digest, 0

    def encode(self, documents):
        self.calls += 1
        return self.array


def test_tfidf_equals_the_formula_by_hand():
    documents = [Document("a b", "a"), Document("b", "")]
    idf_a = np.log(3 / 2) + 1  # smooth idf: ln((1 + n) / (1 + df)) + 1
    row = np.array([(1 + np.log(2)) * idf_a, 1.0])
    embeddings = TfidfEncoder().encode(documents).toarray()
    assert np.allclose(embeddings[0], row / np.linalg.norm(row), atol=1e-6)


def test_dense_and_sparse_agree():
    sparse = encode_checked(TfidfEncoder(), DOCUMENTS).embeddings
    dense = normalised(sparse.toarray())
    assert np.allclose(cosine_similarities(sparse, sparse), cosine_similarities(dense, dense), atol=1e-6)
    assert np.allclose(paired_cosines(sparse[:2], sparse[1:]), paired_cosines(dense[:2], dense[1:]), atol=1e-6)


def test_zero_rows_stay_zero():
    assert normalised(np.zeros((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]
    np.testing.assert_allclose(normalised(np.array([[0.03, 0.04], [30.0, 40.0]])), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("encoder", [Fixed(np.random.default_rng(0).normal(size=(3, 4))), TfidfEncoder()])
def test_cache_returns_the_same_embeddings(tmp_path, encoder):
    first = encode_checked(encoder, DOCUMENTS, str(tmp_path))
    second = encode_checked(encoder, DOCUMENTS, str(tmp_path))
    assert (first.from_cache, second.from_cache) == (False, True)
    assert second.seconds == first.seconds
    dense = [e.embeddings.toarray() if hasattr(e.embeddings, "toarray") else e.embeddings for e in (first, second)]
    assert np.array_equal(*dense)


def test_cache_misses_when_encoder_or_texts_differ(tmp_path):
    encode_checked(Fixed(np.ones((3, 2)), "one"), DOCUMENTS, str(tmp_path))
    assert not encode_checked(Fixed(np.ones((3, 2)), "two"), DOCUMENTS, str(tmp_path)).from_cache
    moved = [Document("Storm hits", "coastWind and rain."), *DOCUMENTS[1:]]
    assert not encode_checked(Fixed(np.ones((3, 2)), "one"), moved, str(tmp_path)).from_cache


def test_a_torn_cache_entry_is_embedded_anew(tmp_path):
    encoder = Fixed(np.ones((3, 2)))
    encode_checked(encoder, DOCUMENTS, str(tmp_path))
    next(tmp_path.glob("*.npz")).write_bytes(b"PK")
    assert not encode_checked(encoder, DOCUMENTS, str(tmp_path)).from_cache
    assert encoder.calls == 2


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 4)), r"shape \(2, 4\) for 3 documents"),
        (np.ones(3), "shape"),
        (np.array([[1, 2], [np.nan, 1], [1, np.inf]]), "2 values of NaN or infinity"),
    ],
)
def test_broken_encoders_are_refused(array, message):
    refuses(message, encode_checked, Fixed(array), DOCUMENTS)


def test_empty_documents_and_no_documents_are_refused():
    with pytest.raises(InputError, match=r"1 of 2 documents are empty.*1"):
        encode_checked(Fixed(np.ones((2, 2))), [DOCUMENTS[0], Document(" ", "\n")])
    refuses("no documents", encode_checked, Fixed(np.ones((0, 2))), [])


def test_tfidf_without_words_is_refused():
    refuses("no words", TfidfEncoder().encode, [Document("?!", "...")])
