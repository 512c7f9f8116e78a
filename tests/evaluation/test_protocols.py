"""Each benchmark keeps to its protocol: what is trained on, tested on, left out and averaged."""

import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation import bitext, classification, crosslingual, pairs
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.bitext import BitextRetrieval
from newsembed.evaluation.classification import NewsClassification, classification_scores, few_shot_scores
from newsembed.evaluation.clustering import Clustering, kmeans
from newsembed.evaluation.compare import compare
from newsembed.evaluation.crosslingual import CrossLingual
from newsembed.evaluation.duplicates import NearDuplicates
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.pairs import PairClassification
from newsembed.evaluation.results import Result
from newsembed.evaluation.retrieval import SameEventRetrieval, ranking_scores
from newsembed.evaluation.sts import Sts, read_pairs
from scipy import sparse
from sklearn import cluster, metrics


def found(scores):
    return {(score.metric, score.part): score for score in scores}


def circle(*degrees):
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


# Few-shot


def test_few_shot_is_never_tested_on_a_document_that_was_drawn():
    # Every document has a direction of its own, so what was learned says nothing about the others: all 45 get one
    # class, of which there are 15. Its F1 is 2 * 1/3 / (1/3 + 1) = 1/2, the other two classes have 0. Documents that
    # were drawn would be memorised.
    labels = np.repeat(list("abc"), 20)
    (score,) = few_shot_scores(np.eye(60, dtype=np.float32), labels, np.arange(60), np.arange(60), 5, 2)
    assert score.value == pytest.approx(1 / 6)
    assert (score.metric, score.count, score.runs) == ("5-shot macro-F1", 60, 2)


def test_few_shot_draws_the_shots_of_each_class_anew_for_each_repeat(monkeypatch):
    labels = np.array(list("aaaaabbbbbbb") + list("abab"))
    train, test = np.arange(12), np.arange(12, 16)
    seen = []

    def learn(embeddings, labels, drawn, rest, seed):
        seen.append((sorted(drawn.tolist()), rest.tolist(), seed))
        return np.array(list("aaab"))  # a: precision 2/3, recall 1: 0.8; b: precision 1, recall 1/2: 2/3

    monkeypatch.setattr(classification, "_mlp", learn)
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
    monkeypatch.setattr(classification, "_mlp", lambda embeddings, labels, drawn, rest, seed: labels[rest])
    (score,) = few_shot_scores(np.eye(5), np.array(list("aabba")), np.arange(4), np.array([4]), 2, 1)
    assert score.value == 1
    with pytest.raises(InputError, match="no document is left to test on"):
        few_shot_scores(np.eye(4), labels, np.arange(4), np.arange(4), 2, 1)


# Classification


def labelled(path, train, test=""):
    rows = [("train", number, label) for number, label in enumerate(train)]
    rows += [("test", number, label) for number, label in enumerate(test)]
    return write(
        path,
        [
            {"title": f"{part} {n}", "body": "b", "label": label, **({"split": part} if test else {})}
            for part, n, label in rows
        ],
    )


@pytest.fixture
def splits_seen(monkeypatch):
    """The (training rows, test rows) of every logistic regression; only its first prediction is wrong."""
    seen = []

    def learn(embeddings, labels, train, test):
        seen.append((train.tolist(), test.tolist()))
        return np.where(np.arange(len(test)) == 0, "none", labels[test])

    monkeypatch.setattr(classification, "logistic_regression", learn)
    monkeypatch.setattr(crosslingual, "logistic_regression", learn)
    return seen


def test_an_official_split_trains_on_its_training_part_and_tests_on_all_of_its_test_part(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "aabbab", "abab")
    benchmark = NewsClassification(path, "labels", "l", tasks=("classification",))
    scores = found(benchmark.score(np.eye(10)))
    assert [d.title for d in benchmark.documents()] == [f"train {n}" for n in range(6)] + [
        f"test {n}" for n in range(4)
    ]
    assert splits_seen == [([0, 1, 2, 3, 4, 5], [6, 7, 8, 9])]
    assert scores["accuracy", "all"].value == pytest.approx(3 / 4)
    assert scores["macro-F1", "all"].value == pytest.approx((2 / 3 + 1) / 2)  # of the first class one of two is missed
    assert (scores["accuracy", "all"].count, scores["accuracy", "all"].runs) == (4, 1)


