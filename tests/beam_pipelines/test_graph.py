"""Several phases in one pipeline: their order, what is run again, and how many pipelines a job needs."""

import dataclasses

import apache_beam as beam
import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.graph import Graph
from newsembed.beam_pipelines.shards import GroupByShard, Phase, ProcessShards
from newsembed.formats import files

SHARDS = 5
ONE = ["--direct_num_workers=1"]


@dataclasses.dataclass(frozen=True)
class Options:
    fuse: str = ""


def write_number(shard, number):
    shard.read()
    files.write_json(shard.path("_numbers", "json"), number)
    shard.written()


def add_up(shard, fuse):
    if fuse and not files.exists(fuse):
        files.write_json(fuse, "lit")
        raise RuntimeError("killed")
    numbers = [files.read_json(path) for path in files.list_files(f"{shard.workspace}/_numbers/*.json")]
    files.write_json(f"{shard.workspace}/sum/sum.json", [len(numbers), sum(numbers)])


def copy_sum(shard, keys):
    shard.read(len(keys))
    files.write_json(shard.path("copies", "json"), [files.read_json(f"{shard.workspace}/sum/sum.json"), keys])
    shard.written(len(keys))


def run(job):
    with job.graph("all", SHARDS) as graph:
        job.map_shards("numbers", write_number, range(SHARDS))
        job.map_shards("sum", add_up, [job.options.fuse], accounted=False)
        last = job.phase("copies", 2)
        graph.add(
            last,
            lambda: (
                graph.start("copies", range(SHARDS))
                | beam.Map(lambda number: (number % 2, number))
                | GroupByShard(2)
                | ProcessShards(copy_sum, last)
            ),
        )


JOB = jobs.Job("toy", "", "", (), Options, run)


@pytest.fixture
def pipelines(monkeypatch):
    """The pipelines that are run, as sets of the names of their transforms."""
    found = []
    start = beam.Pipeline.run

    def recorded(pipeline, *args, **kwargs):
        if pipeline.applied_labels:  # Beam runs the pipeline again from its proto
            found.append({label.split("/")[0] for label in pipeline.applied_labels})
        return start(pipeline, *args, **kwargs)

    monkeypatch.setattr(beam.Pipeline, "run", recorded)
    return found


def test_a_phase_starts_when_all_shards_of_the_one_before_are_complete(tmp_path, pipelines):
    outcome = jobs.execute(JOB, {}, str(tmp_path / "out"), beam_args=["--direct_num_workers=2"])
    assert files.read_json(str(tmp_path / "out/sum/sum.json")) == [SHARDS, 0 + 1 + 2 + 3 + 4]
    assert files.read_json(str(tmp_path / "out/copies/part-00000-of-00002.json")) == [[SHARDS, 10], [0, 2, 4]]
    assert files.read_json(str(tmp_path / "out/copies/part-00001-of-00002.json")) == [[SHARDS, 10], [1, 3]]
    assert (outcome.manifest["counts"]["in"], outcome.manifest["counts"]["out"]) == (SHARDS, SHARDS)
    assert len(pipelines) == 1


def test_each_phase_has_the_one_before_it_as_a_side_input(tmp_path):
    graph = Graph(beam.Pipeline())
    for name in ("one", "two"):
        graph.map_shards(Phase(str(tmp_path), name, 2), write_number, [1, 2])
    proto = graph.pipeline.to_runner_api()
    leaves = {one.unique_name: one for one in proto.components.transforms.values() if not one.subtransforms}
    (waiting,) = [one for name, one in leaves.items() if "Wait" in name]
    (complete,) = [one for name, one in leaves.items() if name.startswith("Process(one)")]
    assert set(complete.outputs.values()) <= set(waiting.inputs.values())
    assert set(waiting.outputs.values()) <= {
        value for name, one in leaves.items() if name.startswith("Process(two)") for value in one.inputs.values()
    }


def test_only_phases_that_are_not_complete_run_again(tmp_path, pipelines):
    options, out = Options(str(tmp_path / "fuse")), str(tmp_path / "out")
    with pytest.raises(RuntimeError, match="killed"):
        jobs.execute(JOB, {}, out, options, ONE)
    seen = []
    jobs.execute(JOB, {}, out, options, ONE, progress=lambda *state: seen.append(state))
    before, after = pipelines
    assert before - after >= {"numbers", "Process(numbers)"}
    assert after >= {"Process(sum)", "Process(copies)"}
    assert files.read_json(f"{out}/sum/sum.json") == [SHARDS, 10]
    assert [state for state in seen if state[0] == "numbers"][-1] == ("numbers", SHARDS, SHARDS, "")


def test_progress_names_the_phases_that_have_started(tmp_path):
    graph, phases = Graph(beam.Pipeline()), [Phase(str(tmp_path), name, 2) for name in ("one", "two", "three")]
    for phase in phases:
        graph.map_shards(phase, write_number, [1, 2])
    assert graph.progress() == [("one", 0, 2, "")]
    for index in range(2):
        files.write_json(phases[0].report_path(index), {})
    files.write_json(phases[1].report_path(0), {})
    assert graph.progress() == [("one", 2, 2, ""), ("two", 1, 2, "")]


def test_a_graph_in_a_graph_is_an_error(tmp_path):
    def nested(job):
        with job.graph("outer", 1), job.graph("inner", 1):
            pass

    with pytest.raises(RuntimeError, match="graph inner inside of another graph"):
        jobs.execute(jobs.Job("toy", "", "", (), Options, nested), {}, str(tmp_path / "out"))
