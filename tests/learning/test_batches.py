"""Batches and mixtures: every record once an epoch, exact continuation, shares that add up, choices by step number."""

import collections
import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.formats.tfrecords import PIECES, FeatureSpec
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.learning.mixture import MixedBatches, MixtureBatches, mixed_rows, select_sets
from newsembed.tasks import registry
from newsembed.tasks.registry import TEXT, Task, smoothed_sizes
from toy_corpus import BOUNDS, LENGTHS, event, topics, triplet, write_corpus, write_sets

TRIPLETS = DataSet("triplets", "en")
TOPICS = DataSet("topics", "en")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "data")


def options(directory, **changes):
    values = {"lengths": LENGTHS, "batch_size": 4, "bounds": BOUNDS, "seed": 5} | changes
    return BatchOptions(directory=str(directory), **values)


def doc_numbers(batch, name="doc_id"):
    return batch[name][:, 1].tolist()


def take(batches, count):
    return [next(batches) for _ in range(count)]


def test_an_epoch_holds_every_record_once_and_the_next_is_in_another_order(corpus):
    batches = GrainBatches(TOPICS, options(corpus, batch_size=1))
    first, second = ([doc_numbers(batch)[0] for batch in take(batches, 23)] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(23))
    assert first != second


def test_a_state_of_another_stream_is_refused(corpus):
    state = GrainBatches(TRIPLETS, options(corpus)).get_state()
    with pytest.raises(InputError, match="the checkpoint was trained on"):
        GrainBatches(TRIPLETS, options(corpus, seed=6)).set_state(state)


def test_processes_share_the_global_batches_of_one_process(corpus):
    whole = take(GrainBatches(TOPICS, options(corpus, batch_size=4)), 9)
    shares = [options(corpus, batch_size=2, process_index=index, process_count=2) for index in range(2)]
    halves = [take(GrainBatches(TOPICS, share), 9) for share in shares]
    for number, batch in enumerate(whole):
        assert sorted(doc_numbers(batch)) == sorted(doc_numbers(halves[0][number]) + doc_numbers(halves[1][number]))


def test_a_manifest_that_disagrees_with_the_files_is_named(tmp_path):
    rng = np.random.default_rng(0)
    directory = write_sets(tmp_path / "data", {"topics/en": [topics(rng, number) for number in range(5)]})
    (tmp_path / "data" / "manifest.json").write_text(json.dumps({"examples": {"topics/en": 6}}))
    with pytest.raises(InputError, match="hold 5 records, the manifest says 6"):
        GrainBatches(TOPICS, options(directory))


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        ("weak_supervision", ["topics/en", "triplets/de", "triplets/en"]),
        ("triplets", ["triplets/de", "triplets/en"]),
        ("triplets/de", ["triplets/de"]),
    ],
)
def test_mixtures_by_name(corpus, mixture, expected):
    assert [str(data_set) for data_set in sorted(select_sets(corpus, mixture))] == expected


def test_a_task_of_ones_own_is_read_like_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    place = FeatureSpec("place", "int", (), "id of a place", "places")
    features = FeatureSpec("headline", "int", (None,), "word pieces", PIECES), place
    registry.register(Task("headlines", features, {"headline": TEXT}, mixtures=("news",), text="headline"))
    rows = [{"headline": [2, *range(9, 9 + number), 3], "place": number} for number in range(6)]
    directory = write_sets(tmp_path / "data", {"headlines/en": rows})
    assert select_sets(directory, "news") == select_sets(directory, "headlines/en") == {DataSet("headlines", "en"): 6}
    given = {"batch_size": 6, "lengths": {"headline": 4}, "bounds": {"pieces": 20, "places": 6}}
    batch = next(GrainBatches(DataSet("headlines", "en"), options(directory, **given)))
    order = np.argsort(batch["place"])
    assert batch["headline"][order][:3].tolist() == [[2, 3, 0, 0], [2, 9, 3, 0], [2, 9, 10, 3]]
    with pytest.raises(InputError, match="place: got ids from 5 to 5, expected 0 to 4"):
        take(GrainBatches(DataSet("headlines", "en"), options(directory, **given | {"bounds": {"places": 5}})), 1)


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        ("weak", "got 'weak', expected one of pretrain"),
        ("mlm/fr", "got mlm/en, .*triplets/en, expected examples of mlm/fr"),
    ],
)
def test_unknown_mixtures_are_named(corpus, mixture, message):
    with pytest.raises(InputError, match=message):
        select_sets(corpus, mixture)


