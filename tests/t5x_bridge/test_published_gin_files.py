"""The gin files that T5X itself publishes, in our trainer. They are read where T5X is installed; else this skips."""

import json
import re
from pathlib import Path

import gin
import pytest
from gin import config_parser
from newsembed.training.gin_config import load_gin
from newsembed.training.run import run_training
from t5x_present import FOLDER

import toy_corpus as toy  # isort: skip

pytestmark = pytest.mark.skipif(FOLDER is None, reason="T5X is not importable; docs/t5x.md says how to install it")
DOCUMENT = Path(__file__).parents[2] / "docs" / "t5x.md"
ROOT = Path(FOLDER or "absent")
RUNS = [path for path in (ROOT / "configs/runs/pretrain.gin", ROOT / "configs/runs/finetune.gin") if path.exists()]
FILES = [*RUNS, *(path for path in sorted(ROOT.glob("examples/**/*.gin")) if "eval.gin" not in path.name)]
# What users must set for some of these files, and for ours.
REQUIRED = [
    'MODEL_DIR = "m"',
    'DATA_DIR = "d"',
    'VOCABULARY_PATH = "v"',
    'INITIAL_CHECKPOINT_PATH = "c"',
    'MIXTURE_OR_TASK_NAME = "triplets"',
    'TASK_FEATURE_LENGTHS = {"anchor_tokens": 16}',
    "TRAIN_STEPS = 7",
    "DROPOUT_RATE = 0.0",
]
# They connect T5X's own parts; our trainer has other parts.
WIRING = {
    *(f"train.{name}" for name in ("model", "train_dataset_cfg", "checkpoint_cfg", "partitioner", "trainer_cls")),
    *(f"train.{name}" for name in ("summarize_config_fn", "train_eval_get_dataset_fn", "inference_evaluator_cls")),
    *("CheckpointConfig.save", "CheckpointConfig.restore", "Trainer.learning_rate_fn"),
    "PjitPartitioner.logical_axis_rules",
}


class Silent(config_parser.ParserDelegate):
    def configurable_reference(self, scoped_configurable_name, evaluate):
        return scoped_configurable_name

    def macro(self, macro_name):
        return f"%{macro_name}"


def documented():
    """The parameters in the first column of the table in docs/t5x.md."""
    found = set()
    for line in DOCUMENT.read_text().split("| T5X | ours |")[1].splitlines():
        owner = ""
        for name in re.findall(r"`([\w./]+)`", line.split("|")[1]) if line.startswith("| `") else ():
            owner = owner if name.startswith(".") else name.partition(".")[0]
            found.add(name if not name.startswith(".") else owner + name)
    return found


def parameters(path):
    """(as written, "scope/owner.name", value) of every parameter that a file sets."""
    for statement in config_parser.ConfigParser(path.read_text(), Silent()):
        if isinstance(statement, config_parser.BindingStatement) and statement.arg_name:
            scope = f"{statement.scope}/" if statement.scope else ""
            owner = statement.selector.rsplit(".", maxsplit=1)[-1]
            written = f"{scope}{statement.selector}.{statement.arg_name}"
            yield written, f"{scope}{owner}.{statement.arg_name}", statement.value


def macro(name):
    value = gin.query_parameter(f"{name}/gin.macro.value")
    return macro(value.scoped_configurable_fn.__name__) if hasattr(value, "scoped_configurable_fn") else value


def test_the_table_has_the_names_that_are_tested_here():
    assert {"train.total_steps", "train/DatasetConfig.batch_size", "PjitPartitioner.num_partitions"} < documented()


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_every_name_is_translated_as_documented_or_listed(path, capsys):
    if not re.search(r"dynamic_registration|(from|import|include) .?t5x", path.read_text()):
        pytest.skip("nothing in this file says that it is one of T5X")
    load_gin(["runs/train_demo.gin", str(path)], REQUIRED)
    note = capsys.readouterr().err.partition(f"names of T5X in {path} without a meaning here: ")[2]
    listed = set(note.strip().split(", "))
    known = documented() | WIRING
    for written, name, value in parameters(path):
        is_absent = value is None and name in ("SaveCheckpointConfig.keep", "train.random_seed")
        assert (written in listed) == (name not in known or is_absent), written


def test_values_of_an_example_configure_our_run(capsys):
    path = ROOT / "examples/t5/t5_1_1/examples/base_wmt_from_scratch.gin"
    load_gin(["runs/train_demo.gin", str(path)], REQUIRED[:4])
    expected = {
        "MIXTURE_OR_TASK_NAME": "wmt_t2t_ende_v003",
        "TASK_FEATURE_LENGTHS": {"inputs": 256, "targets": 256},
        "TRAIN_STEPS": 50000,
        "DROPOUT_RATE": 0.0,
        "BATCH_SIZE": 128,
        "EVAL_PERIOD": 500,
        "EVAL_BATCHES": 20,
        "SEED": 0,
        "CHECKPOINT_PERIOD": 5000,
        "MODEL_PARALLEL": 2,
    }
    assert {name: macro(name) for name in expected} == expected
    assert "create_learning_rate_scheduler.warmup_steps" in capsys.readouterr().err


def test_a_run_with_an_example_trains(corpus, tmp_path):
    path = ROOT / "examples/t5/t5_1_1/examples/test_train_t5_tiny.gin"
    changes = {"MIXTURE_OR_TASK_NAME": "triplets", "LEARNING_RATE": 1e-3, "MODEL_PARALLEL": 1}
    bindings = toy.tiny_bindings(tmp_path / "model", *corpus, LOG_PERIOD=1, **changes)
    bindings = [binding for binding in bindings if not binding.startswith(("TRAIN_STEPS", "CHECKPOINT_PERIOD"))]
    run_training(["models/weak_supervision.gin", "architectures/tiny.gin", str(path)], bindings)
    lines = (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]  # TRAIN_STEPS of the example
