"""MLDoc by T-MDE's protocols: who trains and tests whom, folds, and the tests over them; XNLI."""

import numpy as np
import pytest
from benchmarking import found
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import Result, Score, discover, suites
from newsembed.evaluation.benchmarks import mldoc
from newsembed.evaluation.benchmarks import pairs as nli
from newsembed.evaluation.benchmarks.mldoc import MlDoc, folds_of
from newsembed.evaluation.benchmarks.pairs import Xnli
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.heads import Perceptron
from newsembed.evaluation.statistics import comparisons, published
from refusals import refuses
from scipy import sparse
from scipy.stats import ttest_1samp
from sklearn.svm import LinearSVC

QUICK = Perceptron(hidden=(6,), epochs=100, learning_rate=3e-2)


def write_language(folder, language, **parts):
    folder.mkdir(exist_ok=True)
    for part, labels in parts.items():
        name = {"train": "train.1000", "large": "train.10000"}.get(part, part)
        lines = [f"{label}\t{language} {part} {number}\n" for number, label in enumerate(labels)]
        (folder / f"{language}.{name}").write_text("".join(lines))


@pytest.fixture
def folder(tmp_path):
    write_language(tmp_path / "mldoc", "english", train="ab", dev="ba", test="aabb", large="abababab")
    write_language(tmp_path / "mldoc", "german", train="abb", dev="ab", test="ab", large="abababab")
    return tmp_path / "mldoc"


@pytest.fixture
def seen(monkeypatch):
    """What each classifier is trained, chosen and tested on; it finds class 0 everywhere."""
    calls = []

    def predict(head, embeddings, classes, source, tested, seed):
        calls.append((*(part.tolist() for part in source[:2]), tested.tolist(), seed))
        return np.zeros(len(tested), np.int32)

    monkeypatch.setattr(mldoc, "_predict", predict)
    return calls


def test_each_source_is_trained_and_chosen_on_its_own_parts_and_tested_on_all(folder, seen):
    benchmark = MlDoc(str(folder), "m", seeds=1)
    assert [d.body for d in benchmark.documents()][:3] == ["english train 0", "english train 1", "english dev 0"]
    scores = found(benchmark.score(np.eye(15)))
    assert seen == [([0, 1], [2, 3], [4, 5, 6, 7, 13, 14], 0), ([8, 9, 10], [11, 12], [4, 5, 6, 7, 13, 14], 0)]
    assert {part: score.value for (_, part), score in scores.items()} == dict.fromkeys(
        ["Same", "Cross", "All", "english→english", "english→german", "german→english", "german→german"], 0.5
    )
    assert [scores["accuracy", part].count for part in ("Same", "Cross", "All", "german→english")] == [2, 2, 4, 4]
    assert not scores["accuracy", "Cross"].folds


def test_on_dev_the_dev_parts_are_tested_and_no_test_part_is_read(folder, seen):
    for language in ("english", "german"):
        (folder / f"{language}.test").write_text("not read")
    benchmark = MlDoc(str(folder), "m", seeds=1, on_dev=True)
    assert len(benchmark.documents()) == 4 + 5
    scores = found(benchmark.score(np.eye(9)))
    assert seen == [([0, 1], [2, 3], [2, 3, 7, 8], 0), ([4, 5, 6], [7, 8], [2, 3, 7, 8], 0)]
    assert scores["accuracy", "english→german"].count == 2
    assert benchmark.protocol["tested"] == "dev"
    assert "tested" not in MlDoc(str(folder), "m").protocol  # as in results of earlier versions


def test_protocols_choose_languages_and_sources(folder, seen):
    write_language(folder, "spanish", train="ab", dev="ab", test="ab")
    one = MlDoc(str(folder), "m", train_languages=("english",), seeds=2)
    scores = found(one.score(np.eye(21)))
    assert [part for _, part in scores][3:] == ["english→english", "english→german", "english→spanish"]
    assert [call[3] for call in seen] == [0, 1]
    assert one.protocol["suite"] == "mldoc_laser X→Y from english"
    pair = MlDoc(str(folder), "m", languages=("spanish", "english"))
    assert pair.protocol["suite"] == "mldoc_laser X→Y of english, spanish"
    assert len(pair.documents()) == 8 + 6
    with pytest.raises(InputError, match=": languages: got the languages italian"):
        MlDoc(str(folder), "m", languages=("italian", "english")).documents()
    with pytest.raises(InputError, match="has no files of any language"):
        MlDoc(str(folder.parent), "m", languages=("english",)).documents()
    with pytest.raises(InputError, match="train_languages: got the languages german, expected some of english"):
        MlDoc(str(folder), "m", languages=("spanish", "english"), train_languages=("german",)).documents()