def test_without_a_split_every_document_is_tested_once_by_a_model_that_has_not_seen_it(tmp_path, splits_seen):
    benchmark = NewsClassification(labelled(tmp_path / "l.jsonl", "ab" * 10), "labels", "l", tasks=("classification",))
    scores = found(benchmark.score(np.eye(20)))
    assert sorted(row for _, test in splits_seen for row in test) == list(range(20))
    for train, test in splits_seen:
        assert sorted(train + test) == list(range(20))
        assert len([row for row in test if row % 2]) == len(test) / 2 == 2
    assert (scores["accuracy", "all"].runs, scores["accuracy", "all"].count) == (5, 20)
    assert scores["accuracy", "all"].value == pytest.approx(3 / 4)


def test_a_share_below_one_trains_on_it_and_tests_on_the_rest(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "ab" * 10)
    NewsClassification(path, "labels", "l", tasks=("classification",), train_share=0.3).score(np.eye(20))
    ((train, test),) = splits_seen
    assert sorted(train + test) == list(range(20))
    assert [len([row for row in train if row % 2 == parity]) for parity in (0, 1)] == [3, 3]


def test_of_an_official_split_a_share_of_each_class_trains_and_the_others_are_not_embedded(tmp_path, splits_seen):
    path = labelled(tmp_path / "l.jsonl", "ab" * 10, "abba")
    benchmark = NewsClassification(path, "labels", "l", tasks=("classification",), train_share=0.2)
    assert [d.title.split()[0] for d in benchmark.documents()] == ["train"] * 4 + ["test"] * 4
    benchmark.score(np.eye(8))
    assert splits_seen == [([0, 1, 2, 3], [4, 5, 6, 7])]


def test_excluded_documents_neither_train_nor_are_tested(tmp_path):
    path = labelled(tmp_path / "l.jsonl", "ababab", "abab")
    excluded = frozenset([Document("train 1", "b"), Document("test 0", "b")])
    benchmark = NewsClassification(path, "labels", "l", excluded=excluded)
    assert [d.title for d in benchmark.documents()] == [
        "train 0", "train 2", "train 3", "train 4", "train 5", "test 1", "test 2", "test 3",
    ]  # fmt: skip
    one_class = frozenset(Document(f"train {n}", "b") for n in (0, 2, 4))
    with pytest.raises(InputError, match="fewer than two classes to train on"):
        NewsClassification(path, "labels", "l", excluded=one_class).documents()


def test_scores_are_means_over_splits(monkeypatch):
    labels = np.array(list("abab"))
    monkeypatch.setattr(
        classification,
        "logistic_regression",
        lambda e, labels, train, test: labels[test] if 0 in test else np.array(["b", "a"]),
    )
    rows = np.arange(4)
    scores = found(classification_scores(np.eye(4), labels, [(rows[2:], rows[:2]), (rows[:2], rows[2:])]))
    assert (scores["accuracy", "all"].value, scores["accuracy", "all"].std) == (0.5, pytest.approx(np.sqrt(0.5)))
    assert scores["macro-F1", "all"].value == 0.5


def test_few_shot_is_left_out_where_a_class_is_too_small_and_clustering_sees_the_test_part(tmp_path, monkeypatch):
    path = labelled(tmp_path / "l.jsonl", "ab" * 7, "ab" * 4)
    seen = []
    monkeypatch.setattr(
        classification, "_mlp", lambda e, labels, drawn, rest, seed: seen.append(len(drawn)) or labels[rest]
    )
    benchmark = NewsClassification(path, "labels", "l", tasks=("few_shot", "clustering"), repeats=2, seeds=(7,))
    vectors = np.concatenate([circle(*[0] * 14), circle(*[0, 90] * 4)])  # only the test part has two clusters
    scores = found(benchmark.score(vectors))
    assert set(scores) == {("5-shot macro-F1", "all"), ("ARI", "all"), ("V", "all")}
    assert seen == [10, 10]
    assert scores["ARI", "all"].value == 1
    assert scores["ARI", "all"].count == 8
    with pytest.raises(InputError, match="expected at least 10"):
        NewsClassification(path, "labels", "l", tasks=("few_shot",)).score(vectors)


