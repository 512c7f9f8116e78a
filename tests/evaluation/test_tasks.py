"""Classification, cross-lingual cells, pairs, bitext, duplicates and STS against independent computations."""

import json

import numpy as np
import pytest
from benchmarking import found
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import Result, Score, over_runs
from newsembed.evaluation.benchmarks.bitext import BitextRetrieval
from newsembed.evaluation.benchmarks.classification import logistic_regression
from newsembed.evaluation.benchmarks.duplicates import NearDuplicates
from newsembed.evaluation.benchmarks.pairs import PairClassification
from newsembed.evaluation.benchmarks.sts import Sts
from newsembed.evaluation.encoders import normalised
from newsembed.evaluation.heads import small_features
from newsembed.evaluation.statistics import comparisons
from refusals import refuses
from scipy import optimize, sparse

BLOBS = {"sport": [3, 0, 0], "tech": [0, 3, 0], "business": [0, 0, 3]}


def blobs(count, noise=1.0, seed=0):
    random = np.random.default_rng(seed)
    labels = np.array([name for name in BLOBS for _ in range(count)])
    return normalised(np.array([BLOBS[name] for name in labels]) + random.normal(size=(len(labels), 3)) * noise), labels


def test_logistic_regression_equals_its_formula():
    embeddings, labels = blobs(30)
    random = np.random.default_rng(1).permutation(90)
    train, test = random[:60], random[60:]
    names = np.unique(labels)
    target = (labels[:, None] == names).astype(float)

    def fit(rows, strength):  # minimises 1/2 |W|^2 + C sum of cross-entropies, the intercept free
        x, y = embeddings[rows].astype(float), target[rows]

        def loss(flat):
            weights, bias = flat[:9].reshape(3, 3), flat[9:]
            scores = x @ weights + bias
            high = scores.max(1, keepdims=True)
            log = scores - high - np.log(np.exp(scores - high).sum(1, keepdims=True))
            slope = strength * (np.exp(log) - y)
            slopes = np.concatenate([(weights + x.T @ slope).ravel(), slope.sum(0)])
            return 0.5 * (weights**2).sum() - strength * (y * log).sum(), slopes

        options = {"maxiter": 5000, "gtol": 1e-8}
        flat = optimize.minimize(loss, np.zeros(12), jac=True, method="L-BFGS-B", options=options).x
        return lambda rows: names[(embeddings[rows] @ flat[:9].reshape(3, 3) + flat[9:]).argmax(1)]

    from sklearn.model_selection import StratifiedKFold

    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(train, labels[train]))

    def validation(strength):
        return np.mean([(fit(train[a], strength)(train[b]) == labels[train[b]]).mean() for a, b in folds])

    best = max((0.1, 1, 10, 100, 1000), key=validation)
    assert np.array_equal(logistic_regression(embeddings, labels, train, test), fit(train, best)(test))


def test_the_span_of_the_training_rows_changes_no_prediction():
    random = np.random.default_rng(0)
    wide = sparse.random(60, 500, 0.05, format="csr", random_state=random, dtype=np.float32)
    train, test = small_features(wide[:40], wide[40:])
    assert train.shape[1] <= 40
    whole = wide.toarray().astype(float)
    assert np.allclose(train @ train.T, whole[:40] @ whole[:40].T, atol=1e-9)
    assert np.allclose(test @ train.T, whole[40:] @ whole[:40].T, atol=1e-6)


def test_confidence_of_a_mean_by_hand():
    score = over_runs("x", [1.0, 2.0, 3.0], "all", 9)
    assert (score.value, score.std, score.runs) == (2.0, 1.0, 3)
    assert score.confidence == pytest.approx(4.302653 / np.sqrt(3), abs=1e-5)  # t at 97.5 %, 2 degrees of freedom
    assert over_runs("x", [1.0], "all", 1).confidence is None


def compare(*results):
    return comparisons(results, {})["comparisons"]


def cells(encoder, values, status="ok"):
    parts = zip(values, ["e→e", "e→f", "f→e", "f→f"], strict=True)
    cross = Score("accuracy", 0.5, "Cross", 2)
    return Result(encoder, "m", status, (cross, *(Score("accuracy", value, part, 9) for value, part in parts)))


