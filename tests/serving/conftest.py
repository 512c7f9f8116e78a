"""A tiny model in a folder as the trainer leaves it, and articles to embed."""

import hashlib
import json
from types import SimpleNamespace

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import linen as nn
from json_lines import write_rows
from newsembed.models.encoders import named_kind
from small_encoders import small

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES += [
    *"abcdefghijklmnopqrstuvwxyz0123456789.,!",
    *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"),
]
PIECES += "storm coast wind rain budget vote parliament match goal cup the of in küste 嵐".split()
CONFIG = small(len(PIECES), max_length=48, num_topics=3)
ARTICLES = [
    ("Storm hits the coast", "Wind and rain.", "a.example", "2024-01-01"),
    ("Coast storm", "The wind of the storm.", "b.example", "2024-01-02"),
    ("Budget vote", "Parliament in a budget vote.", "a.example", "2024-01-03"),
    ("Cup match", "A goal in the match.", "c.example", None),
    ("Storm hits the coast", "Wind and rain.", "d.example", "2024-03-01"),
]


def save_model(folder, config=CONFIG, steps=(10, 20), *, boxed=False):
    """Writes a model folder with different parameters at each step; returns the unboxed parameters by step."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = "".join(f"{piece}\n" for piece in PIECES).encode()
    (folder / "vocab.txt").write_bytes(vocabulary)
    description = {
        "kind": named_kind(config),
        "encoder": config.to_dict(),
        "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
    }
    (folder / "model.json").write_text(json.dumps(description))
    saved = {}
    for step in steps:
        shapes = jax.eval_shape(config.module().init, jax.random.key(0), np.zeros((1, 4), np.int32))["params"]
        rng = np.random.default_rng(step)
        params = jax.tree.map(lambda spec: jax.device_put(rng.normal(0, 0.5, spec.shape).astype(np.float32)), shapes)  # noqa: B023 - called at once
        saved[step] = jax.tree.map(np.asarray, nn.meta.unbox(params))
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(folder / "checkpoints" / str(step) / "params", params if boxed else nn.meta.unbox(params))
    return saved


def describe(folder, encoder=(), **values):
    """Changes values of a model's description, and of its encoder's."""
    path = folder / "model.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "encoder": {**found["encoder"], **dict(encoder)}, **values}))
    return str(folder)


def made(folder, config=CONFIG, **values):
    """The path of a model of one step that has these values in its description."""
    save_model(folder, config, steps=(20,))
    return describe(folder, **values)


@pytest.fixture(scope="session")
def tiny():
    """The helpers above: pytest's importlib mode lets no test import its conftest."""
    return SimpleNamespace(
        config=CONFIG, pieces=PIECES, articles=ARTICLES, save_model=save_model, describe=describe, made=made
    )


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_model(folder)
    return str(folder)


@pytest.fixture(scope="session")
def articles(tmp_path_factory):
    names = ("title", "body", "publisher", "byline_date")
    rows = [dict(zip(names, values, strict=True)) for values in ARTICLES]
    rows = [{"url": f"https://{row['publisher']}/{number}", **row} for number, row in enumerate(rows)]
    return write_rows(tmp_path_factory.mktemp("articles") / "articles.jsonl", rows)
