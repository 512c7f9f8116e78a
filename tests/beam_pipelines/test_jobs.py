"""Running jobs: accounting, skipping of finished jobs, resuming, publishing."""

import contextlib
import dataclasses
import functools
import importlib
import signal

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from newsembed.beam_pipelines import forecast, jobs
from newsembed.beam_pipelines.accounting import Counts, add_counts, chain_counts
from newsembed.beam_pipelines.graph import Parts
from newsembed.beam_pipelines.shards import GroupByShard, Phase, ProcessShards, Shard, shard_numbers, shard_of
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Failure, Hub, Rejection

ONE = ["--direct_num_workers=1"]


@dataclasses.dataclass(frozen=True)
class Options:
    keep_below: int = 100


def hub(number):
    return Hub(f"{number:016x}", f"http://h.example/{number}", "h.example", "t", "feed", ("a", "b"))


def first(shard, payload):
    start, stop, fuse = payload
    if fuse and not files.exists(fuse):
        with files.open_write(fuse) as sink:
            sink.write(b"lit")
        raise RuntimeError("killed")
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


def make_job(fuse=""):
    def run(run_):
        run_.map_shards("first", first, [(0, 50, ""), (50, 90, ""), (90, run_.options.keep_below, fuse)])
        phase = run_.phase("second", 3)
        with run_.pipeline(phase) as pipeline:
            _ = (
                pipeline
                | beam.Create(parquet.shard_paths(f"{run_.workspace}/hubs"))
                | beam.FlatMap(ids_by_shard)
                | GroupByShard(3)
                | ProcessShards(second, phase)
            )

    return jobs.Job("toy", "", "", (jobs.InputSpec("articles", "", required=False),), Options, run)


def tree(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "timing.json"
    }


def test_counts_balance_and_streams_are_published(tmp_path):
    outcome = jobs.execute(make_job(), {}, str(tmp_path / "out"), beam_args=ONE)
    assert outcome.manifest["counts"] == {
        "in": 100,
        "out": 80,
        "rejected": {"no_title": 10},
        "failed": {"broken_record": 10},
        "tallies": {},
    }
    assert sum(1 for _ in parquet.read_stream(str(tmp_path / "out/sorted"), Hub)) == 80
    assert not list((tmp_path / "out").glob(".work-*"))
    letters = letters_of(tmp_path / "out/dead_letters")
    assert sorted({(row["outcome"], row["reason"]) for row in letters}) == [
        ("failed", "broken_record"),
        ("rejected", "no_title"),
    ]
    assert len(letters) == 20


def test_a_finished_job_is_skipped_and_other_options_run_it_again(tmp_path):
    out = str(tmp_path / "out")
    assert not jobs.execute(make_job(), {}, out, beam_args=ONE).skipped
    assert jobs.execute(make_job(), {}, out, beam_args=ONE).skipped
    again = jobs.execute(make_job(), {}, out, Options(keep_below=95), beam_args=ONE)
    assert not again.skipped
    assert again.manifest["counts"]["in"] == 95


def test_an_interrupted_job_resumes_to_the_same_bytes(tmp_path):
    jobs.execute(make_job(), {}, str(tmp_path / "whole"), beam_args=ONE)
    broken = make_job(fuse=str(tmp_path / "fuse"))
    with pytest.raises(RuntimeError, match="killed"):
        jobs.execute(broken, {}, str(tmp_path / "resumed"), beam_args=ONE)
    assert not (tmp_path / "resumed" / "manifest.json").exists()
    with pytest.raises(InputError, match="not a result"):
        jobs.input_digest(str(tmp_path / "resumed"))
    jobs.execute(broken, {}, str(tmp_path / "resumed"), beam_args=ONE)
    assert tree(tmp_path / "resumed") == tree(tmp_path / "whole")


FAILER = """
from newsembed.errors import InputError


def fail(shard, payload):
    raise InputError("no labels", path="labels.tsv", remedy="label some")
"""
KILLER = """
import os, signal
from newsembed.formats import files

def kill_own_process(shard, fuse):
    if fuse and not files.exists(fuse):
        with files.open_write(fuse) as sink:
            sink.write(b"lit")
        os.kill(os.getpid(), signal.SIGKILL)
    shard.read()
    shard.written()
"""


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["in_front", "with_nohup"])
def interrupt_handler(request):
    """A script's background processes, and those of nohup, ignore SIGINT."""
    before = signal.signal(signal.SIGINT, request.param)
    yield request.param
    assert signal.signal(signal.SIGINT, before) == request.param  # the job put it back