def test_the_step_number_decides_and_shares_follow_the_weights(corpus):
    sizes = smoothed_sizes(select_sets(corpus, "weak_supervision"))
    weights = {data_set: size / sum(sizes.values()) for data_set, size in sizes.items()}
    mixture, again = (MixtureBatches(weights, GrainBatches, options(corpus)) for _ in range(2))
    choices = [mixture.choose(step) for step in range(4000)]
    assert choices[3000:] == [again.choose(step) for step in range(3000, 4000)]
    other = MixtureBatches(weights, GrainBatches, options(corpus, seed=1))
    assert choices[:100] != [other.choose(step) for step in range(100)]
    shares = collections.Counter(choices)
    for data_set, weight in weights.items():
        assert shares[data_set] / 4000 == pytest.approx(weight, abs=0.03)


def test_the_places_of_a_draw_are_those_of_its_rows_also_after_the_next_one(corpus):
    alone = GrainBatches(TOPICS, options(corpus))
    batch = next(alone)
    places = alone.places()()
    mixture = MixtureBatches({TOPICS: 1.0}, GrainBatches, options(corpus))
    drawn = mixture.draw(0)
    mixture.draw(1)
    assert doc_numbers(drawn.batch) == doc_numbers(batch)
    assert drawn.places() == places
    assert len(set(places)) == 4


def test_a_mixture_continues_exactly(corpus):
    weights = smoothed_sizes(select_sets(corpus, "weak_supervision"))
    mixture = MixtureBatches(weights, GrainBatches, options(corpus))
    for step in range(5):
        mixture.draw(step)
    again = MixtureBatches(weights, GrainBatches, options(corpus))
    again.set_state(mixture.get_state())
    for step in range(5, 15):
        left, right = mixture.draw(step), again.draw(step)
        assert left.data_set == right.data_set
        assert all((values == right.batch[name]).all() for name, values in left.batch.items())
    other = MixtureBatches({TOPICS: 1.0}, GrainBatches, options(corpus))
    with pytest.raises(InputError, match="this run on topics/en"):
        other.set_state(mixture.get_state())


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    """80 triplets of 8 weeks, 10 each, and topics, which have no day."""
    rng = np.random.default_rng(3)
    triplets = [triplet(rng, n, anchor_event=event(n, 700 + 7 * (n % 8) + n % 3)) for n in range(80)]
    sets = {"triplets/en": triplets, "topics/en": [topics(rng, number) for number in range(9)]}
    return write_sets(tmp_path_factory.mktemp("weeks") / "data", sets)


def test_batches_hold_rows_of_the_same_days(weeks):
    grouped, mixed = ([], [])
    for found, batch_days in ((grouped, 7), (mixed, 0)):
        batches = GrainBatches(TRIPLETS, options(weeks, batch_size=5, batch_days=batch_days))
        for epoch in range(2):
            rows = take(batches, 16)
            highs = sorted(high for batch in rows for high in batch["anchor_doc_id"][:, 0].tolist())
            assert highs == list(range(80)), epoch
            found += [np.ptp(batch["anchor_event"][:, 2]) for batch in rows]
    assert np.mean(np.array(grouped) < 7) >= 0.5
    assert np.mean(np.array(mixed) < 7) < 0.1