def test_the_averages_are_over_their_own_cells_and_runs(folder, monkeypatch):
    # All find the first class, half of each test part, but English with seed 1 finds the truth of its own test part.
    def predict(head, embeddings, classes, source, tested, seed):
        knows = (tested < 8) & (seed == 1) & (source.train[0] == 0)
        return np.where(knows, classes[tested], 0)

    monkeypatch.setattr(mldoc, "_predict", predict)
    scores = found(MlDoc(str(folder), "m", seeds=2).score(np.eye(15)))
    values = {part: scores["accuracy", part].value for part in ("Same", "Cross", "All", "english→english")}
    assert values == {"Same": 0.625, "Cross": 0.5, "All": 0.5625, "english→english": 0.75}
    assert scores["accuracy", "Same"].runs == 2
    assert scores["accuracy", "Same"].std == pytest.approx(np.std([0.5, 0.75], ddof=1))


def test_the_classifier_reads_dense_and_sparse_vectors_and_excluded_documents_are_gone(folder):
    gone = frozenset([Document("", "german test 0")])
    benchmark = MlDoc(str(folder), "m", seeds=1, head=QUICK, excluded=gone)
    labels = np.array([*"abbaaabb", *"abbab", "b"])  # of train, dev and test in English and in German
    assert len(benchmark.documents()) == 14
    vectors = np.eye(2, dtype=np.float32)[(labels == "b").astype(int)]
    for embeddings in (vectors, sparse.csr_matrix(vectors)):
        scores = found(benchmark.score(embeddings))
        assert scores["accuracy", "All"].value == 1
    assert scores["accuracy", "english→german"].count == 1


def test_folds_are_disjoint_halves_that_swap_and_one_dev_part():
    folds = folds_of(np.arange(100, 115), 4)
    assert [len(rows) for rows in folds[0]] == [3, 3, 3]
    for number, fold in enumerate(folds):
        partner = folds[number ^ 1]
        assert fold.train.tolist() == partner.test.tolist()
        assert fold.dev.tolist() == folds[0].dev.tolist()
    used = np.concatenate([*(fold.train for fold in folds), folds[0].dev])
    assert len(set(used)) == 15
    assert [len(rows) for rows in folds_of(np.arange(15_000), 10)[9]] == [1000, 1000, 1000]
    refuses("got 4 documents for 4 folds", folds_of, np.arange(4), 4)
    refuses("even number", MlDoc, "m", "m", folds=3)


def test_folds_pool_all_parts_and_keep_their_values(folder, seen):
    benchmark = MlDoc(str(folder), "m", folds=2)
    assert len(benchmark.documents()) == 8 + 2 + 4 + 8 + 2 + 2
    scores = found(benchmark.score(np.eye(26)))
    assert [call[3] for call in seen] == [0, 0, 1, 1]
    english = {*seen[0][0], *seen[0][1], *seen[0][2][:4]}
    assert len(english) == 12
    assert max(english) < 14
    cross = scores["accuracy", "Cross"]
    assert len(cross.folds) == 2
    assert cross.value == pytest.approx(np.mean(cross.folds))
    assert len(scores["accuracy", "english→german"].folds) == 2
    assert "seeds" not in benchmark.protocol
    assert benchmark.protocol["folds"] == 2


def compare_folds(results):
    return comparisons(results, {})["fold_comparisons"]


def of_folds(name, values):
    return Result(name, "m", "ok", (Score("accuracy", float(np.mean(values)), "Cross", folds=tuple(values)),))


