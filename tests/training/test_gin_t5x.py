"""Gin files of T5X for our trainer: the same meaning under our names, and a list of what has none."""

import gin
import pytest
from newsembed.errors import InputError
from newsembed.training import gin_t5x
from newsembed.training.gin_config import load_gin
from newsembed.training.gin_t5x import is_of_t5x, translated

THEIRS = """\
# A run as teams that have T5X write it.
from __gin__ import dynamic_registration

import __main__ as train_script
from t5x import partitioning
from t5x import trainer
from t5x import utils

include "t5x/configs/runs/pretrain.gin"

MODEL_DIR = "/runs/a"
LENGTH = 32
TASK_FEATURE_LENGTHS = {"tokens": %LENGTH}
RANDOM_SEED = 7
USE_CACHED_TASKS = False
INITIAL_CHECKPOINT_PATH = []
EVAL_STEPS = 5

train_script.train:
  model_dir = %MODEL_DIR
  total_steps = 123
  eval_period = 40
  stats_period = 20
  random_seed = %RANDOM_SEED
  train_dataset_cfg = @train/utils.DatasetConfig()
  checkpoint_cfg = @utils.CheckpointConfig()
  use_hardware_rng = True

train/utils.DatasetConfig:
  mixture_or_task_name = "triplets/en"
  task_feature_lengths = %TASK_FEATURE_LENGTHS
  batch_size = 24
  shuffle = True

infer_eval/utils.DatasetConfig.batch_size = 99
utils.SaveCheckpointConfig.period = 30
utils.SaveCheckpointConfig.keep = 4
partitioning.PjitPartitioner.num_partitions = 2
trainer.Trainer.num_microbatches = 8
"""
UNKNOWN = (
    "include 't5x/configs/runs/pretrain.gin'",
    "train_script.train.use_hardware_rng",
    "train/utils.DatasetConfig.shuffle",
    "infer_eval/utils.DatasetConfig.batch_size",
    "trainer.Trainer.num_microbatches",
    "USE_CACHED_TASKS",
)
REQUIRED = ['DATA_DIR = "d"', 'VOCABULARY_PATH = "v"', 'INITIAL_CHECKPOINT_PATH = "c"']


@pytest.fixture
def theirs(tmp_path):
    path = tmp_path / "theirs.gin"
    path.write_text(THEIRS)
    return path


def test_names_of_the_same_meaning_configure_our_run(theirs, capsys):
    load_gin(["runs/train_demo.gin", str(theirs)], REQUIRED)
    data, run = gin.get_configurable("DataOptions")(), gin.get_configurable("RunOptions")()
    assert (data.mixture, data.feature_lengths, data.batch_size) == ("triplets/en", {"tokens": 32}, 24)
    assert (run.model_dir, run.train_steps, run.log_period, run.seed) == ("/runs/a", 123, 20, 7)
    saved = gin.get_configurable("CheckpointOptions")()
    assert (saved.period, saved.keeping.newest, saved.initial_checkpoint_path) == (30, 4, "c")
    assert gin.get_configurable("Partitioner")().model_parallel == 2
    assert gin.query_parameter("EVAL_PERIOD/gin.macro.value") == 40
    assert gin.query_parameter("EVAL_BATCHES/gin.macro.value") == 5
    assert f"names of T5X in {theirs} without a meaning here: {', '.join(UNKNOWN)}\n" in capsys.readouterr().err


def test_what_is_left_out_is_listed_as_it_is_written():
    macros = {*gin_t5x.KEYS.values(), *gin_t5x.MACROS.values()}
    found = translated(THEIRS, ["DataOptions"], macros)
    assert found.unknown == UNKNOWN
    assert "INITIAL_CHECKPOINT_PATH = None" in found.text
    assert "LENGTH = 32" in found.text


def test_statements_stay_on_their_lines():
    found = translated(THEIRS, [], ["MODEL_DIR", "TRAIN_STEPS"]).text.splitlines()
    assert found[THEIRS.splitlines().index('MODEL_DIR = "/runs/a"')] == "MODEL_DIR = '/runs/a'"
    assert found[THEIRS.splitlines().index("  total_steps = 123")] == "TRAIN_STEPS = 123"


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("optimizers.adam.clip_norm = 2.0", "adam.clip_norm = 2.0"),
        ("x.Contrastive.temperature = 0.1", "Contrastive.temperature = 0.1"),
        ("a.ModelOptions.architecture = @news.EncoderConfig", "ModelOptions.architecture = @EncoderConfig"),
        ("a.DataOptions.batch_size = %STATS_PERIOD", "DataOptions.batch_size = %LOG_PERIOD"),
        ("import my_company.tasks", "import my_company.tasks"),
        ("include 'my_team/base.gin'", "include 'my_team/base.gin'"),
    ],
)
def test_names_of_ours_and_of_the_team_stay(line, ours):
    known = ["adam", "Contrastive", "ModelOptions", "DataOptions"]
    found = translated(f"from __gin__ import dynamic_registration\n{line}\n", known, [])
    assert found == (f"\n{ours}", ())


