"""Greedy showing of labelled lists: the scores of a case worked by hand, and equal skips for every encoder."""

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.evaluation.benchmark import Score, suites
from newsembed.evaluation.benchmarks.duplicates import DEPTHS, SHARES, Display, threshold_that_skips
from refusals import refuses
from vectors import unit


def row(number, event, group=None, day="2024-01-01"):
    fields = {"title": f"t{number}", "body": f"body {number}", "publisher": "p", "language": "en", "topic": "x"}
    return {"id": str(number), "event": event, "duplicate_group": group, "byline_date": day, **fields}


@pytest.fixture
def benchmark(tmp_path):
    """20 articles of one week: ten events with two reports each; those of events 0 and 1 are near copies."""
    rows = [row(number, f"e{number // 2}", f"g{number // 2}" if number < 4 else None) for number in range(20)]
    undated = row(99, "e0", day=None)
    return Display(write_rows(tmp_path / "events.jsonl", [*rows, undated]), orders=2)


def perfect():
    """Each event has an axis; copies are closer than other reports of an event, which are closer than events."""
    vectors = np.repeat(np.eye(10, 20, dtype=np.float32), 2, axis=0)
    for number in range(1, 20, 2):
        closeness = 0.9 + number / 100 if number < 4 else 0.5 + number / 100
        vectors[number] *= closeness
        vectors[number, 10 + number // 2] = np.sqrt(1 - closeness**2)
    return vectors


def by_part(scores: list[Score]):
    return {(score.metric, score.part): score for score in scores}


def test_articles_without_a_date_are_left_out(benchmark):
    assert len(benchmark.documents()) == 20


def test_a_perfect_encoder_loses_repeats_alone_and_copies_first(benchmark):
    scores = by_part(benchmark.score(perfect()))
    for share, repeats_left, copies_gone in ((0.05, 0.9, 0.5), (0.1, 0.8, 1.0), (0.2, 0.6, 1.0), (0.3, 0.4, 1.0)):
        part = f"{share:.0%} skipped"
        assert scores["events", part].value == 1.0
        assert scores["repeats left", part].value == pytest.approx(repeats_left)
        assert scores["copies gone", part].value == pytest.approx(copies_gone)
        assert scores["events", part].count == 20
        assert scores["events", part].runs == 2
    assert len(scores) == len(SHARES) * (3 + len(DEPTHS))


def test_an_encoder_that_confuses_events_loses_events(tmp_path):
    rows = [row(0, "a"), row(1, "a"), row(2, "b"), row(3, "c")]
    vectors = np.eye(4, dtype=np.float32)
    vectors[3] = vectors[2]  # the only reports of two events look the same
    scores = by_part(Display(write_rows(tmp_path / "e.jsonl", rows), orders=2).score(vectors))
    assert scores["events", "30% skipped"].value == pytest.approx(2 / 3)
    assert scores["repeats left", "30% skipped"].value == 1.0
    assert scores["events", "20% skipped"].value == 1.0  # no article may be skipped of four


def test_the_simulated_reader_clicks_the_first_report_of_an_event(tmp_path):
    rows = [row(number, "same") for number in range(3)] + [row(3, "other")]
    benchmark = Display(write_rows(tmp_path / "e.jsonl", rows), orders=1)
    scores = by_part(benchmark.score(np.eye(4, dtype=np.float32)))
    assert scores["simulated clicks", "depth 10, 30% skipped"].value == pytest.approx(2 / 4)
    assert ("copies gone", "5% skipped") not in scores  # there are none


def test_lists_hold_the_articles_of_a_week_counted_from_the_first_in_another_order_for_each_seed(tmp_path):
    days = ["2024-01-07", "2024-01-01", "2024-01-08", "2024-01-15", *["2024-01-20"] * 8]
    rows = [row(number, f"e{number // 2}", day=day) for number, day in enumerate(days)]
    path = write_rows(tmp_path / "e.jsonl", rows)
    lists = Display(path)._lists(0)
    assert [sorted(one.tolist()) for one in lists] == [[0, 1], [2], list(range(3, 12))]
    assert [sorted(one.tolist()) for one in Display(path, days=8)._lists(0)] == [[0, 1, 2], [3], list(range(4, 12))]
    orders = [tuple(Display(path)._lists(seed)[2].tolist()) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    benchmark = Display(path, orders=1)
    without = Display(path, excluded=frozenset(benchmark.documents()[:1]))
    assert without.documents() == benchmark.documents()[1:]
    assert without.protocol == Display(path).protocol | {"excluded": 1}
    # Nothing is alike, so nothing is skipped: 12 articles of 6 events, each list with events of its own.
    scores = by_part(benchmark.score(np.eye(12, dtype=np.float32)))
    shown = [len({number // 2 for number in one}) / len(one) for one in (range(2), [2], range(3, 12))]
    assert scores["simulated clicks", "depth 10, 5% skipped"].value == pytest.approx(np.mean(shown))
    assert scores["events", "5% skipped"].count == 12


def test_the_threshold_skips_as_much_as_is_asked_for_and_no_more():
    vectors = unit(0, 200, 5)
    lists = [np.arange(100), np.arange(100, 200)]
    from newsembed.models.greedy import walk

    def skipped(threshold):
        return sum(int((~walk(vectors[rows], threshold).shown).sum()) for rows in lists)

    for share in (0.0, 0.05, 0.3):
        threshold = threshold_that_skips(vectors, lists, share)
        assert skipped(threshold) <= share * 200
        assert skipped(threshold) >= share * 200 - 2
    assert skipped(threshold_that_skips(vectors, lists, 0.3)) > 50


def test_it_is_a_suite_and_refuses_a_file_without_shared_events(tmp_path):
    path = write_rows(tmp_path / "alone.jsonl", [row(0, "a"), row(1, "b")])
    benchmark = suites()["display"].make(path, "display")
    refuses("no two dated documents share an event", benchmark.documents)
