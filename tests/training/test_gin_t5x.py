"""Gin files of T5X for our trainer: the same meaning under our names, and a list of what has none."""

import gin
import pytest
from newsembed.errors import InputError
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
    assert (saved.period, saved.keep, saved.initial_checkpoint_path) == (30, 4, "c")
    assert gin.get_configurable("Partitioner")().model_parallel == 2
    assert gin.query_parameter("EVAL_PERIOD/gin.macro.value") == 40
    assert gin.query_parameter("EVAL_BATCHES/gin.macro.value") == 5
    assert f"names of T5X in {theirs} without a meaning here: {', '.join(UNKNOWN)}\n" in capsys.readouterr().err


def test_names_of_ours_and_of_the_team_stay(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_company.py").write_text("")
    (tmp_path / "base.gin").write_text("LOG_PERIOD = 3\n")
    path = tmp_path / "theirs.gin"
    path.write_text(
        "from __gin__ import dynamic_registration\nimport my_company\ninclude 'base.gin'\n"
        "optimizers.adam.clip_norm = 2.0\nx.Contrastive.temperature = 0.1\n"
        "a.ModelOptions.architecture = @news.EncoderConfig\nBATCH_SIZE = %STATS_PERIOD\n"
    )
    load_gin(["runs/train_demo.gin", str(path)], [*REQUIRED, 'MODEL_DIR = "m"'], [str(tmp_path)], ["my_company"])
    assert gin.query_parameter("adam.clip_norm") == 2.0
    assert gin.query_parameter("Contrastive.temperature") == 0.1
    assert gin.get_configurable("DataOptions")().batch_size == 3


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SaveCheckpointConfig.keep", 4, ("KEEP_CHECKPOINTS", 4)),
        ("SaveCheckpointConfig.keep", None, None),
        ("train.random_seed", None, None),
        ("adam.clip_norm", None, ("adam.clip_norm", None)),
        ("Adafactor.beta", 1, None),
        ("INITIAL_CHECKPOINT_PATH.", [], ("INITIAL_CHECKPOINT_PATH", None)),
    ],
)
def test_a_value_that_we_do_not_have_is_left_out(name, value, expected):
    assert translated("", *name.split("."), value, ["adam"]) == expected


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
        ("import t5x.models", True),
        ('include "t5x/examples/t5/t5_1_1/base.gin"', True),
        ("include 't5x/train.gin'", False),  # one of ours
        ("import t5xlike", False),
        ("# from t5x import utils", False),
    ],
)
def test_a_file_of_t5x_is_known_by_what_it_imports_or_includes(line, expected):
    assert is_of_t5x(f"A = 1\n{line}\n") is expected
