"""What a job leaves behind, what its digest covers, and what a second run does not do again."""

import dataclasses
import datetime
import enum
import hashlib
import json
import os
import types
from collections.abc import Mapping
from typing import Any

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.accounting import Counts, add_counts, chain_counts
from newsembed.errors import InputError
from newsembed.formats import files
from newsembed.formats.manifest import read_seconds
from newsembed.formats.records import Hub

ONE = ["--direct_num_workers=1"]


class Speed(enum.Enum):
    SLOW = "slow"


@dataclasses.dataclass(frozen=True)
class Options:
    speed: Speed = Speed.SLOW
    since: datetime.date = datetime.date(2024, 2, 29)
    days: tuple[datetime.date, ...] = (datetime.date(2024, 1, 2),)
    shares: Mapping[Any, Any] = dataclasses.field(default_factory=dict)
    fuse: str = ""


def hubs_of_shard(shard, numbers):
    hubs = shard.records("hubs", Hub)
    for number in numbers:
        shard.read()
        hubs.write(Hub(f"{number:016x}", f"http://h.example/{number}", "h.example", "t", "feed", ("a", "b")))
        shard.written()


def job_of(run, *inputs):
    return jobs.Job("toy", "", "", inputs, Options, run)


def read_one(shard, _):
    shard.read()
    shard.written()


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# The manifest


def make_hubs(run):
    run.extra["examples"] = {"topics/en": 3}
    run.map_shards("hubs", hubs_of_shard, [[1, 2], [3]])
    files.write_whole(f"{run.workspace}/plain.txt", b"text")


STREAM = ("hubs/part-00000-of-00002.parquet", "hubs/part-00001-of-00002.parquet")


def test_the_manifest_says_what_was_made_from_what(tmp_path, monkeypatch):
    hashed, file_sha256 = [], jobs.file_sha256
    monkeypatch.setattr(jobs, "file_sha256", lambda path: hashed.append(path) or file_sha256(path))
    monkeypatch.setattr(jobs, "__version__", "1.2.3-test")
    (tmp_path / "raw.txt").write_text("raw")
    own = jobs.InputSpec("tables", "", many=True, digest=lambda path: f"of {path[-1]}")
    job = job_of(make_hubs, own, jobs.InputSpec("raw", ""), jobs.InputSpec("absent", "", required=False))
    given = {"tables": [str(tmp_path / name) for name in "ab"], "raw": [str(tmp_path / "raw.txt")]}
    options = Options(shares={2: datetime.date(2024, 1, 1), "of": [Speed.SLOW]})
    out = tmp_path / "out"
    found = dict(jobs.execute(job, given, str(out), options, ONE).manifest)
    digest = found.pop("digest")
    assert len(digest) == 16
    assert set(digest) <= set("0123456789abcdef")
    counts = {"in": 3, "out": 3, "rejected": {}, "failed": {}, "tallies": {}}
    names = (*STREAM, "plain.txt")
    assert found == {
        "job": "toy",
        "code_version": "1.2.3-test",
        "options": {
            "speed": "slow",
            "since": "2024-02-29",
            "days": ["2024-01-02"],
            "shares": {"2": "2024-01-01", "of": ["slow"]},
            "fuse": "",
        },
        "inputs": {"tables": ["of a", "of b"], "raw": [files.file_digest(str(tmp_path / "raw.txt"))], "absent": []},
        "counts": counts,
        "phases": {"hubs": counts},
        "examples": {"topics/en": 3},
        "files": {name: (out / name).stat().st_size for name in names},
        "sha256": {name: hash_of(out / name) for name in names},
    }
    # The shards have computed the digests of what they wrote.
    assert [path.rpartition("/")[2] for path in hashed] == ["plain.txt"]


