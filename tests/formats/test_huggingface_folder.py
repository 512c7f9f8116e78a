"""Hugging Face folders are read as written."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.huggingface import (
    HuggingFaceFolder,
    SentenceModules,
    Tokenizer,
    read_huggingface,
    write_huggingface,
)
from newsembed.formats.model_folder import ModelFolder
from newsembed.formats.prompts import Prompts

PIECES = (b"[PAD]", "ü".encode(), b"##c")
SETTINGS = {"do_lower_case": True, "strip_accents": False}
TOKENIZER = Tokenizer(PIECES, b"{}", {"pad_token": "[PAD]"}, SETTINGS)
ARRAYS = {"embeddings.weight": np.arange(6, dtype=np.float32).reshape(3, 2)}


@st.composite
def modules(draw):
    floats = st.floats(0.125, 8, width=32)
    head = {}
    if draw(st.booleans()):
        head = {"kernel": np.array(draw(st.lists(floats, min_size=8, max_size=8)), np.float32).reshape(2, 4)}
        head["bias"] = np.array(draw(st.lists(floats, min_size=4, max_size=4)), np.float32)
    length = draw(st.integers(3, 512))
    if not draw(st.booleans()):
        head |= {"activation": draw(st.sampled_from(["identity", "tanh"]))} if head else {}
        pooling = draw(st.sampled_from(["cls", "mean", "max", "last"]))
        texts = draw(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3))
        prompts = Prompts(texts, draw(st.sampled_from([None, *texts])))
        return SentenceModules(pooling, text_length=length, prompts=prompts, **head)
    weights = np.array(draw(st.lists(floats, min_size=3, max_size=3)), np.float32)
    lead, sublinear = draw(st.integers(0, 9)), draw(st.booleans())
    return SentenceModules("mean", weights, lead, sublinear, text_length=length, **head)


def write(path, content):
    folder = HuggingFaceFolder(str(path), {"model_type": "bert"}, ARRAYS, TOKENIZER, content)
    write_huggingface(folder, hidden_size=2)
    return folder


@settings(deadline=None, max_examples=40)
@given(modules())
def test_a_folder_is_read_as_written(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("folder")
    written = write(path, content)
    assert ModelFolder(str(path)).is_huggingface
    found = read_huggingface(str(path))
    assert (found.path, found.config, found.tokenizer) == (written.path, written.config, written.tokenizer)
    np.testing.assert_array_equal(found.arrays["embeddings.weight"], ARRAYS["embeddings.weight"])
    for name in ("pooling", "lead_length", "sublinear", "text_length", "activation", "prompts"):
        assert getattr(found.modules, name) == getattr(content, name)
    for name in ("token_weights", "kernel", "bias"):
        expected = getattr(content, name)
        assert (getattr(found.modules, name) is None) == (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(getattr(found.modules, name), expected)


def test_the_modules_are_those_of_sentence_transformers(tmp_path):
    def kinds(name, content):
        (tmp_path / name).mkdir()
        write(tmp_path / name, content)
        return [module["type"] for module in json.loads((tmp_path / name / "modules.json").read_text())]

    library = "sentence_transformers.models."
    weights = np.ones(3, np.float32)
    head = {"kernel": np.ones((2, 4), np.float32), "bias": np.zeros(4, np.float32), "text_length": 9}
    around = [library + "Transformer"], [library + name for name in ("Pooling", "Dense", "Normalize")]
    assert kinds("cls", SentenceModules(**head)) == around[0] + around[1]
    words = SentenceModules("mean", weights, **head)
    assert kinds("words", words) == [*around[0], library + "WordWeights", *around[1]]
    texts = SentenceModules("mean", weights, 0, True, **head)
    assert kinds("texts", texts) == [*around[0], "text_weights.TextWeights", *around[1]]
    assert (tmp_path / "texts" / "text_weights.py").exists()
    assert not (tmp_path / "words" / "text_weights.py").exists()


def test_a_folder_of_ours_is_none_of_theirs(tmp_path):
    assert not ModelFolder(str(tmp_path)).is_huggingface
    (tmp_path / "config.json").write_text("{}")
    assert ModelFolder(str(tmp_path)).is_huggingface
    (tmp_path / "model.json").write_text("{}")
    assert not ModelFolder(str(tmp_path)).is_huggingface


@pytest.mark.parametrize(
    ("weights", "config", "message"),
    [
        (
            {"weights": np.array([1.0, 0.0, 2.0])},
            {},
            r"weights: got shape \[3\], the smallest 0\.0; expected \[3\], all positive",
        ),
        ({"emb_layer.weight": np.ones((1, 3))}, {}, r"got shape \[1, 3\].* expected \[3, 1\]"),
        ({"other": np.ones(3)}, {}, r"emb_layer\.weight: there is no such array"),
        ({"weights": np.ones(3)}, {"lead_length": -1}, "got lead_length = -1 and sublinear = False"),
        ({"weights": np.ones(3)}, {"sublinear": 1}, "got lead_length = 0 and sublinear = 1"),
    ],
)
def test_broken_weights_of_tokens_are_named(tmp_path, weights, config, message):
    from safetensors.numpy import save_file

    write(tmp_path, SentenceModules("mean", np.ones(3, np.float32), 2, text_length=9))
    save_file(
        {name: array.astype(np.float32) for name, array in weights.items()},
        tmp_path / "1_TextWeights/model.safetensors",
    )
    (tmp_path / "1_TextWeights/config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=message):
        read_huggingface(str(tmp_path))


def test_modules_that_newsembed_lacks_are_named(tmp_path):
    write(tmp_path, SentenceModules(text_length=9))
    (tmp_path / "modules.json").write_text(json.dumps([{"path": "", "type": "x.LSTM"}]))
    with pytest.raises(InputError, match=r"modules\.json: got the module LSTM, which newsembed lacks"):
        read_huggingface(str(tmp_path))
