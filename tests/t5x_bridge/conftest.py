"""The toy corpus of the tests of `learning`."""

import importlib.util

import numpy as np
import pytest
import toy_corpus as toy
from json_lines import write_rows
from newsembed.learning.options import DataOptions, ModelOptions
from newsembed.t5x_bridge.recipe import make_recipe

if importlib.util.find_spec("seqio") is None:  # on Python 3.13
    collect_ignore = ["test_datasets.py", "test_evaluator.py", "test_gin_files.py", "test_inference.py"]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A data folder with held-out examples, and a vocabulary."""
    folder = tmp_path_factory.mktemp("t5x")
    data = toy.write_corpus(folder / "data")
    toy.write_corpus(folder / "data" / "held_out", seed=1, count=9)
    return data, toy.write_vocabulary(folder / "vocab.txt")


@pytest.fixture(scope="session")
def articles(tmp_path_factory):
    """Articles of four events, of words of the toy vocabulary."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(12):
        words = [f"w{word}" for word in rng.integers(0, 50, 4 + number % 7)]  # rows of 10 to 16 tokens
        row = {"id": str(number), "title": " ".join(words[:3]), "body": " ".join(words), "event": f"e{number % 4}"}
        row |= {"url": f"https://a.example/{number}", "publisher": "a", "language": "en", "byline_date": "2026-01-01"}
        rows.append(row)
    return write_rows(tmp_path_factory.mktemp("articles") / "articles.jsonl", rows)


@pytest.fixture(scope="session")
def make(corpus):
    """Makes the recipe of a mixture."""

    def make(mixture="weak_supervision", objectives=(), **changes):
        data_dir, vocabulary = corpus
        data = DataOptions(data_dir, vocabulary, mixture, toy.LENGTHS, 8)
        model = ModelOptions(lambda vocab_size: toy.toy_config(vocab_size=vocab_size, **changes))
        return make_recipe(vocabulary, model, data, objectives)

    return make
