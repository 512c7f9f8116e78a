"""Running jobs: manifest, accounting, phases in one pipeline, skipping finished jobs, resuming, publishing."""

import dataclasses
import datetime
import functools
import hashlib
import json
import os
import sys
import tempfile
import types

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.utils import interactive_utils
from newsembed.beam_pipelines import jobs, workers
from newsembed.beam_pipelines.graph import Graph, Parts
from newsembed.beam_pipelines.shards import Phase, group_by_shard, process_shards, shard_of
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.manifest import read_seconds
from newsembed.formats.records import Failure, Hub, Rejection
from newsembed.tests.example_inputs import tree

ONE, TWO = ["--direct_num_workers=1"], ["--direct_num_workers=2"]
STREAM = [f"hubs/part-0000{number}-of-00003.parquet" for number in range(3)]


@dataclasses.dataclass(frozen=True)
class Options:
    keep_below: int = 100
    since: datetime.date = datetime.date(2024, 2, 29)
    days: tuple[datetime.date, ...] = (datetime.date(2024, 1, 2),)
    shares: dict = dataclasses.field(default_factory=dict)
    fuse: str = ""


def hub(number):
    return Hub(f"{number:016x}", f"http://h.example/{number}", "h.example", "t", "feed", ("a", "b"))


def blow(fuse):
    """Fails once."""
    if fuse and not files.exists(fuse):
        files.write_whole(fuse, b"lit")
        raise RuntimeError("killed")


def first(shard, payload):
    start, stop, fuse = payload
    blow(fuse)
    hubs = shard.records("hubs", Hub)
    for number in range(start, stop):
        shard.read()
        if number % 10 == 3:
            shard.reject(str(number), Rejection.NO_TITLE, "has none")
        elif number % 10 == 4:
            shard.fail(str(number), Failure.BROKEN_RECORD)
        else:
            hubs.write(hub(number))
            shard.written()


def second(shard, ids):
    out = shard.records("sorted", Hub)
    for hub_id in ids:
        shard.read()
        out.write(hub(int(hub_id, 16)))
        shard.written()


def ids_by_shard(path):
    for record in parquet.read_records(path, Hub):
        yield shard_of(record.hub_id[::-1], 3), record.hub_id


def read_one(shard, _):
    shard.read()
    shard.written()


def job_of(run, *inputs):
    return jobs.Job("toy", "", inputs, Options, run)


def two_phases(run_):
    fuse = run_.options.fuse
    run_.map_shards("first", first, [(0, 50, ""), (50, 90, ""), (90, run_.options.keep_below, fuse)])
    phase = run_.phase("second", 3)
    with run_.graph(3) as graph:
        graph.add(
            phase,
            lambda: (
                graph.start("second", parquet.shard_paths(f"{run_.workspace}/hubs"))
                | beam.FlatMap(ids_by_shard)
                | group_by_shard(3)
                | process_shards(second, phase)
            ),
        )


JOB = job_of(two_phases, jobs.InputSpec("articles", "", required=False))


def execute(job, out, options=None, inputs=None, beam_args=ONE, **more):
    return jobs.execute(job, inputs or {}, str(out), options, beam_args, **more)


@pytest.fixture
def pipelines(monkeypatch):
    """The pipelines that are run: their results, and the names of their transforms."""
    found = []
    start = beam.Pipeline.run

    def recorded(pipeline, *args, **kwargs):
        names = {label.split("/")[0] for label in pipeline.applied_labels}
        result = start(pipeline, *args, **kwargs)
        if names:  # Beam runs the pipeline again from its proto
            found.append((result, names))
        return result

    monkeypatch.setattr(beam.Pipeline, "run", recorded)
    return found


