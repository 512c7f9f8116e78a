"""Counts as Beam's metrics: equal to those of the files, also when bundles run again."""

import dataclasses

import apache_beam as beam
import pytest
from newsembed.beam_pipelines import jobs, metrics
from newsembed.beam_pipelines.accounting import Counts
from newsembed.beam_pipelines.shards import Phase, ProcessShards
from newsembed.formats import files
from newsembed.formats.records import Failure, Rejection

SHARDS = 4
# Of each shard, see `write`.
COUNTS = {"in": 5, "out": 2, "rejected": 2, "failed": 1}


@dataclasses.dataclass(frozen=True)
class Options:
    fuse: str = ""


def write(shard, fuse):
    if fuse and shard.index == SHARDS - 1 and not files.exists(fuse):
        files.write_json(fuse, "lit")
        raise RuntimeError("killed")
    shard.read(5)
    shard.written(2)
    shard.reject("1", Rejection.NO_TITLE)
    shard.reject("2", Rejection.NO_AUTHOR)
    shard.fail("3", Failure.BROKEN_RECORD)


def run(job):
    with job.graph("all", SHARDS):
        job.map_shards("write one", write, [job.options.fuse] * SHARDS)
        job.map_shards("beside", write, [""] * SHARDS, accounted=False)


JOB = jobs.Job("toy", "", "", (), Options, run)


def committed(result):
    found = result.metrics().query()["counters"]
    return {(counter.key.metric.namespace, counter.key.metric.name): counter.committed for counter in found}


@pytest.fixture
def results(monkeypatch):
    """The results of the pipelines that are run."""
    found = []
    start = beam.Pipeline.run

    def recorded(pipeline, *args, **kwargs):
        result = start(pipeline, *args, **kwargs)
        found.append(result)
        return result

    monkeypatch.setattr(beam.Pipeline, "run", recorded)
    return found


def of_all_shards(*phases):
    return {("newsembed", f"{phase}/{name}"): SHARDS * value for phase in phases for name, value in COUNTS.items()}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_engine_counts_the_records_of_all_shards_of_each_phase(tmp_path, results, workers):
    jobs.execute(JOB, {}, str(tmp_path / "out"), beam_args=[f"--direct_num_workers={workers}"])
    assert committed(results[-1]) == of_all_shards("write one", "beside")


def test_a_job_that_goes_on_counts_the_shards_of_the_killed_run_once(tmp_path, results):
    options, one = Options(str(tmp_path / "fuse")), ["--direct_num_workers=1"]
    with pytest.raises(RuntimeError, match="killed"):
        jobs.execute(JOB, {}, str(tmp_path / "out"), options, one)
    outcome = jobs.execute(JOB, {}, str(tmp_path / "out"), options, one)
    assert committed(results[-1]) == of_all_shards("write one", "beside")
    assert outcome.manifest["counts"]["in"] == SHARDS * COUNTS["in"]


def test_a_job_fails_if_its_engine_counts_other_records(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "count", lambda *_: None)
    with pytest.raises(RuntimeError, match="phase write one: Beam counted 0 records as in, the files have 20"):
        jobs.execute(JOB, {}, str(tmp_path / "out"), beam_args=["--direct_num_workers=1"])


def test_an_element_that_arrives_twice_fails_the_job(tmp_path):
    phase = Phase(str(tmp_path), "write", 1)
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([(0, ""), (0, "")]) | ProcessShards(write, phase)
    report = Counts.from_json(files.read_json(phase.report_path(0)))
    assert report.read == COUNTS["in"], "the second attempt finds the report of the first"
    with pytest.raises(RuntimeError, match=r"phase write: Beam counted 10 records as in, the files have 5"):
        metrics.check(pipeline.result, [("write", report)])


def test_a_report_that_was_changed_behind_the_engine_fails_the_job(tmp_path):
    phase = Phase(str(tmp_path), "write", 1)
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([(0, "")]) | ProcessShards(write, phase)
    changed = Counts(5, 3, {"no_title": 1}, {"broken_record": 1})
    with pytest.raises(RuntimeError, match=r"phase write: Beam counted 2 records as out, the files have 3"):
        metrics.check(pipeline.result, [("write", changed)])
    with pytest.raises(RuntimeError, match=r"phase other: Beam counted 0 records as in, the files have 5"):
        metrics.check(pipeline.result, [("other", changed)])


class Counted:
    """The result of a pipeline with some counters, or none."""

    def __init__(self, *counters):
        key = beam.metrics.execution.MetricKey("step", beam.metrics.metricbase.MetricName("newsembed", "write/in"))
        self.counters = [beam.metrics.execution.MetricResult(key, *values) for values in counters]

    def metrics(self):
        return self

    def query(self, _filter):
        return {"counters": self.counters}


def test_what_was_only_attempted_is_not_compared():
    by_files = iter([("write", Counts(5, 5))])
    metrics.check(Counted((None, 10)), by_files)  # as Flink and Spark return it: no committed value
    assert list(by_files) == [("write", Counts(5, 5))]  # nothing was looked at
    with pytest.raises(RuntimeError, match="phase write: Beam counted 10 records as in, the files have 5"):
        metrics.check(Counted((10, 12)), [("write", Counts(5, 5))])


def test_a_result_without_counters_lacks_the_records_of_the_files():
    metrics.check(Counted(), [("write", Counts())])
    with pytest.raises(RuntimeError, match="phase write: Beam counted 0 records as in, the files have 1"):
        metrics.check(Counted(), [("write", Counts(1, 1))])
