"""Pairs of one day: which are judged, their levels, and the AUC of each level."""

import json

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.evaluation.baselines import BinaryWordEncoder
from newsembed.evaluation.benchmark import suites
from newsembed.evaluation.benchmarks import duplicates as day_pairs
from newsembed.evaluation.benchmarks.duplicates import DayDuplicates, resampled_auc
from newsembed.evaluation.encoders import encode_checked
from refusals import refuses
from sklearn.metrics import roc_auc_score
from vectors import unit


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """A thousand draws take ten seconds."""
    monkeypatch.setattr(day_pairs, "_DRAWS", 20)


def row(number, day, text, event="", topic="", group=None):
    fields = {"publisher": "p", "language": "en", "title": "", "duplicate_group": group}
    return {"id": str(number), "body": text, "event": event, "topic": topic, "byline_date": day, **fields}


ROWS = [
    row(0, "2024-01-01", "a b c d", "e1", "t1", "g"),
    row(1, "2024-01-01", "a b c d x", "e1", "t1", "g"),
    row(2, "2024-01-01", "a b c y", "e1", "t1"),
    row(3, "2024-01-01", "a b z w", "e2", "t1"),
    row(4, "2024-01-01", "a q r s", "e3", "t2"),
    row(5, "2024-01-02", "a b c d", "e1", "t1", "g"),  # another day
    row(6, "2024-01-02", "k l m", "", ""),
    row(7, None, "a b c d", "e1", "t1"),
]
LEVELS = {(0, 1): 5, (0, 2): 4, (1, 2): 4, (0, 3): 2, (1, 3): 2, (2, 3): 2, (5, 6): 1} | {(n, 4): 1 for n in range(4)}


def benchmark(tmp_path, **options):
    return DayDuplicates(write_rows(tmp_path / "events.jsonl", ROWS), **options)


def test_all_pairs_of_one_day_have_the_levels_of_their_labels(tmp_path):
    pairs, levels, days = benchmark(tmp_path, share=1.0)._pairs
    assert {tuple(pair): level for pair, level in zip(pairs.tolist(), levels.tolist(), strict=True)} == LEVELS
    assert len(set(days.tolist())) == 2


def test_the_most_similar_pairs_are_judged_and_at_most_so_many(tmp_path):
    # cosines: (0, 1) 4/sqrt(20) = .894, (0, 2) 3/4, (1, 2) 3/sqrt(20) = .671, others of t1 at most 1/2
    pairs, levels, _ = benchmark(tmp_path, share=0.01, most=3)._pairs
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert levels.tolist() == [5, 4, 4]
    drawn = [benchmark(tmp_path, share=1.0, most=4, seed=seed)._pairs[0].tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(pairs) for pairs in drawn] == [4, 4, 4]


def test_the_auc_of_each_level_is_scikit_learns(tmp_path):
    judged = benchmark(tmp_path, share=1.0)
    vectors = unit(0, 7, 3)
    scores = judged.score(vectors)
    assert [score.part for score in scores] == ["level ≥ 2", "level ≥ 4", "level ≥ 5"]
    cosines = np.array([vectors[one] @ vectors[two] for one, two in sorted(LEVELS)])
    for score in scores:
        positive = np.array([LEVELS[pair] for pair in sorted(LEVELS)]) >= int(score.part[-1])
        assert score.value == pytest.approx(roc_auc_score(positive, cosines))
        assert score.count == positive.sum()
        assert score.low <= score.high
    full_text = judged.score(encode_checked(BinaryWordEncoder(), judged.documents()).embeddings)
    assert full_text[-1].value == 1.0  # the copies have the greatest cosine of all


def test_days_are_resampled_with_all_of_their_pairs():
    positive, days = np.array([True, False] * 3), np.repeat([1, 2, 3], 2)
    right = np.array([1.0, 0.0] * 3)
    assert set(resampled_auc(positive, right, days)) == {1.0}
    mixed = np.array([1.0, 0.0, 1.0, 0.0, 0.2, 0.9])
    found = resampled_auc(positive, mixed, days)
    assert found.min() == 0.0  # a draw of the third day alone
    assert found.max() == 1.0
    assert len(resampled_auc(np.array([True, False]), np.ones(2), np.array([1, 2]))) < 20  # one side is missing


def test_it_is_a_suite_and_refuses_pairs_of_one_level(tmp_path):
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(row(number, "2024-01-01", "a b", f"e{number}")) + "\n" for number in range(3)))
    refuses("fewer than two levels", suites()["day_duplicates"].make(str(path), "x").score, np.eye(3, dtype=np.float32))


def test_scores_keep_their_resamples_where_they_are_asked_for(tmp_path):
    vectors = unit(0, 7, 3)
    kept = suites()["day_duplicates"].make(benchmark(tmp_path).path, "x", {"draws": True})
    plain = benchmark(tmp_path)
    pairs, levels, days = kept._pairs
    cosines = np.einsum("pd,pd->p", *(vectors[pairs[:, side]] for side in (0, 1)))
    for score, without in zip(kept.score(vectors), plain.score(vectors), strict=True):
        positive = levels >= int(score.part[-1])
        assert score.draws == pytest.approx(tuple(resampled_auc(positive, cosines, days)))
        assert (without.draws, without.value) == ((), score.value)
    assert kept.protocol == {**plain.protocol, "draws": True}
