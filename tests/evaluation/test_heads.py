"""Supervised heads keep to their protocols: what they train on, what they are tested on, and what is averaged."""

import numpy as np
import pytest
from benchmarking import found
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.evaluation.benchmarks import classification, pairs
from newsembed.evaluation.benchmarks.classification import (
    CrossLingual,
    NewsClassification,
    classification_scores,
    few_shot_scores,
)
from newsembed.evaluation.benchmarks.pairs import PairClassification
from newsembed.evaluation.encoders import Document
from refusals import refuses
from scipy import sparse
from sklearn.model_selection import StratifiedKFold
from vectors import circle

# Few-shot


def test_few_shot_draws_the_shots_of_each_class_anew_for_each_repeat(monkeypatch):
    labels = np.array(list("aaaaabbbbbbb") + list("abab"))
    train, test = np.arange(12), np.arange(12, 16)
    seen = []

    def learn(embeddings, labels, drawn, rest, seed):
        seen.append((sorted(drawn.tolist()), rest.tolist(), seed))
        return np.array(list("aaab"))  # a: precision 2/3, recall 1: 0.8; b: precision 1, recall 1/2: 2/3

    monkeypatch.setattr(classification, "span_mlp", learn)
    (score,) = few_shot_scores(np.eye(16), labels, train, test, 3, 4)
    assert score.value == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert (score.metric, score.runs, score.std) == ("3-shot macro-F1", 4, 0)
    assert [seed for *_, seed in seen] == [0, 1, 2, 3]
    for drawn, rest, _ in seen:
        assert rest == [12, 13, 14, 15]
        assert len(set(drawn)) == 6
        assert [labels[number] for number in drawn] == list("aaabbb")
        assert max(drawn) < 12
    assert len({tuple(drawn) for drawn, *_ in seen}) > 1


def test_few_shot_takes_a_class_of_exactly_as_many_documents_and_needs_one_to_test(monkeypatch):
    labels = np.array(list("aabb"))
    monkeypatch.setattr(classification, "span_mlp", lambda embeddings, labels, drawn, rest, seed: labels[rest])
    (score,) = few_shot_scores(np.eye(5), np.array(list("aabba")), np.arange(4), np.array([4]), 2, 1)
    assert score.value == 1
    refuses("no document is left to test on", few_shot_scores, np.eye(4), labels, np.arange(4), np.arange(4), 2, 1)


# Classification


def labelled(path, train, test=""):
    rows = []
    for part, labels in (("train", train), ("test", test)):
        split = {"split": part} if test else {}
        rows += [{"title": f"{part} {n}", "body": "b", "label": label, **split} for n, label in enumerate(labels)]
    return write_rows(path, rows)


@pytest.fixture
def splits_seen(monkeypatch):
    """The (training rows, test rows) of every logistic regression; only its first prediction is wrong."""
    seen = []

    def learn(embeddings, labels, train, test):
        seen.append((train.tolist(), test.tolist()))
        return np.where(np.arange(len(test)) == 0, "none", labels[test])

    monkeypatch.setattr(classification, "logistic_regression", learn)
    return seen


def test_an_official_split_trains_on_its_training_part_and_tests_on_all_of_its_test_part(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "aabbab", "abab")
    benchmark = NewsClassification(path, "l", format="labels", tasks=("classification",))
    scores = found(benchmark.score(np.eye(10)))
    titles = [*(f"train {n}" for n in range(6)), *(f"test {n}" for n in range(4))]
    assert [d.title for d in benchmark.documents()] == titles
    assert splits_seen == [([0, 1, 2, 3, 4, 5], [6, 7, 8, 9])]
    assert scores["accuracy", "all"].value == pytest.approx(3 / 4)
    assert scores["macro-F1", "all"].value == pytest.approx((2 / 3 + 1) / 2)  # of the first class one of two is missed
    assert (scores["accuracy", "all"].count, scores["accuracy", "all"].runs) == (4, 1)


