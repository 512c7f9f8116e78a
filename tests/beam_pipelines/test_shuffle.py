"""shuffle: every row arrives at its receiver, once, in the order of the senders; a resumed job sends it again."""

import dataclasses
import functools

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import graph, jobs
from newsembed.beam_pipelines.arrays import read_array, write_array
from newsembed.beam_pipelines.graph import Rows, blocks_of, received, send
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.formats import files

ROW = np.dtype([("receiver", "<u4"), ("sender", "<u4"), ("number", "<u8")])
RECEIVERS = 5
ONE_WORKER = ["--direct_num_workers=1"]


ROWS = Rows("_rows", ROW)


def made(receivers, sender):
    return np.array([(receiver, sender, number) for number, receiver in enumerate(receivers)], ROW)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, RECEIVERS - 1), max_size=12), min_size=1, max_size=4), st.randoms(), st.booleans()
)
def test_each_receiver_gets_its_rows_in_order_whatever_the_order_of_arrival(
    tmp_path_factory, senders, random, with_bytes
):
    phase = Phase(str(tmp_path_factory.mktemp("shuffle")), "send", len(senders))
    sent = []
    for sender, receivers in enumerate(senders):
        rows = made(receivers, sender)
        sent.append(rows)
        with Shard(phase, sender) as shard:
            for chunk, part in ((0, rows[:5]), (2, rows[5:])):  # a sender may have nothing to send in between
                send(shard, "_rows", part, part["receiver"], chunk)
    numbers = range(len(senders))
    blocks = [block for number in numbers for block in blocks_of(number, phase, ROWS, with_bytes=with_bytes)]
    assert all(bool(raw) is with_bytes for _, (*_, raw) in blocks)
    assert len(blocks) == len({(receiver, *block[:2]) for receiver, block in blocks}), "one for each file and receiver"
    random.shuffle(blocks)
    every = np.concatenate(sent)
    for receiver in range(RECEIVERS):
        groups = {"": ["payload"], "_rows": [block for to, block in blocks if to == receiver]}
        index, found = received((receiver, groups), [(phase, ROWS)])
        assert (index, found.payload) == (receiver, "payload")
        np.testing.assert_array_equal(found.rows["_rows"], every[every["receiver"] == receiver])


@dataclasses.dataclass(frozen=True)
class Options:
    fuse: str = ""


def send_made(shard, receivers):
    shard.read()
    send(shard, "_rows", made(receivers, shard.index), receivers)
    shard.written()


def receive(shard, got, fuse):
    if fuse and shard.index == 1 and not files.exists(fuse):
        files.write_json(fuse, "lit")
        raise RuntimeError("killed")
    shard.read()
    write_array(shard.path("rows", "npy"), got.rows["_rows"])
    files.write_json(shard.path("payloads", "json"), got.payload)
    shard.written()


def run(job):
    with job.graph(3):
        job.map_shards("send", send_made, [[2, 0, 2], [], [0, 2]])
        # The side input of the last phase is this phase, not the sender.
        job.map_shards("between", between, [None], accounted=False)
        receiver = functools.partial(receive, fuse=job.options.fuse)
        job.map_rows("receive", receiver, ["a", "b", "c"], [("send", ROWS)])


def between(shard, _):
    files.write_json(f"{shard.workspace}/_between.json", len(files.list_files(f"{shard.workspace}/_rows/*.rows.npy")))


JOB = jobs.Job("toy", "", (), Options, run)


def check(output):
    found = [read_array(path).tolist() for path in files.list_files(f"{output}/rows/*.npy")]
    assert found == [[(0, 0, 1), (0, 2, 0)], [], [(2, 0, 0), (2, 0, 2), (2, 2, 1)]]
    assert [files.read_json(path) for path in files.list_files(f"{output}/payloads/*.json")] == ["a", "b", "c"]


class _AnotherRunner:
    """No instance of it is a runner: the graph takes each runner for one of a cluster."""


@pytest.mark.parametrize(("workers", "cluster"), [(1, False), (2, False), (1, True), (2, True)])
def test_rows_arrive_from_files_and_inside_of_elements_and_a_receiver_without_rows_runs_too(
    tmp_path, workers, cluster, monkeypatch
):
    if cluster:
        monkeypatch.setattr(graph, "FnApiRunner", _AnotherRunner)
    jobs.execute(JOB, {}, str(tmp_path / "out"), beam_args=[f"--direct_num_workers={workers}"])
    check(tmp_path / "out")


def test_a_killed_job_sends_the_rows_of_complete_senders_again(tmp_path, monkeypatch):
    out, options, beam_args = str(tmp_path / "out"), Options(str(tmp_path / "fuse")), ["--direct_num_workers=1"]
    with pytest.raises(RuntimeError, match="killed"):
        jobs.execute(JOB, {}, out, options, beam_args)
    names, start = [], beam.Pipeline.run
    run_noted = lambda pipeline, *args: names.extend(pipeline.applied_labels) or start(pipeline, *args)  # noqa: E731
    monkeypatch.setattr(beam.Pipeline, "run", run_noted)
    jobs.execute(JOB, {}, out, options, beam_args)
    check(out)
    assert not any("Process(send)" in name for name in names), "the senders are complete"


def test_the_manifest_has_the_counts_of_the_phases_that_count_something(tmp_path):
    def run_more(job):
        run(job)
        with job.graph(3):
            job.map_shards("send again", send_made, [[1], [], []], accounted=False)
            kept = [("send again", ROWS)]
            job.map_rows("keep", lambda shard, _: shard.tally("kept"), [None] * 3, kept, accounted=False)

    outcome = jobs.execute(dataclasses.replace(JOB, run=run_more), {}, str(tmp_path / "out"), beam_args=ONE_WORKER)
    phases = outcome.manifest["phases"]
    assert set(phases) == {"send", "receive", "send again", "keep"}
    assert phases["keep"]["tallies"] == {"kept": 3}
    assert outcome.manifest["counts"]["in"] == 3