# Protocols in the results manifest


def test_the_manifest_names_every_option_and_its_default():
    shared = {"excluded": 0}
    assert SameEventRetrieval("e").protocol == shared | {
        "suite": "events", "cross_publisher": False, "cross_language": False, "exclude_near_copies": False,
        "max_day_gap": None, "at_k": None,
    }  # fmt: skip
    assert Clustering("e").protocol == shared | {
        "suite": "clustering", "label": "event", "seeds": [0, 1, 2, 3, 4], "min_cluster_size": 1,
    }  # fmt: skip
    assert NewsClassification("a", "agnews", "a").protocol == shared | {
        "suite": "agnews", "tasks": ["classification", "few_shot", "clustering"], "train_share": 0.1,
        "C": [0.1, 1.0, 10.0, 100.0, 1000.0], "folds": [5, 3], "shots": [5, 10], "repeats": 10,
        "seeds": [0, 1, 2, 3, 4],
    }  # fmt: skip
    assert NewsClassification("a", "agnews", "a", train_share=1.0).protocol["train_share"] == 1
    assert Sts("s").protocol == shared | {
        "suite": "sts", "similarity": "cosine", "correlation": "spearman",
        "aggregation": "concatenation; SentEval's means",
    }  # fmt: skip
    assert NearDuplicates("d").protocol == shared | {"suite": "duplicates", "similarity": "cosine"}
    assert BitextRetrieval("t").protocol == shared | {"suite": "tatoeba", "similarity": "cosine"}
    assert PairClassification("p", "mrpc", "p").protocol == shared | {"suite": "mrpc", "features": "|u-v|, u*v"}
    assert CrossLingual("m", "mldoc", "m").protocol == shared | {"suite": "mldoc X→Y", "classes": "those of both parts"}
    for benchmark in (Sts("s"), Clustering("e"), BitextRetrieval("t")):
        assert benchmark.paths == (benchmark.path,)
    assert PairClassification("p", "sick_e", "p").paths == ("p/SICK_train.txt", "p/SICK_test_annotated.txt")


# Retrieval


def event(number, name, **more):
    return {"id": str(number), "title": f"t{number}", "body": "b", "event": name, **more}


def test_a_candidate_on_the_last_day_of_the_gap_counts(tmp_path):
    dates = ("2020-01-01", "2020-01-08", "2020-01-09", "2020-01-09")
    rows = [event(n, name, byline_date=date) for n, (name, date) in enumerate(zip("AAAB", dates, strict=True))]
    path = write(tmp_path / "e.jsonl", rows)
    scores = found(SameEventRetrieval(path, max_day_gap=7).score(circle(0, 50, 1, 2)))
    # d0: of its event only d1 is within 7 days, alone: 1. d1: d3 at 48 first, then d2 at 49, then d0: (1/2 + 2/3) / 2.
    # d2: d3, d1: 1/2.
    assert scores["mAP", "all"].value == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + 1 / 2) / 3)
    assert scores["hit@1", "all"].value == pytest.approx(1 / 3)


def test_documents_without_a_language_are_a_part_of_their_own(tmp_path):
    rows = [
        event(n, name, language=language)
        for n, (name, language) in enumerate(zip("AABB", ["en", "", "en", ""], strict=True))
    ]
    scores = found(SameEventRetrieval(write(tmp_path / "e.jsonl", rows)).score(circle(0, 1, 90, 91)))
    assert {part for _, part in scores} == {"all", "en", "unknown"}
    assert scores["mAP", "unknown"].count == 2


