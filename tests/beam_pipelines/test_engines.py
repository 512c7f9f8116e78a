"""Jobs on an engine outside of this process: the same files as on the local runner, also after the job was cut off.

Needs the job server of an engine (Prism, Flink, Spark) on this machine; `make engines` runs a whole build on one.
"""

import contextlib
import dataclasses
import json
import os

import pytest
from newsembed.beam_pipelines import clean, extract, jobs
from newsembed.beam_pipelines.clean.options import CleanOptions

SERVER = os.environ.get("NEWSEMBED_TEST_ENGINE", "")
pytestmark = pytest.mark.skipif(not SERVER, reason="NEWSEMBED_TEST_ENGINE=host:port names no job server")
ENGINE = ["--runner=PortableRunner", f"--job_endpoint={SERVER}", "--environment_type=LOOPBACK"]
LOCAL = ["--direct_num_workers=1"]


@pytest.fixture(scope="module")
def articles(tmp_path_factory):
    """Three files of articles; a quarter of them repeat an article of another file."""
    folder = tmp_path_factory.mktemp("articles")
    for shard in range(3):
        with (folder / f"{shard}.jsonl").open("w") as sink:
            for number in range(40):
                story = number if number < 10 else 100 * shard + number
                body = " ".join(
                    f"The council of town {story} met on day {day} about road {story * day}." for day in range(15)
                )
                row = {"title": f"Council {story}", "text": body, "authors": ["A. Author"], "date": "2019-05-01"}
                sink.write(json.dumps(row | {"url": f"http://paper{shard}.example/{number}"}) + "\n")
    return [str(path) for path in sorted(folder.glob("*.jsonl"))]


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    }


def mine(articles, folder, beam_args):
    jobs.execute(extract.JOB, {"articles": articles}, str(folder / "extract"), beam_args=beam_args)
    options = CleanOptions(min_words=20, require_author=False)
    outcome = jobs.execute(
        clean.JOB, {"articles": [str(folder / "extract")]}, str(folder / "clean"), options, beam_args
    )
    return outcome.manifest["counts"]


def test_joins_and_duplicates_give_the_files_of_the_local_runner(articles, tmp_path):
    local = mine(articles, tmp_path / "local", LOCAL)
    assert mine(articles, tmp_path / "engine", ENGINE) == local
    assert local["in"] == 120
    assert sum(local["rejected"].values()) >= 20, "the repeated articles"
    assert files_of(tmp_path / "engine") == files_of(tmp_path / "local")


@dataclasses.dataclass(frozen=True)
class Options:
    fuse: str


def fail_once(shard, fuse):
    if shard.index == 1 and not os.path.exists(fuse):
        with open(fuse, "w") as sink:
            sink.write("lit")
        raise ValueError("cut off")
    shard.read()
    shard.written()


def run_fused(job):
    with job.graph("fused", 3):
        job.map_shards("before", lambda shard, _: (shard.read(), shard.written()), [None])
        job.map_shards("cut", fail_once, [job.options.fuse] * 3, accounted=False)


def test_a_job_that_failed_on_the_engine_goes_on_with_the_shards_that_it_lacks(tmp_path):
    job = jobs.Job("toy", "", "", (), Options, run_fused)
    options = Options(str(tmp_path / "fuse"))
    with contextlib.suppress(RuntimeError):  # Prism does not repeat what failed, other engines do
        jobs.execute(job, {}, str(tmp_path / "out"), options, ENGINE)
    assert os.path.exists(options.fuse)
    outcome = jobs.execute(job, {}, str(tmp_path / "out"), options, ENGINE)
    assert outcome.manifest["phases"]["cut"]["in"] == 3
    assert outcome.manifest["counts"]["in"] == 1
