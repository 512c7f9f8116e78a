"""Runs of the denoising auto-encoder: the bias from the first texts, resuming, and what its model is used for."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.learning.partitioning import Partitioner
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.server import Service, create_app
from newsembed.training.run import run_training
from newsembed.training.word_shares import start_decoder_bias
from toy_corpus import LENGTH, VOCAB_SIZE, saved_params, write_corpus, write_vocabulary


@pytest.mark.parametrize("devices", [1, 4])
def test_the_bias_is_the_log_odds_of_the_texts_with_each_word(devices):
    rng = np.random.default_rng(0)
    rows = [{"tokens": rng.integers(1, 9, (8, 12)).astype(np.int32)} for _ in range(3)]
    rows[0]["tokens"][1:4] = 0  # texts that are not there
    partitioner = Partitioner()
    mesh = partitioner.make_mesh(jax.devices()[:devices])
    params = {"decoder_bias": jnp.zeros(12), "other": jnp.ones(3)}
    started = start_decoder_bias(params, iter(rows), partitioner, mesh)
    texts = [set(row.tolist()) - {0} for part in rows for row in part["tokens"] if row.any()]
    assert len(texts) == 21
    for word in range(1, 12):
        share = (sum(word in text for text in texts) + 0.5) / 22
        assert started["decoder_bias"][word] == pytest.approx(np.log(share / (1 - share)), rel=1e-5, abs=1e-6)
    assert started["other"] is params["other"]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains to each of some steps in turn; returns the folder."""
    folder = tmp_path_factory.mktemp("denoising")
    data, vocabulary = write_corpus(folder / "data"), write_vocabulary(folder / "vocab.txt")

    def run(name, *steps, **changes):
        for count in steps:
            values = {
                "MODEL_DIR": str(folder / name),
                "DATA_DIR": data,
                "VOCABULARY_PATH": vocabulary,
                "TRAIN_STEPS": count,
                "BATCH_SIZE": 8,
                "CHECKPOINT_PERIOD": 2,
                "LOG_PERIOD": 1,
                "EMBEDDING_SIZE": 8,
                "MAX_LENGTH": LENGTH,
                "WHITENING_ROWS": 40,
                "TASK_FEATURE_LENGTHS": dict.fromkeys(["anchor_tokens", "positive_tokens", "negative_tokens"], LENGTH),
            } | changes
            run_training(["runs/okura_small.gin"], [f"{key} = {value!r}" for key, value in values.items()])
        return folder / name

    return run


@pytest.fixture(scope="module")
def trained(train):
    return train("whole", 6)


def test_a_resumed_run_ends_bit_identical(train, trained):
    jax.tree.map(np.testing.assert_array_equal, saved_params(train("resumed", 2, 4, 6), 6), saved_params(trained, 6))


def test_it_logs_both_terms_and_descends_by_sgd(train, trained):
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    names = {name.split("/")[0] for line in lines for name in line}
    assert {"loss", "reconstruction", "similarity_loss", "accuracy"} <= names
    still = train("still", 2, LEARNING_RATE=0.0)
    fresh = saved_params(still, 2)
    assert fresh["decoder_bias"].shape == (VOCAB_SIZE,)
    assert fresh["decoder_bias"].std() > 0.1  # from the texts, not 0
    assert np.abs(saved_params(trained, 6)["encoder_kernel"] - fresh["encoder_kernel"]).max() > 1e-3


def test_latent_semantics_are_refused(train):
    with pytest.raises(InputError, match="LATENT_SEMANTICS needs latent_semantics"):
        train("refused", 2, LATENT_SEMANTICS=True)


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


def test_it_is_indexed_and_searched_and_texts_without_words_are_found_last(saved_model, tmp_path, capsys):
    articles = tmp_path / "articles.jsonl"
    rows = [{"title": text, "body": "", "url": f"http://a.example/{number}"} for number, text in enumerate(TEXTS)]
    articles.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = str(tmp_path / "index")
    assert cli.main(["index", "--saved_model", saved_model, "--input", str(articles), "--output", index]) == 0
    search = ["search", "--index", index, "--json", "--mode=vectors", "--count=5", "w1 w2 w3 w4"]
    assert cli.main(search) == 0
    printed = capsys.readouterr().out
    titles = [hit["title"] for hit in json.loads(printed[printed.index("[") :])]
    assert titles[0] == TEXTS[0]
    assert len(SPECIAL_TOKENS) == 5