def test_folds_without_spread_have_no_p_in_json_and_others_need_as_many_folds():
    left = [0.8, 0.7, 0.9, 0.75]
    same = compare_folds([of_folds("a", left), of_folds("b", left)])[0].to_dict()
    assert (same["difference"], same["p"], same["corrected_p"]) == (0, None, None)
    above = [of_folds("a", [0.75] * 4), of_folds("b", [0.5] * 4)]  # t is infinite
    assert compare_folds(above)[0].to_dict()["t"] is None
    assert compare_folds([of_folds("a", left), of_folds("b", left[:3])]) == []


@pytest.mark.parametrize(
    ("languages", "source", "part", "system", "value"),
    [
        (("french", "german", "italian", "spanish", "english"), "Tables 4.3", "Cross", "cT-MDE_P", 0.76),
        (("spanish", "english"), "Table 4.5", "Cross", None, None),
    ],
)
def test_published_numbers_are_named_by_the_languages_of_their_protocol(languages, source, part, system, value):
    suite = suites()["mldoc_laser"].make("mldoc", "m", {"languages": languages}).protocol["suite"]
    rows = [row for row in published() if (row["suite"], row["part"]) == (suite, part) and source in row["source"]]
    assert [row["values"].get(system) for row in rows] == [value]


# XNLI

HEADER = "language\tgold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpairID"
NAMES = ("entailment", "neutral", "contradiction")


def write_xnli(folder, *, train=False, languages=("en", "de")):
    folder.mkdir(exist_ok=True)
    for part, count in (("dev", 30), ("test", 12)):
        lines = [HEADER]
        for language in languages:
            for number in range(count):
                label, both = NAMES[number % 3], f"{part} {language}"
                lines.append(f"{language}\t{label}\tx\t{both} p{number}\t{both} {label}\t{number}")
        (folder / f"xnli.{part}.tsv").write_text("\n".join(lines) + "\n")
    if train:
        rows = [f"train p{n}\ttrain {label}\t{label}" for n, label in enumerate([*NAMES[:2], "contradictory"] * 4)]
        (folder / "multinli.train.en.tsv").write_text("\n".join(["premise\thypo\tlabel", *rows]) + "\n")
    return folder


def vectors_of(benchmark):
    """A hypothesis points where its label says, a premise in a direction of all premises."""
    directions = dict(zip([*NAMES, "contradictory"], [0, 1, 2, 2], strict=True))
    places = [directions.get(document.body.split()[-1], 3) for document in benchmark.documents()]
    return np.eye(4, dtype=np.float32)[places]


@pytest.mark.parametrize("train", [True, False])
def test_xnli_tests_premises_and_hypotheses_of_all_languages(tmp_path, train):
    folder = write_xnli(tmp_path / "xnli", train=train)
    benchmark = Xnli(str(folder), "x", head=QUICK)
    scores = found(benchmark.score(vectors_of(benchmark)))
    assert [part for _, part in scores] == ["Same", "Cross", "All", "en→en", "en→de", "de→en", "de→de"]
    assert {score.value for score in scores.values()} == {1.0}
    assert [scores["accuracy", part].count for part in ("Same", "Cross", "All", "en→de")] == [2, 2, 4, 12]
    assert benchmark.protocol["suite"] == ("xnli" if train else "xnli, trained on dev")
    assert [b.name for b in discover(str(tmp_path))] == ["xnli (xnli)"]


def test_features_parts_and_pairs_across_languages_of_xnli(tmp_path, monkeypatch):
    folder = write_xnli(tmp_path / "xnli")
    seen = []

    def predict(layers, features):
        seen.append(features)
        return np.zeros(len(features), np.int32)

    monkeypatch.setattr(nli, "predict", predict)
    monkeypatch.setattr(nli, "train", lambda head, known, dev, classes, seed: seen.extend([known, dev]))
    benchmark = Xnli(str(folder), "x", excluded=frozenset([Document("", "test de p3")]))
    texts = [document.body for document in benchmark.documents()]
    assert len(texts) == len(set(texts))
    vectors = np.random.default_rng(0).normal(size=(len(texts), 20)).astype(np.float32)
    scores = found(benchmark.score(sparse.csr_matrix(vectors)))
    known, dev, *cells = seen
    # Premises 0, 5, 10, … of 30 choose the epoch.
    assert (len(known[0]), len(dev[0])) == (24, 6)
    assert dev[1].tolist() == [0, 2, 1, 0, 2, 1]
    one, two = (vectors[texts.index(text)] for text in ("test en p4", "test de neutral"))
    expected = np.concatenate([one, two, np.abs(one - two), one * two])
    np.testing.assert_allclose(cells[1][3], expected, rtol=1e-6)  # without pair 3, whose German was left out
    assert [len(cell) for cell in cells] == [12, 11, 11, 11]
    assert scores["accuracy", "en→en"].value == pytest.approx(4 / 12)


