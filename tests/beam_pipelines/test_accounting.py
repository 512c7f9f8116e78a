"""The counts of shards, phases and jobs: their balance, their sums and how they are written."""

from newsembed.beam_pipelines.accounting import Counts, add_counts, chain_counts

COUNTS = Counts(20, 9, {"b": 1, "a": 2}, {"d": 3, "c": 4}, {"z": 5, "y": 6})


def test_the_balance_is_what_is_not_accounted_for():
    assert COUNTS.balance == 20 - 9 - (1 + 2) - (3 + 4) == 1
    assert Counts().balance == 0
    assert Counts(1, 2).balance == -1


def test_counts_are_read_as_written_with_sorted_names():
    written = COUNTS.to_json()
    assert written == {
        "in": 20, "out": 9, "rejected": {"a": 2, "b": 1}, "failed": {"c": 4, "d": 3}, "tallies": {"y": 6, "z": 5},
    }  # fmt: skip
    assert [list(written[name]) for name in ("rejected", "failed", "tallies")] == [["a", "b"], ["c", "d"], ["y", "z"]]
    assert Counts.from_json(written) == COUNTS


def test_counts_of_shards_are_added_name_by_name():
    parts = [COUNTS, Counts(1, 2, {"a": 10, "x": 1}, {}, {"z": 1}), Counts()]
    total = add_counts(iter(parts))
    assert total == Counts(21, 11, {"a": 12, "b": 1, "x": 1}, {"c": 4, "d": 3}, {"y": 6, "z": 6})
    assert add_counts([]) == Counts()


def test_phases_in_sequence_read_what_the_first_reads_and_write_what_the_last_writes():
    phases = [Counts(20, 15, {"a": 5}, {}, {"x": 1}), Counts(15, 12, {"a": 1, "b": 1}, {"c": 1}, {"x": 2})]
    total = chain_counts(iter(phases))
    assert total == Counts(20, 12, {"a": 6, "b": 1}, {"c": 1}, {"x": 3})
    assert total.balance == 0
    assert chain_counts([]) == Counts()
    assert chain_counts(phases[:1]) == phases[0]
