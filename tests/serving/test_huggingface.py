"""Hugging Face folders: what sentence-transformers reads gives our embeddings; the tokenizer splits text as ours."""

import dataclasses
import functools
import json
import os
import stat

import jax
import numpy as np
import pytest
import safetensors.numpy
from letters import run
from newsembed.errors import InputError
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.models.attention import term_weights
from newsembed.serving import export, huggingface
from newsembed.serving.encoder import load_encoder
from newsembed.tasks import huggingface_tokenizer
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.training.huggingface import read_huggingface
from reference_encoders import PREFIXES, forward
from tokenizers import Tokenizer

TITLES = ["Storm hits the coast", "", "Budget", "", "goal " * 200]
BODIES = ["Wind and rain.", "a goal in the match", "", "", "the vote of parliament, 2024. " * 9]


WEIGHTED = {"norm": "pre", "pooling": "weighted"}


def converted(model, output):
    """The exit status of the command."""
    return run(export, "--model", model, "--output", output, "--format", "huggingface")


def as_sentence_transformers(folder, titles, bodies):
    """Transformer, Pooling, Dense and Normalize from the files: `tokenizers` and the NumPy reference of the paper."""

    def read(path):
        return json.loads(path.read_text())

    values = read(folder / "config.json")
    of_kind = {one["type"].rpartition(".")[2]: folder / one["path"] for one in read(folder / "modules.json")}
    kinds = "Transformer Pooling Dense Normalize".split()
    assert [kind for kind in of_kind if kind not in ("WordWeights", "TextWeights")] == kinds
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    length = read(folder / "sentence_bert_config.json")["max_seq_length"]
    tokenizer.enable_truncation(length, strategy="longest_first")
    prefix = PREFIXES[values["model_type"]]
    load, width = safetensors.numpy.load_file, values["hidden_size"]
    arrays = {f"{prefix}{name}": array for name, array in load(folder / "model.safetensors").items()}
    # The reference computes a masked-LM head, too, which these folders leave out.
    head = {f"transform.LayerNorm.{name}": width for name in ("weight", "bias")}
    head |= {"transform.dense.weight": (width, width), "transform.dense.bias": 1, "bias": values["vocab_size"]}
    arrays |= {f"cls.predictions.{name}": np.zeros(shape) for name, shape in head.items()}
    pooling = read(of_kind["Pooling"] / "config.json")
    dense = load(of_kind["Dense"] / "model.safetensors")
    weights, terms = np.ones(values["vocab_size"]), {"lead_length": 0, "sublinear": False}
    if "WordWeights" in of_kind:
        weights = load(of_kind["WordWeights"] / "model.safetensors")["emb_layer.weight"][:, 0]
        by_piece = read(of_kind["WordWeights"] / "config.json")
        np.testing.assert_allclose([by_piece["word_weights"][piece] for piece in by_piece["vocab"]], weights, rtol=1e-6)
    if "TextWeights" in of_kind:
        assert "text_weights.TextWeights" in (folder / "modules.json").read_text()
        weights = load(of_kind["TextWeights"] / "model.safetensors")["weights"]
        terms = read(of_kind["TextWeights"] / "config.json")
        compile((folder / "text_weights.py").read_text(), "text_weights.py", "exec")
    vectors = []
    for title, body in zip(titles, bodies, strict=True):
        tokens = tokenizer.encode(title, body).ids if title and body else tokenizer.encode(title or body).ids
        hidden = forward(values, arrays, [tokens])[0][0]
        row = np.array([tokens])
        weighed = np.asarray(term_weights(row, np.ones_like(row), **terms))[0] * weights[tokens]
        vector = hidden[0] if pooling["pooling_mode_cls_token"] else np.average(hidden, axis=0, weights=weighed)
        vectors.append(vector @ dense["linear.weight"].T + dense["linear.bias"])
    return np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("changes", "model_type"),
    [
        ({"norm": "post", "pooling": "cls"}, "bert"),
        ({"norm": "pre", "pooling": "mean"}, "megatron-bert"),
        (WEIGHTED, "megatron-bert"),
        ({**WEIGHTED, "lead_length": 3, "sublinear": True}, "megatron-bert"),
        ({**WEIGHTED, "sublinear": True, "num_layers": 0, "positions": "rotary"}, "megatron-bert"),
    ],
    ids=["cls", "mean", "weighted", "terms", "static"],
)
def test_the_folder_computes_our_embeddings_and_reads_back(tiny, tmp_path, changes, model_type, capsys):
    config = dataclasses.replace(tiny.config, **changes)
    source, output = tmp_path / "model", tmp_path / "folder"
    tiny.save_model(source, config)
    assert converted(source, output) == 0
    assert "step 20 exported" in capsys.readouterr().out
    assert json.loads((output / "config.json").read_text())["model_type"] == model_type
    encoder = load_encoder(str(source))
    for texts in ((TITLES[:4], BODIES[:4]), ([""], BODIES[-1:])):  # texts that fit, and one that is cut
        np.testing.assert_allclose(as_sentence_transformers(output, *texts), encoder.encode(*texts), atol=1e-4)
    again = read_huggingface(str(output), num_topics=config.num_topics)
    # Without layers there are no positions; the folder has them, all 0.
    assert again.config == dataclasses.replace(config, dropout_rate=again.config.dropout_rate, positions="learned")
    is_static = config.num_layers == 0
    assert not is_static or not again.params.pop("position_embedding").any()
    assert again.vocabulary.content == (source / "vocab.txt").read_bytes()
    # The masked-LM head stays behind.
    body = {name: value for name, value in encoder.model.params.items() if name != "mlm_bias"}
    # The weights of pieces pass through their logarithm and back.
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6), again.params, body)


