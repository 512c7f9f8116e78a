"""Each benchmark keeps to its protocol: what it compares, leaves out and averages."""

import numpy as np
import pytest
from benchmarking import found
from json_lines import write_rows
from newsembed.evaluation.benchmarks import bitext
from newsembed.evaluation.benchmarks.bitext import BitextRetrieval
from newsembed.evaluation.benchmarks.classification import Clustering, CrossLingual, NewsClassification
from newsembed.evaluation.benchmarks.duplicates import NearDuplicates
from newsembed.evaluation.benchmarks.pairs import PairClassification
from newsembed.evaluation.benchmarks.retrieval import SameEventRetrieval
from newsembed.evaluation.benchmarks.sts import Sts
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.statistics import spearman_interval
from refusals import refuses
from sklearn import metrics
from vectors import circle

# Protocols in the results manifest


def test_the_manifest_names_every_option_and_its_default():
    shared = {"excluded": 0}
    assert SameEventRetrieval("e").protocol == shared | {
        "suite": "events", "cross_publisher": False, "cross_language": False, "max_day_gap": None,
    }  # fmt: skip
    assert Clustering("e").protocol == shared | {
        "suite": "clustering", "label": "event", "seeds": [0, 1, 2, 3, 4],
    }  # fmt: skip
    assert NewsClassification("a", "a", format="agnews").protocol == shared | {
        "suite": "agnews", "tasks": ["classification", "few_shot", "clustering"], "train_share": 0.1,
        "C": [0.1, 1.0, 10.0, 100.0, 1000.0], "folds": [5, 3], "shots": [5, 10], "repeats": 10,
        "seeds": [0, 1, 2, 3, 4],
    }  # fmt: skip
    assert NewsClassification("a", "a", format="agnews", train_share=1.0).protocol["train_share"] == 1
    assert Sts("s").protocol == shared | {
        "suite": "sts", "similarity": "cosine", "correlation": "spearman",
        "aggregation": "concatenation; SentEval's means",
    }  # fmt: skip
    assert NearDuplicates("d").protocol == shared | {"suite": "duplicates", "similarity": "cosine"}
    assert BitextRetrieval("t").protocol == shared | {"suite": "tatoeba", "similarity": "cosine"}
    assert PairClassification("p", "p", format="mrpc").protocol == shared | {"suite": "mrpc", "features": "|u-v|, u*v"}
    assert CrossLingual("m", "m", format="mldoc").protocol == shared | {
        "suite": "mldoc X→Y",
        "classes": "those of both parts",
    }
    for benchmark in (Sts("s"), Clustering("e"), BitextRetrieval("t")):
        assert benchmark.paths == (benchmark.path,)
    assert PairClassification("p", "p", format="sick_e").paths == ("p/SICK_train.txt", "p/SICK_test_annotated.txt")


# Retrieval


def event(number, name, **more):
    return {"id": str(number), "title": f"t{number}", "body": "b", "event": name, **more}


def test_a_candidate_on_the_last_day_of_the_gap_counts(tmp_path):
    dates = ("2020-01-01", "2020-01-08", "2020-01-09", "2020-01-09")
    rows = [event(n, name, byline_date=date) for n, (name, date) in enumerate(zip("AAAB", dates, strict=True))]
    path = write_rows(tmp_path / "e.jsonl", rows)
    scores = found(SameEventRetrieval(path, max_day_gap=7).score(circle(0, 50, 1, 2)))
    # d0: of its event only d1 is within 7 days, alone: 1. d1: d3 at 48 first, then d2 at 49, then d0: (1/2 + 2/3) / 2.
    # d2: d3, d1: 1/2.
    assert scores["mAP", "all"].value == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + 1 / 2) / 3)
    assert scores["hit@1", "all"].value == pytest.approx(1 / 3)


