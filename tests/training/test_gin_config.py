"""Gin: every shipped run file loads; a key that nothing uses names its place and what was probably meant."""

import dataclasses
import re
import sys
from pathlib import Path

import gin
import pytest
from newsembed.errors import InputError
from newsembed.launch import extensions
from newsembed.learning import objectives
from newsembed.learning.objectives.contrastive import ALL_AUGMENTATIONS
from newsembed.training import gin_config
from newsembed.training.gin_config import GIN_FOLDER, load_gin
from newsembed.training.gin_imports import ENVIRONMENT
from newsembed.training.gin_renames import RENAMED, with_new_names
from newsembed.training.run import main

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


def test_the_paper_s_numbers():
    load_gin(["runs/weak_supervision_paper.gin"], REQUIRED)
    macros = {
        name: gin.query_parameter(f"{name}/macro.value")
        for name in ("BATCH_SIZE", "TRAIN_STEPS", "LEARNING_RATE", "VOCAB_SIZE", "DECAY")
    }
    assert macros == {
        "BATCH_SIZE": 8192,
        "TRAIN_STEPS": 400000,
        "LEARNING_RATE": 5e-5,
        "VOCAB_SIZE": 500000,
        "DECAY": "constant",
    }
    assert gin.query_parameter("Contrastive.temperature") == 0.05
    assert gin.query_parameter("DataOptions.smoothing") == 0.7


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("without_topics", "MIXTURE_OR_TASK_NAME/macro.value", "triplets"),
        ("without_triplets", "MIXTURE_OR_TASK_NAME/macro.value", "topics"),
        ("without_pretraining", "INITIAL_CHECKPOINT_PATH/macro.value", None),
        ("pretraining_without_tlm", "MIXTURE_OR_TASK_NAME/macro.value", "mlm"),
        ("pretraining_without_mlm", "MIXTURE_OR_TASK_NAME/macro.value", "tlm"),
        ("without_hard_negatives", "Contrastive.hard_negatives", False),
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


def test_every_ablation_of_weak_supervision_keeps_its_numbers():
    for run in RUNS:
        if run.startswith("ablation_without"):
            load_gin([f"runs/{run}"], REQUIRED)
            assert gin.query_parameter("BATCH_SIZE/macro.value") == 8192
            assert gin.query_parameter("Contrastive.temperature") == 0.05


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


@pytest.mark.parametrize(
    ("binding", "problem"),
    [
        ("TRAIN_STEPS = 1.5", "TRAIN_STEPS: got 1.5, expected an integer"),
        ("TRAIN_STEPS = 'x'", "TRAIN_STEPS: got 'x', expected an integer"),
        ("BATCH_SIZE = None", "BATCH_SIZE: got None, expected an integer"),
        ("BATCH_SIZE = True", "BATCH_SIZE: got True, expected an integer"),
        ("LEARNING_RATE = 'x'", "LEARNING_RATE: got 'x', expected a number"),
        ("DROPOUT_RATE = 'a'", "DROPOUT_RATE: got 'a', expected a number"),
        ("TASK_FEATURE_LENGTHS = 5", "TASK_FEATURE_LENGTHS: got 5, expected a dictionary"),
        ("Contrastive.temperature = 'x'", "Contrastive.temperature: got 'x', expected a number"),
        ("Contrastive.hard_negatives = 1", "Contrastive.hard_negatives: got 1, expected True or False"),
        ("Contrastive.augmentations = 'titles'", "Contrastive.augmentations: got 'titles', expected a tuple or list"),
        ("MODEL_DIR = 5", "MODEL_DIR: got 5, expected a string in quotes"),
    ],
)
def test_a_value_of_a_wrong_type_is_named_before_anything_is_built(binding, problem):
    with pytest.raises(InputError, match=re.escape(problem)):
        load_gin(["runs/train_demo.gin"], [*REQUIRED, binding])
    load_gin(["runs/train_demo.gin"], [*REQUIRED, "TRAIN_STEPS = 1e5", "LEARNING_RATE = 1"])


def test_macros_that_name_each_other_have_no_value():
    with pytest.raises(InputError, match="the macros name each other"):
        load_gin(["runs/train_demo.gin"], [*REQUIRED, "TRAIN_STEPS = %BATCH_SIZE", "BATCH_SIZE = %TRAIN_STEPS"])


