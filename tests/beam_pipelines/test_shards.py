"""Shards: names, counts, dead letters and reports, and one BLAS thread, so that all machines give the same bits."""

import fnmatch
import hashlib
import os

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from newsembed.beam_pipelines import shards
from newsembed.beam_pipelines.output_folder import REPORTS
from newsembed.beam_pipelines.shards import Counts, Phase, add_counts, chain_counts
from newsembed.formats import files, parquet
from newsembed.formats.records import DeadLetter, Failure, Rejection
from threadpoolctl import threadpool_info, threadpool_limits


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))  # loads it
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_shard_function_has_one_blas_thread(tmp_path):
    def count_threads(shard, payload):
        (tmp_path / "threads").write_text(str(blas_threads()))

    with threadpool_limits(2):
        with beam.Pipeline() as pipeline:
            shard = pipeline | beam.Create([(0, None)])
            _ = shard | shards.process_shards(count_threads, Phase(str(tmp_path), "count", 1))
        assert blas_threads() == {2}
    assert (tmp_path / "threads").read_text() == "{1}"


def a_shard(folder):
    return shards.Shard(Phase(str(folder), "read", 12), 3)


def test_streams_and_the_report_of_a_shard_are_named_by_its_number(tmp_path):
    phase = Phase(str(tmp_path), "read", 12)
    assert phase.report_path(3) == f"{tmp_path}/{REPORTS}/read/00003.json"
    assert fnmatch.fnmatch(phase.report_path(3), phase.reports)
    assert a_shard(tmp_path).path("articles", "parquet") == f"{tmp_path}/articles/part-00003-of-00012.parquet"


def test_a_report_has_the_counts_and_the_digests_of_the_streams(tmp_path):
    with a_shard(tmp_path) as shard:
        shard.read(7)
        shard.read()
        shard.written(3)
        shard.written()
        shard.tally("words", 5)
        shard.tally("words")
        for number in range(2):
            shard.reject(f"r{number}", Rejection.NO_TITLE, "why", "x" * 501)
        shard.reject("r2", Rejection.NO_AUTHOR)
        shard.fail("f", Failure.TRUNCATED, "ends", "y")
        assert not os.path.exists(Phase(str(tmp_path), "read", 12).report_path(3))
    report = files.read_json(Phase(str(tmp_path), "read", 12).report_path(3))
    digests = report.pop("sha256")
    rejected, failed = {"no_author": 1, "no_title": 2}, {"truncated": 1}
    numbers = {"in": 8, "out": 4, "rejected": rejected, "failed": failed, "tallies": {"words": 6}}
    assert report == numbers | {"blocks": {}}
    name = "dead_letters/read/part-00003-of-00012.parquet"
    assert digests == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}
    assert list(parquet.read_records(str(tmp_path / name), DeadLetter)) == [
        DeadLetter("r0", "rejected", "no_title", "why", "x" * 500),
        DeadLetter("r1", "rejected", "no_title", "why", "x" * 500),
        DeadLetter("r2", "rejected", "no_author", "", ""),
        DeadLetter("f", "failed", "truncated", "ends", "y"),
    ]


@pytest.mark.parametrize("read", [2, 0])
def test_records_that_are_not_accounted_for_end_a_shard_without_a_report(tmp_path, read):
    problem = f"phase read, shard 3: {read - 1} records unaccounted for"
    shard = a_shard(tmp_path)
    shard.read(read)
    shard.written()
    with pytest.raises(RuntimeError, match=problem), shard:
        pass
    with pytest.raises(KeyError, match="own"), a_shard(tmp_path):
        raise KeyError("own")
    assert not os.path.exists(Phase(str(tmp_path), "read", 12).report_path(3))


def test_the_shard_of_a_document_follows_from_the_first_half_of_its_id():
    ids = ["00000005ffffffff", "ffffffff00000000", "0000000c00000001"]
    expected = [5 % 12, 0xFFFFFFFF % 12, 0]
    assert [shards.shard_of(one, 12) for one in ids] == expected
    numbers = np.array([int(one, 16) for one in ids], np.uint64)
    assert shards.shard_numbers(numbers, 12).tolist() == expected


def test_groups_are_sorted_and_every_shard_has_one():
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        groups = pipeline | beam.Create([(1, value) for value in (5, 3, 9, 1)]) | shards.group_by_shard(3)
        assert_that(groups, equal_to([(0, []), (1, [1, 3, 5, 9]), (2, [])]))


COUNTS = Counts(20, 9, {"b": 1, "a": 2}, {"d": 3, "c": 4}, {"z": 5, "y": 6})


def test_counts_have_a_balance_and_are_read_as_written_with_sorted_names():
    assert COUNTS.balance == 20 - 9 - (1 + 2) - (3 + 4) == 1
    assert COUNTS.totals() == {"in": 20, "out": 9, "rejected": 3, "failed": 7}
    written = COUNTS.to_json()
    assert [list(written[name]) for name in ("rejected", "failed", "tallies")] == [["a", "b"], ["c", "d"], ["y", "z"]]
    assert Counts.from_json(written) == COUNTS


def test_counts_of_shards_are_added_and_those_of_phases_are_chained():
    parts = [COUNTS, Counts(1, 2, {"a": 10, "x": 1}, {}, {"z": 1}), Counts()]
    total = add_counts(iter(parts))
    assert total == Counts(21, 11, {"a": 12, "b": 1, "x": 1}, {"c": 4, "d": 3}, {"y": 6, "z": 6})
    phases = [Counts(20, 15, {"a": 5}, {}, {"x": 1}), Counts(15, 12, {"a": 1, "b": 1}, {"c": 1}, {"x": 2})]
    assert chain_counts(phases) == Counts(20, 12, {"a": 6, "b": 1}, {"c": 1}, {"x": 3})
    assert chain_counts([]) == add_counts([]) == Counts()
