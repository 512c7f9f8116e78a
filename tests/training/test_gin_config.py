"""Gin: every shipped file loads and is as its head says; a key that nothing uses names its place and what was meant."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import gin
import jax
import jax.numpy as jnp
import pytest
from newsembed.errors import InputError
from newsembed.formats.command_line import IMPORTS
from newsembed.learning import objectives
from newsembed.learning.objectives.contrastive import ALL_AUGMENTATIONS
from newsembed.training import gin_config
from newsembed.training.gin_config import expected_type, load_gin
from newsembed.training.gin_files import GIN_FOLDER

REQUIRED = ['MODEL_DIR = "m"', 'DATA_DIR = "d"', 'VOCABULARY_PATH = "v"', 'INITIAL_CHECKPOINT_PATH = "c"']
RUNS = sorted(path.name for path in Path(GIN_FOLDER, "runs").glob("*.gin"))
VALUES = {"MIXTURE_OR_TASK_NAME": "translation/de-en"}


def required_of(run):
    """The names after "Required:" in the head of a run file."""
    lines = Path(GIN_FOLDER, "runs", run).read_text().splitlines()
    head = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
    listed = head.partition("Required: ")[2].partition("Commonly overridden:")[0]
    return re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", re.sub(r"\([^()]*\)", "", listed))


def bindings_of(names):
    return [f'{name} = "{VALUES.get(name, name.lower())}"' for name in names]


@pytest.mark.parametrize("run", RUNS)
def test_every_run_file_loads_with_the_keys_that_its_head_calls_required_and_needs_each(run):
    names = required_of(run)
    load_gin([f"runs/{run}"], bindings_of(names))
    assert gin.query_parameter("RunOptions.model_dir").scoped_configurable_fn() == "model_dir"
    for name in names:
        with pytest.raises(InputError, match=f"{name}: the key is required"):
            load_gin([f"runs/{run}"], bindings_of([other for other in names if other != name]))


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("without_topics", "MIXTURE_OR_TASK_NAME/macro.value", "triplets"),
        ("without_triplets", "MIXTURE_OR_TASK_NAME/macro.value", "topics"),
        ("without_pretraining", "INITIAL_CHECKPOINT_PATH/macro.value", None),
        ("pretraining_without_tlm", "MIXTURE_OR_TASK_NAME/macro.value", "mlm"),
        ("pretraining_without_mlm", "MIXTURE_OR_TASK_NAME/macro.value", "tlm"),
        ("without_hard_negatives", "Contrastive.hard_negatives", False),
        ("without_cross_device_negatives", "Contrastive.negative_groups", 8),
        ("without_translation", "Contrastive.translated_triplets", False),
        *(
            (f"without_{row}", "Contrastive.augmentations", tuple(name for name in ALL_AUGMENTATIONS if name != row))
            for row in ALL_AUGMENTATIONS
        ),
    ],
)
def test_an_ablation_changes_the_paper_s_run_in_what_it_is_named_for(name, key, value):
    given = REQUIRED[:3] if name == "without_pretraining" or name.startswith("pretraining") else REQUIRED
    load_gin([f"runs/ablation_{name}.gin"], given)
    assert gin.query_parameter(key) == value
    assert gin.query_parameter("VOCAB_SIZE/macro.value") == 500000


@pytest.mark.parametrize(
    ("binding", "place", "suggestion"),
    [
        ("TRAIN_STEP = 5", "--gin.TRAIN_STEP = 5: TRAIN_STEP: got a key that nothing uses", "TRAIN_STEPS"),
        ("Contrastiv.temperature = 1", "got the unknown name Contrastiv", "Contrastive"),
        ("Topics.mlm_wait = 1", "Topics has no parameter mlm_wait", "mlm_weight"),
        ("EncoderConfig.num_layer = 1", "EncoderConfig has no parameter num_layer", "num_layers"),
        ("BATCH_SIZE = %BATCHSIZE", "names %BATCHSIZE, which nothing sets", "BATCH_SIZE"),
    ],
)
def test_a_typo_on_the_command_line(binding, place, suggestion):
    with pytest.raises(InputError) as raised:
        load_gin(["runs/train_demo.gin"], [*REQUIRED, binding])
    assert place in str(raised.value)
    assert "probably a typo" in raised.value.problem
    assert raised.value.remedy == f"Did you mean {suggestion}?"


def test_what_a_run_file_leaves_out_is_asked_for(tmp_path):
    (tmp_path / "run.gin").write_text('include "models/trainer.gin"\nBATCH_SIZE = 8\nTRAIN_STEPS = 5\n')
    with pytest.raises(InputError, match="names %LEARNING_RATE, which nothing sets") as raised:
        load_gin(
            [str(tmp_path / "run.gin")], [*REQUIRED, "MIXTURE_OR_TASK_NAME = 'triplets'", "TASK_FEATURE_LENGTHS = {}"]
        )
    assert "typo" not in raised.value.problem
    assert raised.value.remedy == "Set --gin.LEARNING_RATE=<value>, or set it in the run file."


@pytest.mark.parametrize(
    ("binding", "problem"),
    [
        ("TRAIN_STEPS = 1.5", "TRAIN_STEPS: got 1.5, expected an integer"),
        ("LEARNING_RATE = 'x'", "LEARNING_RATE: got 'x', expected a number"),
        ("Contrastive.temperature = 'x'", "Contrastive.temperature: got 'x', expected a number"),
        ("Contrastive.hard_negatives = 1", "Contrastive.hard_negatives: got 1, expected True or False"),
    ],
)
def test_a_value_of_a_wrong_type_is_named_before_anything_is_built(binding, problem):
    with pytest.raises(InputError, match=re.escape(problem)):
        load_gin(["runs/train_demo.gin"], [*REQUIRED, binding])
    load_gin(["runs/train_demo.gin"], [*REQUIRED, "TRAIN_STEPS = 1e5", "LEARNING_RATE = 1"])


def test_a_typo_in_a_file_names_the_line_and_the_users_folder_is_searched(tmp_path):
    (tmp_path / "mine.gin").write_text('include "runs/train_demo.gin"\n\nBATCHSIZE = 3\n')
    with pytest.raises(InputError, match=r"mine.gin:3: BATCHSIZE: got a key that nothing uses"):
        load_gin(["mine.gin"], REQUIRED, [str(tmp_path)])


def test_a_required_key_without_value():
    with pytest.raises(InputError, match=r"train_demo.gin:\d+: DATA_DIR: the key is required") as raised:
        load_gin(["runs/train_demo.gin"], [REQUIRED[0], *REQUIRED[2:]])
    assert "--gin.DATA_DIR=" in raised.value.remedy


def test_all_required_keys_are_named_at_once(refused):
    said = refused("train", "--gin_file=runs/train_demo.gin")
    assert "DATA_DIR, VOCABULARY_PATH" in said
    assert "--gin.DATA_DIR=<value> --gin.VOCABULARY_PATH=<value>" in said


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "run.gin").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(InputError, match="run.gin: cannot be read: 'utf-8' codec"):
        load_gin([str(tmp_path / "run.gin")], [])


def test_a_file_that_includes_itself_is_named_with_the_line(tmp_path):
    one, other = tmp_path / "one.gin", tmp_path / "other.gin"
    one.write_text(f'include "runs/train_demo.gin"\ninclude "{other}"\n')
    other.write_text(f'SEED = 3\ninclude "{one}"\n')
    expected = f"{other}:2: the file includes itself: {one} includes {other} includes {one}"
    with pytest.raises(InputError, match=re.escape(expected)):
        load_gin([str(one)], REQUIRED)
    other.write_text('include "models/adam.gin"\n')  # twice, but not in itself
    load_gin([str(one), str(other)], REQUIRED)


def test_a_mistyped_macro_or_file_is_refused_before_jax_is_imported():
    problems = {
        "--gin.BATCH_SIZ=3": "BATCH_SIZ: got a key that nothing uses",
        "--gin.BATCH_SIZE=%BATCHSIZE": "names %BATCHSIZE, which nothing sets",
        "--gin.BATCH_SIZE=x": "which gin cannot read",
        "--gin_file=runs/train_dem.gin": "no such file",
        "--gin_file=runs": "is a folder, expected a gin file",
        "--dry_run=false": "are required",
    }
    code = (
        "import sys; from newsembed.launch import cli\n"
        "print(*(cli.main(['train', '--gin_file=runs/train_demo.gin', word]) for word in sys.argv[1:]))\n"
        "print([name for name in ('jax', 'grain', 'tensorflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *problems], capture_output=True, text=True, check=False)
    assert done.stdout == "2 2 2 2 2 2\n[]\n"
    said = done.stderr.split("newsembed train: error: ")[1:]
    assert [problem for problem, text in zip(problems.values(), said, strict=True) if problem not in text] == []


def test_a_missing_file_and_a_text_without_quotes(refused):
    assert "Did you mean runs/train_demo.gin?" in refused("train", "--gin_file=runs/train_dmo.gin")
    assert "strings in quotes" in refused("train", "--gin_file=runs/train_demo.gin", "--gin.MODEL_DIR=/tmp/model")


def test_a_module_that_a_run_file_imports_brings_its_own_objective(tmp_path, monkeypatch):
    monkeypatch.setattr(objectives, "OBJECTIVES", dict(objectives.OBJECTIVES))
    monkeypatch.setattr(gin_config, "OBJECTIVES", objectives.OBJECTIVES)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "poems.py").write_text(
        "import dataclasses\n"
        "from newsembed.learning.objectives import register\n"
        "from newsembed.learning.objectives.topics import Topics\n"
        "@register\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Poems(Topics):\n"
        "    tasks = ('poems',)\n"
        "    rhyme: float = 0.0\n"
    )
    (tmp_path / "mine.gin").write_text('import poems\ninclude "runs/train_demo.gin"\nPoems.rhyme = 0.5\n')
    load_gin(["mine.gin"], REQUIRED, [str(tmp_path)], ["poems"])
    assert objectives.objectives_of(["poems"])["poems"].rhyme == 0.5
    with pytest.raises(InputError, match="Poems has no parameter rime"):
        load_gin(["mine.gin"], [*REQUIRED, "Poems.rime = 1"], [str(tmp_path)], ["poems"])


@pytest.fixture
def harmful(tmp_path, monkeypatch):
    """A module that writes a file when it is imported, and the folder of gin files that name it."""
    package = tmp_path / "harm"
    package.mkdir()
    (package / "__init__.py").write_text(f"open({str(tmp_path / 'harmed')!r}, 'w').close()\n")
    (package / "deep.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("NEWSEMBED_IMPORT", raising=False)
    yield tmp_path
    for name in ("harm", "harm.deep"):
        sys.modules.pop(name, None)


RUN = 'include "runs/train_demo.gin"\n'
HIDDEN = {
    "an import": "\nimport harm\n",
    "from": "\nfrom harm import deep\n",
    "before a comment": "# import\nimport harm  # jax\n",
    "a name that begins like an allowed one": "\nimport jaxharm\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_a_gin_file_imports_no_other_module_and_the_error_names_its_place(harmful, text):
    (harmful / "mine.gin").write_text(RUN + text)
    with pytest.raises(InputError, match=r"mine\.gin:[23]: import .*: a gin file may not import") as raised:
        load_gin(["mine.gin"], REQUIRED, [str(harmful)])
    assert "--allow_import" in raised.value.remedy
    assert not (harmful / "harmed").exists()


def test_an_import_inside_of_a_text_or_an_odd_include_runs_no_code(harmful):
    (harmful / "end.gin").write_text('"""\nimport harm\nMODEL_DIR = """\n')
    (harmful / "mine.gin").write_text(f'{RUN}MODEL_DIR = """\ninclude "end.gin"\n"""\n')
    load_gin(["mine.gin"], REQUIRED, [str(harmful)])  # a text of three lines, and no include
    (harmful / "other.gin").write_text("import harm\n")
    for include in ('include "other" ".gin"', 'include \\\n  "other.gin"', 'include"other.gin"'):
        (harmful / "mine.gin").write_text(f"{RUN}{include}\n")
        with pytest.raises(InputError):
            load_gin(["mine.gin"], REQUIRED, [str(harmful)])
    assert not (harmful / "harmed").exists()


def test_what_the_user_names_may_be_imported(harmful, monkeypatch):
    (harmful / "mine.gin").write_text(f"{RUN}import harm.deep\nimport optax\nimport newsembed.models.losses\n")
    with pytest.raises(InputError, match=r"import harm\.deep: "):
        load_gin(["mine.gin"], REQUIRED, [str(harmful)], ["har", "harm.deeper"])
    assert not (harmful / "harmed").exists()
    monkeypatch.setenv(IMPORTS, "else,harm.deep")
    load_gin(["mine.gin"], REQUIRED, [str(harmful)])
    assert (harmful / "harmed").exists()
    monkeypatch.delenv(IMPORTS)
    load_gin(["mine.gin"], REQUIRED, [str(harmful)], ["harm"])


def test_an_architecture_that_the_run_does_not_choose_is_the_packages_business_alone():
    """Run files configure several architectures, so that a later line may choose one; a user's key must be used."""
    required = [line for line in REQUIRED if not line.startswith("INITIAL")]
    load_gin(["runs/laser_small.gin"], [*required, "LaserConfig.num_layers = 2"])
    with pytest.raises(InputError, match=r"TranslatorConfig.num_layers: got a key that nothing uses"):
        load_gin(["runs/laser_small.gin"], [*required, "TranslatorConfig.num_layers = 2"])


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (1.0, int, ""),
        (True, int, "an integer"),
        (1, float, ""),
        (1, bool, "True or False"),
        (None, str | None, ""),
        (2, str | None, "a string in quotes or None"),
        ({}, Mapping[str, int], ""),
        ((), Sequence[str], ""),
        ("ab", tuple[int, ...] | int, "a tuple or list or an integer"),
        ("ab", Literal["x"], ""),
        (3, Callable[[], int] | str, ""),
    ],
)
def test_what_is_expected_instead(value, annotation, expected):
    assert expected_type(value, annotation) == expected


FILES = sorted(Path(GIN_FOLDER, "architectures").glob("*.gin"))
OTHERS = ["TASK_FEATURE_LENGTHS = {}", "TRAIN_STEPS = 1", "BATCH_SIZE = 1", "LEARNING_RATE = 1.0"]


def parameters(name, vocab_size):
    module = gin.get_configurable(name)(vocab_size=vocab_size).module()
    shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    return sum(array.size for array in jax.tree.leaves(shapes))


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_a_head_names_the_number_of_parameters(path):
    head = " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
    millions, per_piece = re.search(
        r"([\d.]+) M parameters.*?, and (\d+) for each piece of the vocabulary", head
    ).groups()
    load_gin(["models/weak_supervision.gin", f"architectures/{path.name}"], [*REQUIRED, *OTHERS])
    name = re.search(r"^(\w+Config)\.", path.read_text(), re.MULTILINE)[1]
    small, large = parameters(name, 1000), parameters(name, 3000)
    assert (large - small) / 2000 == int(per_piece)
    digits = len(millions.partition(".")[2])
    assert f"{(small - 1000 * int(per_piece)) / 1e6:.{digits}f}" == millions