def test_without_a_split_every_document_is_tested_once_by_a_model_that_has_not_seen_it(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "ab" * 10)
    benchmark = NewsClassification(path, "l", format="labels", tasks=("classification",))
    scores = found(benchmark.score(np.eye(20)))
    assert sorted(row for _, test in splits_seen for row in test) == list(range(20))
    for train, test in splits_seen:
        assert sorted(train + test) == list(range(20))
        assert len([row for row in test if row % 2]) == len(test) / 2 == 2
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(20), list("ab" * 10))
    assert splits_seen == [(train.tolist(), test.tolist()) for train, test in folds]  # scores of two days are compared
    assert (scores["accuracy", "all"].runs, scores["accuracy", "all"].count) == (5, 20)
    assert scores["accuracy", "all"].value == pytest.approx(3 / 4)


def test_a_share_below_one_trains_on_it_and_tests_on_the_rest(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "ab" * 10)
    NewsClassification(path, "l", format="labels", tasks=("classification",), train_share=0.3).score(np.eye(20))
    ((train, test),) = splits_seen
    assert sorted(train + test) == list(range(20))
    assert [len([row for row in train if row % 2 == parity]) for parity in (0, 1)] == [3, 3]


def test_of_an_official_split_a_share_of_each_class_trains_and_the_others_are_not_embedded(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "ab" * 10, "abba")
    benchmark = NewsClassification(path, "l", format="labels", tasks=("classification",), train_share=0.2)
    assert [d.title.split()[0] for d in benchmark.documents()] == ["train"] * 4 + ["test"] * 4
    benchmark.score(np.eye(8))
    assert splits_seen == [([0, 1, 2, 3], [4, 5, 6, 7])]


def test_excluded_documents_neither_train_nor_are_tested(tmp_path):
    path = labelled(tmp_path / "l.jsonl", "ababab", "abab")
    excluded = frozenset([Document("train 1", "b"), Document("test 0", "b")])
    benchmark = NewsClassification(path, "l", format="labels", excluded=excluded)
    assert [d.title for d in benchmark.documents()] == [
        "train 0", "train 2", "train 3", "train 4", "train 5", "test 1", "test 2", "test 3",
    ]  # fmt: skip
    one_class = frozenset(Document(f"train {n}", "b") for n in (0, 2, 4))
    with pytest.raises(InputError, match="fewer than two classes to train on"):
        NewsClassification(path, "l", format="labels", excluded=one_class).documents()


@pytest.mark.parametrize(
    ("head", "score"),
    [
        ("logistic_regression", lambda *where: classification_scores(*where[:2], [where[2:]])),
        ("paper_mlp", lambda *where: classification_scores(*where[:2], [where[2:]], "simlte")),
        ("span_mlp", lambda *where: few_shot_scores(*where, 1, 1)),
        ("paper_mlp", lambda *where: few_shot_scores(*where, 1, 1, "simlte")),
    ],
)
def test_macro_f1_is_over_the_classes_that_the_test_part_has(head, score, monkeypatch):
    monkeypatch.setattr(classification, head, lambda *_: np.array(list("aacb")))
    labels = np.array(list("abc" + "abab"))
    f1 = score(np.eye(7), labels, np.arange(3), np.arange(3, 7))[-1]
    assert "macro-F1" in f1.metric
    assert f1.value == pytest.approx((1 / 2 + 2 / 3) / 2)  # of a and of b; c is only predicted


def test_few_shot_is_left_out_where_a_class_is_too_small_and_clustering_sees_the_test_part(tmp_path, monkeypatch):
    path = labelled(tmp_path / "l.jsonl", "ab" * 5, "ab" * 4)
    seen = []
    monkeypatch.setattr(
        classification, "span_mlp", lambda e, labels, drawn, rest, seed: seen.append(len(drawn)) or labels[rest]
    )
    benchmark = NewsClassification(path, "l", format="labels", tasks=("few_shot", "clustering"), repeats=2, seeds=1)
    vectors = np.concatenate([circle(*[0] * 10), circle(*[0, 90] * 4)])  # only the test part has two clusters
    scores = found(benchmark.score(vectors))
    assert set(scores) == {("5-shot macro-F1", "all"), ("ARI", "all"), ("V", "all")}
    assert seen == [10, 10]
    assert scores["ARI", "all"].value == 1
    assert scores["ARI", "all"].count == 8
    refuses("expected at least 10", NewsClassification(path, "l", format="labels", tasks=("few_shot",)).score, vectors)