def test_an_excluded_document_is_neither_query_nor_candidate(tmp_path):
    path = write(tmp_path / "e.jsonl", [event(0, "A"), event(1, "B"), event(2, "A"), event(3, "B")])
    benchmark = SameEventRetrieval(path, excluded=frozenset([Document("t1", "b")]))
    assert [d.title for d in benchmark.documents()] == ["t0", "t2", "t3"]
    assert benchmark.score(circle(0, 10, 20))[0].count == 2
    assert benchmark.protocol["excluded"] == 1


def test_a_first_rank_that_is_tied_counts_by_its_share():
    relevant = np.array([[True, False, False, True]])
    everything = np.ones((1, 4), bool)
    tied = ranking_scores(np.array([[0.9, 0.9, 0.9, 0.1]], np.float32), relevant, everything)
    assert tied["hit@1"][0] == pytest.approx(1 / 3)
    assert ranking_scores(np.array([[0.8, 0.9, 0.1, 0.1]], np.float32), relevant, everything)["hit@1"][0] == 0


def test_cut_off_metrics_against_scikit_learn():
    rng = np.random.default_rng(5)
    scores, labels = rng.permutation(30).astype(np.float32), rng.random(30) < 0.3
    measured = ranking_scores(scores[None], labels[None], np.ones((1, 30), bool), 10)
    ranked = labels[np.argsort(-scores)]
    precisions = [ranked[: rank + 1].mean() for rank in range(10) if ranked[rank]]
    assert measured["mAP@10"][0] == pytest.approx(sum(precisions) / min(10, labels.sum()))
    assert measured["R-precision"][0] == pytest.approx(ranked[: labels.sum()].mean())
    assert measured["nDCG@10"][0] == pytest.approx(metrics.ndcg_score([labels], [scores], k=10))
    assert measured["mAP"][0] == pytest.approx(metrics.average_precision_score(labels, scores))
    alone = ranking_scores(np.ones((1, 1), np.float32), np.ones((1, 1), bool), np.ones((1, 1), bool), 3)
    assert [alone[name][0] for name in ("mAP@3", "R-precision", "nDCG@3")] == [1, 1, 1]


def test_the_first_rank_alone_is_a_cut_off(tmp_path):
    path = write(tmp_path / "e.jsonl", [event(0, "A"), event(1, "A"), event(2, "B")])
    scores = found(SameEventRetrieval(path, at_k=1).score(circle(0, 10, 40)))
    assert scores["mAP@1", "all"].value == 1


# Clustering


def test_kmeans_is_scikit_learn_s_with_one_start():
    vectors = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    expected = cluster.KMeans(4, n_init=1, random_state=2).fit_predict(vectors)
    assert kmeans(vectors, 4, 2).tolist() == expected.tolist()
    assert any(kmeans(vectors, 4, 2).tolist() != kmeans(vectors, 4, seed).tolist() for seed in range(5))


def test_a_class_of_the_smallest_size_stays_and_excluded_documents_do_not(tmp_path):
    path = write(tmp_path / "e.jsonl", [event(n, name) for n, name in enumerate("AAABBC")])
    assert len(Clustering(path, min_cluster_size=2).documents()) == 5
    assert len(Clustering(path).documents()) == 6
    without = Clustering(path, min_cluster_size=2, excluded=frozenset([Document("t3", "b")]))
    with pytest.raises(InputError, match="fewer than two classes"):
        without.documents()


def test_a_language_with_one_class_is_not_clustered_by_itself(tmp_path):
    rows = [event(n, name, language="en" if n < 4 else "de") for n, name in enumerate("AABBAA")]
    scores = found(Clustering(write(tmp_path / "e.jsonl", rows), seeds=(0, 1)).score(circle(0, 0, 90, 90, 0, 0)))
    assert {part for _, part in scores} == {"all", "en"}
    assert (scores["ARI", "en"].count, scores["ARI", "all"].count, scores["ARI", "all"].runs) == (4, 6, 2)
    assert scores["ARI", "en"].value == 1


# Semantic textual similarity