def test_features_of_xnli_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    benchmark = Xnli(str(write_xnli(tmp_path / "xnli")), "x", head=Perceptron(hidden=(2,), epochs=1))
    vectors = vectors_of(benchmark)  # four numbers; 24 pairs of 30 are known, each with four vectors of float32
    monkeypatch.setattr(nli, "_MOST_BYTES", 24 * 4 * 4 * 4)
    assert benchmark.score(vectors)
    monkeypatch.setattr(nli, "_MOST_BYTES", 24 * 4 * 4 * 4 - 1)
    refuses("24 pairs of vectors of 4 numbers do not fit into memory", benchmark.score, vectors)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text.replace("pairID", "id"), "the header lacks pairID"),
        (lambda text: text.replace("neutral", "maybe", 1), "got 'maybe'"),
        (lambda text: text.split("\n")[0] + "\n", "no pairs found"),
        (lambda text: text + "en\tneutral\n", "got 2 columns, expected 6"),
    ],
)
def test_broken_files_of_xnli_are_named(tmp_path, change, problem):
    path = write_xnli(tmp_path / "xnli") / "xnli.test.tsv"
    path.write_text(change(path.read_text()))
    refuses(problem, Xnli(str(tmp_path / "xnli"), "x").documents)


def test_languages_that_xnli_lacks_are_refused(tmp_path):
    folder = write_xnli(tmp_path / "xnli")
    assert Xnli(str(folder), "x", languages=("de",)).protocol["suite"] == "xnli of de, trained on dev"
    refuses("no pairs in fr", Xnli(str(folder), "x", languages=("de", "fr")).documents)


def test_the_support_vector_machine_is_scikit_learn_s(folder):
    benchmark = suites()["mldoc_svm"].make(str(folder), "m", {"languages": ("english", "german"), "seeds": 2})
    assert benchmark.protocol["suite"] == "mldoc_svm X→Y of english, german"
    assert (benchmark.protocol["head"], benchmark.protocol["seeds"]) == ({"c": 1.0}, [0])
    labels = [row.label for parts in benchmark._rows.values() for part in parts for row in part]
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(15, 4)).astype(np.float32) + 2 * np.array([[label == "a"] for label in labels])
    scores = found(benchmark.score(vectors))
    machine = LinearSVC().fit(vectors[:2], [0, 1])
    tested = np.array([0 if label == "a" else 1 for label in labels])
    assert scores["accuracy", "english→german"].value == np.mean(machine.predict(vectors[13:]) == tested[13:])
    assert scores["accuracy", "english→english"].value == np.mean(machine.predict(vectors[4:8]) == tested[4:8])


def test_folds_are_tested_against_the_printed_figures_of_their_protocol():
    folds = (0.91, 0.90, 0.92, 0.9, 0.93, 0.91)
    scores = (
        Score("accuracy", 0.9, "english→german", 4, folds=folds),
        Score("accuracy", 0.8, "german→english", 4),  # one value
    )
    facts = {"rcv": {"protocol": {"suite": "mldoc_svm X→Y of english, german"}, "data": [{"path": "a/rcv"}]}}
    results = [Result("mine", "rcv", "ok", scores), Result("mine", "other", "ok", scores)]
    rows = comparisons(results, facts)["printed_comparisons"]
    expected = ttest_1samp(folds, 0.897)
    (row,) = [row for row in rows if row.second == "BRAVE"]
    assert {row.part for row in rows} == {"english→german"}
    assert (row.difference, row.t, row.p) == pytest.approx(
        (np.mean(folds) - 0.897, expected.statistic, expected.pvalue)
    )
    assert (row.benchmark, row.first, row.count) == ("rcv", "mine", 6)
    assert "Table 3.2" in row.source
    assert row.to_dict()["p"] == row.p