def test_documents_without_a_language_are_a_part_of_their_own(tmp_path):
    rows = [event(n, name, language="" if n % 2 else "en") for n, name in enumerate("AABB")]
    scores = found(SameEventRetrieval(write_rows(tmp_path / "e.jsonl", rows)).score(circle(0, 1, 90, 91)))
    assert {part for _, part in scores} == {"all", "en", "unknown"}
    assert scores["mAP", "unknown"].count == 2


def test_an_excluded_document_is_neither_query_nor_candidate(tmp_path):
    path = write_rows(tmp_path / "e.jsonl", [event(0, "A"), event(1, "B"), event(2, "A"), event(3, "B")])
    benchmark = SameEventRetrieval(path, excluded=frozenset([Document("t1", "b")]))
    assert [d.title for d in benchmark.documents()] == ["t0", "t2", "t3"]
    assert benchmark.score(circle(0, 10, 20))[0].count == 2
    assert benchmark.protocol["excluded"] == 1


# Clustering


def test_each_language_of_several_classes_is_clustered_by_itself_and_documents_without_a_label_are_left_out(tmp_path):
    rows = [event(n, name, language="en" if n < 4 else "de") for n, name in enumerate([*"AABBAA", None])]
    benchmark = Clustering(write_rows(tmp_path / "e.jsonl", rows), seeds=2)
    assert len(benchmark.documents()) == 6
    scores = found(benchmark.score(circle(0, 0, 90, 90, 0, 0)))
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


def test_the_correlation_over_all_pairs_has_an_interval_on_request(tmp_path):
    gold, angles = [1, 2, 3, 4, 5, 6, 7, 8], [80, 85, 60, 65, 40, 45, 10, 30]
    (tmp_path / "s.tsv").write_text("".join(f"{score}\ta{score}\tb{score}\n" for score in gold))
    vectors = np.concatenate([circle(*[0] * 8), circle(*angles)])
    plain, measured = (Sts(str(tmp_path / "s.tsv"), intervals=asked).score(vectors)[0] for asked in (False, True))
    assert (plain.low, plain.high, measured.value) == (None, None, plain.value)
    assert -1 <= measured.low < measured.value < measured.high <= 1
    # Pairs are resampled: a correlation of the ranks of the angles, negated, has the same interval.
    expected = spearman_interval(np.array(gold), -np.array(angles))
    assert (measured.low, measured.high) == pytest.approx((expected.low, expected.high))


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


def test_semeval_s_two_files_must_have_as_many_lines(tmp_path):
    (tmp_path / "STS.input.x.txt").write_text("a\tb\nc\td\n")
    gold = tmp_path / "STS.gs.x.txt"
    gold.write_text("1\n\n")
    assert list(Sts(str(tmp_path)).documents()) == [Document("", "a"), Document("", "b")]
    for text in ("1", "1\n2\n3\n"):
        gold.write_text(text)
        refuses("2 pairs, but", Sts(str(tmp_path)).documents)


# Bitext and near duplicates


def test_both_directions_of_a_pair_and_their_mean(tmp_path, monkeypatch):
    for pair, count in (("deu-eng", 3), ("fra-eng", 2)):
        for language in pair.split("-"):
            lines = [f"{pair} {language} {n}\n" for n in range(count)]
            (tmp_path / f"tatoeba.{pair}.{language}").write_text("".join(lines))
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
    texts = [f"deu-eng {side} {n}" for side in ("deu", "eng") for n in (0, 2)]
    assert [d.body for d in without.documents()][:4] == texts


def test_near_duplicates_by_level_against_scikit_learn(tmp_path):
    levels = [3, 0, 1, 1, 3, 0, 2]
    texts = [[{"title": f"{side}{n}", "body": ""} for side in "ab"] for n in range(7)]
    rows = [{"first": one, "second": two, "level": level} for (one, two), level in zip(texts, levels, strict=True)]
    path = write_rows(tmp_path / "p.jsonl", rows)
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