@pytest.mark.usefixtures("interrupt_handler")
def test_a_killed_worker_ends_the_job_and_the_next_run_completes_it(tmp_path, monkeypatch):
    (tmp_path / "killer.py").write_text(KILLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    kill_own_process = importlib.import_module("killer").kill_own_process
    job = jobs.Job(
        "toy", "", "", (), Options, lambda run: run.map_shards("kill", kill_own_process, ["", str(tmp_path / "fuse")])
    )
    two = ["--direct_num_workers=2"]
    with pytest.raises(InputError, match="worker process died") as raised:
        jobs.execute(job, {}, str(tmp_path / "out"), beam_args=two)
    assert "--direct_num_workers" in raised.value.remedy
    assert jobs.execute(job, {}, str(tmp_path / "out"), beam_args=two).manifest["counts"]["out"] == 2


@pytest.mark.parametrize("verbose", [False, True])
def test_an_error_that_the_user_can_correct_prints_no_traceback_of_a_worker(verbose, tmp_path, monkeypatch, capfd):
    (tmp_path / "failer.py").write_text(FAILER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    if verbose:
        monkeypatch.setenv("NEWSEMBED_VERBOSE", "1")
    fail = importlib.import_module("failer").fail
    job = jobs.Job("toy", "", "", (), Options, lambda run: run.map_shards("fail", fail, ["a", "b"]))
    with pytest.raises(InputError, match=r"labels\.tsv: no labels\n  remedy: label some"):
        jobs.execute(job, {}, str(tmp_path / "out"), beam_args=["--direct_num_workers=2"])
    assert ("Traceback" in capfd.readouterr().err) is verbose


def test_an_interrupted_publication_is_completed(tmp_path, monkeypatch):
    jobs.execute(make_job(), {}, str(tmp_path / "whole"), beam_args=ONE)
    moved, move = [], files.move

    def failing_move(source, target):
        if "/.work-" in source and "/resumed/sorted" in target and not moved:
            moved.append(target)
            raise OSError("power cut")
        move(source, target)

    monkeypatch.setattr(files, "move", failing_move)
    with pytest.raises(OSError, match="power cut"):
        jobs.execute(make_job(), {}, str(tmp_path / "resumed"), beam_args=ONE)
    jobs.execute(make_job(), {}, str(tmp_path / "resumed"), beam_args=ONE)
    assert tree(tmp_path / "resumed") == tree(tmp_path / "whole")


def test_worker_processes_write_the_same_bytes_as_one(tmp_path):
    jobs.execute(make_job(), {}, str(tmp_path / "one"), beam_args=ONE)
    jobs.execute(make_job(), {}, str(tmp_path / "two"), beam_args=["--direct_num_workers=2"])
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_a_shard_that_loses_a_record_fails_the_job(tmp_path):
    def run(run_):
        run_.map_shards("lossy", lambda shard, _: shard.read(), [None])

    with pytest.raises(RuntimeError, match="1 records unaccounted for"):
        jobs.execute(jobs.Job("lossy", "", "", (), Options, run), {}, str(tmp_path / "out"), beam_args=ONE)


def test_phases_with_different_counts_fail_the_job(tmp_path):
    def read_two(shard, _):
        shard.read(2)
        shard.written(2)

    def read_one(shard, _):
        shard.read()
        shard.written()

    def run(run_):
        run_.map_shards("a", read_two, [None])
        run_.map_shards("b", read_one, [None])

    with pytest.raises(RuntimeError, match="passed on 2 records, the next read 1"):
        jobs.execute(jobs.Job("gap", "", "", (), Options, run), {}, str(tmp_path / "out"), beam_args=ONE)


def test_a_phase_beside_the_chain_adds_its_own_records(tmp_path):
    def run(run_):
        run_.map_shards("first", first, [(0, 20, "")])
        beside = run_.phase("found", 1, beside=True)
        with run_.pipeline(beside) as pipeline:
            _ = pipeline | beam.Create([(0, (20, 30, ""))]) | ProcessShards(first, beside)
        run_.map_shards("second", second, [[f"{number:016x}" for number in range(16)]])

    seen = []
    job = jobs.Job("toy", "", "", (), Options, run)
    counts = jobs.execute(
        job, {}, str(tmp_path / "out"), beam_args=ONE, progress=lambda *step: seen.append(step)
    ).manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"], counts["failed"]) == (
        30,
        24,
        {"no_title": 3},
        {"broken_record": 3},
    )
    assert seen[-1] == ("second", 1, 1, "")


def test_progress_may_count_the_parts_of_shards(tmp_path):
    def run(run_):
        files.write_whole(f"{run_.workspace}/grows", b"." * 2_345_678)
        run_.map_shards(
            "first",
            first,
            [(0, 20, "")],
            parts=Parts(f"{run_.workspace}/parts/*", 7, growing=f"{run_.workspace}/gro*"),
        )

    seen = []
    jobs.execute(
        jobs.Job("toy", "", "", (), Options, run),
        {},
        str(tmp_path / "out"),
        beam_args=ONE,
        progress=lambda *step: seen.append(step),
    )
    assert {(total, grown) for _, _, total, grown in seen} == {(7, "2.3 MB")}


def test_the_input_is_announced_before_anything_runs_and_a_long_phase_once(tmp_path, monkeypatch):
    (tmp_path / "articles.jsonl").write_bytes(b"." * 2_345_678)
    events = []

    def run(run_):
        events.append("runs")
        for done in (0, 2):
            run_._progress("first", done, 6, "")
            monkeypatch.setattr(forecast, "_LEAST_SECONDS", 0.0)

    job = jobs.Job("toy", "", "", (jobs.InputSpec("articles", "", many=True),), Options, run)
    given = {"articles": [str(tmp_path / "articles.jsonl")]}
    jobs.execute(job, given, str(tmp_path / "out"), beam_args=ONE, announce=events.append)
    assert events[:2] == ["toy: input: 1 file, 2.3 MB", "runs"]
    assert len(events) == 3
    assert events[2].startswith("toy: first: 2 of 6 parts in 0 s; the rest will take about 0 s and ")
    # A finished job reads nothing.
    jobs.execute(job, given, str(tmp_path / "out"), beam_args=ONE, announce=events.append)
    assert len(events) == 3


def test_inputs_are_checked_before_anything_runs(tmp_path):
    job = dataclasses.replace(make_job(), inputs=(jobs.InputSpec("articles", ""),))
    with pytest.raises(InputError, match="--articles: not given"):
        jobs.execute(job, {}, str(tmp_path / "out"))
    with pytest.raises(InputError, match="no such file or folder"):
        jobs.execute(job, {"articles": [str(tmp_path / "absent")]}, str(tmp_path / "out"))
    with pytest.raises(InputError, match="no file matches"):
        jobs.execute(job, {"articles": [str(tmp_path / "*.warc")]}, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def letters_of(folder):
    return [
        row
        for path in folder.rglob("*.parquet")
        for batch in parquet.read_batches(str(path))
        for row in batch.to_pylist()
    ]


def single(function, **inputs):
    """A job of one shard that reads and writes one record."""

    def one(shard, _):
        function(shard)
        shard.read()
        shard.written()

    specs = tuple(jobs.InputSpec(name, "", many=name == "many") for name in inputs)
    return jobs.Job("toy", "", "", specs, Options, lambda run: run.map_shards("one", one, [None]))


def test_half_written_and_internal_files_are_not_published(tmp_path):
    def write(shard):
        for name in ("whole.txt", "half.txt.tmp", "_internal.txt"):
            with files.open_write(f"{shard.workspace}/{name}") as sink:
                sink.write(b"text")

    jobs.execute(single(write), {}, str(tmp_path / "out"), beam_args=ONE)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", "timing.json", "whole.txt"]


def write_empty(name, shard):
    files.write_whole(f"{shard.workspace}/{name}", b"")


def test_files_of_an_older_result_are_removed(tmp_path):
    jobs.execute(single(functools.partial(write_empty, "old.txt")), {}, str(tmp_path / "out"), beam_args=ONE)
    other = Options(keep_below=1)
    jobs.execute(single(functools.partial(write_empty, "new.txt")), {}, str(tmp_path / "out"), other, ONE)
    assert sorted(path.name for path in (tmp_path / "out").glob("*.txt")) == ["new.txt"]


def write_one_record(shard, name):
    assert name != "must not run"
    shard.read()
    shard.written()


def test_a_complete_shard_is_not_run_again(tmp_path):
    phase = Phase(str(tmp_path), "p", 2)
    for payloads in (["runs", "must not run"], ["must not run", "runs"]):
        # The first run completes shard 0 and stops at shard 1, the second one has only shard 1 left to do.
        with contextlib.suppress(Exception), beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create(list(enumerate(payloads))) | ProcessShards(write_one_record, phase)
    assert [files.exists(phase.report_path(index)) for index in range(2)] == [True, True]


def test_changed_inputs_and_another_version_run_a_job_again(tmp_path, monkeypatch):
    raw = tmp_path / "raw.txt"
    raw.write_text("one")
    job, given, out = single(lambda _: None, articles=""), {"articles": [str(raw)]}, str(tmp_path / "out")
    assert not jobs.execute(job, given, out, beam_args=ONE).skipped
    assert jobs.execute(job, given, out, beam_args=ONE).skipped
    raw.write_text("two")
    assert not jobs.execute(job, given, out, beam_args=ONE).skipped
    monkeypatch.setattr(jobs, "__version__", "0.0.0-test")
    assert not jobs.execute(job, given, out, beam_args=ONE).skipped


def test_the_keys_of_an_embedding_table_are_part_of_its_digest(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 2)))
    (tmp_path / "x.tsv").write_text("a\n")
    before = jobs.input_digest(str(tmp_path / "x.npy"))
    (tmp_path / "x.tsv").write_text("b\n")
    assert jobs.input_digest(str(tmp_path / "x.npy")) != before


