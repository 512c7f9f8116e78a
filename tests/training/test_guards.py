"""Guards: what a spike is, what the report names, and updates that are left out."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.learning.mixture import Draw
from newsembed.training import guards
from newsembed.training.guards import Guards, Watch, skip_nonfinite, spike_limit

EN, DE = DataSet("triplets", "en"), DataSet("triplets", "de")


def draw(data_set=EN):
    ids = {"anchor_doc_id": [[1, -1], [2, 3]], "negative_doc_id": [[0, 1, 0, 2], [0, 3, 0, 4]]}
    batch = {name: np.array(values, np.int32) for name, values in ids.items()}
    return Draw(data_set, batch, lambda: ["part-0.tfrecord:5", "part-0.tfrecord:7"])


def check(watch, step, loss, data_set=EN, gradient_norm=1.0):
    return watch.check(step, draw(data_set), {"loss": loss, "gradient_norm": gradient_norm})


def test_the_limit_of_a_spike_by_hand():
    # Median 3, absolute deviations 2 1 0 1 97 with the median 1: one outlier moves neither.
    assert spike_limit(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), 10) == pytest.approx(3 + 10 * 1.4826)
    assert spike_limit(np.array([2.0, 2.0, 2.0]), 10) == pytest.approx(2 + 10 * 0.02)
    assert spike_limit(np.array([-2.0, -2.0, -2.0]), 10) == pytest.approx(-2 + 10 * 0.02)


def test_a_spike_stops_the_run_and_names_the_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "_LEAST_LOSSES", 4)
    watch = Watch(Guards(spike_factor=10.0), str(tmp_path))
    for step in range(1, 7):
        assert check(watch, step, 2.0 + 0.1 * (step % 3))
        assert check(watch, step, 9.0 - 0.1 * step, DE)  # another set has losses of its own
    with pytest.raises(InputError) as raised:
        check(watch, 7, 5.0)
    assert "at step 7, on a batch of triplets/en (part-0.tfrecord:5, part-0.tfrecord:7)" in raised.value.problem
    assert "the median of this set's last 6 is 2.1" in raised.value.problem
    report = json.loads((tmp_path / "suspect-batch-7-0.json").read_text())
    assert report["records"] == ["part-0.tfrecord:5", "part-0.tfrecord:7"]
    assert report["doc_ids"] == {
        "anchor_doc_id": ["00000001ffffffff", "0000000200000003"],
        "negative_doc_id": [["0000000000000001", "0000000000000002"], ["0000000000000003", "0000000000000004"]],
    }
    assert report["metrics"]["loss"] == 5.0


@pytest.mark.parametrize("bad", [{"loss": float("nan")}, {"loss": 1.0, "gradient_norm": float("inf")}])
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, bad):
    with pytest.raises(InputError, match=f"the {list(bad)[-1]} is (nan|inf) at step 3"):
        check(Watch(Guards(), str(tmp_path)), 3, **bad)
    assert json.loads((tmp_path / "suspect-batch-3-0.json").read_text())["metrics"][list(bad)[-1]] in ("nan", "inf")


def test_skipped_steps_are_told_apart_and_too_many_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "_MOST_SKIPPED", 2)
    watch = Watch(Guards(skip_nonfinite=True), str(tmp_path))
    assert [
        check(watch, 1, 1.0),
        check(watch, 2, float("nan")),
        check(watch, 3, float("nan")),
        check(watch, 4, 1.0),
    ] == [True, False, False, True]
    assert not check(watch, 5, float("nan"))
    assert not check(watch, 6, float("nan"))
    with pytest.raises(InputError, match="the loss is nan, the 3th time in a row at step 7"):
        check(watch, 7, float("nan"))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_an_update_that_is_not_finite_changes_nothing(bad):
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.linear_schedule(0.1, 0.0, 10)))
    guarded = skip_nonfinite(optimizer)
    params = {"one": jnp.ones(3), "two": jnp.ones(2)}
    good, broken = jax.tree.map(lambda array: array * 0.5, params), {"one": jnp.ones(3), "two": jnp.array([1.0, bad])}
    update = jax.jit(guarded.update)
    updates, state = update(good, guarded.init(params), params)
    expected, plain = optimizer.update(good, optimizer.init(params), params)
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-6), (updates, state), (expected, plain)
    )
    updates, after = update(broken, state, params)
    jax.tree.map(np.testing.assert_array_equal, (updates, after), (jax.tree.map(jnp.zeros_like, params), state))
    assert jax.tree.structure(after) == jax.tree.structure(optimizer.init(params))


def test_a_loss_on_the_limit_is_no_spike_and_only_the_last_losses_count(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "_LEAST_LOSSES", 2)
    monkeypatch.setattr(guards, "_WINDOW", 3)
    watch = Watch(Guards(spike_factor=50.0), str(tmp_path))
    losses = [8.0, 2.0, 2.0, 2.0, 3.0]  # the limit is 2 + 50 x 1 % of 2 once 8 has left the window
    assert all(check(watch, step, loss) for step, loss in enumerate(losses))
    with pytest.raises(InputError, match="the loss is 3.001, above 3; the median of this set's last 3 is 2 "):
        check(watch, 9, 3.001)


@pytest.mark.parametrize(
    ("records", "shown"),
    [([], "triplets/en; nothing"), ([1, 2, 3, 4, 5], "triplets/en (f:1, f:2, f:3, f:4, …); nothing")],
)
def test_the_first_four_records_of_a_batch_are_named_and_the_report_has_all(tmp_path, records, shown):
    ids = np.array([[0, number] for number in records or [9]], np.int32)
    batch = Draw(EN, {"doc_id": ids, "tokens": ids}, lambda: [f"f:{record}" for record in records])
    with pytest.raises(InputError) as raised:
        Watch(Guards(), str(tmp_path)).check(2, batch, {"loss": float("nan"), "gradient_norm": 1.0})
    assert f"on a batch of {shown}" in raised.value.problem
    assert str(tmp_path / "suspect-batch-2-0.json") in raised.value.problem
    report = json.loads((tmp_path / "suspect-batch-2-0.json").read_text())
    assert report["records"] == [f"f:{record}" for record in records]
    assert report["doc_ids"] == {"doc_id": [f"{record:016x}" for record in records or [9]]}
    assert report["metrics"] == {"loss": "nan", "gradient_norm": 1.0}
    assert (report["step"], report["set"]) == (2, "triplets/en")


def test_parameters_that_are_not_finite_are_not_saved(tmp_path):
    watch = Watch(Guards(), str(tmp_path))
    watch.check_parameters(3, {"one": jnp.ones(3), "two": jnp.zeros(2)})
    watch.check_parameters(3, {})
    for bad in (float("nan"), float("inf")):
        with pytest.raises(InputError, match="parameters are not finite after step 3, which is not saved"):
            watch.check_parameters(3, {"one": jnp.ones(3), "two": jnp.array([1.0, bad])})
