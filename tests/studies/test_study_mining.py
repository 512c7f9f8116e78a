"""Mining again: the options of the build come back from its manifests, and only what a change touches runs."""

import datetime
import shutil

import pytest
from newsembed.beam_pipelines import workflow
from newsembed.beam_pipelines.jobs import plain_options
from newsembed.beam_pipelines.workflow import STEPS, load_job
from newsembed.studies.shared import mining
from refusals import refuses


@pytest.fixture
def ran(monkeypatch):
    """(inputs, output, options) of the jobs that ran, by name."""
    found = {}

    def execute(job, inputs, output, options, _beam_args, *_progress):
        found[job.name] = (inputs, output, options)
        manifest = {"counts": {"in": 1, "out": 1, "rejected": {}, "failed": {}}}
        return workflow.Outcome(manifest, skipped=False, seconds=1.0)

    monkeypatch.setattr(workflow, "execute", execute)
    return found


@pytest.mark.parametrize("name", [step.job for step in STEPS])
def test_options_come_back_from_a_manifest(name):
    job = load_job(name)
    assert mining.options_of(job, plain_options(job.options())) == job.options()


def test_values_change_options_and_items_of_lists_and_unknown_ones_are_refused():
    job = load_job("examples")
    base = job.options(weights=(1.0, 2.0, 3.0, 4.0), max_length=96)
    changes = {"weights.1": 0.0, "weights.3": 9.0, "translate_share": 0.5, "held_out_from": "2020-01-02"}
    found = mining.options_of(job, changes, base)
    assert (found.weights, found.max_length, found.translate_share) == ((1.0, 0.0, 3.0, 9.0), 96, 0.5)
    assert found.held_out_from == datetime.date(2020, 1, 2)
    refuses("here: .*coffee", mining.options_of, job, {"coffee": 1}, path="here")


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        (["examples"], ["examples"]),
        (["triplets"], ["triplets", "examples"]),
        (["pack"], ["pack"]),
        (["topics"], ["topics", "examples"]),
        (["clean"], [step.job for step in STEPS[1:]]),
    ],
)
def test_a_change_touches_the_jobs_that_read_it(changed, again):
    assert mining.affected(changed) == again


def test_only_those_run_with_the_build_s_options_otherwise(build, tmp_path, ran):
    output = str(tmp_path / "again")
    folders = mining.mine_again(build, output, {"triplets": {"max_evergreen_score": 1.0}})
    assert list(ran) == ["triplets", "examples"]
    inputs, _, options = ran["triplets"]
    assert options == load_job("triplets").options(min_text=0.8, max_evergreen_score=1.0)
    assert inputs == {"articles": (f"{build}/clean",), "neighbors": (f"{build}/neighbors",)}
    inputs, _, options = ran["examples"]
    assert (inputs["triplets"], options.max_length) == ((f"{output}/triplets",), 96)
    assert (folders["examples"], folders["pack"]) == (f"{output}/examples", f"{build}/pack")


def test_a_build_is_named_by_its_folder_or_that_of_its_clean_articles(build, tmp_path):
    assert mining.build_folder(f"{build}/") == mining.build_folder(f"{build}/clean") == build
    refuses("no finished build", mining.build_folder, str(tmp_path))


def test_a_job_that_is_kept_does_not_run_again_nor_what_only_it_would_touch(build, tmp_path, ran):
    keeps, again = ("bitext", "pack", "topics"), ["entities", "vectors", "neighbors", "triplets", "examples"]
    assert mining.affected(["entities"], keeps) == again
    assert mining.affected(["vectors"], ("neighbors",)) == ["vectors", "bitext", "pack"]
    change, given = {"entities": {"lead_words": 5}}, {"bitext_encoder": ("model:x",)}
    folders = mining.mine_again(build, str(tmp_path / "again"), change, given, keeps=keeps)
    assert list(ran) == again
    assert ran["examples"][0]["topics"] == (f"{build}/topics",)
    assert (folders["topics"], folders["pack"]) == (f"{build}/topics", f"{build}/pack")


def test_a_job_that_the_build_left_out_stays_left_out(build, tmp_path, ran):
    shutil.rmtree(f"{build}/bitext")
    given = {"bitext_encoder": ("model:x",)}
    mining.mine_again(build, str(tmp_path / "again"), {"vectors": {"lead_words": 5}}, given)
    assert list(ran) == ["vectors", "pack", "neighbors", "triplets", "examples"]
