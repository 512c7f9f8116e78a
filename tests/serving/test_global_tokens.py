"""A news encoder with windows and a global [CLS]: saved, loaded and exported, with the same vectors each time."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from newsembed.formats import files, parquet
from newsembed.formats.model_folder import ModelDescription, ModelFolder
from newsembed.formats.records import Article, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.models.encoders.news import EncoderConfig
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.tasks.vocabulary import Vocabulary

PIECES = [*SPECIAL_TOKENS, "storm", "coast", "wind", "vote", "."]
CONFIG = EncoderConfig(
    vocab_size=len(PIECES),
    hidden_size=16,
    num_layers=2,
    num_heads=2,
    mlp_size=16,
    max_length=40,
    embedding_size=8,
    num_topics=2,
    local_distance=2,
    global_every=0,
    global_tokens=1,
)
TITLES, BODIES = ["Storm", "", "vote"], ["coast . wind . " * 7 + "vote", "vote", "coast " * 99]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("long"))
    vocabulary = Vocabulary(PIECES)
    description = ModelDescription(CONFIG.to_dict(), vocabulary.digest, 40, CONFIG.kind)
    ModelFolder(path).write_description(description, "".join(f"{piece}\n" for piece in PIECES).encode())
    params = nn.unbox(jax.jit(CONFIG.module().init)(jax.random.key(0), np.ones((1, 4), np.int32)))["params"]
    params = jax.tree.map(lambda array: np.asarray(array * 4 if array.ndim > 1 else array), params)
    ModelFolder(path).write_import(params, "", {})
    return path


def test_the_encoder_of_a_folder_has_its_window_and_global_token(folder):
    encoder = load_encoder(folder)
    assert encoder.model.config == CONFIG
    vectors = encoder.encode(TITLES, BODIES)
    found = Vocabulary(PIECES).encode_documents(TITLES, BODIES, 40)
    rows = np.stack([np.pad(row, (0, 40 - len(row))) for row in found]).astype(np.int32)
    params = {"params": jax.tree.map(jnp.asarray, encoder.model.params)}

    def embed(config):
        return np.asarray(jax.jit(lambda tokens: config.module().apply(params, tokens, method="embed"))(rows))

    np.testing.assert_allclose(vectors, embed(CONFIG), atol=1e-5)
    whole = dataclasses.replace(CONFIG, local_distance=0, global_every=1, global_tokens=0)
    assert np.abs(embed(whole)[0] - vectors[0]).max() > 1e-4  # ten times the tolerance


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with articles of three themes and a model that was trained on their halves."""
    root = tmp_path_factory.mktemp("halves")
    themes = ["storm coast wind", "vote budget party", "match goal cup"]
    bodies = [" ".join(f"{word.title()} {themes[n % 3]} ." for word in themes[n % 3].split()) for n in range(12)]
    articles = [{"url": f"http://x.example/{n}", "title": "", "body": body} for n, body in enumerate(bodies)]
    (root / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in articles))
    words = [*SPECIAL_TOKENS, *" ".join(themes).split(), ".", "##s"]
    (root / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    rows = [
        Article(make_doc_id(row["url"]), row["url"], "x", title="", body=row["body"], language="en") for row in articles
    ]
    parquet.write_shard(f"{root}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    files.write_json(f"{root}/clean/manifest.json", {"digest": "clean"})
    job = ["pairs", "--of=halves", "--articles", f"{root}/clean", "--vocabulary", f"{root}/vocab.txt"]
    assert cli.main([*job, "--output", f"{root}/pairs", "--direct_num_workers=1"]) == 0
    values = {
        "MODEL_DIR": f"'{root}/model'",
        "DATA_DIR": f"'{root}/pairs'",
        "VOCABULARY_PATH": f"'{root}/vocab.txt'",
        "TASK_FEATURE_LENGTHS": "{'anchor_tokens': 16, 'positive_tokens': 16}",
        "TEXT_LENGTH": 32,
        "BATCH_SIZE": 8,
        "TRAIN_STEPS": 2,
        "CHECKPOINT_PERIOD": 2,
        "MLM_WEIGHT": 0.0,
        "NUM_TOPICS": 2,
        "EncoderConfig.num_layers": 1,
        "EncoderConfig.hidden_size": 8,
        "EncoderConfig.embedding_size": 8,
        "EncoderConfig.mlp_size": 8,
        "EncoderConfig.local_distance": 2,
        "EncoderConfig.global_every": 0,
        "EncoderConfig.global_tokens": 1,
    }
    bindings = [f"--gin.{name}={value}" for name, value in values.items()]
    assert cli.main(["train", "--gin_file=runs/simlte_small.gin", *bindings]) == 0
    return root


def test_a_model_of_halves_exports_and_finds_the_articles_of_a_theme(trained, tmp_path, capsys):
    config = json.loads((trained / "model/model.json").read_text())["encoder"]
    assert (config["local_distance"], config["global_every"], config["global_tokens"]) == (2, 0, 1)
    model, text = str(trained / "model"), "vote budget party . budget vote party ."
    assert cli.main(["export", "--model", model, "--output", str(tmp_path / "saved")]) == 0
    vectors = load_encoder(model).encode(["", ""], [text, "goal"])
    np.testing.assert_allclose(
        SavedModelEncoder(str(tmp_path / "saved")).encode(["", ""], [text, "goal"]), vectors, atol=1e-5
    )
    index = str(tmp_path / "index")
    assert cli.main(["index", "--input", f"{trained}/articles.jsonl", "--model", model, "--output", index]) == 0
    capsys.readouterr()
    assert cli.main(["search", "--index", index, "--mode", "vectors", "--count", "4", "--json", text]) == 0
    found = {row["url"] for row in json.loads(capsys.readouterr().out)}
    assert found == {f"http://x.example/{number}" for number in (1, 4, 7, 10)}