def test_batches_of_the_same_days_continue_exactly_and_are_shared_by_processes(weeks):
    batches = GrainBatches(TRIPLETS, options(weeks, batch_days=7))
    take(batches, 23)
    state = batches.get_state()
    expected = take(batches, 21)
    again = GrainBatches(TRIPLETS, options(weeks, batch_days=7))
    again.set_state(state)
    parts = [
        GrainBatches(TRIPLETS, options(weeks, batch_days=7, batch_size=2, process_index=index, process_count=2))
        for index in range(2)
    ]
    for part in parts:
        take(part, 23)
    for whole in expected:
        same = next(again)["anchor_doc_id"]
        halves = [next(part)["anchor_doc_id"] for part in parts]
        np.testing.assert_array_equal(whole["anchor_doc_id"], same)
        np.testing.assert_array_equal(whole["anchor_doc_id"], np.concatenate(halves))
    with pytest.raises(InputError, match="the checkpoint was trained on"):
        GrainBatches(TRIPLETS, options(weeks)).set_state(state)


def test_records_without_days_cannot_be_grouped(corpus):
    with pytest.raises(InputError, match="anchor_event: no record has a day"):
        GrainBatches(TRIPLETS, options(corpus, batch_days=7))


WEIGHTS = {DataSet("topics", "en"): 0.5, DataSet("triplets", "de"): 0.125, DataSet("triplets", "en"): 0.375}


def mixed(corpus, **changes):
    given = options(corpus, batch_size=8, **changes)
    return MixedBatches(WEIGHTS, GrainBatches, given, {"topics": 4, "triplets": 4})


@pytest.mark.parametrize(
    ("batch_size", "parts", "expected"),
    [(8, 1, (4, 4)), (8, 4, (4, 4)), (10, 1, (5, 5)), (12, 4, (4, 8)), (2, 1, (1, 1))],
)
def test_a_mixed_batch_has_rows_of_each_task_on_each_part(batch_size, parts, expected):
    weights = WEIGHTS if batch_size != 12 else WEIGHTS | {DataSet("triplets", "en"): 0.6}
    assert tuple(mixed_rows(weights, batch_size, parts).values()) == expected


def test_rows_of_a_small_task_are_not_lost():
    assert mixed_rows({TOPICS: 0.001, TRIPLETS: 0.999}, 16, 2) == {"topics": 2, "triplets": 14}
    with pytest.raises(InputError, match="4 rows on 4 devices cannot hold rows of topics, triplets on each"):
        mixed_rows(WEIGHTS, 4, 4)


def test_mixed_batches_draw_from_the_languages_by_their_weights_and_read_every_record(corpus):
    batches = mixed(corpus)
    draws = [batches.draw(step) for step in range(46)]
    assert {str(draw.data_set) for draw in draws} == {"mixed/mixed"}
    for draw in draws:
        assert len(draw.batch["topics/tokens"]) == len(draw.batch["triplets/anchor_tokens"]) == 4
    places = collections.Counter(place for draw in draws for place in draw.places())
    by_set = {
        name: sum(n for place, n in places.items() if f"/{name}/" in place) for name in ("language=de", "task=topics")
    }
    assert by_set == {"language=de": 46, "task=topics": 184}  # a quarter of the rows of triplets; half of all
    assert len(places) == 23 + 23 + 11
    names = [place for place in draws[0].places() if "task=triplets" in place]
    assert sum("language=de" in place for place in names) == 1


def test_mixed_batches_continue_exactly_and_do_not_depend_on_the_processes(corpus):
    whole = mixed(corpus)
    [whole.draw(step) for step in range(5)]
    state = whole.get_state()
    halves = [
        MixedBatches(
            WEIGHTS,
            GrainBatches,
            options(corpus, batch_size=4, process_index=index, process_count=2),
            {"topics": 4, "triplets": 4},
        )
        for index in range(2)
    ]
    for half in halves:
        half.set_state(state)
    for step in range(5, 9):
        expected, *found = (batches.draw(step).batch for batches in (whole, *halves))
        for name, values in expected.items():
            np.testing.assert_array_equal(values, np.concatenate([half[name] for half in found]))
    with pytest.raises(InputError, match="trained on topics/mixed, triplets/mixed, this run on topics/en"):
        MixtureBatches(WEIGHTS, GrainBatches, options(corpus)).set_state(state)
