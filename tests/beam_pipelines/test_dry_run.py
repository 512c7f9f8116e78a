"""A job for Dataflow, built and not run: no network, no Google Cloud."""

import socket
import tarfile
import tempfile

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from newsembed.beam_pipelines import dataflow, dry_run, jobs, options
from newsembed.beam_pipelines.crawl import JOB, CrawlOptions
from newsembed.beam_pipelines.extract import job as extract_job
from newsembed.errors import InputError
from newsembed.launch import cli

GOOD = ["--runner=DataflowRunner", "--project=my-project", "--region=europe-west4", "--temp_location=gs://bucket/tmp"]
SETUP = """
from setuptools import setup
setup(name="toy", version="1.0", py_modules=["toy"])
"""


@pytest.fixture
def seeds(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("http://a.example/\nhttp://b.example/feed\n")
    return str(path)


@pytest.fixture
def setup_file(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "toy.py").write_text("")
    (folder / "setup.py").write_text(SETUP)
    return str(folder / "setup.py")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a dry run uses no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_job_is_built_as_dataflow_would_get_it(tmp_path, seeds, setup_file, monkeypatch):
    folder = str(tmp_path / "dry")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    beam_args = [*GOOD, f"--setup_file={setup_file}"]
    plan = dry_run.plan(JOB, {"seeds": [seeds]}, "gs://bucket/crawl", CrawlOptions(), beam_args, folder)
    fetch, images = plan.pipelines
    assert (fetch.phases, images.phases) == ((("fetch", 2),), (("images", 2),))
    assert any("Process(fetch)" in transform for transform in fetch.transforms)
    assert fetch.transforms[0].startswith("fetch/Create/Impulse"), "in the order of the job"
    assert any("group_by_key" in transform for transform in images.transforms)
    assert (fetch.shuffles, images.shuffles) == (1, 2), "images groups the listed URLs by shard, too"
    proto = beam_runner_api_pb2.Pipeline()
    proto.ParseFromString((tmp_path / "dry/fetch.pb").read_bytes())
    (environment,) = proto.components.environments.values()
    assert environment.urn == "beam:env:docker:v1"
    assert b"apache/beam_python3" in environment.payload
    assert environment.dependencies
    assert "Process(fetch)" in (tmp_path / "dry/fetch.txt").read_text()
    assert "workflow.tar.gz" in plan.staged
    (sdist,) = (tmp_path / "dry/staged").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("toy.py") for name in archive.getnames())
    assert any(seeds in remark for remark in plan.remarks)
    assert (tmp_path / "dry/images.pb").stat().st_size > 0
    assert not list(temporary.glob("beam-pipeline-temp*"))


def test_the_command_line_shows_the_plan(tmp_path, seeds, setup_file, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "crawl",
        "--seeds",
        seeds,
        "--output",
        "gs://bucket/crawl",
        *GOOD,
        f"--setup_file={setup_file}",
        "--dry_run",
    ]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "phase fetch: 2 shards" in shown
    assert "workflow.tar.gz" in shown
    assert "nothing was run" in shown
    assert f"{tmp_path}/dry-run/staged/" in shown
    assert list((tmp_path / "dry-run/staged").glob("*.tar.gz"))


def test_a_remark_names_phases_that_depend_on_results(tmp_path):
    def run(job):
        job.map_shards("first", print, [1])
        raise InputError("nothing was written", path="articles")

    plan = dry_run.plan(
        jobs.Job("toy", "", "", (), CrawlOptions, run), {}, "gs://b/o", CrawlOptions(), [], str(tmp_path / "dry")
    )
    assert [one.name for one in plan.pipelines] == ["first"]
    assert plan.remarks == ("what follows first needs its results: phases after it, if any, are not shown",)

    def broken(_):
        raise InputError("bad", path="articles.jsonl")

    with pytest.raises(InputError, match="articles.jsonl"):
        dry_run.plan(
            jobs.Job("toy", "", "", (), CrawlOptions, broken), {}, "gs://b/o", CrawlOptions(), [], str(tmp_path / "dry")
        )


@pytest.mark.parametrize(
    ("beam_args", "problem"),
    [
        (
            ["--runner=DataflowRunner", "--region=r", "--temp_location=gs://bucket/tmp"],
            "Missing required option: project",
        ),
        (["--runner=DataflowRunner", "--project=my-project", "--region=r"], "temp_location"),
        ([*GOOD[:3], "--temp_location=/tmp/x"], "Invalid GCS path"),
        ([*GOOD, "--job_name=Bad_Name"], "Invalid job_name"),
        ([*GOOD, "--num_workers=9", "--max_num_workers=2"], "num_workers"),
        (GOOD, "give --setup_file"),
        ([*GOOD, "--setup_file=./none/setup.py"], "no setup.py at"),
    ],
)
def test_options_that_dataflow_would_refuse_are_named(beam_args, problem):
    with pytest.raises(InputError, match=problem) as raised:
        dataflow.check_options(PipelineOptions(beam_args))
    assert "--project" in raised.value.remedy


def test_results_must_be_on_cloud_storage():
    with pytest.raises(InputError, match="--output: got a local path"):
        dataflow.check_paths("work/crawl", {})
    dataflow.check_paths("gs://bucket/crawl", {"articles": ["gs://bucket/x"]})


@pytest.mark.parametrize("form", ["{}", "model:{}", "model:{}@100", "learned=model:{}"])
def test_inputs_of_workers_must_be_on_cloud_storage(tmp_path, form):
    path = form.format(tmp_path)
    assert dataflow.is_local(path)
    with pytest.raises(InputError, match="--encoder: got a local path, which workers cannot read") as raised:
        dataflow.check_paths("gs://bucket/out", {"articles": ["gs://bucket/x"], "encoder": [path]})
    assert raised.value.path == path


@pytest.mark.parametrize("path", ["gs://bucket/x", "model:gs://bucket/x@100", "learned=model:gs://bucket/x", "tfidf"])
def test_paths_of_a_store_and_encoders_without_a_folder_are_not_local(path):
    assert not dataflow.is_local(path)


def test_what_only_the_launching_process_reads_may_be_local():
    lists = {"warc": ("@list", "a.paths.gz", "a.warc.gz"), "cdx": (), "articles": (), "posts": ()}
    assert extract_job.JOB.read_by_workers(lists)["warc"] == ["a.warc.gz"]
    assert JOB.read_by_workers({"seeds": ("seeds.txt",)}) == {"seeds": []}


def test_a_package_that_does_not_build_is_named(tmp_path, seeds):
    (tmp_path / "setup.py").write_text("raise SystemExit('broken')")
    with pytest.raises(InputError, match="was not built"):
        dry_run.plan(
            JOB,
            {"seeds": [seeds]},
            "gs://bucket/crawl",
            CrawlOptions(),
            [*GOOD, f"--setup_file={tmp_path}/setup.py"],
            str(tmp_path / "dry"),
        )


def test_a_run_without_google_cloud_support_says_what_to_install(monkeypatch, setup_file):
    monkeypatch.setattr(dataflow, "is_installed", lambda: False)
    with pytest.raises(InputError, match=r"not installed") as raised:
        options.make_pipeline([*GOOD, f"--setup_file={setup_file}"], 4)
    assert "newsembed[gcp]" in raised.value.remedy
