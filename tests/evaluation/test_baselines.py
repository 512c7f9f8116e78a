"""LSA, word vectors, functions and sentence-transformers folders: vectors by hand, digests, and errors."""

import sys
import types

import numpy as np
import pytest
from newsembed.evaluation.baselines import (
    BinaryWordEncoder,
    FunctionEncoder,
    LsaEncoder,
    SentenceTransformerEncoder,
    WordVectorEncoder,
)
from newsembed.evaluation.encoders import Document, TfidfEncoder, encode_checked
from refusals import refuses

DOCUMENTS = [
    Document("Storm hits coast", "Wind and rain."),
    Document("", "Storm: Rain on the coast"),
    Document("Budget vote", "Met."),
]
GLOVE = "storm 1 0\ncoast 0 1\nStorm 3 0\n. . 5 5\nrain 0 3\n"


def test_lsa_with_all_dimensions_keeps_the_cosines_of_tfidf():
    words = TfidfEncoder().encode(DOCUMENTS).toarray()
    lsa = LsaEncoder(256).encode(DOCUMENTS)
    assert lsa.shape == (3, 3)
    assert lsa.dtype == np.float32
    assert np.allclose(lsa @ lsa.T, words @ words.T, atol=1e-5)
    assert LsaEncoder(2).encode(DOCUMENTS).shape == (3, 2)
    assert LsaEncoder(1).encode(DOCUMENTS).shape == (3, 1)
    assert np.array_equal(LsaEncoder(2).encode(DOCUMENTS), LsaEncoder(2).encode(DOCUMENTS))
    assert LsaEncoder(2).digest != LsaEncoder(3).digest


def test_binary_vectors_have_a_one_for_each_word_of_a_document():
    documents = [Document("Storm storm", "coast"), Document("", "The storm!"), Document("...", "")]
    vectors = BinaryWordEncoder().encode(documents)
    assert vectors.dtype == np.float32
    assert vectors.toarray().tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]  # coast, storm, the
    titles = BinaryWordEncoder(is_title_only=True)
    assert titles.encode(documents).toarray().tolist() == [[1], [0], [0]]
    assert {BinaryWordEncoder().digest, titles.digest} == {"binary-words", "binary-words-of-titles"}
    for encoder, remedy in ((BinaryWordEncoder(), "with text"), (titles, "with titles")):
        refuses(f"no document has words: .*\n.*give documents {remedy}", encoder.encode, documents[2:])


def test_word_vectors_are_averaged_by_hand(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text(GLOVE)
    rows = WordVectorEncoder(str(path)).encode(DOCUMENTS)
    # The file contains "Storm" as written, "Rain" only in lower case; unknown words do not count.
    assert rows.tolist() == [pytest.approx([1, 4 / 3]), pytest.approx([1, 4 / 3]), [0, 0]]
    path.write_text("foo 1 0\nbar 0 1\n")
    refuses("no word of the documents", WordVectorEncoder(str(path)).encode, DOCUMENTS)


MODULE = """
CALLS = []
def encode(texts):
    CALLS.append([len(text) for text in texts])
    return [[len(text), text.count("a")] for text in texts]
def short(texts):
    return [[1.0]] * (len(texts) - 1)
def flat(texts):
    return [1.0] * len(texts)
def nan(texts):
    return [[float("nan")]] * len(texts)
def ragged(texts):
    return [[1.0] * (1 + (len(texts) > 5))] * len(texts)
encode_v2 = lambda texts: encode(texts)
encode_v2.digest = "weights-2"
number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_encoders.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield "my_encoders"
    sys.modules.pop("my_encoders", None)


@pytest.mark.parametrize("name", ["my_encoders", "my_encoders.py"])
def test_a_function_gets_batches_by_length_and_rows_come_back_in_order(module, name):
    documents = [Document("a" * (1 + number * 7 % 100), "b") for number in range(150)]
    encoder = FunctionEncoder(f"{name}:encode")
    assert encoder.encode(documents).tolist() == [[len(d.text), d.text.count("a")] for d in documents]
    calls = encoder._function.__globals__["CALLS"]
    assert [len(call) for call in calls] == [64, 64, 22]
    lengths = [length for call in calls for length in call]
    assert lengths == sorted(lengths, reverse=True)


def test_function_digest_follows_source_or_attribute(module, tmp_path):
    first = FunctionEncoder("my_encoders.py:encode").digest
    assert FunctionEncoder("my_encoders.py:encode_v2").digest.endswith("weights-2")
    (tmp_path / "my_encoders.py").write_text(MODULE + "# changed\n")
    assert FunctionEncoder("my_encoders.py:encode").digest != first


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("short", "for 3 texts"),
        ("flat", "expected \\[3, D\\]"),
        ("nan", "NaN"),
        ("absent", "no function"),
        ("number", "no function"),
    ],
)
def test_bad_functions(module, name, message):
    refuses(message, lambda: encode_checked(FunctionEncoder(f"my_encoders:{name}"), DOCUMENTS))


def test_a_function_with_changing_width(module):
    refuses("1 columns after 2", FunctionEncoder("my_encoders:ragged").encode, DOCUMENTS * 22)


def test_sentence_transformers_folder(tmp_path, monkeypatch):
    class SentenceTransformer:
        def __init__(self, folder, *, local_files_only):
            assert local_files_only

        def encode(self, texts, **_):
            return np.array([[len(text), 1] for text in texts], np.float32)

    fake = types.ModuleType("sentence_transformers")
    fake.SentenceTransformer = SentenceTransformer
    fake.__spec__ = object()
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    (tmp_path / "config.json").write_text("{}")
    encoder = SentenceTransformerEncoder(str(tmp_path))
    assert encoder.encode(DOCUMENTS)[:, 0].tolist() == [len(d.text) for d in DOCUMENTS]
    before = encoder.digest
    (tmp_path / "config.json").write_text("{ }")
    assert SentenceTransformerEncoder(str(tmp_path)).digest != before


def test_sentence_transformers_refuses_without_folder_or_library(tmp_path, monkeypatch):
    refuses("no such folder", SentenceTransformerEncoder, str(tmp_path / "none"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    refuses("pip install sentence-transformers", SentenceTransformerEncoder, str(tmp_path))
