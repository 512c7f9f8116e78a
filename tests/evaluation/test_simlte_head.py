"""The classification protocol of SimLTE: its MLP, full and few-shot, and the curve over shots."""

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.evaluation.benchmark import Result, Results, Score
from newsembed.evaluation.benchmarks import classification
from newsembed.evaluation.benchmarks.classification import NewsClassification, few_shot_scores
from newsembed.evaluation.heads import paper_mlp, span_mlp
from newsembed.evaluation.table import curves, shots_plot


@pytest.fixture
def learner(monkeypatch):
    """Replaces scikit-learn's MLP by one that says "a" and keeps its options and the rows that it sees."""
    import sklearn.neural_network

    seen = {}

    class Learner:
        def __init__(self, **options):
            seen["options"] = options

        def fit(self, rows, labels):
            seen.update(known=np.asarray(rows), labels=labels.tolist())
            return self

        def predict(self, rows):
            seen["asked"] = np.asarray(rows)
            return np.array(["a"] * len(rows))

    monkeypatch.setattr(sklearn.neural_network, "MLPClassifier", Learner)
    return seen


def test_the_mlp_has_the_rate_and_the_batch_of_the_paper(learner):
    embeddings, labels = np.eye(20, dtype=np.float32), np.array(["a", "b"] * 10)
    assert paper_mlp(embeddings, labels, np.arange(12), np.arange(12, 20), 3).tolist() == ["a"] * 8
    assert learner["options"] == {"learning_rate_init": 3e-4, "batch_size": 8, "max_iter": 500, "random_state": 3}
    assert learner["known"].tolist() == embeddings[:12].tolist()
    assert learner["asked"].tolist() == embeddings[12:].tolist()
    assert learner["labels"] == ["a", "b"] * 6
    paper_mlp(embeddings, labels, np.arange(5), np.arange(12, 20), 3)
    assert learner["options"]["batch_size"] == 5


def test_the_default_head_is_scikit_learn_s_mlp_in_the_span_of_the_drawn_documents(learner):
    embeddings = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    labels = np.array(list("abababa"))
    assert span_mlp(embeddings, labels, np.arange(3), np.arange(3, 7), 4).tolist() == ["a"] * 4
    assert learner["options"] == {"max_iter": 500, "random_state": 4}
    assert (learner["known"].shape, learner["asked"].shape, learner["labels"]) == ((3, 3), (4, 3), list("aba"))
    np.testing.assert_allclose(learner["asked"] @ learner["known"].T, embeddings[3:] @ embeddings[:3].T, atol=1e-5)


def test_few_shot_gives_accuracy_too(monkeypatch):
    monkeypatch.setattr(classification, "paper_mlp", lambda e, labels, train, test, seed: np.array(list("aaab")))
    labels = np.array(list("aaabbb") + list("abab"))
    scores = few_shot_scores(np.eye(10), labels, np.arange(6), np.arange(6, 10), 2, 3, "simlte")
    assert [(one.metric, one.value, one.runs) for one in scores][0] == ("2-shot accuracy", 0.75, 3)
    assert [(one.metric, one.part, one.count) for one in scores][1:] == [("2-shot macro-F1", "all", 4)]
    assert scores[1].value == pytest.approx((4 / 5 + 2 / 3) / 2)
    monkeypatch.setattr(classification, "paper_mlp", lambda e, labels, train, test, seed: labels[test])
    both = few_shot_scores(np.eye(10), labels, np.arange(6), np.arange(10), 2, 1, "simlte")
    assert [(one.value, one.count) for one in both] == [(1, 10)] * 2  # the count is of all that may be tested


def test_the_head_and_the_shots_belong_to_the_protocol_and_the_default_stays(tmp_path):
    rows = [
        {"title": f"{part} {n}", "body": "b", "label": "ab"[n % 2], "split": part}
        for part in ("train", "test")
        for n in range(12)
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    plain = NewsClassification(path, "toy", format="labels")
    assert "head" not in plain.protocol
    assert plain.protocol["shots"] == [5, 10]
    ours = NewsClassification(
        path, "toy", format="labels", head="simlte", shots=(1, 2, 4), repeats=1, tasks=("classification", "few_shot")
    )
    assert (ours.protocol["head"], ours.protocol["shots"]) == ("simlte", [1, 2, 4])
    angles = np.array([n % 2 + 0.05 * np.sin(n) for n in range(24)])
    embeddings = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    scores = {one.metric: one.value for one in ours.score(embeddings)}
    kinds = ["MLP", "1-shot", "2-shot", "4-shot"]
    assert list(scores) == [f"{kind} {metric}" for kind in kinds for metric in ("accuracy", "macro-F1")]
    assert scores["4-shot accuracy"] > 0.9


def scored(encoder, values):
    scores = tuple(Score(f"{shots}-shot macro-F1", value, "all", 9, 0.1, 4) for shots, value in values.items())
    return Result(encoder, "bbc", "ok", (*scores, Score("accuracy", 0.9, "all", 9)), texts=9, dimensions=2)


def test_a_curve_needs_three_shots_and_has_an_interval_over_draws():
    results = Results((scored("ours", {10: 0.7, 1: 0.2, 5: 0.5}), scored("tfidf", {1: 0.1, 5: 0.3, 10: 0.4})), {})
    ((key, found),) = curves(results).items()
    assert key == ("bbc", "macro-F1")
    assert [(shots, value) for shots, value, _ in found["ours"]] == [(1, 0.2), (5, 0.5), (10, 0.7)]
    assert found["ours"][0][2] == pytest.approx(3.182446 * 0.1 / 2)  # Student's t with 3 degrees of freedom
    plot = shots_plot(results)
    assert plot.startswith("<?xml")
    assert "documents of each class" in plot or plot.count("<path") > 6
    assert shots_plot(Results((scored("ours", {5: 0.5, 10: 0.7}),), {})) is None
