"""Shards: names, counts, dead letters and reports, and one BLAS thread, so that all machines give the same bits."""

import fnmatch
import hashlib
import os

import apache_beam as beam
import numpy as np
import pytest
from newsembed.beam_pipelines import shards
from newsembed.beam_pipelines.output_folder import REPORTS
from newsembed.beam_pipelines.shards import Phase, ProcessShards, Shard
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
            _ = pipeline | beam.Create([(0, None)]) | ProcessShards(count_threads, Phase(str(tmp_path), "count", 1))
        assert blas_threads() == {2}
    assert (tmp_path / "threads").read_text() == "{1}"


PHASE = ("read", 12)


def a_shard(folder, index=3):
    return Shard(Phase(str(folder), *PHASE), index)


def test_streams_and_the_report_of_a_shard_are_named_by_its_number(tmp_path):
    phase = Phase(str(tmp_path), *PHASE)
    assert phase.report_path(3) == f"{tmp_path}/{REPORTS}/read/00003.json"
    assert fnmatch.fnmatch(phase.report_path(3), phase.reports)
    shard = a_shard(tmp_path)
    assert shard.path("articles", "parquet") == f"{tmp_path}/articles/part-00003-of-00012.parquet"
    assert (shard.index, shard.workspace) == (3, str(tmp_path))


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
        assert not os.path.exists(Phase(str(tmp_path), *PHASE).report_path(3))
    report = files.read_json(Phase(str(tmp_path), *PHASE).report_path(3))
    digests = report.pop("sha256")
    assert report == {
        "in": 8, "out": 4, "rejected": {"no_author": 1, "no_title": 2}, "failed": {"truncated": 1},
        "tallies": {"words": 6},
    }  # fmt: skip
    name = "dead_letters/read/part-00003-of-00012.parquet"
    assert digests == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}
    assert list(parquet.read_records(str(tmp_path / name), DeadLetter)) == [
        DeadLetter("r0", "rejected", "no_title", "why", "x" * 500),
        DeadLetter("r1", "rejected", "no_title", "why", "x" * 500),
        DeadLetter("r2", "rejected", "no_author", "", ""),
        DeadLetter("f", "failed", "truncated", "ends", "y"),
    ]


def test_records_that_are_not_accounted_for_end_a_shard_without_a_report(tmp_path):
    def lose():
        with a_shard(tmp_path) as shard:
            shard.read(2)
            shard.written()

    def fail():
        with a_shard(tmp_path):
            raise KeyError("own")

    with pytest.raises(RuntimeError, match="phase read, shard 3: 1 records unaccounted for"):
        lose()
    with pytest.raises(KeyError, match="own"):
        fail()
    assert not os.path.exists(Phase(str(tmp_path), *PHASE).report_path(3))


def test_a_complete_shard_is_not_written_again(tmp_path):
    done = []
    step = shards._ShardDoFn(lambda shard, payload: done.append((shard.index, payload)), Phase(str(tmp_path), *PHASE))
    assert [list(step.process((3, "a"))), list(step.process((3, "b"))), list(step.process((4, "c")))] == [[3], [3], [4]]
    assert done == [(3, "a"), (4, "c")]


def test_the_shard_of_a_document_follows_from_the_first_half_of_its_id():
    ids = ["00000005ffffffff", "ffffffff00000000", "0000000c00000001"]
    expected = [5 % 12, 0xFFFFFFFF % 12, 0]
    assert [shards.shard_of(one, 12) for one in ids] == expected
    numbers = np.array([int(one, 16) for one in ids], np.uint64)
    assert shards.shard_numbers(numbers, 12).tolist() == expected
    assert shards.shard_numbers(numbers, 12).dtype == np.uint64
