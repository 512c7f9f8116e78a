"""The table of documents of `triplets`: the same bytes as from all documents at once, by shards of equal size."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.arrays import doc_id_of
from newsembed.beam_pipelines.shards import Phase, Shard, shard_of
from newsembed.beam_pipelines.triplets import table
from newsembed.beam_pipelines.triplets.dates import DateStats
from newsembed.tests import document_table, phases


def tabulate(folder, shards):
    """Writes the table of shards of `DateStats` as the job does; returns the ids that the shards of anchors got."""
    scored, ranked, sorted_ = (Phase(str(folder), name, len(shards)) for name in ("scored", "ranked", "sorted"))
    splits = table.range_splits([one for shard in shards for one in shard][::3], len(shards))
    for number, stats in enumerate(shards):
        with Shard(scored, number) as shard:
            table.send_stats(shard, stats, splits, 2)
    phases.map_rows(ranked, partial(table.rank_numbers, ranges=len(shards)), [(scored, table.NUMBERS)])
    phases.map_rows(sorted_, table.sort_documents, [(scored, table.FACTS), (ranked, table.RANKS)])
    table.write_table(str(folder))
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
    np.testing.assert_allclose(
        read.date_stats(ids),
        [[0.875, 0.125, 0.5], [0.25, 0.875, 0.25], [0.25, 0.375, 0.75], [0.625, 0.625, 1.0]],
    )
    assert [read.language(row) for row in range(4)] == ["en", "de", "en", "fr"]
    assert [code == read.publishers(ids)[0] for code in read.publishers(ids)] == [True, False, True, True]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**64 - 1), st.sampled_from("abc"), st.sampled_from(["", "de", "en"]), st.integers(0, 9)
        ),
        max_size=30,
        unique_by=lambda one: one[0],
    ),
    st.integers(1, 5),
)
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
    sizes = np.sum([np.load(path) for path in folder.glob("_range_sizes/*.npy")], axis=0)
    assert sizes.tolist() == [len(rows)] * 2


def test_ranges_of_the_table_have_about_equally_many_documents(tmp_path):
    draw = np.random.default_rng(0)
    stats = [DateStats(doc_id_of(int(one)), "p", "en", float(draw.random() ** 8), float(draw.random()), 0.5)
             for one in draw.integers(0, 2**64 - 1, 900, np.uint64)]  # fmt: skip
    tabulate(tmp_path, [stats[:450], stats[450:], []])
    assert all((np.load(path) > 200).all() for path in tmp_path.glob("_range_sizes/*.npy"))
    assert all(len(np.load(path)) > 200 for path in tmp_path.glob("_documents/*.npy"))


def test_a_document_without_ranks_or_a_repeated_one_is_an_error(tmp_path):
    row = DateStats("000000000000000b", "p", "en", 0.2, 0.9, 0.25)
    with pytest.raises(RuntimeError, match="got 4 ranks for 2 documents"):
        tabulate(tmp_path, [[row], [row]])
