"""The options of a training on an archive at their bounds, and when it is due."""

import pytest
from newsembed.errors import InputError
from newsembed.studies.retrain import conduct
from newsembed.studies.retrain.conduct import Retraining
from newsembed.studies.retrain.options import RetrainOptions


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("steps", (1,), (0,)),
        ("learning_rate", (0.0, 1.0), (-1e-9,)),
        ("batch_size", (0, 1), (-1,)),
        ("held_out_days", (1,), (0,)),
        ("mining_days", (0, 15), (14, 1, -1)),
        ("least_new", (0,), (-1,)),
        ("least_events", (2,), (1,)),
        ("tolerance", (0.0, 1.0), (-0.01, 1.01)),
        ("gin", ((), ("A=1",), ("A=1", "B=")), (("A",), ("A=1", "B"))),
    ],
)
def test_options_are_checked(name, good, bad):
    for value in good:
        assert getattr(RetrainOptions(**{name: value}), name) == value
    for value in bad:
        with pytest.raises(InputError, match=f"--train.{name}: got "):
            RetrainOptions(**{name: value})


@pytest.mark.parametrize(
    ("trained_on", "count", "missing"),
    [([], 499, 1), ([], 500, 0), ([100], 500, 100), ([100, 300, 200], 790, 10), ([300], 800, 0), ([300], 900, 0)],
)
def test_a_training_is_due_after_so_many_articles_since_the_last(monkeypatch, trained_on, count, missing):
    decisions = {number: {"trained_on": articles} for number, articles in enumerate(trained_on, 1)} | {9: None}
    monkeypatch.setattr(conduct, "trainings", lambda archive: list(decisions))
    monkeypatch.setattr(conduct, "decision_file", lambda archive, number: number)
    monkeypatch.setattr(conduct, "read_json", decisions.__getitem__)
    monkeypatch.setattr(Retraining, "_count", lambda self: count)
    for plan, result, expected in ((None, None, missing), ({}, {}, missing), ({}, None, 0)):
        monkeypatch.setattr(Retraining, "_plan", lambda self, plan=plan: plan)
        monkeypatch.setattr(Retraining, "_last_result", lambda self, plan, result=result: result)
        assert Retraining("a", "m", {}, RetrainOptions()).missing_articles() == expected
