"""The mteb adapter: batches in mteb's form become one matrix, and what cannot work there is refused."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.encoders import TfidfEncoder
from newsembed.evaluation.mteb_adapter import MtebModel


class Lengths:
    digest = "lengths"

    def encode(self, documents):
        return np.array([[len(d.title), len(d.body), 1] for d in documents], np.float32)


def test_batches_become_one_matrix_of_unit_rows():
    batches = [
        {"text": ["abc", ""]},
        {"text": ["t b"], "title": ["tt"], "body": ["b"]},
        {"text": ["xy"], "title": [None], "body": ["xy"]},
    ]
    rows = MtebModel(Lengths(), "newsembed/x").encode(
        batches, task_metadata=None, hf_split="test", hf_subset="en", prompt_type=None
    )
    expected = np.array([[0, 3, 1], [0, 0, 0], [2, 1, 1], [0, 2, 1]], np.float32)
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(rows, expected / np.where(norms > 0, norms, 1))
    assert MtebModel(Lengths(), "newsembed/x").encode(["abc"]).shape == (1, 3)


def test_similarities_are_cosines():
    model = MtebModel(Lengths(), "newsembed/x")
    one, two = np.array([[1.0, 0], [2, 2]]), np.array([[0.0, 3], [1, 1]])
    assert np.allclose(model.similarity(one, two), [[0, 0.5**0.5], [0.5**0.5, 1]])
    assert np.allclose(model.similarity_pairwise(one, two), [0, 1])
    assert model.similarity(one[0], two).shape == (1, 2)


def test_what_cannot_work_is_refused():
    with pytest.raises(InputError, match="as a whole"):
        MtebModel(TfidfEncoder(), "newsembed/tfidf")
    with pytest.raises(InputError, match="organisation/model"):
        MtebModel(Lengths(), "trained")
    with pytest.raises(InputError, match="without text"):
        MtebModel(Lengths(), "newsembed/x").encode([{"image": [1]}])
    with pytest.raises(InputError, match="no documents"):
        MtebModel(Lengths(), "newsembed/x").encode([{"text": [" "]}])