def test_a_part_with_one_gold_score_has_no_correlation_of_its_own(tmp_path):
    lines = ["1\ta\tb\tx", "2\tc\td\tx", "3\te\tf\ty", "3\tg\th\ty", "\ti\tj\ty"]
    (tmp_path / "s.tsv").write_text("\n".join(lines))
    scores = found(Sts(str(tmp_path / "s.tsv")).score(np.concatenate([circle(0, 0, 0, 0), circle(40, 30, 20, 10)])))
    assert set(scores) == {("Spearman", "all"), ("Spearman", "x")}
    assert (scores["Spearman", "all"].count, scores["Spearman", "x"].count) == (4, 2)
    assert scores["Spearman", "x"].value == pytest.approx(1)


def test_folders_are_read_as_distributed(tmp_path):
    sick = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\tA\tB\t4.5\n2\tC\tD\t3.2\n"
    for folder, files in {
        "sick": {"SICK_test_annotated.txt": sick, "SICK_train.txt": "x"},
        "stsb": {"sts-test.csv": "g\tf\ty\t1\t4\tA\tB\ng\tf\ty\t2\t3\tC\tD\n", "sts-train.csv": "x"},
        "2015": {"a.test.tsv": "1\tA\tB\n2\tC\tD\n", "b.test.tsv": "3\tE\tF\n4\tG\tH\n", "notes.txt": "x"},
    }.items():
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)
    texts = {name: [d.body for d in Sts(str(tmp_path / name)).documents()] for name in ("sick", "stsb", "2015")}
    assert texts == {"sick": list("ACBD"), "stsb": list("ACBD"), "2015": list("ACEGBDFH")}
    scores = found(Sts(str(tmp_path / "2015")).score(np.concatenate([circle(0, 0, 0, 0), circle(40, 30, 10, 20)])))
    assert (scores["Spearman", "a"].value, scores["Spearman", "b"].value) == (pytest.approx(1), pytest.approx(-1))
    assert scores["Spearman mean", "all"].value == pytest.approx(0)


def test_scores_that_are_not_finite_and_a_second_empty_sentence_are_errors(tmp_path):
    (tmp_path / "s").write_text("1\ta\tb\nnan\tc\td\n")
    with pytest.raises(InputError, match="s:2: score: got 'nan'"):
        read_pairs(str(tmp_path / "s"))
    (tmp_path / "s").write_text("1\ta\tb\n2\tc\t \n")
    with pytest.raises(InputError, match="s:2: sentence2: a sentence is empty"):
        read_pairs(str(tmp_path / "s"))


def test_semeval_s_two_files_must_have_as_many_lines(tmp_path):
    (tmp_path / "STS.input.x.txt").write_text("a\tb\nc\td\n")
    gold = tmp_path / "STS.gs.x.txt"
    gold.write_text("1\n\n")
    assert list(Sts(str(tmp_path)).documents()) == [Document("", "a"), Document("", "b")]
    for text in ("1", "1\n2\n3\n"):
        gold.write_text(text)
        with pytest.raises(InputError, match="2 pairs, but"):
            Sts(str(tmp_path)).documents()


# Cross-lingual classification


def mldoc(folder, language, train, test):
    folder.mkdir(exist_ok=True)
    for suffix, labels in (("train.1000", train), ("test", test)):
        (folder / f"{language}.{suffix}").write_text(
            "".join(f"{label}\t{language} {suffix} {n}\n" for n, label in enumerate(labels))
        )


