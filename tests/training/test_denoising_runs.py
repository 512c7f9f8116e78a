"""Runs of the denoising auto-encoder: the bias from the first texts, resuming, and what its model is used for."""

import jax
import numpy as np
import pytest
from json_lines import read_rows
from newsembed.launch import cli
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.server import Service, create_app
from newsembed.training.gin_config import run_training
from toy_corpus import LENGTH, VOCAB_SIZE, bindings_of, saved_params, write_corpus, write_vocabulary


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains to each of some steps in turn; returns the folder."""
    folder = tmp_path_factory.mktemp("denoising")
    data, vocabulary = write_corpus(folder / "data"), write_vocabulary(folder / "vocab.txt")

    def run(name, *steps, **changes):
        for count in steps:
            values = {
                "TRAIN_STEPS": count,
                "LOG_PERIOD": 1,
                "EMBEDDING_SIZE": 8,
                "MAX_LENGTH": LENGTH,
                "WHITENING_ROWS": 40,
                "TASK_FEATURE_LENGTHS": dict.fromkeys(["anchor_tokens", "positive_tokens", "negative_tokens"], LENGTH),
            } | changes
            run_training(["runs/okura_small.gin"], bindings_of(folder / name, data, vocabulary, **values))
        return folder / name

    return run


@pytest.fixture(scope="module")
def trained(train):
    return train("whole", 6)


def test_a_resumed_run_ends_bit_identical(train, trained):
    jax.tree.map(np.testing.assert_array_equal, saved_params(train("resumed", 2, 4, 6), 6), saved_params(trained, 6))


def test_it_logs_both_terms_and_descends_by_sgd(train, trained):
    names = {name.split("/")[0] for row in read_rows(trained / "metrics.jsonl") for name in row}
    assert {"loss", "reconstruction", "similarity_loss", "accuracy"} <= names
    still = train("still", 2, LEARNING_RATE=0.0)
    fresh = saved_params(still, 2)
    assert fresh["decoder_bias"].shape == (VOCAB_SIZE,)
    assert fresh["decoder_bias"].std() > 0.1  # from the texts, not 0
    assert np.abs(saved_params(trained, 6)["encoder_kernel"] - fresh["encoder_kernel"]).max() > 1e-3


TEXTS = ["w1 w2 w3 w4", "w40 w41 w42", "w1 w2 w3 w9", "words outside the vocabulary", "w50 w51 w40"]


@pytest.fixture(scope="module")
def saved_model(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "saved_model"
    assert cli.main(["export", "--model", str(trained), "--output", str(folder)]) == 0
    return str(folder)


def test_the_saved_model_equals_it_and_embeds_raw_strings_over_http(trained, saved_model):
    from fastapi.testclient import TestClient

    ours = load_encoder(str(trained)).encode([""] * len(TEXTS), TEXTS)
    assert not ours[3].any()
    exported = SavedModelEncoder(saved_model)
    np.testing.assert_allclose(exported.encode([""] * len(TEXTS), TEXTS), ours, atol=1e-6)
    with TestClient(create_app(Service(exported)), base_url="http://localhost") as client:
        served = client.post("/embed", json={"documents": [{"title": "", "body": text} for text in TEXTS]})
    np.testing.assert_allclose(served.json()["embeddings"], ours, atol=1e-6)