def test_a_folder_in_the_output_has_a_manifest_of_its_own(tmp_path):
    def run(run_):
        run_.map_shards("one", read_one, [None])
        files.write_whole(f"{run_.workspace}/part/x.txt", b"text")
        files.write_whole(f"{run_.workspace}/part/manifest.json", b"{}")  # a run was killed after it had written it
        run_.folders["part"] = jobs.OwnManifest(Counts(7, 6, {"no_title": 1}), {"examples": {"topics/en": 6}})

    out = tmp_path / "out"
    whole = jobs.execute(job_of(run), {}, str(out), beam_args=ONE).manifest
    assert json.loads((out / "part/manifest.json").read_text()) == {
        **{name: whole[name] for name in ("job", "code_version", "options", "inputs")},
        "digest": f"{whole['digest']}/part",
        "counts": {"in": 7, "out": 6, "rejected": {"no_title": 1}, "failed": {}, "tallies": {}},
        "phases": {},
        "examples": {"topics/en": 6},
        "files": {"x.txt": 4},
    }


def test_the_order_of_named_options_does_not_count(tmp_path):
    out, one, other = str(tmp_path / "out"), {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert not jobs.execute(job_of(make_hubs), {}, out, Options(shares=one), ONE).skipped
    assert jobs.execute(job_of(make_hubs), {}, out, Options(shares=other), ONE).skipped


def test_the_seconds_of_a_job_are_kept_with_its_result(tmp_path, monkeypatch):
    out, clock = str(tmp_path / "out"), iter([100.0, 107.25, 300.0])
    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    assert jobs.execute(job_of(make_hubs), {}, out, beam_args=ONE).seconds == 7.25
    assert read_seconds(out) == 7.25
    again = jobs.execute(job_of(make_hubs), {}, out, beam_args=ONE)
    assert (again.skipped, again.seconds) == (True, 7.25)


# Inputs


def test_the_digest_of_an_input_is_that_of_its_manifest_or_of_its_file(tmp_path):
    out = tmp_path / "out"
    digest = jobs.execute(job_of(make_hubs), {}, str(out), beam_args=ONE).manifest["digest"]
    for path in (out, out / "hubs", out / "plain.txt"):
        assert jobs.input_digest(str(path)) == jobs.input_digest(f"{path}/") == digest
    for name in ("table.npy", "text.txt", "text.tsv"):
        (tmp_path / name).write_text(name)
    for name in ("table.npy", "text.txt"):  # a table without keys; a file that is not a table
        assert jobs.input_digest(str(tmp_path / name)) == files.file_digest(str(tmp_path / name))


def test_an_input_is_digested_as_its_job_says(tmp_path):
    raw, digests = tmp_path / "raw.txt", ["one", "one", "two"]
    job = job_of(make_hubs, jobs.InputSpec("raw", "", digest=lambda _: digests.pop(0)))
    skipped = []
    for text in ("a", "b", "b"):
        raw.write_text(text)
        skipped.append(jobs.execute(job, {"raw": [str(raw)]}, str(tmp_path / "out"), beam_args=ONE).skipped)
    assert (skipped, digests) == ([False, True, False], [])


def test_an_input_is_required_and_one_unless_its_job_says_otherwise(tmp_path):
    job = job_of(make_hubs, jobs.InputSpec("raw", ""))
    with pytest.raises(InputError, match="--raw: got 2 paths, expected one"):
        jobs.resolve_inputs(job, {"raw": ["a", "b"]})
    with pytest.raises(InputError, match="--raw: not given"):
        jobs.resolve_inputs(job, {})
    assert jobs.resolve_inputs(job, {"raw": ["folder/"]}) == {"raw": ("folder",)}


def test_the_storage_of_inputs_and_output_is_known_before_anything_is_read(tmp_path, monkeypatch):
    calls, out, raw = [], f"{tmp_path}/out", f"{tmp_path}/raw.txt"
    for module, name in (
        (jobs.files, "use_options"),
        (jobs.object_stores, "check_reachable"),
        (jobs.dataflow, "refuse_local_paths"),
    ):
        monkeypatch.setattr(module, name, lambda *given, name=name: calls.append((name, *given)))
    with pytest.raises(InputError, match="no such file"):
        jobs.execute(job_of(make_hubs, jobs.InputSpec("raw", "")), {"raw": [raw]}, out, beam_args=ONE)
    assert calls == [
        ("use_options", ONE),
        ("check_reachable", [out, raw], ONE),
        ("refuse_local_paths", out, {"raw": [raw]}, ONE),
    ]


# A second run


def run_in_two_phases(log):
    def numbered(shard, numbers):
        with log.open("a") as sink:
            sink.write(f"{shard.index}\n")
        hubs_of_shard(shard, numbers)

    def pass_on(shard, fuse):
        if fuse and not files.exists(fuse):
            files.write_whole(fuse, b"lit")
            raise RuntimeError("killed")
        shard.read(3)
        shard.written(3)

    def run(run_):
        run_.map_shards("hubs", numbered, [[1, 2], [3]])
        run_.map_shards("pass", pass_on, [run_.options.fuse])

    return run


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """A job that was killed in its second phase, what its first phase logs, and the pipelines that are made."""
    pipelines, make_pipeline = [], jobs.make_pipeline

    def recorded(*given):
        pipelines.append(make_pipeline(*given))
        return pipelines[-1]

    monkeypatch.setattr(jobs, "make_pipeline", recorded)
    log, options = tmp_path / "log", Options(fuse=f"{tmp_path}/fuse")
    job = job_of(run_in_two_phases(log))
    with pytest.raises(RuntimeError, match="killed"):
        jobs.execute(job, {}, f"{tmp_path}/out", options, ONE)
    return types.SimpleNamespace(job=job, options=options, log=log, pipelines=pipelines, out=tmp_path / "out")


def finish(killed):
    seen = []
    jobs.execute(killed.job, {}, str(killed.out), killed.options, ONE, progress=lambda *state: seen.append(state))
    return seen


def test_complete_phases_are_not_run_again_and_leave_nothing(killed, tmp_path):
    before = len(killed.pipelines)
    seen = finish(killed)
    assert sorted(killed.log.read_text().split()) == ["0", "1"]
    assert {state for state in seen if state[0] == "hubs"} == {("hubs", 2, 2, "")}
    assert len(killed.pipelines) == before + 2
    assert not any(os.path.exists(pipeline.local_tempdir) for pipeline in killed.pipelines[before:])


def test_a_damaged_workspace_is_not_resumed(killed):
    (part,) = killed.out.glob(f".work-*/{STREAM[1]}")
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + b"x")
    finish(killed)
    assert (killed.out / STREAM[1]).read_bytes() == whole
    assert sorted(killed.log.read_text().split()) == ["0", "0", "1", "1"]


# Counts


def test_counts_begin_at_zero_and_are_named_in_order():
    assert Counts() == Counts(0, 0, {}, {}, {})
    counts = Counts(9, 4, {"z": 1, "a": 2}, {"y": 1, "b": 1}, {"x": 5, "c": 6})
    found = counts.to_json()
    assert [[*found[name]] for name in ("rejected", "failed", "tallies")] == [["a", "z"], ["b", "y"], ["c", "x"]]
    assert Counts.from_json(found) == counts
    assert counts.balance == 0
    assert Counts(1, 0, {"a": 3}, {"b": 7}).balance == -9


def test_a_chain_reads_what_its_first_phase_reads_and_writes_what_its_last_one_writes():
    chain = [Counts(20, 17, {"a": 3}), Counts(17, 12, {}, {"b": 5}), Counts(12, 11, {"a": 1}, {}, {"t": 2})]
    assert chain_counts(chain) == Counts(20, 11, {"a": 4}, {"b": 5}, {"t": 2})
    assert add_counts([]) == Counts(0, 0, {}, {}, {})
