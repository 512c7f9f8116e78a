"""One batch of every task; makes `objective_runs` importable."""

import pytest


@pytest.fixture(scope="session")
def batches(tmp_path_factory):
    from toy_corpus import first_batch, write_corpus

    corpus = write_corpus(tmp_path_factory.mktemp("objectives") / "data")
    return {task: first_batch(corpus, task, 12) for task in ("mlm", "triplets", "topics")}
