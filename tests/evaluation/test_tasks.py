"""Classification, cross-lingual cells, pairs, bitext, duplicates and STS against independent computations."""

import json

import numpy as np
import pytest
from benchmarking import found
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import Score, over_runs
from newsembed.evaluation.bitext import BitextRetrieval, retrieval_accuracy
from newsembed.evaluation.classification import (
    NewsClassification,
    few_shot_scores,
    logistic_regression,
    macro_f1,
    small_features,
)
from newsembed.evaluation.clustering import cluster_scores
from newsembed.evaluation.compare import compare
from newsembed.evaluation.crosslingual import CrossLingual
from newsembed.evaluation.duplicates import NearDuplicates
from newsembed.evaluation.encoders import Document, TfidfEncoder, encode_checked, normalised
from newsembed.evaluation.pairs import PairClassification
from newsembed.evaluation.registry import Options, discover
from newsembed.evaluation.results import Result
from newsembed.evaluation.sts import Sts
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
            return 0.5 * (weights**2).sum() - strength * (y * log).sum(), np.concatenate(
                [(weights + x.T @ slope).ravel(), slope.sum(0)]
            )

        flat = optimize.minimize(
            loss, np.zeros(12), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-8}
        ).x
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


def test_few_shot_scores_do_not_depend_on_the_form_or_rotation_of_the_embeddings():
    embeddings, labels = blobs(20, noise=0.8)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 3)))[0].T
    rows = np.arange(60)
    dense, wide, csr = (
        few_shot_scores(form, labels, rows, rows, 5, 3)[0].value
        for form in (embeddings, embeddings @ rotation, sparse.csr_matrix(embeddings))
    )
    assert dense == pytest.approx(csr, abs=1e-9)
    assert dense == pytest.approx(wide, abs=0.1)  # the basis may differ in signs, and so what the drawn weights meet


def test_macro_f1_by_hand():
    # a: precision 1/2, recall 1: 2/3; b: precision 1, recall 1/2: 2/3; c never found: 0.
    assert macro_f1(np.array(list("aabbc")), np.array(list("aaabd"))) == pytest.approx((4 / 5 + 2 / 3 + 0) / 3)


def test_few_shot_draws_equally_and_refuses_small_classes():
    embeddings, labels = blobs(20, noise=0.1)
    (score,) = few_shot_scores(embeddings, labels, np.arange(60), np.arange(60), 5, 3)
    assert score.metric == "5-shot macro-F1"
    assert score.value > 0.95
    assert score.runs == 3
    with pytest.raises(InputError, match="'business' has 4 documents, expected at least 5"):
        few_shot_scores(embeddings[:44], labels[:44], np.arange(44), np.arange(44), 5, 3)


def test_confidence_of_a_mean_by_hand():
    score = over_runs("x", [1.0, 2.0, 3.0], "all", 9)
    assert (score.value, score.std, score.runs) == (2.0, 1.0, 3)
    assert score.confidence == pytest.approx(4.302653 / np.sqrt(3), abs=1e-5)  # t at 97.5 %, 2 degrees of freedom
    assert over_runs("x", [1.0], "all", 1).confidence is None


def test_cluster_scores_equal_their_formulas():
    embeddings, labels = blobs(30, noise=1.5)
    ari, v = cluster_scores("all", embeddings, labels, (0,))
    from newsembed.evaluation.clustering import kmeans

    table = np.array([[np.sum((labels == a) & (kmeans(embeddings, 3, 0) == b)) for b in range(3)] for a in BLOBS])

    def pairs(counts):
        return (counts * (counts - 1) / 2).sum()

    def entropy(counts):
        shares = counts[counts > 0] / counts.sum()
        return -(shares * np.log(shares)).sum()

    rows, columns, total = pairs(table.sum(1)), pairs(table.sum(0)), pairs(np.array([90]))
    expected = rows * columns / total
    assert ari.value == pytest.approx((pairs(table) - expected) / ((rows + columns) / 2 - expected), abs=1e-4)
    mutual = entropy(table.sum(1)) + entropy(table.sum(0)) - entropy(table.ravel())
    assert v.value == pytest.approx(2 * mutual / (entropy(table.sum(1)) + entropy(table.sum(0))), abs=1e-4)


