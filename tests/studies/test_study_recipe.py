"""The recipe of a study: its options, which steps are evaluated, and what each run file says."""

import dataclasses

import pytest
from manifests import write_manifest
from newsembed.studies.shared import recipe as module
from newsembed.studies.shared.recipe import Recipe, StudyOptions, filled, own_lines, recipe_of, run_file
from newsembed.training import gin_files
from refusals import refuses

RECIPE = Recipe("train.gin", "pretrain.gin", ("A = 1",), ("B = 2",), 100, 40, 8, 4, 2)


@pytest.mark.parametrize(
    ("steps", "evaluations", "evaluated"),
    [(100, 4, (25, 50, 75, 100)), (100, 1, (100,)), (10, 3, (3, 6, 10)), (3, 3, (1, 2, 3)), (7, 4, (1, 2, 3, 7))],
)
def test_evaluated_steps_are_evenly_spaced_and_end_with_the_last(steps, evaluations, evaluated):
    assert dataclasses.replace(RECIPE, steps=steps, evaluations=evaluations).evaluated == evaluated


def test_options_that_are_not_given_are_the_first_defaults_and_words_come_after_them():
    given = StudyOptions(output="o", steps=7, gin=("C = 3",))
    found = filled(given, {"steps": 1, "seeds": 2, "gin": ("A = 1",)}, {"seeds": 3, "parallel": 4, "beam": ("--x",)})
    assert (found.steps, found.seeds, found.parallel, found.gin, found.beam) == (7, 2, 4, ("A = 1", "C = 3"), ("--x",))


@pytest.fixture
def jobs(tmp_path):
    """The folders of three jobs with manifests."""
    names = ("examples", "pack", "vocabulary")
    for name in names:
        write_manifest(f"{tmp_path}/w/{name}", name, digest=f"digest of {name}")
    return {name: f"{tmp_path}/w/{name}" for name in names}


@pytest.mark.parametrize(("period", "most", "found"), [(25, 8, 5), (25, 100, 25), (24, 8, 8), (7, 6, 1)])
def test_checkpoints_fall_on_the_evaluated_steps(period, most, found, jobs):
    recipe = dataclasses.replace(RECIPE, steps=period, evaluations=1, checkpoint_period=most)
    assert f"CHECKPOINT_PERIOD = {found}\n" in recipe.training("/out", jobs, 0, None).gin


def test_a_run_file_has_the_data_the_start_the_periods_and_last_the_row_s_lines(jobs):
    run = RECIPE.training("/out", jobs, 7, "/start", ["# row", "C = 3"])
    places = [f"VOCABULARY_PATH = '{jobs['vocabulary']}/vocab.txt'"]
    assert run.gin.splitlines() == [
        "# data: examples digest of examples", 'include "train.gin"', "MODEL_DIR = '/out/model'",
        f"DATA_DIR = '{jobs['examples']}'", *places, "INITIAL_CHECKPOINT_PATH = '/start'", "TRAIN_STEPS = 100",
        "CHECKPOINT_PERIOD = 5", "KEEP_PERIOD = 25", "SEED = 7", "A = 1", "# row", "C = 3",
    ]  # fmt: skip
    assert (run.folder, run.steps) == ("/out", (25, 50, 75, 100))
    other = RECIPE.training("/out", jobs, 0, None, data="pack").gin
    assert "INITIAL_CHECKPOINT_PATH = None\n" in other
    assert other.startswith("# data: pack digest of pack\n")
    before = RECIPE.pretraining("/out", jobs, 3, ["C = 3", "D = 4"], is_shared=True)
    assert before.gin.splitlines() == [
        "# data: pack digest of pack", 'include "pretrain.gin"', "MODEL_DIR = '/out/model'",
        f"DATA_DIR = '{jobs['pack']}'", *places, "TRAIN_STEPS = 40", "SEED = 3", "B = 2", "C = 3", "D = 4",
    ]  # fmt: skip
    assert (before.steps, before.is_shared) == ((40,), True)


@pytest.fixture
def gin_folder(tmp_path, monkeypatch):
    folder = tmp_path / "gin"
    folder.mkdir()
    (folder / "row.gin").write_text('# why\n\ninclude "base.gin"\n  include "b"\nincluded = 1\nA.b = 2  # x\n')
    monkeypatch.setattr(gin_files, "GIN_FOLDER", str(folder))
    return folder


def test_a_base_is_a_file_of_the_package_or_an_absolute_path(gin_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.gin").write_text("")
    assert run_file("row.gin") == run_file("gin/row.gin") == "row.gin"
    assert run_file("mine.gin") == str(tmp_path / "mine.gin")
    assert own_lines("row.gin") == ["# row.gin", "included = 1", "A.b = 2  # x"]
    for path in ("absent.gin", "."):
        raised = refuses("no such file", run_file, path)
        assert (raised.path, raised.field) == (path, "--base")


def test_a_recipe_has_the_steps_of_its_run_files_unless_they_are_given(tmp_path):
    own = tmp_path / "own.gin"
    own.write_text('include "runs/train_small.gin"\nTRAIN_STEPS = 17\nCHECKPOINT_PERIOD = 5\n')
    options = filled(StudyOptions(output="o", base=str(own), evaluations=3), module.DEFAULTS)
    found = recipe_of(options)
    assert (found.base, found.steps, found.checkpoint_period, found.evaluated) == (str(own), 17, 5, (5, 10, 17))
    assert recipe_of(dataclasses.replace(options, steps=9, pretrain_steps=8)).pretrain_steps == 8
    refuses("got 3 evaluations of 2 steps", recipe_of, dataclasses.replace(options, steps=2))
    refuses("BATCH_SIZES", recipe_of, dataclasses.replace(options, gin=("BATCH_SIZES = 3",)))