# Cross-lingual classification


def mldoc(folder, language, train, test):
    folder.mkdir(exist_ok=True)
    for suffix, labels in (("train.1000", train), ("test", test)):
        lines = [f"{label}\t{language} {suffix} {n}\n" for n, label in enumerate(labels)]
        (folder / f"{language}.{suffix}").write_text("".join(lines))


def test_a_cell_trains_on_one_language_and_tests_on_the_other(tmp_path, splits_seen):
    mldoc(tmp_path / "m", "de", "ab", "abab")
    mldoc(tmp_path / "m", "en", "abab", "ab")
    benchmark = CrossLingual(str(tmp_path / "m"), "m", format="mldoc")
    scores = found(benchmark.score(np.eye(12)))
    assert splits_seen == [
        ([0, 1], [2, 3, 4, 5]), ([0, 1], [10, 11]), ([6, 7, 8, 9], [2, 3, 4, 5]), ([6, 7, 8, 9], [10, 11]),
    ]  # fmt: skip
    cells = {"de→de": 3 / 4, "de→en": 1 / 2, "en→de": 3 / 4, "en→en": 1 / 2}  # the first of each test part is missed
    assert {part: scores["accuracy", part].value for part in cells} == cells
    averages = [scores["accuracy", part] for part in ("Same", "Cross", "All")]
    assert [(score.value, score.count) for score in averages] == [(5 / 8, 2), (5 / 8, 2), (5 / 8, 4)]
    assert [score.part for score in benchmark.score(np.eye(12))][:3] == ["Same", "Cross", "All"]


def test_only_the_classes_of_both_parts_count_and_two_are_needed(tmp_path, splits_seen):
    mldoc(tmp_path / "m", "de", "abc", "abc")
    mldoc(tmp_path / "m", "en", "abd", "dba")
    excluded = frozenset([Document("", "de test 2")])
    benchmark = CrossLingual(str(tmp_path / "m"), "m", format="mldoc", excluded=excluded)
    assert len(benchmark.documents()) == 11
    benchmark.score(np.eye(11))
    assert splits_seen[1] == ([0, 1], [9, 10])  # de to en: without c, which English lacks, and d, which German lacks
    mldoc(tmp_path / "m", "en", "ad", "ad")
    refuses("de→en: 1 shared classes", CrossLingual(str(tmp_path / "m"), "m", format="mldoc").score, np.eye(10))


# Pairs


def test_the_features_of_a_pair_and_the_scores_of_its_head(tmp_path, monkeypatch):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    (tmp_path / "msr_paraphrase_train.txt").write_text(header + "1\t\t\ta\tb\n0\t\t\tc\td\n")
    (tmp_path / "msr_paraphrase_test.txt").write_text(header + "1\t\t\te\tf\n1\t\t\tg\th\n0\t\t\ti\tj\n")
    vectors = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    expected = np.concatenate([np.abs(vectors[:5] - vectors[5:]), vectors[:5] * vectors[5:]], axis=1)

    def learn(features, labels, train, test):
        dense = features.toarray() if sparse.issparse(features) else features
        np.testing.assert_allclose(dense, expected, rtol=1e-6)
        assert (train.tolist(), test.tolist(), labels.tolist()) == ([0, 1], [2, 3, 4], ["1", "0", "1", "1", "0"])
        return np.array(["1", "0", "0"])

    monkeypatch.setattr(pairs, "logistic_regression", learn)
    benchmark = PairClassification(str(tmp_path), "mrpc", format="mrpc")
    assert "".join(d.body for d in benchmark.documents()) == "acegibdfhj"
    for form in (vectors, sparse.csr_matrix(vectors)):
        scores = found(benchmark.score(form))
        assert scores["accuracy", "all"].value == pytest.approx(2 / 3)
        assert scores["F1", "all"].value == pytest.approx(2 / 3)  # of the paraphrases: precision 1, recall 1/2
        assert scores["F1", "all"].count == 3
    without = PairClassification(str(tmp_path), "mrpc", format="mrpc", excluded=frozenset([Document("", "f")]))
    assert "".join(d.body for d in without.documents()) == "acgibdhj"