def test_the_manifest_says_what_was_made_from_what(tmp_path, monkeypatch):
    hashed, file_sha256 = [], jobs.file_sha256
    monkeypatch.setattr(jobs, "file_sha256", lambda path: hashed.append(path) or file_sha256(path))
    monkeypatch.setattr(jobs, "__version__", "1.2.3-test")
    (tmp_path / "raw.txt").write_text("raw")

    def run(run_):
        run_.extra["examples"] = {"topics/en": 3}
        run_.map_shards("hubs", first, [(0, 3, ""), (5, 9, ""), (3, 5, "")])
        files.write_whole(f"{run_.workspace}/plain.txt", b"text")

    own = jobs.InputSpec("tables", "", many=True, digest=lambda path: f"of {path[-1]}")
    job = job_of(run, own, jobs.InputSpec("raw", ""), jobs.InputSpec("absent", "", required=False))
    given = {"tables": [str(tmp_path / name) for name in "ab"], "raw": [str(tmp_path / "raw.txt")]}
    out = tmp_path / "out"
    found = dict(execute(job, out, Options(shares={"of": datetime.date(2024, 1, 1)}), given).manifest)
    assert len(found.pop("digest")) == 16
    counts = {"in": 9, "out": 7, "rejected": {"no_title": 1}, "failed": {"broken_record": 1}, "tallies": {}}
    names = ("dead_letters/hubs/part-00002-of-00003.parquet", *STREAM, "plain.txt")
    options = {"keep_below": 100, "since": "2024-02-29", "days": ["2024-01-02"], "shares": {"of": "2024-01-01"}}
    assert found == {
        "job": "toy",
        "code_version": "1.2.3-test",
        "options": {**options, "fuse": ""},
        "inputs": {"tables": ["of a", "of b"], "raw": [files.file_digest(str(tmp_path / "raw.txt"))], "absent": []},
        "counts": counts,
        "phases": {"hubs": counts},
        "examples": {"topics/en": 3},
        "files": {name: (out / name).stat().st_size for name in names},
        "sha256": {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names},
    }
    assert [path.rpartition("/")[2] for path in hashed] == ["plain.txt"]  # the shards have computed the others


def test_a_folder_in_the_output_has_a_manifest_of_its_own(tmp_path):
    def run(run_):
        run_.map_shards("one", read_one, [None])
        files.write_whole(f"{run_.workspace}/part/x.txt", b"text")
        files.write_whole(f"{run_.workspace}/part/manifest.json", b"{}")  # a run was killed after it had written it
        run_.folders["part"] = 6, {"examples": {"topics/en": 6}}

    whole = execute(job_of(run), tmp_path / "out").manifest
    own = json.loads((tmp_path / "out/part/manifest.json").read_text())
    assert own["digest"] == f"{whole['digest']}/part"
    assert (own["counts"]["in"], own["counts"]["out"], own["examples"]) == (6, 6, {"topics/en": 6})
    assert own["files"] == {"x.txt": 4}


@pytest.mark.parametrize("workers_", [ONE, TWO])
def test_beam_counts_the_records_of_all_shards_of_each_phase(tmp_path, pipelines, workers_):
    outcome = execute(JOB, tmp_path / "out", beam_args=workers_)
    counts = {"in": 100, "out": 80, "rejected": {"no_title": 10}, "failed": {"broken_record": 10}, "tallies": {}}
    assert outcome.manifest["counts"] == counts
    assert not list((tmp_path / "out").glob(".work-*"))
    found = {
        counter.key.metric.name: counter.committed
        for result, _ in pipelines
        for counter in result.metrics().query()["counters"]
        if counter.key.metric.namespace == "newsembed"
    }
    assert found == {
        **{f"first/{name}": count for name, count in (("in", 100), ("out", 80), ("rejected", 10), ("failed", 10))},
        **{f"second/{name}": count for name, count in (("in", 80), ("out", 80), ("rejected", 0), ("failed", 0))},
    }


def test_records_that_a_shard_or_a_phase_loses_fail_the_job(tmp_path):
    def lose(run_):
        run_.map_shards("lossy", lambda shard, _: shard.read(), [None])

    def gap(run_):
        run_.map_shards("a", lambda shard, _: (shard.read(2), shard.written(2)), [None])
        run_.map_shards("b", read_one, [None])

    with pytest.raises(RuntimeError, match="1 records unaccounted for"):
        execute(job_of(lose), tmp_path / "lossy")
    with pytest.raises(RuntimeError, match="passed on 2 records, the next read 1"):
        execute(job_of(gap), tmp_path / "gap")


def test_a_phase_beside_the_chain_adds_its_own_records(tmp_path):
    def run(run_):
        run_.map_shards("first", first, [(0, 20, "")])
        beside = run_.phase("found", 1, beside=True)
        with run_.graph(1) as graph:
            graph.add(beside, lambda: graph.start("found", [(0, (20, 30, ""))]) | process_shards(first, beside))
        run_.map_shards("second", second, [[f"{number:016x}" for number in range(16)]])

    seen = []
    counts = execute(job_of(run), tmp_path / "out", progress=lambda *step: seen.append(step)).manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"]) == (30, 24, {"no_title": 3})
    assert seen[-1] == ("second", 1, 1, "")


# Phases in one pipeline


