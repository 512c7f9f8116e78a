"""A model's attention and the similarity of its token vectors: equal to the module row by row, and to plain NumPy."""

import functools
import itertools

import jax
import numpy as np
from newsembed.models.encoders.news import NewsEncoder
from newsembed.serving.encoder import load_encoder
from newsembed.serving.probe import probe

TEXTS = [("Storm", "Wind and rain. " * 30), ("Storm", "Wind and rain."), ("", "goal"), ("cup", "vote"), ("", "")]


def test_equal_to_the_module_row_by_row(model_dir):
    encoder = load_encoder(model_dir)
    titles, bodies = zip(*TEXTS, strict=True)
    found = probe(encoder, titles, bodies)
    observe = jax.jit(functools.partial(NewsEncoder(encoder.model.config).apply, method="encode_observed"))
    for number, row in enumerate(encoder.tokenize(titles, bodies)):
        hidden, received = observe({"params": encoder.params}, row[None])
        np.testing.assert_array_equal(found.tokens[number], row)
        np.testing.assert_allclose(found.attention[number], np.asarray(received)[:, 0], atol=1e-5)
        np.testing.assert_allclose(found.attention[number].sum(axis=1), 1, atol=1e-5)
        vectors = [
            vector / np.linalg.norm(vector)
            for vector, token in zip(np.asarray(hidden[0], np.float64), row, strict=True)
            if token > 3
        ]
        cosines = [one @ other for one, other in itertools.combinations(vectors, 2)]
        expected = np.mean(cosines) if cosines else np.nan
        np.testing.assert_allclose(found.similarity[number], expected, atol=1e-4)


def test_no_document_gives_nothing(model_dir):
    found = probe(load_encoder(model_dir), [], [])
    assert (found.tokens, found.attention, found.similarity.shape) == ([], [], (0,))