def test_a_typo_in_a_file_names_the_line_and_the_users_folder_is_searched(tmp_path):
    (tmp_path / "mine.gin").write_text('include "runs/train_demo.gin"\n\nBATCHSIZE = 3\n')
    with pytest.raises(InputError, match=r"mine.gin:3: BATCHSIZE: got a key that nothing uses"):
        load_gin(["mine.gin"], REQUIRED, [str(tmp_path)])


def test_a_required_key_without_value():
    with pytest.raises(InputError, match=r"train_demo.gin:\d+: DATA_DIR: the key is required") as raised:
        load_gin(["runs/train_demo.gin"], [REQUIRED[0], *REQUIRED[2:]])
    assert "--gin.DATA_DIR=" in raised.value.remedy


def test_a_missing_file_and_a_text_without_quotes(capsys):
    assert main(["--gin_file=runs/train_dmo.gin"]) == 2
    assert "Did you mean runs/train_demo.gin?" in capsys.readouterr().err
    assert main(["--gin_file=runs/train_demo.gin", "--gin.MODEL_DIR=/tmp/model"]) == 2
    assert "strings in quotes" in capsys.readouterr().err


def test_unknown_options_end_the_command(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--gin_file=runs/train_demo.gin", "--batch=3"])
    assert "unknown options --batch=3" in capsys.readouterr().err


OLD_CONFIG = Path(__file__).parents[1] / "golden" / "model_before" / "config.gin"


def values_of(*keys):
    return [gin.query_parameter(key) for key in keys]


def test_old_names_on_the_command_line_set_what_they_always_set(capsys):
    old = {
        "Losses.temperature": 0.2,
        "Losses.gradient_chunk": 12,
        "train.smoothing": 0.5,
        "train.task_weights": {"topics": 2.0},
    }
    load_gin(["runs/train_demo.gin"], [*REQUIRED, *(f"{name} = {value!r}" for name, value in old.items())])
    keys = (
        "Contrastive.temperature",
        "GRADIENT_CHUNK/macro.value",
        "DataOptions.smoothing",
        "DataOptions.task_weights",
    )
    assert values_of(*keys) == list(old.values())
    for objective in ("MaskedLanguageModel", "Contrastive", "Topics"):
        assert str(gin.query_parameter(f"{objective}.gradient_chunk")) == "%GRADIENT_CHUNK"
    assert capsys.readouterr().err == (
        "newsembed train: note: old names in --gin: Losses.temperature is now Contrastive.temperature, "
        "Losses.gradient_chunk is now GRADIENT_CHUNK, train.smoothing is now DataOptions.smoothing and 1 more\n"
    )


def test_the_config_of_an_old_model_folder_loads(capsys):
    load_gin([str(OLD_CONFIG)], ["LOG_PERIOD = 3"])
    assert values_of("DataOptions.smoothing", "DataOptions.task_weights", "MASKING_RATE/macro.value") == [
        0.3,
        {"topics": 0.3},
        0.15,
    ]
    assert str(gin.query_parameter("OptimizerOptions.optimizer")) == "@adam()"
    assert gin.query_parameter("Contrastive.augmentations") == ALL_AUGMENTATIONS
    assert f"note: old names in {OLD_CONFIG}: adam.b1 is now Moments.b1" in capsys.readouterr().err


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_every_new_name_is_an_option_or_a_macro_of_the_defaults(old):
    load_gin(["runs/train_demo.gin"], REQUIRED)
    owner, _, parameter = RENAMED[old].partition(".")
    if parameter:
        assert parameter in {field.name for field in dataclasses.fields(gin.get_configurable(owner))}
    else:
        assert gin.query_parameter(f"{owner}/macro.value") is not None
    assert with_new_names(f"  {old} = 1") == (f"  {RENAMED[old]} = 1", [old])


def test_names_that_only_begin_like_old_ones_stay():
    text = "mytrain.seed = 1\ntrain.objectives = ()\ntrain.optimizer = @OptimizerOptions()"
    assert with_new_names(text) == (text, [])


def test_a_group_without_a_required_value_is_named(tmp_path):
    (tmp_path / "mine.gin").write_text('RunOptions.model_dir = "m"\n')
    with pytest.raises(InputError, match=r"RunOptions.train_steps: the key is required") as raised:
        load_gin([str(tmp_path / "mine.gin")], [])
    assert "models/trainer.gin" in raised.value.remedy


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
    "a part of a package": "\nimport harm.deep as jax\n",
    "from": "\nfrom harm import deep\n",
    "before a comment": "# import\nimport harm  # jax\n",
    "registration of everything": "from __gin__ import dynamic_registration\nimport harm\n",
    "a name that begins like an allowed one": "\nimport jaxharm\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_a_gin_file_imports_no_other_module_and_the_error_names_its_place(harmful, text):
    (harmful / "mine.gin").write_text(RUN + text)
    with pytest.raises(InputError, match=r"mine\.gin:[23]: import .*: a gin file may not import") as raised:
        load_gin(["mine.gin"], REQUIRED, [str(harmful)])
    assert "--allow_import" in raised.value.remedy
    assert not (harmful / "harmed").exists()


def test_an_included_file_and_a_binding_import_no_other_module_either(harmful):
    (harmful / "other.gin").write_text("import harm\n")
    (harmful / "mine.gin").write_text(RUN + 'include "other.gin"\n')
    with pytest.raises(InputError, match=r"other\.gin:1: import harm: "):
        load_gin(["mine.gin"], REQUIRED, [str(harmful)])
    with pytest.raises(InputError, match=r"--gin\.import harm: import harm: "):
        load_gin(["runs/train_demo.gin"], [*REQUIRED, "import harm"])
    assert not (harmful / "harmed").exists()


def test_text_that_becomes_an_import_when_includes_are_in_place_is_refused(harmful):
    (harmful / "end.gin").write_text('"""\nimport harm\nMODEL_DIR = """\n')
    for include in ('include "end.gin"', "include 'end.gin'"):
        (harmful / "mine.gin").write_text(f'{RUN}MODEL_DIR = """\n{include}\n"""\n')
        with pytest.raises(InputError, match="import harm: a gin file may not import"):
            load_gin(["mine.gin"], REQUIRED, [str(harmful)])
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
    monkeypatch.setenv(ENVIRONMENT, "else,harm.deep")
    load_gin(["mine.gin"], REQUIRED, [str(harmful)])
    assert (harmful / "harmed").exists()
    assert ENVIRONMENT == extensions.ENVIRONMENT
    monkeypatch.delenv(ENVIRONMENT)
    load_gin(["mine.gin"], REQUIRED, [str(harmful)], ["harm"])


def test_the_command_names_the_module_and_exits_with_2(harmful, capsys):
    (harmful / "mine.gin").write_text("import harm\n")
    assert main([f"--gin_file={harmful / 'mine.gin'}"]) == 2
    assert "mine.gin:1: import harm" in capsys.readouterr().err
    assert main([f"--gin_file={harmful / 'mine.gin'}", "--allow_import=harm"]) == 2  # required values are missing
    assert "required" in capsys.readouterr().err


def test_an_architecture_that_the_run_does_not_choose_is_the_packages_business_alone():
    """Run files configure several architectures, so that a later line may choose one; a user's key must be used."""
    required = [line for line in REQUIRED if not line.startswith("INITIAL")]
    load_gin(["runs/laser_small.gin"], [*required, "LaserConfig.num_layers = 2"])
    with pytest.raises(InputError, match=r"TranslatorConfig.num_layers: got a key that nothing uses"):
        load_gin(["runs/laser_small.gin"], [*required, "TranslatorConfig.num_layers = 2"])


@pytest.mark.parametrize("name", ["small", "softmax", "cnn", "gru", "bigru", "paper"])
def test_every_run_file_of_ast_loads(name):
    load_gin([f"runs/ast_{name}.gin"], [*REQUIRED, "EVAL_DATA_DIR = 'x'"])
    assert str(gin.query_parameter("train.objectives")) == "(@Linking(),)"
    assert gin.query_parameter("BATCH_SIZE/macro.value") == (128 if name == "paper" else 64)