def test_a_cell_trains_on_one_language_and_tests_on_the_other(tmp_path, splits_seen):
    mldoc(tmp_path / "m", "de", "ab", "abab")
    mldoc(tmp_path / "m", "en", "abab", "ab")
    benchmark = CrossLingual(str(tmp_path / "m"), "mldoc", "m")
    scores = found(benchmark.score(np.eye(12)))
    assert splits_seen == [
        ([0, 1], [2, 3, 4, 5]), ([0, 1], [10, 11]), ([6, 7, 8, 9], [2, 3, 4, 5]), ([6, 7, 8, 9], [10, 11]),
    ]  # fmt: skip
    cells = {"de→de": 3 / 4, "de→en": 1 / 2, "en→de": 3 / 4, "en→en": 1 / 2}  # the first of each test part is missed
    assert {part: scores["accuracy", part].value for part in cells} == cells
    averages = {
        part: (scores["accuracy", part].value, scores["accuracy", part].count) for part in ("Same", "Cross", "All")
    }
    assert averages == {"Same": (5 / 8, 2), "Cross": (5 / 8, 2), "All": (5 / 8, 4)}
    assert [score.part for score in benchmark.score(np.eye(12))][:3] == ["Same", "Cross", "All"]


def test_the_averages_are_over_their_own_cells(tmp_path, monkeypatch):
    mldoc(tmp_path / "m", "de", "ab", "aaab")
    mldoc(tmp_path / "m", "en", "ba", "ab")
    monkeypatch.setattr(
        crosslingual, "logistic_regression", lambda e, labels, train, test: np.repeat(labels[train[0]], len(test))
    )
    scores = found(CrossLingual(str(tmp_path / "m"), "mldoc", "m").score(np.eye(10)))
    # German says a always: 3/4 of German, 1/2 of English. English says b: 1/4 of German, 1/2 of English.
    values = {part: scores["accuracy", part].value for part in ("Same", "Cross", "All")}
    assert values == {"Same": 5 / 8, "Cross": 3 / 8, "All": 1 / 2}


def test_only_the_classes_of_both_parts_count_and_two_are_needed(tmp_path, splits_seen):
    mldoc(tmp_path / "m", "de", "abc", "abc")
    mldoc(tmp_path / "m", "en", "abd", "dba")
    excluded = frozenset([Document("", "de test 2")])
    benchmark = CrossLingual(str(tmp_path / "m"), "mldoc", "m", excluded=excluded)
    assert len(benchmark.documents()) == 11
    benchmark.score(np.eye(11))
    assert splits_seen[1] == ([0, 1], [9, 10])  # de to en: without c, which English lacks, and d, which German lacks
    mldoc(tmp_path / "m", "en", "ad", "ad")
    with pytest.raises(InputError, match="de→en: 1 shared classes"):
        CrossLingual(str(tmp_path / "m"), "mldoc", "m").score(np.eye(10))


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
    benchmark = PairClassification(str(tmp_path), "mrpc", "mrpc")
    assert "".join(d.body for d in benchmark.documents()) == "acegibdfhj"
    for form in (vectors, sparse.csr_matrix(vectors)):
        scores = found(benchmark.score(form))
        assert scores["accuracy", "all"].value == pytest.approx(2 / 3)
        assert scores["F1", "all"].value == pytest.approx(2 / 3)  # of the paraphrases: precision 1, recall 1/2
        assert scores["F1", "all"].count == 3
    without = PairClassification(str(tmp_path), "mrpc", "mrpc", excluded=frozenset([Document("", "f")]))
    assert "".join(d.body for d in without.documents()) == "acgibdhj"


def test_sick_entailment_has_no_f1(tmp_path, monkeypatch):
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_judgment\n"
    for name in ("SICK_train.txt", "SICK_test_annotated.txt"):
        (tmp_path / name).write_text(header + "1\ta\tb\tNEUTRAL\n2\tc\td\tENTAILMENT\n")
    monkeypatch.setattr(pairs, "logistic_regression", lambda features, labels, train, test: labels[test])
    scores = PairClassification(str(tmp_path), "sick_e", "sick").score(np.eye(8))
    assert [(score.metric, score.value) for score in scores] == [("accuracy", 1.0)]


# Bitext and near duplicates


