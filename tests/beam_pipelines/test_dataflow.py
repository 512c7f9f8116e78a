"""Workers of Dataflow get all that jobs import; what they would lack or could not reach is said before a job starts."""

import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions
from newsembed.beam_pipelines import dataflow, jobs, workers
from newsembed.beam_pipelines.crawl import JOB
from newsembed.beam_pipelines.extract import job as extract_job
from newsembed.errors import InputError
from packaging.utils import canonicalize_name

GOOD = ["--runner=DataflowRunner", "--project=my-project", "--region=europe-west4", "--temp_location=gs://bucket/tmp"]
IMAGE = "--sdk_container_image=x"
APICLIENT = "apache_beam.runners.dataflow.internal.apiclient"


@pytest.mark.parametrize(
    ("beam_args", "problem"),
    [
        ([GOOD[0], *GOOD[2:], IMAGE], "Missing required option: project"),
        ([*GOOD[:3], IMAGE, "--temp_location=/tmp/x"], "Invalid GCS path"),
        ([*GOOD, IMAGE, "--job_name=Bad_Name"], "Invalid job_name"),
    ],
)
def test_options_that_dataflow_would_refuse_are_named(monkeypatch, beam_args, problem):
    for name in ("_warn_if_soft_delete_policy_enabled", "_create_default_gcs_bucket"):  # Beam would ask Google
        monkeypatch.setattr(GoogleCloudOptions, name, lambda *_: None)
    with pytest.raises(InputError, match=problem):
        workers.make_pipeline(beam_args, 2)


@pytest.fixture
def submitting(monkeypatch):
    """As where `newsembed[gcp]` is installed."""
    monkeypatch.setitem(sys.modules, APICLIENT, types.ModuleType(APICLIENT))


def test_a_run_without_google_cloud_support_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, APICLIENT, None)
    with pytest.raises(InputError, match=r"not installed") as raised:
        dataflow.staged([*GOOD, IMAGE], {})
    assert "newsembed[gcp]" in raised.value.remedy


def test_other_runners_and_images_are_given_nothing(submitting):
    assert dataflow.staged(["--runner=PortableRunner"], {}) == ["--runner=PortableRunner"]
    assert dataflow.staged([*GOOD, IMAGE], {}) == [*GOOD, IMAGE]


def test_a_job_stages_this_package_and_the_libraries_of_all_jobs(submitting):
    given = dict(word.split("=", 1) for word in dataflow.staged(GOOD, {"encoder": ["model:gs://bucket/model"]}))
    assert given["--requirements_cache"] == "skip"  # workers ask the index
    assert "\njax==" in Path(given["--requirements_file"]).read_text()
    with zipfile.ZipFile(given["--extra_package"]) as archive:
        names = set(archive.namelist())
    assert {"newsembed/beam_pipelines/extract/job.py", "newsembed/formats/files.py"} <= names
    assert not any(name.startswith(("newsembed/tests", "newsembed/benchmarks")) for name in names)
    listed = {line.partition("==")[0] for line in dataflow.requirements(("mine", "jax"))}
    assert {"protego", "fastwarc", "fasttext-predict", "tokenizers", "babel", "jax", "flax"} <= listed
    assert not {"apache-beam", "newsembed", "tensorflow", "pytest", "fastapi"} & listed


def test_what_is_staged_lacks_nothing():
    listed = {line.partition("==")[0] for line in dataflow.requirements()}
    assert dataflow.lacking(listed) == []
    assert dataflow.lacking(listed - {"protego", "gcsfs"}) == ["gcsfs", "protego"]


def test_workers_install_the_versions_of_the_constraints():
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    stated = {canonicalize_name(name): version for name, version in pairs}
    staged = [line.split("==") for line in dataflow.requirements((*dataflow.JOBS, "jax")) if "==" in line]
    assert len(staged) > 50
    assert {name: version for name, version in staged if stated.get(name) != version} == {}


def test_all_jobs_can_be_imported():
    done = subprocess.run([sys.executable, "-m", dataflow.__name__], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all jobs of newsembed can be imported\n")


def test_setup_py_is_refused_since_it_has_no_libraries_of_jobs(submitting):
    with pytest.raises(InputError, match="--setup_file: workers would have the core of newsembed"):
        dataflow.staged([*GOOD, "--setup_file=./setup.py"], {})


def test_a_requirements_file_must_have_all_libraries(submitting, tmp_path):
    path = tmp_path / "requirements.txt"
    lines = [line for line in dataflow.requirements() if not line.startswith(("protego", "lxml="))]
    path.write_text("# mine\n--prefer-binary\n" + "\n".join(lines))
    with pytest.raises(InputError, match="workers would lack protego\n") as raised:
        dataflow.staged([*GOOD, f"--requirements_file={path}"], {})
    assert raised.value.path == str(path)
    path.write_text("newsembed[mine,gcs] # all\n")
    assert dataflow.staged([*GOOD, f"--requirements_file={path}"], {})[len(GOOD)] == f"--requirements_file={path}"
    with pytest.raises(InputError, match="--requirements_file: no such file"):
        dataflow.staged([*GOOD, f"--requirements_file={path}x"], {})


@pytest.mark.parametrize("form", ["{}", "model:{}", "model:{}@100"])
def test_inputs_of_workers_must_be_on_cloud_storage(tmp_path, form):
    inputs = {"articles": ["gs://bucket/x"], "encoder": [form.format(tmp_path)]}
    with pytest.raises(InputError, match="--encoder: got a local path, which workers cannot reach") as raised:
        dataflow.check_paths(GOOD, "gs://bucket/out", inputs)
    assert raised.value.path == form.format(tmp_path)
    dataflow.check_paths([], "gs://bucket/out", inputs)


def test_a_local_output_is_refused_and_a_remote_encoder_is_not(tmp_path):
    (tmp_path / "articles.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="--output: got a local path"):
        jobs.execute(extract_job.JOB, {"articles": [f"{tmp_path}/articles.jsonl"]}, f"{tmp_path}/out", beam_args=GOOD)
    assert not (tmp_path / "out").exists()
    remote = ["gs://bucket/x", "model:gs://bucket/x@100", "tfidf"]
    dataflow.check_paths(GOOD, "gs://bucket/out", {"encoder": remote})


def test_what_only_the_launching_process_reads_may_be_local():
    lists = {"warc": ("@list", "a.paths.gz", "a.warc.gz"), "cdx": (), "articles": (), "posts": ()}
    assert extract_job.JOB.read_by_workers(lists)["warc"] == ["a.warc.gz"]
    assert JOB.read_by_workers({"seeds": ("seeds.txt",)}) == {"seeds": []}
