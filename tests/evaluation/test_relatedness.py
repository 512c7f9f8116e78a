"""SICK-R and STS-B by a head on frozen vectors: equal to SentEval's way, written plainly."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import discover
from newsembed.evaluation.benchmarks import sts
from newsembed.evaluation.benchmarks.sts import Relatedness, distributions, expected_scores
from newsembed.evaluation.suites import run_suites
from newsembed.evaluation.tables import chosen_tables, filled, needed
from refusals import refuses
from scipy.stats import spearmanr

from .benchmarking import found


def data(seed, count, width=6):
    """Features and scores of 1 to 5 that follow from them, with ties."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, width)).astype(np.float32)
    return features, np.clip(np.round(3 + features[:, 0] + features[:, 1], 1), 1, 5)


def test_a_score_becomes_the_two_scores_around_it():
    scores = np.array([1.0, 1.25, 4.9, 5.0, 0.0, 0.3])
    plain = np.zeros((6, 5))
    for row, score in enumerate(scores):
        for place in range(1, 6):
            if place == np.floor(score) + 1:
                plain[row, place - 1] = score - np.floor(score)
            if place == np.floor(score):
                plain[row, place - 1] = np.floor(score) - score + 1
    np.testing.assert_allclose(distributions(scores), plain, atol=1e-6)


def plainly(known, dev, asked, seed):
    """The same training in NumPy with gradients by hand: Adam, batches of 64, squared error of a softmax."""
    random, (rows, scores) = np.random.default_rng(seed), known
    bound = rows.shape[1] ** -0.5
    layer = [random.uniform(-bound, bound, shape).astype(np.float32).astype(float) for shape in ((6, 5), (5,))]
    means, squares, time = [np.zeros((6, 5)), np.zeros(5)], [np.zeros((6, 5)), np.zeros(5)], 0
    targets = distributions(scores).astype(float)

    def probabilities(values):
        powers = np.exp(values @ layer[0] + layer[1])
        return powers / powers.sum(axis=1, keepdims=True)

    best, highest, failures = None, -1.0, 0
    while time // -(-len(rows) // 64) <= 1000:
        for _ in range(50):
            order = random.permutation(len(rows))
            for first in range(0, len(rows), 64):
                batch = order[first : first + 64]
                output = probabilities(rows[batch])
                error = 2 * (output - targets[batch]) / output.size
                logits = output * (error - (error * output).sum(axis=1, keepdims=True))
                time += 1
                for number, gradient in enumerate([rows[batch].T @ logits, logits.sum(axis=0)]):
                    means[number] = 0.9 * means[number] + 0.1 * gradient
                    squares[number] = 0.999 * squares[number] + 0.001 * gradient**2
                    mean, square = means[number] / (1 - 0.9**time), squares[number] / (1 - 0.999**time)
                    layer[number] = layer[number] - 1e-3 * mean / (np.sqrt(square) + 1e-8)
        correlation = np.corrcoef(probabilities(dev[0]) @ np.arange(1, 6), dev[1])[0, 1]
        if correlation > highest:
            best, highest = probabilities(asked) @ np.arange(1, 6), correlation
        elif failures >= 3:
            break
        else:
            failures += 1
    return best


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_plain_training(seed):
    known, dev, (asked, _) = data(seed, 150), data(seed + 10, 40), data(seed + 20, 30)
    ours = expected_scores(known, dev, asked, seed)
    np.testing.assert_allclose(ours, plainly(known, dev, asked, seed), atol=2e-3)


def sick(folder, scores=(1, 2.5, 4, 5, 3)):
    folder.mkdir(exist_ok=True)
    for part in ("train", "trial", "test_annotated"):
        lines = [f"{n}\t{part} a{n}\t{part} b{n}\t{score}\tNEUTRAL" for n, score in enumerate(scores)]
        header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
        (folder / f"SICK_{part}.txt").write_text("\n".join([header, *lines]) + "\n")
    return str(folder)


def test_the_head_gets_the_features_of_its_parts(tmp_path, monkeypatch):
    benchmark = Relatedness(sick(tmp_path / "sick"), "sick", format="sick_r")
    documents = [document.body for document in benchmark.documents()]
    assert documents[:5] == [f"train a{n}" for n in range(5)]
    assert documents[15:20] == [f"train b{n}" for n in range(5)]
    vectors = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    features = np.concatenate([abs(vectors[:15] - vectors[15:]), vectors[:15] * vectors[15:]], axis=1)

    def learn(known, dev, asked, seed):
        for place, part in enumerate((known[0], dev[0], asked)):
            np.testing.assert_allclose(part, features[5 * place : 5 * place + 5], rtol=1e-6)
        assert known[1].tolist() == dev[1].tolist() == [1, 2.5, 4, 5, 3]
        assert seed == 0
        return np.array([1.0, 3, 2, 5, 2])

    monkeypatch.setattr(sts, "expected_scores", learn)
    scores = found(benchmark.score(vectors))
    assert scores["Spearman", "all"].value == pytest.approx(spearmanr([1, 3, 2, 5, 2], [1, 2.5, 4, 5, 3]).statistic)
    assert scores["Spearman", "all"].count == 5


def test_what_is_wrong_with_a_folder_is_named(tmp_path):
    path = sick(tmp_path / "sick", (1, 2, 6))
    refuses(r"SICK_train.txt.*score: got 6, expected 0 to 5", Relatedness(path, "sick", format="sick_r").documents)
    with pytest.raises(InputError, match="scores are equal"):
        Relatedness(sick(tmp_path / "sick"), "sick", format="sick_r").score(np.ones((30, 3), np.float32))


def test_table_5_has_both_columns_and_their_mean(tmp_path, monkeypatch):
    sick(tmp_path / "sick")
    (tmp_path / "stsb").mkdir()
    for part in ("train", "dev", "test"):
        lines = [f"main-news\tx\t2014\t{n}\t{n}\tword{n} a\tword{n} {part}" for n in range(5)]
        (tmp_path / "stsb" / f"sts-{part}.csv").write_text("\n".join(lines) + "\n")
    names = {one.name for one in discover(str(tmp_path))}
    assert {"sick_r (sick)", "stsb_head (stsb)", "sts (stsb)", "sick_e (sick)"} <= names
    (table,) = chosen_tables(["newsembed-5"])
    assert {one.protocol["suite"] for one in needed([table], str(tmp_path))} == {"sick_r", "stsb_head"}
    monkeypatch.setattr(sts, "expected_scores", lambda known, _dev, _asked, _seed: known[1])
    from newsembed.evaluation.encoders import TfidfEncoder

    results = run_suites({"tfidf": TfidfEncoder}, needed([table], str(tmp_path)))
    ours = filled(table, results)
    row = dict(zip(ours.headings, ours.rows[-1], strict=True))
    assert (row["SICK-R"], row["STS-B"], row["MRPC F1"], row["average"]) == ("100.0", "100.0", "-", "-")