def test_an_input_inside_the_output_folder_is_refused(tmp_path):
    inside = tmp_path / "out" / "raw.txt"
    inside.parent.mkdir()
    inside.write_text("one")
    with pytest.raises(InputError, match="--articles"):
        jobs.execute(
            single(lambda _: None, articles=""), {"articles": [str(inside)]}, str(tmp_path / "out"), beam_args=ONE
        )
    assert inside.exists()


@dataclasses.dataclass(frozen=True)
class CacheOptions:
    cache: str = dataclasses.field(default="", metadata={"lasting_folder": True})


def test_a_lasting_folder_inside_the_output_folder_is_refused(tmp_path):
    job = dataclasses.replace(single(lambda _: None), options=CacheOptions)
    with pytest.raises(InputError, match="--cache"):
        jobs.execute(job, {}, str(tmp_path / "out"), CacheOptions(str(tmp_path / "out/cache")), ONE)
    assert jobs.execute(job, {}, str(tmp_path / "out"), CacheOptions(str(tmp_path / "cache")), ONE).manifest


def test_several_paths_are_accepted_only_where_the_job_takes_many(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    for path in paths:
        files.write_whole(path, b"")
    job = single(lambda _: None, articles="", many="")
    with pytest.raises(InputError, match="--articles: got 2 paths, expected one"):
        jobs.resolve_inputs(job, {"articles": paths, "many": paths})
    assert jobs.resolve_inputs(job, {"articles": paths[:1], "many": paths}) == {
        "articles": (paths[0],),
        "many": tuple(paths),
    }


def test_a_shard_that_writes_more_than_it_read_fails(tmp_path):
    phase = Phase(str(tmp_path), "p", 1)
    with pytest.raises(RuntimeError, match="-1 records unaccounted for"), Shard(phase, 0) as shard:
        shard.written()
    assert not files.exists(phase.report_path(0))


def test_dead_letters_keep_only_the_start_of_a_text(tmp_path):
    with Shard(Phase(str(tmp_path), "p", 1), 0) as shard:
        shard.read(2)
        shard.reject("a", Rejection.NO_TITLE, "", "x" * 600)
        shard.fail("b", Failure.BROKEN_RECORD, "", "y" * 600)
    assert [row["sample"] for row in letters_of(tmp_path)] == ["x" * 500, "y" * 500]


def test_groups_are_sorted_and_every_shard_has_one():
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        groups = pipeline | beam.Create([(1, value) for value in (5, 3, 9, 1)]) | GroupByShard(3)
        assert_that(groups, equal_to([(0, []), (1, [1, 3, 5, 9]), (2, [])]))


def test_the_shard_of_an_id_is_its_top_32_bits_modulo_the_count():
    ids = ["0000000700000001", "00010000ffffffff", "ffffffff00000000"]
    expected = [7 % 5, 0x10000 % 5, 0xFFFFFFFF % 5]
    assert [shard_of(doc_id, 5) for doc_id in ids] == expected
    assert shard_numbers(np.array([int(doc_id, 16) for doc_id in ids], np.uint64), 5).tolist() == expected


def test_counts_add_and_chain():
    a = Counts(10, 7, {"x": 2}, {"y": 1}, {"t": 3})
    b = Counts(7, 6, {"x": 1}, {}, {"t": 1})
    assert add_counts([a, b]) == Counts(17, 13, {"x": 3}, {"y": 1}, {"t": 4})
    chained = chain_counts([a, b])
    assert (chained.read, chained.written, chained.rejected, chained.failed, chained.balance) == (
        10,
        6,
        {"x": 3},
        {"y": 1},
        0,
    )
    assert chain_counts([]) == Counts()
