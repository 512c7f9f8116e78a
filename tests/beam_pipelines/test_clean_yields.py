"""clean: the outcome of each publisher's articles, and alarms when the yield drops."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.clean.yields import (
    PublisherYield,
    YieldCounter,
    find_alarms,
    merge_counts,
    pool,
    read_yields,
    write_yields,
)
from newsembed.errors import InputError
from newsembed.formats.records import Rejection


def row(publisher, kept, rejected=0, duplicates=0, reason="no_author"):
    counts = {name: count for name, count in ((reason, rejected), ("near_duplicate", duplicates)) if count}
    return PublisherYield(publisher, kept + rejected + duplicates, kept, counts)


def alarms(now, before, drop=0.1, rate=0.01):
    return [
        (alarm.kind, alarm.publisher) for alarm in find_alarms(now, {one.publisher: one for one in before}, drop, rate)
    ]


def test_counts_of_shards_add_up():
    one, two = YieldCounter(), YieldCounter()
    one.keep("a")
    one.keep("b\tb")
    one.reject("a", Rejection.NO_AUTHOR)
    two.reject("a", Rejection.NEAR_DUPLICATE)
    found = merge_counts([one.to_json(), two.to_json()])
    assert found == [PublisherYield("a", 3, 1, {"no_author": 1, "near_duplicate": 1}), PublisherYield("b b", 1, 1, {})]
    assert (found[0].duplicates, found[0].judged, found[0].rate) == (1, 2, 0.5)


def test_a_table_comes_back_as_it_was_written(tmp_path):
    rows = [row("a.example", 3, 1, 1), row("b.example", 0, 4), row("c d", 2)]
    write_yields(f"{tmp_path}/yields.tsv", rows)
    assert read_yields(str(tmp_path)) == rows
    assert (tmp_path / "yields.tsv").read_text().splitlines()[
        1
    ] == "a.example\t5\t3\t1\t0.7500\tnear_duplicate:1 no_author:1"
    (tmp_path / "yields.tsv").write_text((tmp_path / "yields.tsv").read_text() + "broken\tline\n")
    with pytest.raises(InputError, match="line 5"):
        read_yields(str(tmp_path))
    (tmp_path / "yields.tsv").write_text("publisher\n")
    with pytest.raises(InputError, match="columns"):
        read_yields(str(tmp_path))
    with pytest.raises(InputError, match=r"contains no yields\.tsv"):
        read_yields(str(tmp_path / "none"))


def test_runs_are_pooled():
    assert pool([[row("a", 3, 1)], [row("a", 2, 1), row("b", 1)]]) == {"a": row("a", 5, 2), "b": row("b", 1)}


def test_the_p_value_by_hand():
    (alarm,) = find_alarms([row("a", 0, 5)], {"a": row("a", 5, 0)}, 0.1, 0.01)
    # Of the ways to choose 5 of 10 articles, one alone takes none of the 5 that are kept.
    assert alarm.p_value == pytest.approx(1 / math.comb(10, 5))
    assert (alarm.before, alarm.now, alarm.judged_before, alarm.judged_now, alarm.reason) == (1, 0, 5, 5, "no_author")


def test_publishers_whose_yield_dropped_or_that_are_lost_raise_alarms():
    before = [
        row("broken", 95, 5),
        row("same", 95, 5),
        row("better", 50, 50),
        row("small", 3),
        row("gone", 30),
        row("gone and small", 5),
    ]
    now = [row("broken", 40, 60), row("same", 94, 6), row("better", 90, 10), row("small", 1, 2), row("new", 0, 50)]
    assert alarms(now, before) == [("dropped", "broken"), ("lost", "gone")]


def test_small_drops_of_many_articles_and_duplicates_are_no_alarm():
    assert alarms([row("a", 90_000, 10_000)], [row("a", 95_000, 5_000)]) == []
    assert alarms([row("a", 90_000, 10_000)], [row("a", 95_000, 5_000)], drop=0.01) == [("dropped", "a")]
    assert alarms([row("a", 10, 0, duplicates=90)], [row("a", 100)]) == []
    assert alarms([row("a", 0, 0, duplicates=90)], [row("a", 100)]) == []


def test_many_publishers_raise_few_false_alarms():
    # Each of the three has p = C(17, 7) / C(20, 10) = 0.11.
    before = [row(f"p{n:03d}", 10) for n in range(100)]
    now = [row(f"p{n:03d}", 7, 3) if n < 3 else row(f"p{n:03d}", 10) for n in range(100)]
    assert alarms(now, before, rate=0.05) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 40)] * 4), max_size=8), st.floats(0.01, 1), st.floats(0, 1))
def test_alarms_obey_their_thresholds_for_any_tables(counts, rate, drop):
    now = [row(f"p{n}", kept, rejected) for n, (kept, rejected, _, _) in enumerate(counts)]
    before = {f"p{n}": row(f"p{n}", kept, rejected) for n, (_, _, kept, rejected) in enumerate(counts)}
    for alarm in find_alarms(now, before, drop, rate):
        assert alarm.before - alarm.now >= drop
        assert 0 <= alarm.p_value <= rate
    assert find_alarms(now, {one.publisher: one for one in now}, 0.01, rate) == []
