"""Mining again: the options of the build come back from its manifests, and only what a change touches runs."""

import dataclasses

import pytest
from newsembed.beam_pipelines import workflow
from newsembed.beam_pipelines.jobs import _plain
from newsembed.beam_pipelines.workflow import STEPS, load_job
from newsembed.errors import InputError
from newsembed.studies.shared import mining


@pytest.mark.parametrize("name", [step.job for step in STEPS])
def test_options_come_back_from_a_manifest(name):
    job = load_job(name)
    assert mining.options_from_json(job, _plain(dataclasses.asdict(job.options())), "here") == job.options()


def test_options_younger_than_the_manifest_have_their_defaults_and_unknown_ones_are_refused():
    job = load_job("triplets")
    assert mining.options_from_json(job, {"min_text": 0.7}, "here") == job.options(min_text=0.7)
    with pytest.raises(InputError, match="coffee"):
        mining.options_from_json(job, {"coffee": 1}, "here")


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


def test_only_those_run_with_the_build_s_options_otherwise(build, tmp_path, monkeypatch):
    ran = {}

    def execute(job, inputs, output, options, _beam_args, *_progress):
        ran[job.name] = (inputs, output, options)
        manifest = {"counts": {"in": 1, "out": 1, "rejected": {}, "failed": {}}}
        return workflow.Outcome(manifest, skipped=False, seconds=1.0)

    monkeypatch.setattr(workflow, "execute", execute)
    output = str(tmp_path / "again")
    folders = mining.mine_again(build, output, {"triplets": mining.changed(max_evergreen_score=1.0)})
    assert list(ran) == ["triplets", "examples"]
    assert ran["triplets"][2] == load_job("triplets").options(min_text=0.8, max_evergreen_score=1.0)
    assert ran["triplets"][0] == {"articles": (f"{build}/clean",), "neighbors": (f"{build}/neighbors",)}
    assert ran["examples"][0]["triplets"] == (f"{output}/triplets",)
    assert ran["examples"][2].max_length == 96
    assert folders["examples"] == f"{output}/examples"
    assert folders["pack"] == f"{build}/pack"


def test_a_build_is_named_by_its_folder_or_that_of_its_clean_articles(build, tmp_path):
    assert mining.build_folder(f"{build}/") == mining.build_folder(f"{build}/clean") == build
    with pytest.raises(InputError, match="no finished build"):
        mining.build_folder(str(tmp_path))


def test_a_job_that_is_kept_does_not_run_again_nor_what_only_it_would_touch(build, tmp_path, monkeypatch):
    keeps = ("bitext", "pack", "topics")
    assert mining.affected(["entities"], keeps) == ["entities", "vectors", "neighbors", "triplets", "examples"]
    assert mining.affected(["vectors"], ("neighbors",)) == ["vectors", "bitext", "pack"]
    ran = {}

    def execute(job, inputs, output, options, _beam_args, *_progress):
        ran[job.name] = inputs
        manifest = {"counts": {"in": 1, "out": 1, "rejected": {}, "failed": {}}}
        return workflow.Outcome(manifest, skipped=False, seconds=1.0)

    monkeypatch.setattr(workflow, "execute", execute)
    output = str(tmp_path / "again")
    change = {"entities": mining.changed(across_languages=False)}
    given = {"bitext_encoder": ("model:x",)}
    folders = mining.mine_again(build, output, change, given, keeps=keeps)
    assert list(ran) == ["entities", "vectors", "neighbors", "triplets", "examples"]
    assert ran["examples"]["topics"] == (f"{build}/topics",)
    assert (folders["topics"], folders["pack"]) == (f"{build}/topics", f"{build}/pack")


def test_a_job_that_the_build_left_out_stays_left_out(build, tmp_path, monkeypatch):
    import shutil

    shutil.rmtree(f"{build}/bitext")
    ran = []

    def execute(job, *_arguments):
        ran.append(job.name)
        manifest = {"counts": {"in": 1, "out": 1, "rejected": {}, "failed": {}}}
        return workflow.Outcome(manifest, skipped=False, seconds=1.0)

    monkeypatch.setattr(workflow, "execute", execute)
    given = {"bitext_encoder": ("model:x",)}
    mining.mine_again(build, str(tmp_path / "again"), {"vectors": mining.changed(lead_words=5)}, given)
    assert ran == ["vectors", "pack", "neighbors", "triplets", "examples"]
