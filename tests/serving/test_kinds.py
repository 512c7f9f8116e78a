"""Encoders of every kind: folder and SavedModel give strings the same vectors; an index of them is searched."""

import json

import numpy as np
import pytest
from drawn_parameters import drawn, write_model
from json_lines import write_rows
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.models.encoders import (
    AttentiveConfig,
    AutoencoderConfig,
    BilingualConfig,
    ContextConfig,
    ConvolutionConfig,
    EncoderConfig,
    LaserConfig,
    RecurrentConfig,
    StarConfig,
    TranslatorConfig,
    named_kind,
)
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder

PIECES = [*SPECIAL_TOKENS, "storm", "sturm", "coast", "wind", "vote", "cup", "goal", "."]
SIZES = {"vocab_size": len(PIECES), "num_languages": 3, "language_size": 4, "max_length": 32}
TRANSLATOR = TranslatorConfig(**SIZES, hidden_size=8, num_layers=3, num_heads=2, mlp_size=12)
CONTEXT = {f"context_{name}": 8 for name in ("size", "mlp_size", "window")} | {"context_layers": 1, "context_heads": 2}
CONTEXT |= {"hidden_size": 8, "num_heads": 1, "embedding_size": 8, "num_topics": 2}
NEWS = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "mlp_size": 16, "embedding_size": 8, "num_topics": 2}
CONFIGS = {
    "translator": TRANSLATOR,
    "laser": LaserConfig(**SIZES, token_size=6, hidden_size=5, num_layers=2, decoder_size=7),
    "attentive": AttentiveConfig(len(PIECES), max_length=32, token_size=6, hidden_size=5),
    "bilingual": BilingualConfig(len(PIECES), max_length=32, token_size=6, hidden_size=5, vector_size=4),
    "star": StarConfig(len(PIECES), max_length=32, hidden_size=8, num_heads=2),
    "convolution": ConvolutionConfig(len(PIECES), max_length=32, hidden_size=8, filters=4),
    "recurrent": RecurrentConfig(len(PIECES), max_length=32, hidden_size=8),
    "autoencoder": AutoencoderConfig(len(PIECES), embedding_size=8, max_length=32),
    "context": ContextConfig(len(PIECES), max_length=32, pooling="weighted", **CONTEXT),
    "windows and a global token": EncoderConfig(
        len(PIECES), max_length=32, **NEWS, local_distance=2, global_every=0, global_tokens=1
    ),
}
TITLES, BODIES = ["Storm", "", "vote", "Goal"], ["coast . wind . " * 3, "Sturm", "vote", "cup " * 99]


# The longest to compile of each family is for `make attack`.
LONG = ("laser", "attentive", "recurrent")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in CONFIGS])
def folder(request, tmp_path):
    config = CONFIGS[request.param]
    return config, write_model(tmp_path / "model", config, PIECES, 24, drawn(config, deviation=0.3))


def test_raw_strings_go_through_export_index_and_search(folder, tmp_path, capsys):
    config, model = folder
    saved, index = str(tmp_path / "saved"), str(tmp_path / "index")
    assert cli.main(["export", "--model", model, "--platforms", "cpu", "--output", saved]) == 0
    encoder = SavedModelEncoder(saved)
    assert encoder.facts["kind"] == named_kind(config)
    vectors = load_encoder(model).encode(TITLES, BODIES)
    difference = 1e-6 if isinstance(config, AutoencoderConfig) else 1e-5  # a sum of words, without layers
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), vectors, atol=difference)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.abs(vectors @ vectors.T - np.eye(len(vectors))).min() < 0.999  # the texts do not share one vector
    if config is not TRANSLATOR:
        return
    rows = zip(TITLES, BODIES, strict=True)
    articles = [{"url": f"http://x.example/{n}", "title": title, "body": body} for n, (title, body) in enumerate(rows)]
    write_rows(tmp_path / "articles.jsonl", articles)
    given = ["--input", str(tmp_path / "articles.jsonl"), "--saved_model", saved]
    assert cli.main(["index", *given, "--output", index]) == 0
    capsys.readouterr()
    query = ["--mode", "vectors", "--count", "4", "--json", "sturm"]
    assert cli.main(["search", "--index", index, *query]) == 0
    found = [row["url"] for row in json.loads(capsys.readouterr().out)]
    (asked,) = encoder.encode([""], ["sturm"])
    assert found == [articles[number]["url"] for number in np.argsort(-(vectors @ asked))]
