"""Suites for T5X's evaluator interface, with a stand-in for T5X's `predict_fn`: rows, scores, logs, bad options."""

import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import suites
from newsembed.evaluation.encoders import Document, normalised
from newsembed.serving import rows
from newsembed.t5x_bridge.evaluator import SuiteEvaluator
from newsembed.t5x_bridge.rows import ConverterClass

import toy_corpus as toy  # isort: skip


def predict(shapes):
    """Counts of each token as the embedding, in T5X's form: pairs in any order, lists of floats."""

    def embed(dataset):
        pairs = list(dataset.as_numpy_iterator())
        shapes.append((len(pairs), *pairs[0][1]["tokens"].shape))
        counts = [(int(n), np.bincount(row["tokens"], minlength=toy.VOCAB_SIZE)[5:13].tolist()) for n, row in pairs]
        return counts[::-1]

    return embed


def make_evaluator(make, articles, **options):
    recipe = make()
    values = {"suites": {"events": articles}} | options
    return SuiteEvaluator("any", ConverterClass(recipe)(), use_cached=False, seed=0, sequence_length=None, **values)


@pytest.mark.parametrize(("options", "length"), [({}, toy.LENGTH), ({"max_length": 14}, 14)])
def test_the_scores_are_those_of_the_suite_on_the_same_embeddings(
    make, articles, tmp_path, monkeypatch, options, length
):
    monkeypatch.setattr(rows, "SHORTEST_BUCKET", 12)  # rows of two lengths
    evaluator, shapes = make_evaluator(make, articles, log_dir=str(tmp_path / "log"), **options), []
    future, _ = evaluator.evaluate(compute_metrics=True, step=7, predict_fn=predict(shapes))
    found = {name: scalar.value for name, scalar in future.result()["events"].items()}

    from newsembed.tasks.vocabulary import Vocabulary

    benchmark = suites()["events"].make(articles, "events")
    documents = benchmark.documents()
    assert isinstance(documents[0], Document)
    vocabulary = Vocabulary.load(make().vocabulary.path)
    tokens = vocabulary.encode_documents([d.title for d in documents], [d.body for d in documents], length)
    counts = np.array([np.bincount(row, minlength=toy.VOCAB_SIZE)[5:13] for row in tokens], np.float32)
    scores = benchmark.score(normalised(counts))
    assert found == {s.metric if s.part == "all" else f"{s.metric}/{s.part}": s.value for s in scores}
    assert shapes == [(6, 12), (6, length)]
    (line,) = (tmp_path / "log" / "events-metrics.jsonl").read_text().splitlines()
    assert json.loads(line) == {"step": 7, **found}
    assert list((tmp_path / "log" / "events").glob("events.out.tfevents*"))


@pytest.mark.parametrize(
    ("suites", "problem"), [({}, "got no suites"), ({"evnts": "x"}, "got evnts, expected some of")]
)
def test_suites_that_do_not_exist_are_refused(make, suites, problem):
    with pytest.raises(InputError, match=problem):
        SuiteEvaluator("any", ConverterClass(make())(), suites=suites)