WORDS = {"sport": "goal match cup", "tech": "phone chip code", "business": "profit market share"}


@pytest.fixture
def bbc(tmp_path):
    for label, words in WORDS.items():
        (tmp_path / "bbc" / label).mkdir(parents=True)
        for number in range(16):
            (tmp_path / "bbc" / label / f"{number:03}.txt").write_text(f"{words} {number}\n\nthe {words}")
    return tmp_path


def test_a_collection_is_scored_by_all_tasks(bbc):
    benchmark = NewsClassification(str(bbc / "bbc"), "bbc", "bbc", repeats=2, seeds=(0, 1))
    scores = found(benchmark.score(encode_checked(TfidfEncoder(), benchmark.documents()).embeddings))
    assert {metric for metric, _ in scores} == {
        "accuracy",
        "macro-F1",
        "5-shot macro-F1",
        "10-shot macro-F1",
        "ARI",
        "V",
    }
    assert scores["accuracy", "all"].value == 1
    assert (scores["accuracy", "all"].count, scores["accuracy", "all"].runs) == (48, 5)
    fewer = NewsClassification(str(bbc / "bbc"), "bbc", "bbc", excluded=frozenset(benchmark.documents()[:3]))
    assert len(fewer.documents()) == 45
    assert fewer.protocol["excluded"] == 3


def test_a_share_of_one_file_trains_and_the_rest_tests(tmp_path):
    lines = [f'"{number % 4 + 1}","{"abcd"[number % 4] * 3} {number}","x"' for number in range(80)]
    (tmp_path / "test.csv").write_text("\n".join(lines))
    benchmark = NewsClassification(str(tmp_path), "agnews", "ag", tasks=("classification",), train_share=0.2)
    scores = found(benchmark.score(encode_checked(TfidfEncoder(), benchmark.documents()).embeddings))
    assert scores["accuracy", "all"].count == 64
    assert scores["accuracy", "all"].std is None
    (tmp_path / "train.csv").write_text("\n".join(lines))
    benchmark = NewsClassification(str(tmp_path), "agnews", "ag")
    assert len(benchmark.documents()) == 4 * 2 + 80


def masakha(folder, language, labels, words):
    rows = "".join(f"{label}\t{words[label]}\t{words[label]} {number}\tu\n" for number in range(6) for label in labels)
    (folder / language).mkdir(parents=True)
    for part in ("train", "test"):
        (folder / language / f"{part}.tsv").write_text(f"category\theadline\ttext\turl\n{rows}")


def test_crosslingual_cells_and_averages(tmp_path):
    masakha(tmp_path, "eng", ["sports", "health", "tech"], {"sports": "goal", "health": "doctor", "tech": "phone"})
    masakha(tmp_path, "fra", ["sports", "health"], {"sports": "but", "health": "docteur"})
    benchmark = CrossLingual(str(tmp_path), "masakhanews", "m")
    documents = benchmark.documents()
    assert len(documents) == 2 * (18 + 12)
    rows = normalised(
        np.array([[("goal" in d.title) or ("but" in d.title), "doct" in d.title, 0.1] for d in documents], float)
    )
    scores = found(benchmark.score(rows))
    assert scores["accuracy", "eng→fra"].value == 1  # over the two classes that both have
    assert scores["accuracy", "fra→eng"].count == 12
    assert (scores["accuracy", "Same"].value, scores["accuracy", "Cross"].value, scores["accuracy", "All"].value) == (
        1,
        1,
        1,
    )
    assert scores["accuracy", "Cross"].count == 2
    (tmp_path / "fra" / "test.tsv").unlink()
    with pytest.raises(InputError, match="found 1 languages"):
        CrossLingual(str(tmp_path), "masakhanews", "m").documents()


