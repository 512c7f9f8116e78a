"""A static model and a few articles on disk, made without JAX and TensorFlow."""

import hashlib
import json

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.formats.arrays import write_safetensors

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,!"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS[:36])]
PIECES += ["storm", "coast", "wind", "rain", "budget", "vote", "the", "of", "in"]
ENCODER = {
    "vocab_size": len(PIECES),
    "hidden_size": 16,
    "num_layers": 0,
    "num_heads": 1,
    "mlp_size": 1,
    "max_length": 64,
    "embedding_size": 8,
    "num_topics": 1,
    "norm": "pre",
    "pooling": "mean",
    "positions": "rotary",
}
ARTICLES = [
    ("Storm hits the coast", "Wind and rain.", "a.example", "2024-01-01"),
    ("Coast storm", "The wind of the storm.", "b.example", "2024-01-02"),
    ("Budget vote", "The house in a budget vote.", "a.example", "2024-01-03"),
    ("Vote of budget", "A vote in the rain.", "c.example", "2024-03-01"),
]


@pytest.fixture(scope="session")
def static_model(tmp_path_factory):
    """The folder of a safetensors export."""
    folder = tmp_path_factory.mktemp("static")
    vocabulary = "".join(f"{piece}\n" for piece in PIECES).encode()
    (folder / "vocab.txt").write_bytes(vocabulary)
    description = {"encoder": ENCODER, "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest()}
    (folder / "model.json").write_text(json.dumps(description))
    rng, hidden = np.random.default_rng(0), ENCODER["hidden_size"]
    arrays = {
        "token_embedding": rng.normal(size=(len(PIECES), hidden)),
        "mlm_bias": np.zeros(len(PIECES)),
        "output_norm.scale": np.ones(hidden),
        "output_norm.bias": np.zeros(hidden),
        "embedding_head.kernel": rng.normal(size=(hidden, ENCODER["embedding_size"])),
        "embedding_head.bias": np.zeros(ENCODER["embedding_size"]),
    }
    write_safetensors(
        str(folder / "model.safetensors"), {name: array.astype(np.float32) for name, array in arrays.items()}, {}
    )
    return str(folder)


@pytest.fixture(scope="session")
def article_rows():
    names = ("title", "body", "publisher", "byline_date")
    rows = [dict(zip(names, values, strict=True)) for values in ARTICLES]
    return [{"url": f"https://{row['publisher']}/{number}"} | row for number, row in enumerate(rows)]


@pytest.fixture(scope="session")
def article_file(tmp_path_factory, article_rows):
    return write_rows(tmp_path_factory.mktemp("articles") / "articles.jsonl", article_rows)
