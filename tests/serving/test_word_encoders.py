"""The encoders of word vectors are trained, resumed, exported and searched as every architecture is."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from newsembed.formats.manifest import DataSet, write_manifest
from newsembed.formats.tfrecords.writer import TFRecordShardWriter
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.tasks.pairs import PAIRS

WORDS = [f"w{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
PIECES = [*SPECIAL_TOKENS, *WORDS]
SHAPES = {
    "star": ("small", ["StarConfig.num_heads=2", "StarConfig.hidden_size=8"]),
    "convolution": ("cnn", ["ConvolutionConfig.hidden_size=8", "ConvolutionConfig.filters=4"]),
    "recurrent": ("gru", ["RecurrentConfig.hidden_size=8"]),
}


def texts(number):
    """Body and title of an article: words of its own theme."""
    theme = WORDS[number % 6 * 4 : number % 6 * 4 + 4]
    generator = np.random.default_rng(number)
    return " ".join(generator.choice(theme, 6)), " ".join(generator.choice(theme, 2))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    root = tmp_path_factory.mktemp("links")
    (root / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    writer = TFRecordShardWriter(str(root / f"data/{DataSet('pairs', 'en').stream}/part-00000-of-00001.tfrecord"))
    with writer:
        for number in range(48):
            body, title = ([CLS_ID, *(PIECES.index(word) for word in text.split()), SEP_ID] for text in texts(number))
            ids = (0, number)
            features = {"anchor_tokens": body, "positive_tokens": title, "language": "en", "day": number}
            writer.write(features | {"anchor_doc_id": ids, "positive_doc_id": ids}, PAIRS.features)
    write_manifest(str(root / "data"), {"examples": {"pairs/en": 48}})
    vectors = [
        f"{word} " + " ".join(f"{value:.4f}" for value in np.eye(8)[number // 4]) for number, word in enumerate(WORDS)
    ]
    (root / "vectors.txt").write_text("\n".join(vectors) + "\n")
    articles = [{"url": f"http://x.example/{n}", "title": texts(n)[1], "body": texts(n)[0]} for n in range(12)]
    (root / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in articles))
    return root


def train(corpus, name, shape, steps=4, *more):
    values = {
        "MODEL_DIR": f"'{corpus}/{name}'",
        "DATA_DIR": f"'{corpus}/data'",
        "VOCABULARY_PATH": f"'{corpus}/vocab.txt'",
        "TASK_FEATURE_LENGTHS": "{'anchor_tokens': 10, 'positive_tokens': 6}",
        "BATCH_SIZE": 16,
        "TRAIN_STEPS": steps,
        "CHECKPOINT_PERIOD": 2,
        "DECAY": "'constant'",
        "WHITENING_ROWS": 0,
        "LATENT_SEMANTICS": False,
    }
    bindings = [f"--gin.{key}={value}" for key, value in values.items()]
    file, sizes = SHAPES[shape]
    bindings += [f"--gin.{line}" for line in (*sizes, *more)]
    assert cli.main(["train", f"--gin_file=runs/ast_{file}.gin", *bindings]) == 0
    return f"{corpus}/{name}"


@pytest.mark.parametrize("shape", list(SHAPES))
def test_raw_strings_go_through_training_export_and_back(corpus, tmp_path, shape):
    model = train(corpus, f"trained_{shape}", shape, 4 if shape == "star" else 1)
    assert json.loads(Path(model, "model.json").read_text())["kind"] == shape
    encoder = load_encoder(model)
    assert cli.main(["export", "--model", model, "--output", str(tmp_path / "saved")]) == 0
    bodies = [texts(number)[0] for number in range(3)] + [""]
    whole, saved = encoder.encode(["wa", "", "we", ""], bodies), SavedModelEncoder(str(tmp_path / "saved"))
    np.testing.assert_allclose(saved.encode(["wa", "", "we", ""], bodies), whole, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)


def test_a_run_that_was_cut_off_ends_with_the_same_parameters(corpus):
    whole = train(corpus, "whole", "star")
    train(corpus, "cut", "star", 2)
    resumed = train(corpus, "cut", "star", 4)
    bodies = [texts(number)[0] for number in range(6)]
    np.testing.assert_array_equal(
        load_encoder(whole).encode([""] * 6, bodies), load_encoder(resumed).encode([""] * 6, bodies)
    )
    assert load_encoder(whole).digest == load_encoder(resumed).digest


def test_a_table_starts_from_word_vectors_and_posts_find_their_articles(corpus, tmp_path, capsys):
    model = train(corpus, "vectors", "star", 1, f"WORD_VECTORS='{corpus}/vectors.txt'", "LEARNING_RATE=1e-9")
    assert f"WORD_VECTORS: 26 of {len(PIECES)} word pieces start from" in capsys.readouterr().out
    table = np.asarray(load_encoder(model).model.params["token_embedding"])
    np.testing.assert_allclose(table[len(SPECIAL_TOKENS) :], np.eye(8)[np.arange(26) // 4], atol=1e-6)
    index = str(tmp_path / "index")
    assert cli.main(["index", "--input", f"{corpus}/articles.jsonl", "--model", model, "--output", index]) == 0
    capsys.readouterr()
    words = texts(3)[0]
    assert cli.main(["search", "--index", index, "--mode", "vectors", "--count", "2", "--json", words]) == 0
    found = {row["url"] for row in json.loads(capsys.readouterr().out)}
    assert found == {"http://x.example/3", "http://x.example/9"}
    shutil.rmtree(index)


def test_word_vectors_that_do_not_fit_are_refused(corpus, capsys):
    (corpus / "narrow.txt").write_text("wa 1 2 3\nwb 1 2 3\n")
    for file, problem in (("narrow.txt", "vectors of 3 numbers"), ("other.txt", "cannot be read")):
        with pytest.raises(AssertionError):
            train(corpus, f"bad_{file}", "star", 1, f"WORD_VECTORS='{corpus}/{file}'")
        assert problem in capsys.readouterr().err