def cells(encoder, values, **more):
    parts = [
        Score("accuracy", value, f"{a}→{b}", 9) for value, (a, b) in zip(values, ["ee", "ef", "fe", "ff"], strict=True)
    ]
    return Result(encoder, "m", more.get("status", "ok"), (Score("accuracy", 0.5, "Cross", 2), *parts))


def test_paired_t_test_by_hand():
    comparisons = compare(
        [cells("a", [0.9, 0.5, 0.6, 0.9]), cells("b", [0.8, 0.3, 0.3, 0.7]), cells("c", [0] * 4, status="failed")]
    )
    by_group = {comparison.group: comparison for comparison in comparisons}
    assert {c.first + c.second for c in comparisons} == {"ab"}
    differences = np.array([0.1, 0.2, 0.3, 0.2])
    assert by_group["All"].difference == pytest.approx(0.2)
    assert by_group["All"].t == pytest.approx(differences.mean() / (differences.std(ddof=1) / 2))
    assert by_group["All"].cells == 4
    assert by_group["Cross"].difference == pytest.approx(0.25)
    assert by_group["All"].to_dict()["cells"] == 4
    same = compare([cells("a", [0.5] * 4), cells("b", [0.5] * 4)])[0].to_dict()
    assert (same["difference"], same["t"], same["p"]) == (0, None, None)
    constant = compare([cells("a", [0.75] * 4), cells("b", [0.5] * 4)])[0].to_dict()  # t is infinite
    assert (constant["difference"], constant["t"], constant["p"]) == (0.25, None, 0)
    assert by_group["Cross"].p == pytest.approx(2 * 0.0628, abs=1e-3)  # t = 5 with one degree of freedom


def test_pair_features_and_head(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    lines = [f'1\t1\t2\tword{n} a "b\tword{n} b a\n0\t1\t2\tword{n} c\tother{n} d\n' for n in range(12)]
    for part in ("train", "test"):
        (tmp_path / f"msr_paraphrase_{part}.txt").write_text(header + "".join(lines))
    benchmark = PairClassification(str(tmp_path), "mrpc", "mrpc")
    assert len(benchmark.documents()) == 96
    encoded = encode_checked(TfidfEncoder(), benchmark.documents()).embeddings
    for embeddings in (encoded, encoded.toarray()):
        scores = found(benchmark.score(embeddings))
        assert scores["accuracy", "all"].value == scores["F1", "all"].value == 1
    (tmp_path / "msr_paraphrase_test.txt").write_text("Quality\t#1 String\n1\ta\n")
    with pytest.raises(InputError, match="lacks #2 String.*\n.*microsoft"):
        PairClassification(str(tmp_path), "mrpc", "mrpc").documents()


def test_bitext_by_hand(tmp_path):
    (tmp_path / "tatoeba.deu-eng.deu").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "tatoeba.deu-eng.eng").write_text("one\ntwo\nthree\n")
    benchmark = BitextRetrieval(str(tmp_path))
    assert [d.body for d in benchmark.documents()] == ["eins", "zwei", "drei", "one", "two", "three"]
    circle = np.deg2rad([0, 30, 60, 5, 70, 61])
    scores = found(benchmark.score(normalised(np.stack([np.cos(circle), np.sin(circle)], 1))))
    # eins finds one; zwei at 30 finds one at 5 (25 against 31 and 40); drei finds three. one finds eins, two drei,
    # three drei.
    assert scores["accuracy", "deu→eng"].value == pytest.approx(2 / 3)
    assert scores["accuracy", "eng→deu"].value == pytest.approx(2 / 3)
    assert scores["accuracy", "all"].value == pytest.approx(2 / 3)
    assert retrieval_accuracy(np.ones((4, 2), np.float32), np.ones((4, 2), np.float32)) == pytest.approx(1 / 4)