def test_the_folder_has_a_model_card_and_may_be_read_by_others(model_dir, tmp_path):
    before = os.umask(0o022)
    try:
        assert converted(model_dir, tmp_path / "our-encoder") == 0
    finally:
        os.umask(before)
    card = (tmp_path / "our-encoder" / "README.md").read_text()
    front, _, text = card.removeprefix("---\n").partition("\n---\n")
    assert "library_name: sentence-transformers" in front.splitlines()
    encoder = load_encoder(model_dir)
    assert f"{encoder.dimensions} numbers of unit length" in text
    assert f"`{encoder.digest[:16]}" in text
    assert 'SentenceTransformer("our-encoder"' in text
    files = [path for path in (tmp_path / "our-encoder").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o644}


def test_the_tokenizer_cuts_text_as_ours_does(tiny):
    letters = dict.fromkeys("abcdefghijklmnopqrstuvwxyzäöüéß0123456789.,:'-σιεπνο京都서울")
    pieces = [*SPECIAL_TOKENS, *letters, "##s", "##ss", "##t", "##r"]
    vocabulary = Vocabulary(pieces)
    tokenizer = huggingface_tokenizer.own_tokenizer(pieces)
    texts = [*huggingface.TEXTS, "STRASSE Straße", "a\u0007b c\u00add e\ufe0f", "ΣΑΣ"]
    texts += ["x" * 401, "a" * 399, "[MA SK]", "été É"]
    for text, expected in zip(texts, vocabulary.encode_texts(texts), strict=True):
        assert tokenizer.encode(text, add_special_tokens=False).ids == expected.tolist(), text
    pair = tokenizer.encode("a b", "c")
    assert pair.ids == vocabulary.encode_documents(["a b"], ["c"], 20)[0].tolist()
    assert set(pair.type_ids) == {0}


def test_a_tokenizer_that_differs_is_no_export(model_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_tokenizer, "_FOLDED", (("s", "t"),))
    with pytest.raises(RuntimeError, match="the exported tokenizer splits 'Storm reaches"):
        converted(model_dir, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_what_transformers_cannot_compute_is_refused(tiny, tmp_path):
    tiny.save_model(tmp_path / "model", dataclasses.replace(tiny.config, positions="rotary"), steps=(1,))
    with pytest.raises(
        InputError, match=r"model\.json: EncoderConfig\.positions: got 'rotary' with norm = 'post', expected 'learned'"
    ):
        converted(tmp_path / "model", tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
