"""The rows of Table 10: each is a run file, changes what its name says, and tells if there is nothing to remove."""

import json

import pytest
from newsembed.beam_pipelines.examples import ExamplesOptions
from newsembed.beam_pipelines.triplets import TripletsOptions
from newsembed.errors import InputError
from newsembed.studies.ablate.plan import Settings, not_applicable
from newsembed.studies.ablate.tables.newsembed import TABLE
from newsembed.studies.shared import gin_text
from newsembed.tasks.triplets import Augmentation
from newsembed.training.gin_config import GIN_FOLDER

FULL = TABLE.control
ROWS = {row.name: row for row in TABLE.rows}


def test_every_ablation_file_of_the_package_is_a_row(tmp_path):
    import os

    there = {f"runs/{name}" for name in os.listdir(os.path.join(GIN_FOLDER, "runs")) if name.startswith("ablation_")}
    assert {row.gin_file for row in ROWS.values() if row.gin_file} == there
    assert (FULL, ROWS[FULL].gin_file) == ("full", None)
    assert len(ROWS) == 13


def test_rows_are_chosen_by_name_with_the_full_system_first():
    assert [row.name for row in TABLE.choose("without_topics, without_triplets")] == [
        FULL,
        "without_triplets",
        "without_topics",
    ]
    assert [row.name for row in TABLE.choose("all")] == list(ROWS)


@pytest.mark.parametrize("names", ["without_coffee", "", "full,without_coffee", "full"])
def test_an_unknown_row_is_refused_with_the_known_ones(names):
    with pytest.raises(InputError, match="without_topics"):
        TABLE.choose(names)


@pytest.mark.parametrize("augmentation", list(Augmentation))
def test_the_row_of_an_augmentation_draws_the_others_as_often_as_before(augmentation):
    row = ROWS[f"without_{augmentation.name.lower()}"]
    options = row.mining["examples"](ExamplesOptions(weights=(1.0, 2.0, 3.0, 4.0), max_length=96))
    assert options.max_length == 96
    assert [weight for number, weight in enumerate(options.weights) if number != augmentation] == [
        weight for number, weight in enumerate((1.0, 2.0, 3.0, 4.0)) if number != augmentation
    ]
    assert options.weights[augmentation] == 0


def test_rows_that_change_mining_do():
    assert ROWS["without_evergreen_filter"].mining["triplets"](TripletsOptions()).max_evergreen_score == 1
    assert ROWS["without_translation"].mining["examples"](ExamplesOptions()).translate_share == 0


def write_manifests(folder, pack, examples, tallies, dropped):
    for job, manifest in {
        "pack": {"examples": pack, "counts": {"tallies": {}}},
        "examples": {"examples": examples, "counts": {"tallies": tallies}},
        "triplets": {"counts": {"tallies": {"negatives dropped as evergreen": dropped}}},
    }.items():
        (folder / job).mkdir()
        (folder / job / "manifest.json").write_text(json.dumps(manifest))


def test_a_row_with_nothing_to_remove_says_so(tmp_path):
    write_manifests(
        tmp_path,
        {"mlm/en": 5},
        {"triplets/en": 9, "topics/en": 0},
        {"augmentation/title_to_body": 4, "translation/failed": 3},
        dropped=0,
    )
    settings = Settings(TABLE, str(tmp_path), "study", None)
    reasons = {name: not_applicable(row, settings) for name, row in ROWS.items()}
    assert {name for name, reason in reasons.items() if not reason} == {
        FULL,
        "without_pretraining",
        "without_hard_negatives",
        "without_title_to_body",
    }
    assert "translation/translated" in reasons["without_translation"]
    assert "tlm" in reasons["pretraining_without_tlm"]


def test_a_row_s_own_lines_come_after_the_base_the_study_s_and_the_user_s():
    text = gin_text.compose(
        "runs/train_small.gin",
        {"SEED": 3},
        ["Contrastive.hard_negatives = True"],
        "runs/ablation_without_hard_negatives.gin",
    )
    assert text.splitlines() == [
        'include "runs/train_small.gin"',
        "SEED = 3",
        "Contrastive.hard_negatives = True",
        "# runs/ablation_without_hard_negatives.gin",
        "Contrastive.hard_negatives = False",
    ]


def test_a_base_run_of_the_package_and_one_on_disk(tmp_path):
    own = tmp_path / "own.gin"
    own.write_text('include "runs/train_small.gin"\nTRAIN_STEPS = 17\n')
    assert (
        gin_text.base_path("gin/runs/train_small.gin")
        == gin_text.base_path("runs/train_small.gin")
        == "runs/train_small.gin"
    )
    assert gin_text.base_path(str(own)) == str(own)
    given = [f"{name} = 'x'" for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH")]
    assert gin_text.macro("TRAIN_STEPS", str(own), given) == 17
    with pytest.raises(InputError, match="no such file"):
        gin_text.base_path("runs/no_such.gin")
    with pytest.raises(InputError, match="BATCH_SIZES"):
        gin_text.macro("TRAIN_STEPS", str(own), [*given, "BATCH_SIZES = 3"])