def write_number(shard, number):
    shard.read()
    files.write_json(shard.path("_numbers", "json"), number)
    shard.written()


def add_up(shard, fuse):
    blow(fuse)
    numbers = [files.read_json(path) for path in files.list_files(f"{shard.workspace}/_numbers/*.json")]
    files.write_json(f"{shard.workspace}/sum/sum.json", [len(numbers), sum(numbers)])


def copy_sum(shard, keys):
    shard.read(len(keys))
    files.write_json(shard.path("copies", "json"), [files.read_json(f"{shard.workspace}/sum/sum.json"), keys])
    shard.written(len(keys))


def one_graph(job):
    with job.graph(5) as graph:
        job.map_shards("numbers", write_number, range(5))
        job.map_shards("sum", add_up, [job.options.fuse], accounted=False)
        last = job.phase("copies", 2)
        graph.add(
            last,
            lambda: (
                graph.start("copies", range(5))
                | beam.Map(lambda number: (number % 2, number))
                | group_by_shard(2)
                | process_shards(copy_sum, last)
            ),
        )


def test_a_phase_starts_when_all_shards_of_the_one_before_are_complete(tmp_path, pipelines):
    counts = execute(job_of(one_graph), tmp_path / "out", beam_args=TWO).manifest["counts"]
    assert files.read_json(str(tmp_path / "out/copies/part-00000-of-00002.json")) == [[5, 10], [0, 2, 4]]
    assert files.read_json(str(tmp_path / "out/copies/part-00001-of-00002.json")) == [[5, 10], [1, 3]]
    assert (counts["in"], counts["out"], len(pipelines)) == (5, 5, 1)


