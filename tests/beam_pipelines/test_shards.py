"""Shard functions compute on one BLAS thread: several threads would give other bits on other machines."""

import apache_beam as beam
import numpy as np
from newsembed.beam_pipelines.shards import Phase, ProcessShards
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
