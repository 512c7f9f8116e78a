"""The table of documents of `triplets`: the same bytes as from all documents at once, whatever the shards."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.arrays import doc_id_of
from newsembed.beam_pipelines.shards import Phase, Shard, shard_of
from newsembed.beam_pipelines.triplets import table
from newsembed.beam_pipelines.triplets.table import DateStats
from newsembed.tests import document_table, phases


def tabulate(folder, shards):
    """Writes the table of shards of `DateStats` as the job does; returns the ids that the shards of anchors got."""
    scored = Phase(str(folder), "scored", len(shards))
    for number, stats in enumerate(shards):
        with Shard(scored, number) as shard:
            table.write_part(shard, stats, 2)
    with Shard(Phase(str(folder), "table", 1), 0) as shard:
        table.write_table(shard, None)
    anchors = {}

    def keep(shard, received):
        anchors[shard.index] = received.rows[table.ANCHORS.stream].tolist()

    phases.map_rows(Phase(str(folder), "anchors", 2), keep, [(scored, table.ANCHORS)])
    return anchors


def test_the_table_ranks_entropy_and_own_mass_and_keeps_the_gap(tmp_path):
    rows = [
        DateStats("000000000000000b", "p2", "de", 0.2, 0.9, 0.25),
        DateStats("000000000000000a", "p1", "en", 0.8, 0.1, 0.5),
        DateStats("000000000000000c", "p1", "en", 0.2, 0.3, 0.75),
        DateStats("000000000000000d", "p1", "fr", 0.4, 0.5, 1.0),
    ]
    tabulate(tmp_path, [rows[:1], rows[1:], []])
    read = table.read_table(f"{tmp_path}/{table.TABLE}")
    ids = np.array([10, 11, 12, 13], np.uint64)
    # Ranks of 4 values are 1/8, 3/8, 5/8 and 7/8; the two smallest entropies are equal and share 2/8.
    expected = [[0.875, 0.125, 0.5], [0.25, 0.875, 0.25], [0.25, 0.375, 0.75], [0.625, 0.625, 1.0]]
    np.testing.assert_allclose(read.date_stats(ids), expected)
    assert [read.language(row) for row in range(4)] == ["en", "de", "en", "fr"]
    assert [code == read.publishers(ids)[0] for code in read.publishers(ids)] == [True, False, True, True]
    assert read.places(np.array([0, 12, 2**64 - 1], np.uint64)).tolist() == [-1, 2, -1]
    pairs = np.array([(10, 11), (10, 14), (9, 10)], [("anchor", "<u8"), ("other", "<u8")])
    assert read.has(pairs).tolist() == [True, False, False]


IDS, NAMES = st.integers(0, 2**64 - 1), st.sampled_from("abc")
ROWS = st.tuples(IDS, NAMES, st.sampled_from(["", "de", "en"]), st.integers(0, 9))


@settings(max_examples=30, deadline=None)
@given(st.lists(ROWS, max_size=30, unique_by=lambda one: one[0]), st.integers(1, 5))
def test_the_table_does_not_depend_on_the_shards(tmp_path_factory, rows, count):
    folder = tmp_path_factory.mktemp("table")
    stats = [
        DateStats(doc_id_of(key), name, tag, 0.1 * key % 7, value / 9, value / 7) for key, name, tag, value in rows
    ]
    anchors = tabulate(folder, [stats[number::count] for number in range(count)])
    document_table.write_table(f"{folder}/expected.npz", stats)
    assert (folder / table.TABLE).read_bytes() == (folder / "expected.npz").read_bytes()
    for number, ids in anchors.items():
        assert sorted(ids) == sorted(key for key, *_ in rows if shard_of(doc_id_of(key), 2) == number)
