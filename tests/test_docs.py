"""The documents: every command in them has options that exist, and the README stays short."""

import argparse
import itertools
import re
import shlex
from pathlib import Path

import pytest
from newsembed.launch import cli
from newsembed.launch.cli import COMMANDS, parser_of
from newsembed.launch.demo import Places, steps
from newsembed.launch.parsing import check_beam_args
from newsembed.studies import evaluators  # noqa: F401 - `newsembed train` imports it, too: gin files name them
from newsembed.studies.shared.newsroom import NEWSROOM_SEED
from newsembed.training.gin_config import load_gin
from newsembed.training.gin_files import GIN_FOLDER

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands_in(path):
    """The arguments of every `newsembed` in a document's blocks of shell."""
    for block in re.findall(r"^```(?:bash|sh)$(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(re.sub(r"\$\(.*?\)", "X", line).replace("…", ""), comments=True)
            if "newsembed" in words[:2] and "=" in words[0] + "newsembed=":  # also after NAME=value
                yield line.strip(), words[words.index("newsembed") + 1 :]


CASES = [(line, words) for path in FILES for line, words in commands_in(path)]


def optional(parser):
    """The parser with nothing required: documents leave out what was said before."""
    for action in parser._actions:
        action.required = False
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                optional(sub)
    for group in parser._mutually_exclusive_groups:
        group.required = False
    return parser


def test_there_are_commands():
    assert len(CASES) > 30


@pytest.mark.parametrize("words", [words for _, words in CASES], ids=[line[:80] for line, _ in CASES])
def test_commands_in_documents_have_options_that_exist(words):
    _, words = cli.split_imports(words)
    if not words or words[0] in ("--help", "COMMAND"):
        return
    assert words[0] in COMMANDS
    parser = optional(parser_of(words[0]))
    given = itertools.takewhile(lambda word: word not in ("|", ">", "&", "&&", ";", "--"), words[1:])
    _, others = parser.parse_known_args(list(given))
    others = [other for other in others if not other.startswith("--gin.")]
    if COMMANDS[words[0]].module.startswith("beam_pipelines") or words[0] == "build":
        check_beam_args(others, parser)
    else:
        assert others == []


TRAININGS = [words for _, words in CASES if words[:1] == ["train"]]


@pytest.mark.parametrize("words", TRAININGS, ids=[" ".join(words)[:80] for words in TRAININGS])
def test_trainings_in_documents_name_gin_files_and_keys_that_exist(words):
    named = [word.partition("=")[2] for word in words if word.startswith("--gin_file=")]
    bindings = [word.removeprefix("--gin.") for word in words if word.startswith("--gin.")]
    given = {binding.partition("=")[0] for binding in bindings}
    # What a document leaves out, it said before; files outside of the package are of an imported model.
    required = [f"{name}='x'" for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH") if name not in given]
    required += [f"{name}='x'" for name in ("INITIAL_CHECKPOINT_PATH",) if name not in given]
    shipped = [name for name in named if Path(GIN_FOLDER, name).exists()]
    assert shipped or not named
    load_gin(shipped or ["runs/train_small.gin"], [*required, *bindings])


STEPS = re.findall(r"^<!-- step: ([^\n]+) -->\n```bash\n(.*?)\n```$", TUTORIAL, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("step", "command"), STEPS, ids=[step for step, _ in STEPS])
def test_the_commands_of_the_tutorial_are_those_of_the_demo(step, command):
    name, *more = shlex.split(step)
    (words,) = (one.command for one in steps(Places("demo-output"), NEWSROOM_SEED, 1.0) if one.name == name)
    assert shlex.split(command.replace("\\\n", "")) == ["newsembed", *words, *more]


def test_the_tutorial_has_all_steps_of_the_demo_but_the_last_searches():
    assert len(STEPS) == TUTORIAL.count("<!-- step:")
    names = [step.name for step in steps(Places("x"), 7, 1.0)]
    assert [shlex.split(step)[0] for step, _ in STEPS] == names[: names.index("search 1") + 1]


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().split()) <= 800
