"""The options of a training on an archive at their bounds, and when it is due."""

import pytest
from newsembed.studies import retrain
from newsembed.studies.retrain import Retraining, RetrainOptions
from refusals import refuses


def test_options_are_checked():
    RetrainOptions(mining_days=15, gin=("A=1", "B="))
    for name, value in (("mining_days", 14), ("gin", ("A=1", "B"))):
        refuses(f"--(train.)?{name}: got ", RetrainOptions, **{name: value})


@pytest.mark.parametrize(
    ("trained_on", "count", "missing"),
    [([], 499, 1), ([], 500, 0), ([100], 500, 100), ([100, 300, 200], 790, 10), ([300], 800, 0), ([300], 900, 0)],
)
def test_a_training_is_due_after_so_many_articles_since_the_last(monkeypatch, trained_on, count, missing):
    decisions = {number: {"trained_on": articles} for number, articles in enumerate(trained_on, 1)} | {9: None}
    monkeypatch.setattr(retrain, "trainings", lambda archive: list(decisions))
    monkeypatch.setattr(retrain, "decision_file", lambda archive, number: number)
    monkeypatch.setattr(retrain, "read_runs", lambda archive: [archive])
    monkeypatch.setattr(retrain, "Archive", lambda archive: [None] * count)
    training = Retraining("a", "m", {}, RetrainOptions())
    # Without a plan, with one that was decided about (its number is 1), and with one that was not.
    for plan, expected in ((None, missing), ({"number": 1}, 0 if not trained_on else missing), ({"number": 9}, 0)):
        values = decisions | {training.path("plan.json"): plan} | ({1: None} if not trained_on else {})
        monkeypatch.setattr(retrain, "read_json", values.__getitem__)
        assert training.missing_articles() == expected
