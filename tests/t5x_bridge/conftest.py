"""The toy corpus of the tests of `learning`."""

import pytest
import toy_corpus as toy  # noqa: E402
from newsembed.learning.options import DataOptions, ModelOptions  # noqa: E402
from newsembed.t5x_bridge.recipe import make_recipe  # noqa: E402


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A data folder with held-out examples, and a vocabulary."""
    folder = tmp_path_factory.mktemp("t5x")
    data = toy.write_corpus(folder / "data")
    toy.write_corpus(folder / "data" / "held_out", seed=1, count=9)
    return data, toy.write_vocabulary(folder / "vocab.txt")


@pytest.fixture(scope="session")
def make(corpus):
    """Makes the recipe of a mixture."""

    def make(mixture="weak_supervision", objectives=(), **changes):
        data_dir, vocabulary = corpus
        data = DataOptions(data_dir, vocabulary, mixture, toy.LENGTHS, 8)
        model = ModelOptions(lambda vocab_size: toy.toy_config(vocab_size=vocab_size, **changes))
        return make_recipe(vocabulary, model, data, objectives)

    return make