def test_paired_t_test_by_hand():
    one, other = cells("a", [0.9, 0.5, 0.6, 0.9]), cells("b", [0.8, 0.3, 0.3, 0.7])
    found = compare(one, other, cells("c", [0] * 4, "failed"))
    by_group = {comparison.part: comparison for comparison in found}
    assert {c.first + c.second for c in found} == {"ab"}
    differences = np.array([0.1, 0.2, 0.3, 0.2])
    assert by_group["All"].difference == pytest.approx(0.2)
    assert by_group["All"].t == pytest.approx(differences.mean() / (differences.std(ddof=1) / 2))
    assert by_group["All"].count == 4
    assert by_group["Cross"].difference == pytest.approx(0.25)
    assert by_group["All"].to_dict()["count"] == 4
    same = compare(cells("a", [0.5] * 4), cells("b", [0.5] * 4))[0].to_dict()
    assert (same["difference"], same["t"], same["p"]) == (0, None, None)
    constant = compare(cells("a", [0.75] * 4), cells("b", [0.5] * 4))[0].to_dict()  # t is infinite
    assert (constant["difference"], constant["t"], constant["p"]) == (0.25, None, 0)
    assert by_group["Cross"].p == pytest.approx(2 * 0.0628, abs=1e-3)  # t = 5 with one degree of freedom


def test_bad_bitext(tmp_path):
    refuses("no pairs.*\n.*LASER", BitextRetrieval(str(tmp_path)).documents)
    (tmp_path / "tatoeba.deu-eng.deu").write_text("eins\nzwei\n")
    (tmp_path / "tatoeba.deu-eng.eng").write_text("one\n")
    refuses("2 lines, but 1 in the other", BitextRetrieval(str(tmp_path)).documents)
    (tmp_path / "tatoeba.deu-eng.eng").write_text("\none\n")
    refuses("eng:1: 1 lines are empty", BitextRetrieval(str(tmp_path)).documents)


def test_broken_pairs_are_named(tmp_path):
    line = {"first": {"title": "a", "body": "x"}, "second": {"title": "b", "body": "x"}, "level": 2}
    for changed, message in (
        ({}, "fewer than two levels"),
        ({"level": "2"}, "level: got '2'"),
        ({"second": "a text"}, "second: expected an object with title and body"),
        ({"second": {"title": "a", "body": None}}, "second: expected an object with title and body"),
    ):
        (tmp_path / "q.jsonl").write_text(json.dumps(line | changed))
        refuses(message, NearDuplicates(str(tmp_path / "q.jsonl")).documents)
    (tmp_path / "SICK_train.txt").write_text("pair_ID\tsentence_A\n1\ta\n")
    with pytest.raises(InputError, match="lacks entailment_judgment, sentence_B.*\n.*zenodo"):
        PairClassification(str(tmp_path), format="sick_e").documents()


def rank(values):
    values = np.asarray(values)
    return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])


def sts_year(folder):
    random = np.random.default_rng(0)
    folder.mkdir()
    golds = {}
    for source, count in (("MSRpar", 7), ("headlines", 12)):
        golds[source] = random.integers(0, 11, count) / 2
        inputs = "".join(f"s{source}{n} x\tt{source}{n} y\n" for n in range(count))
        (folder / f"STS.input.{source}.txt").write_text(inputs + "unscored\tpair\n")
        (folder / f"STS.gs.{source}.txt").write_text("".join(f"{gold}\n" for gold in golds[source]) + "\n")
    return golds


def test_sts_year_by_senteval_and_mteb(tmp_path):
    golds = sts_year(tmp_path / "2012")
    benchmark = Sts(str(tmp_path / "2012"))
    assert len(benchmark.documents()) == 2 * 19
    embeddings = normalised(np.random.default_rng(1).normal(size=(38, 4)))
    scores = found(benchmark.score(embeddings))
    cosines = (embeddings[:19] * embeddings[19:]).sum(1)

    def spearman(one, two):  # Pearson's correlation of ranks
        return np.corrcoef(rank(one), rank(two))[0, 1]

    one, two = spearman(golds["MSRpar"], cosines[:7]), spearman(golds["headlines"], cosines[7:])
    assert scores["Spearman", "MSRpar"].value == pytest.approx(one, abs=1e-4)
    assert scores["Spearman mean", "all"].value == pytest.approx((one + two) / 2, abs=1e-4)
    assert scores["Spearman weighted", "all"].value == pytest.approx((7 * one + 12 * two) / 19, abs=1e-4)
    whole = spearman(np.concatenate([golds["MSRpar"], golds["headlines"]]), cosines)
    assert scores["Spearman", "all"].value == pytest.approx(whole, abs=1e-4)