@pytest.mark.parametrize("line", ["utils.SaveCheckpointConfig.keep = None", "train_script.train.random_seed = None"])
def test_a_value_that_we_do_not_have_is_left_out(line):
    found = translated(f"from __gin__ import dynamic_registration\n{line}\n", [], [])
    assert found == ("", (line.split(" =")[0],))


def test_our_own_run_of_t5x_trains_here_too(capsys):
    bindings = ["TRAIN_STEPS = 3", "BATCH_SIZE = 8", "LEARNING_RATE = 1e-3", 'TASK_FEATURE_LENGTHS = {"tokens": 8}']
    files = ["models/weak_supervision.gin", "t5x/train.gin", "architectures/tiny.gin"]
    load_gin(files, ['MODEL_DIR = "m"', *bindings, 'DATA_DIR = "d"', 'VOCABULARY_PATH = "v"'])
    assert gin.get_configurable("DataOptions")().batch_size == 8
    assert "DatasetConfig.pack" in capsys.readouterr().err


def test_a_file_of_t5x_that_gin_cannot_read_is_named_with_its_line(tmp_path):
    path = tmp_path / "broken.gin"
    path.write_text("from __gin__ import dynamic_registration\nMODEL_DIR = unquoted\n")
    with pytest.raises(InputError, match="got 'MODEL_DIR = unquoted', which gin cannot read") as error:
        load_gin(["runs/train_demo.gin", str(path)], REQUIRED)
    assert error.value.path == f"{path}:2"


def test_a_typo_in_a_name_of_ours_is_still_an_error(tmp_path):
    path = tmp_path / "typo.gin"
    path.write_text("from __gin__ import dynamic_registration\noptimizers.adam.clip_nrm = 1.0\n")
    with pytest.raises(InputError, match="adam has no parameter clip_nrm"):
        load_gin(["runs/train_demo.gin", str(path)], [*REQUIRED, 'MODEL_DIR = "m"'])


def test_a_name_of_theirs_whose_value_another_replaces_is_no_typo(tmp_path):
    path = tmp_path / "run.gin"
    path.write_text("import t5x.utils\nSTEPS = 5\ntrain.total_steps = %STEPS\n")
    for more, expected in (([], 5), (["TRAIN_STEPS = 9"], 9)):
        load_gin(["runs/train_demo.gin", str(path)], [*REQUIRED, 'MODEL_DIR = "m"', *more])
        assert gin.get_configurable("RunOptions")().train_steps == expected
    ours = tmp_path / "ours.gin"
    ours.write_text("STEPS = 5\n")
    with pytest.raises(InputError, match="STEPS: got a key that nothing uses"):
        load_gin(["runs/train_demo.gin", str(ours)], [*REQUIRED, 'MODEL_DIR = "m"'])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from __gin__ import dynamic_registration", True),
        ("from t5x import utils", True),
        ("import t5x.models", True),
        ('include "t5x/examples/t5/t5_1_1/base.gin"', True),
        ("include 't5x/train.gin'", False),  # one of ours
        ("import t5xlike", False),
        ("# from t5x import utils", False),
        ("import seqio", False),
    ],
)
def test_a_file_of_t5x_is_known_by_what_it_imports_or_includes(line, expected):
    assert is_of_t5x(f"A = 1\n{line}\n") is expected


def test_a_short_file_that_includes_theirs_configures_our_run(tmp_path, capsys):
    path = tmp_path / "short.gin"
    path.write_text(
        "include 't5x/configs/runs/pretrain.gin'\nimport t5.data.mixtures\nTRAIN_STEPS = 10\nZ_LOSS = 0.1\n"
    )
    load_gin(["runs/train_demo.gin", str(path)], [*REQUIRED, 'MODEL_DIR = "m"'])
    assert gin.get_configurable("RunOptions")().train_steps == 10
    assert "without a meaning here: include 't5x/configs/runs/pretrain.gin', Z_LOSS\n" in capsys.readouterr().err


def test_every_name_that_is_translated_has_a_place_in_a_run():
    load_gin(["runs/train_demo.gin"], [*REQUIRED, 'MODEL_DIR = "m"'])
    for macro in {*gin_t5x.KEYS.values(), *gin_t5x.MACROS.values()}:
        gin.query_parameter(f"{macro}/gin.macro.value")