def test_in_a_notebook_a_job_needs_no_interactive_beam_and_leaves_no_temporary_folder(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setitem(sys.modules, "apache_beam.runners.interactive", None)  # its libraries are not installed
    for module in (interactive_utils, beam.pipeline):
        monkeypatch.setattr(module, "is_in_ipython", lambda: True)
    execute(job_of(one_graph), tmp_path / "out")
    assert not list((tmp_path / "temporary").iterdir())
    assert interactive_utils.is_in_ipython()  # for pipelines of the user
    assert beam.pipeline.is_in_ipython()


def test_only_phases_that_are_not_complete_run_again(tmp_path, pipelines):
    options, out, seen = Options(fuse=str(tmp_path / "fuse")), tmp_path / "out", []
    with pytest.raises(RuntimeError, match="killed"):
        execute(job_of(one_graph), out, options)
    execute(job_of(one_graph), out, options, progress=lambda *state: seen.append(state))
    assert {"numbers", "Process(numbers)"}.isdisjoint(pipelines[-1][1])
    assert pipelines[-1][1] >= {"Process(sum)", "Process(copies)"}
    assert files.read_json(f"{out}/sum/sum.json") == [5, 10]
    assert [state for state in seen if state[0] == "numbers"][-1] == ("numbers", 5, 5, "")


def test_progress_names_the_phases_that_have_started(tmp_path):
    graph, phases = Graph(beam.Pipeline()), [Phase(str(tmp_path), name, 2) for name in ("one", "two", "three")]
    for phase in phases:
        start = graph.start(phase.name, enumerate([1, 2]))
        graph.add(phase, lambda: start | process_shards(write_number, phase))  # noqa: B023 - attached at once
    assert graph.progress() == [("one", 0, 2, "")]
    for index in range(2):
        files.write_json(phases[0].report_path(index), {})
    files.write_json(phases[1].report_path(0), {})
    assert graph.progress() == [("one", 2, 2, ""), ("two", 1, 2, "")]


def test_progress_may_count_the_parts_of_shards(tmp_path):
    def run(run_):
        files.write_whole(f"{run_.workspace}/grows", b"." * 2_345_678)
        parts = Parts(f"{run_.workspace}/parts/*", 7, growing=f"{run_.workspace}/gro*")
        run_.map_shards("first", first, [(0, 20, "")], parts=parts)

    seen = []
    execute(job_of(run), tmp_path / "out", progress=lambda *step: seen.append(step))
    assert {(total, grown) for _, _, total, grown in seen} == {(7, "2.3 MB")}


# A second run


def test_a_finished_job_is_skipped_unless_options_inputs_or_version_differ(tmp_path, monkeypatch):
    raw, out = tmp_path / "raw.txt", tmp_path / "out"
    raw.write_text("one")

    def skipped(**options):
        return execute(JOB, out, Options(**options), {"articles": [str(raw)]}).skipped

    assert [skipped(), skipped()] == [False, True]
    assert [skipped(shares={"a": 1, "b": 2}), skipped(shares={"b": 2, "a": 1})] == [False, True]
    raw.write_text("two")
    assert not skipped(shares={"a": 1, "b": 2})
    monkeypatch.setattr(jobs, "__version__", "0.0.0-test")
    assert not skipped(shares={"a": 1, "b": 2})


def test_the_seconds_of_a_job_are_kept_with_its_result(tmp_path, monkeypatch):
    clock = iter([100.0, 107.25, 300.0])
    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    assert execute(JOB, tmp_path / "out").seconds == read_seconds(str(tmp_path / "out")) == 7.25
    again = execute(JOB, tmp_path / "out")
    assert (again.skipped, again.seconds) == (True, 7.25)


def test_an_interrupted_job_resumes_to_the_same_bytes_as_one_with_two_workers(tmp_path, monkeypatch):
    options, made = Options(fuse=str(tmp_path / "fuse")), []
    with pytest.raises(RuntimeError, match="killed"):
        execute(JOB, tmp_path / "resumed", options)
    assert not (tmp_path / "resumed/manifest.json").exists()
    with pytest.raises(InputError, match="not a result"):
        jobs.input_digest(str(tmp_path / "resumed"))
    make = workers.make_pipeline
    monkeypatch.setattr(workers, "make_pipeline", lambda *given: made.append(make(*given)) or made[-1])
    execute(JOB, tmp_path / "resumed", options)
    execute(JOB, tmp_path / "whole", options, beam_args=TWO)
    assert tree(tmp_path / "resumed") == tree(tmp_path / "whole")
    assert not any(os.path.exists(pipeline.local_tempdir) for pipeline in made)


def test_an_interrupted_publication_is_completed(tmp_path, monkeypatch):
    execute(JOB, tmp_path / "whole")
    moved, move = [], files.move

    def failing_move(source, target):
        if "/.work-" in source and "/resumed/sorted" in target and not moved:
            moved.append(target)
            raise OSError("power cut")
        move(source, target)

    monkeypatch.setattr(files, "move", failing_move)
    with pytest.raises(OSError, match="power cut"):
        execute(JOB, tmp_path / "resumed")
    execute(JOB, tmp_path / "resumed")
    assert tree(tmp_path / "resumed") == tree(tmp_path / "whole")


# Inputs and outputs


def writing(*names):
    def write(names, shard, _):
        read_one(shard, None)
        for name in names:
            files.write_whole(f"{shard.workspace}/{name}", b"text")

    return job_of(lambda run: run.map_shards("one", functools.partial(write, names), [None]))


def test_half_written_internal_and_older_files_are_not_published(tmp_path):
    execute(writing("old.txt"), tmp_path / "out")
    execute(writing("whole.txt", "half.txt.tmp", "_internal.txt"), tmp_path / "out", Options(keep_below=1))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", "timing.json", "whole.txt"]


def test_inputs_are_checked_before_anything_runs(tmp_path):
    for name in "ab":
        (tmp_path / name).touch()
    job = job_of(None, jobs.InputSpec("articles", ""))
    for given, problem in (
        ([], "--articles: not given"),
        (["absent"], "no such file or folder"),
        (["*.warc"], "no file matches"),
        (["a", "b"], "--articles: got 2 paths, expected one"),
    ):
        with pytest.raises(InputError, match=problem):
            execute(job, tmp_path / "out", inputs={"articles": [str(tmp_path / name) for name in given]})
    assert not (tmp_path / "out").exists()
    many = job_of(None, jobs.InputSpec("articles", "", many=True))
    assert jobs.resolve_inputs(many, {"articles": ["folder/", "x"]}) == {"articles": ("folder", "x")}


def test_the_digest_of_an_input_is_that_of_its_manifest_or_of_its_file(tmp_path):
    out = tmp_path / "out"
    digest = execute(JOB, out).manifest["digest"]
    for path in (out, out / "hubs", out / STREAM[0].partition("/")[0]):
        assert jobs.input_digest(str(path)) == jobs.input_digest(f"{path}/") == digest
    table = tmp_path / "x.npy"
    np.save(table, np.zeros((1, 2)))
    assert jobs.input_digest(str(table)) == files.file_digest(str(table))
    (tmp_path / "x.tsv").write_text("a\n")  # its keys
    before = jobs.input_digest(str(table))
    (tmp_path / "x.tsv").write_text("b\n")
    assert jobs.input_digest(str(table)) != before
