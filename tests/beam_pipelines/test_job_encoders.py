"""Encoders of jobs: opened once, called on some texts at a time, with vectors of length 1."""

import types

import numpy as np
import pytest
from newsembed.beam_pipelines import encoders
from newsembed.beam_pipelines.encoders import embed_unit
from newsembed.errors import InputError
from newsembed.launch.encoders import open_encoder


class Lengths:
    """The vector of a text is the number of its characters, and of its letters a."""

    def __init__(self):
        self.calls = []

    def embed(self, texts):
        self.calls.append(list(texts))
        return np.array([[len(text), text.count("a")] for text in texts])


def test_texts_are_embedded_some_at_a_time_with_vectors_of_length_one(monkeypatch):
    assert encoders._TEXTS_AT_ONCE == 4096
    monkeypatch.setattr(encoders, "_TEXTS_AT_ONCE", 2)
    encoder = Lengths()
    found = embed_unit(encoder, ["aaab", "", "bb"], "x")
    np.testing.assert_allclose(found, [[0.8, 0.6], [0, 0], [1, 0]], rtol=1e-6)
    assert found.dtype == np.float32
    assert encoder.calls == [["aaab", ""], ["bb"]]
    nothing = embed_unit(encoder, [], "x")
    assert (nothing.shape, nothing.dtype) == ((0, 0), np.float32)


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        (np.ones(2), r"got ndarray of shape \(2,\) for 2 texts, expected one row of numbers for each"),
        (np.ones((3, 4)), r"got ndarray of shape \(3, 4\) for 2 texts"),
        ([[1, 2], [3, 4]], r"got list of shape \? for 2 texts"),
        (np.array([[1, np.nan], [1, 2]]), "the encoder returned NaN or infinity"),
        (np.array([[1, 2], [np.inf, 2]]), "the encoder returned NaN or infinity"),
    ],
)
def test_what_is_no_row_of_numbers_for_each_text_is_refused(vectors, problem):
    with pytest.raises(InputError, match=problem) as raised:
        embed_unit(types.SimpleNamespace(embed=lambda texts: vectors), ["a", "b"], "model:m")
    assert raised.value.path == "model:m"


def open_another(name):
    return types.SimpleNamespace(digest=f"digest of {name}")


def test_an_encoder_is_opened_once_for_each_job(monkeypatch):
    assert (open_encoder.__module__, open_encoder.__name__) == encoders._OPENER
    monkeypatch.setattr(encoders, "_OPENER", (__name__, "open_another"))
    encoders.opened.cache_clear()
    assert encoders.digest("a") == "digest of a"
    first = encoders.opened("a")
    assert first is encoders.opened("a")
    assert first is not encoders.opened("a", "another job")
    encoders.opened.cache_clear()


@pytest.mark.parametrize("name", ["tfidf", "lsa", "lsa:7"])
def test_encoders_whose_vectors_depend_on_the_other_texts_are_refused(name):
    with pytest.raises(InputError, match=f"--encoder: {name} gives a text another vector in each shard"):
        open_encoder(name)