def test_both_directions_of_a_pair_and_their_mean(tmp_path, monkeypatch):
    for pair, count in (("deu-eng", 3), ("fra-eng", 2)):
        for language in pair.split("-"):
            (tmp_path / f"tatoeba.{pair}.{language}").write_text(
                "".join(f"{pair} {language} {n}\n" for n in range(count))
            )
    # deu 0, 30, 60 and eng 5, 70, 61: zwei finds one (25 against 40 and 31), one and three find their own, two finds
    # drei.
    vectors = np.concatenate([circle(0, 30, 60), circle(5, 70, 61), circle(0, 90), circle(0, 90)])
    expected = {"deu→eng": 2 / 3, "eng→deu": 2 / 3, "fra→eng": 1, "eng→fra": 1, "all": (2 / 3 + 2 / 3 + 1 + 1) / 4}
    for block in (1024, 2):
        monkeypatch.setattr(bitext, "_BLOCK", block)
        scores = found(BitextRetrieval(str(tmp_path)).score(vectors))
        assert {part: score.value for (_, part), score in scores.items()} == pytest.approx(expected)
        assert {part: score.count for (_, part), score in scores.items()} == {
            "deu→eng": 3, "eng→deu": 3, "fra→eng": 2, "eng→fra": 2, "all": 10,
        }  # fmt: skip
    without = BitextRetrieval(str(tmp_path), excluded=frozenset([Document("", "deu-eng eng 1")]))
    assert [d.body for d in without.documents()][:4] == [
        f"deu-eng {side} {n}" for side in ("deu", "eng") for n in (0, 2)
    ]


def test_the_directions_may_differ():
    queries, candidates = circle(0, 10), circle(0, 80)
    assert bitext.retrieval_accuracy(queries, candidates) == 1 / 2  # both find the first
    assert bitext.retrieval_accuracy(candidates, queries) == 1


def test_near_duplicates_by_level_against_scikit_learn(tmp_path):
    levels = [3, 0, 1, 1, 3, 0, 2]
    path = write(
        tmp_path / "p.jsonl",
        [
            {"first": {"title": f"a{n}", "body": ""}, "second": {"title": f"b{n}", "body": ""}, "level": level}
            for n, level in enumerate(levels)
        ],
    )
    angles = [20, 70, 10, 50, 40, 30, 60]
    vectors = np.concatenate([circle(*[0] * 7), circle(*angles)])
    scores = found(NearDuplicates(path).score(vectors))
    cosines = np.cos(np.deg2rad(angles))
    for level, count in ((1, 5), (2, 3), (3, 2)):
        score = scores["AUC", f"level ≥ {level}"]
        assert score.value == pytest.approx(metrics.roc_auc_score(np.array(levels) >= level, cosines))
        assert score.count == count
    assert len(scores) == 3
    assert len(NearDuplicates(path, excluded=frozenset([Document("b0", "")])).documents()) == 12


# Paired t-tests


def cells(encoder, benchmark="m", **values):
    scores = [Score("accuracy", value, part.replace("_", "→"), 9) for part, value in values.items()]
    return Result(encoder, benchmark, "ok", (Score("accuracy", 0.5, "Cross", 2), *scores))


def test_comparisons_are_over_the_cells_that_both_encoders_have():
    one = cells("a", d_d=0.9, d_e=0.5, e_d=0.6, e_e=0.7)
    two = cells("b", d_d=0.8, d_e=0.3, e_d=0.3, f_f=0.1)
    by_group = {row.group: row for row in compare([one, two])}
    assert set(by_group) == {"Cross", "All"}  # one shared cell of Same is too few
    assert (by_group["Cross"].cells, by_group["All"].cells) == (2, 3)
    assert by_group["Cross"].difference == pytest.approx(0.25)
    assert by_group["All"].difference == pytest.approx(0.2)
    assert compare([one, cells("b", "other", d_d=0.8, d_e=0.3, e_d=0.3)]) == []
    assert {(row.first, row.second) for row in compare([one, two, cells("c", d_e=1.0, e_d=0.4)])} == {
        ("a", "b"), ("a", "c"), ("b", "c"),
    }  # fmt: skip


def test_results_without_averages_have_no_cells_to_compare():
    plain = Result("a", "m", "ok", (Score("accuracy", 0.5, "d→d"), Score("accuracy", 0.5, "e→e")))
    assert compare([plain, plain]) == []
