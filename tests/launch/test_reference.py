"""The pages of the documentation that follow from the code: every option of every command, and the demo's steps."""

import argparse
import re
import shlex

import pytest
from newsembed.errors import InputError
from newsembed.launch import reference
from newsembed.launch.cli import COMMANDS, parser_of
from newsembed.launch.demo.steps import Places, steps
from newsembed.studies.shared.newsroom import NEWSROOM_SEED

STEPS = {step.name: list(step.command) for step in steps(Places("demo-output"), NEWSROOM_SEED, 1.0)}

PAGE = """\
# newsembed toy

Counts &lt;words>.

In order:

1. reads;
   slowly;
2. writes `<x>`.

Example:

```bash
newsembed toy --input a \\
    --many
newsembed toy
```

The `end`.

```text
newsembed toy --input FILE ACTION [options]
```

## Positional arguments

| option | meaning |
|---|---|
| `ACTION` | `go`: to start |

## Options

| option | meaning |
|---|---|
| `--input FILE` | a \\| b, FILE &lt;here> *(required)* |
| `--many` | 100 % |

example:

```bash
newsembed toy --input b
```

## newsembed toy go

```text
newsembed toy go place
```

### Positional arguments

| option | meaning |
|---|---|
| `place` | where |
"""


def parsers(parser):
    """The parser with those of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_each_of_its_options(name):
    page = reference.command_page(name)
    assert page.startswith(f"# newsembed {name}\n")
    rows = [line.split("` | ")[0].split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    for parser in parsers(parser_of(name)):
        assert f"# {parser.prog}\n" in page
        for action in parser._actions:
            for option in action.option_strings if action.dest != "help" else ():
                named = [row for row in rows if option in row.replace(",", " ").split()]
                assert named or action.help is argparse.SUPPRESS, option
    assert page.count("```") % 2 == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name):
    for parser in parsers(parser_of(name)):
        for action in parser._actions:
            if action.help is not argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction):
                assert re.sub(r"\(default: .*\)$", "", action.help or "").strip(), action


def test_the_overview_lists_each_command_once():
    page = reference.overview_page()
    for name, command in COMMANDS.items():
        assert page.count(f"| [`{name}`]({name}.md) | {command.summary} |") == 1
        assert f"\n## {command.group}\n" in page


def test_a_page_as_a_whole(monkeypatch):
    parser = argparse.ArgumentParser(
        prog="newsembed toy",
        description="Counts <words>.\n\nIn order:\n1. reads;\n   slowly;\n2. writes `<x>`.\n\nExample::\n\n"
        "    newsembed toy --input a \\\n        --many\n\n    newsembed toy\n\nThe ``end``.",
        epilog="example: newsembed toy --input b",
    )
    parser.add_argument("--input", required=True, metavar="FILE", help="a | b, %(metavar)s <here>")
    parser.add_argument("--many", action="store_true", help="100 %%")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("go", help="to start").add_argument("place", type=int, help="where")
    monkeypatch.setattr(reference, "parser_of", {"toy": parser}.__getitem__)
    found = [line for line in reference.command_page("toy").splitlines() if line]
    assert found == [line for line in PAGE.splitlines() if line]


@pytest.mark.parametrize("step", STEPS)
def test_the_command_of_a_step_is_what_the_demo_runs(step):
    text = reference.demo_command(step, "--more", "a b")
    assert shlex.split(text.replace("\\\n", "")) == ["newsembed", *STEPS[step], "--more", "a b"]
    assert all(len(line) <= 120 for line in text.splitlines())


def test_a_step_that_the_demo_does_not_have_is_refused():
    with pytest.raises(InputError, match="step: got 'fly', but the demo has generate, crawl, build"):
        reference.demo_command("fly")