def test_bad_bitext(tmp_path):
    with pytest.raises(InputError, match="no pairs.*\n.*LASER"):
        BitextRetrieval(str(tmp_path)).documents()
    (tmp_path / "tatoeba.deu-eng.deu").write_text("eins\nzwei\n")
    with pytest.raises(InputError, match="deu-eng.eng: cannot be read"):
        BitextRetrieval(str(tmp_path)).documents()
    (tmp_path / "tatoeba.deu-eng.eng").write_text("one\n")
    with pytest.raises(InputError, match="2 lines, but 1 in the other"):
        BitextRetrieval(str(tmp_path)).documents()
    (tmp_path / "tatoeba.deu-eng.eng").write_text("\none\n")
    with pytest.raises(
        InputError, match="1 lines are empty.*line 1|line 1.*1 lines are empty|eng:1: 1 lines are empty"
    ):
        BitextRetrieval(str(tmp_path)).documents()


def test_near_duplicate_auc_by_hand(tmp_path):
    levels = [2, 1, 1, 0]
    lines = [
        {"first": {"title": f"a{n}", "body": "x"}, "second": {"title": f"b{n}", "body": "x"}, "level": v}
        for n, v in enumerate(levels)
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    benchmark = NearDuplicates(str(tmp_path / "p.jsonl"))
    benchmark.documents()
    left, right = np.zeros(4), np.deg2rad([10, 5, 60, 30])  # cosines fall with the angle: order 1, 0, 3, 2
    rows = np.concatenate([np.stack([np.cos(a), np.sin(a)], 1) for a in (left, right)])
    scores = found(benchmark.score(normalised(rows)))
    assert scores["AUC", "level ≥ 1"].value == pytest.approx(2 / 3)  # pairs 0 and 1 stand before 3, pair 2 behind it
    assert scores["AUC", "level ≥ 2"].value == pytest.approx(2 / 3)
    (tmp_path / "q.jsonl").write_text(json.dumps(lines[0]))
    with pytest.raises(InputError, match="fewer than two levels"):
        NearDuplicates(str(tmp_path / "q.jsonl")).documents()
    (tmp_path / "q.jsonl").write_text(json.dumps(lines[0] | {"level": "2"}))
    with pytest.raises(InputError, match="level: got '2'"):
        NearDuplicates(str(tmp_path / "q.jsonl")).documents()
    for side in ("a text", {"title": "a"}, {"title": "a", "body": None}):
        (tmp_path / "q.jsonl").write_text(json.dumps(lines[0] | {"second": side}))
        with pytest.raises(InputError, match="second: expected an object with title and body"):
            NearDuplicates(str(tmp_path / "q.jsonl")).documents()


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


def test_sts_folders_that_are_broken(tmp_path):
    with pytest.raises(InputError, match="no STS files.*\n.*ixa2"):
        Sts(str(tmp_path)).documents()
    sts_year(tmp_path / "2012")
    (tmp_path / "2012/STS.gs.MSRpar.txt").write_text("1\n2\n")
    with pytest.raises(InputError, match="8 pairs, but 3 lines"):
        Sts(str(tmp_path / "2012")).documents()


def test_everything_under_a_folder_is_found(bbc):
    masakha(bbc / "masakhanews", "eng", ["sports", "health"], {"sports": "a", "health": "b"})
    (bbc / "sts").mkdir()
    sts_year(bbc / "sts/2012")
    names = [benchmark.name for benchmark in discover(str(bbc), Options())]
    assert names == ["bbc (bbc)", "masakhanews (masakhanews/eng)", "masakhanews_xy (masakhanews)", "sts (sts/2012)"]
    with pytest.raises(InputError, match="no known benchmark"):
        discover(str(bbc / "bbc/sport"), Options())
    with pytest.raises(InputError, match="cannot be read"):
        discover(str(bbc / "absent"), Options())


def test_excluded_sentences_take_their_pairs_along(tmp_path):
    (tmp_path / "s.tsv").write_text("1\ta\tb\n2\tc\td\n3\te\tf\n")
    assert len(Sts(str(tmp_path / "s.tsv"), excluded=frozenset([Document("", "d")])).documents()) == 4
