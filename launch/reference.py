"""Pages of the documentation that follow from the code: a page for each command, an overview, the demo's commands."""

import argparse
import re
import shlex
from collections.abc import Iterator
from typing import Final

from ..errors import InputError
from .cli import COMMANDS, parser_of

_COLUMNS: Final = 110

_LIST: Final = re.compile(r"(?:-|\d+\.) ")
_COMMANDS: Final = ("newsembed", "curl")
_EXAMPLE: Final = re.compile(r"(example: )(newsembed .*)", re.IGNORECASE)


def overview_page() -> str:
    """Returns the page that lists all commands by group, with links to their pages in the same folder."""
    lines = ["# Commands", "", "`newsembed COMMAND --help` shows the same text in the terminal."]
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        lines += ["", f"## {group}", "", "| command | what it does | extras |", "|---|---|---|"]
        for name, command in COMMANDS.items():
            if command.group == group:
                extras = ", ".join(f"`{extra}`" for extra in command.extras) or "none"
                lines.append(f"| [`{name}`]({name}.md) | {_cell(command.summary)} | {extras} |")
    return "\n".join([*lines, ""])


def command_page(name: str) -> str:
    """Returns the page of a command: its description, an example, and every option.

    Raises:
      InputError: if there is no such command.
    """
    return "\n".join(_lines_of(parser_of(name), 1))


def _lines_of(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {parser.prog}", "")
    yield from (*_prose(parser.description or ""), "")
    yield from ("```text", _usage(parser), "```", "")
    subparsers: dict[str, argparse.ArgumentParser] = {}
    for group in parser._action_groups:  # noqa: SLF001 - argparse offers no public list
        options = [action for action in group._group_actions if action.dest != "help"]  # noqa: SLF001
        for action in options:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                subparsers = dict(action.choices)
        rows = [_row(parser, action) for action in options if action.help is not argparse.SUPPRESS]
        if rows:
            yield from (f"{'#' * (level + 1)} {(group.title or 'options').capitalize()}", "")
            yield from (*_prose(group.description or ""), "")
            yield from ("| option | meaning |", "|---|---|", *rows, "")
    yield from (*_prose(parser.epilog or ""), "")
    for sub in subparsers.values():
        yield from _lines_of(sub, level + 1)


def _usage(parser: argparse.ArgumentParser) -> str:
    """The options that must be given, and "[options]" for the others."""
    formatter = parser._get_formatter()  # noqa: SLF001
    actions = [action for action in parser._actions if action.dest != "help"]  # noqa: SLF001
    required = [action for action in actions if action.required or not action.option_strings]
    shown = [_invocation(formatter, action) for action in required if action.help is not argparse.SUPPRESS]
    return " ".join([parser.prog, *shown, *(["[options]"] if len(required) < len(actions) else [])])


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()  # noqa: SLF001
    text = formatter._expand_help(action) if action.help else ""  # noqa: SLF001
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        text = "; ".join(f"`{choice.dest}`: {choice.help}" for choice in action._choices_actions)  # noqa: SLF001
    required = " *(required)*" if action.required and action.option_strings else ""
    return f"| `{_invocation(formatter, action)}` | {_cell(_escaped(text))}{required} |"


def _invocation(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    """An option with its value, "--output DIR", or the name of a positional argument."""
    return formatter._format_action_invocation(action)  # noqa: SLF001


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text in which Markdown sees no HTML; what is in backticks stays."""
    parts = re.split(r"(`[^`]*`)", text.replace("``", "`"))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", "\\*") for part in parts)


def _prose(text: str) -> Iterator[str]:
    """Lines of Markdown: text that is indented outside of a list becomes a block of code."""
    in_code = in_list = False
    lines = [line for given in text.strip().splitlines() for line in _EXAMPLE.sub(r"\1\n\n  \2", given).split("\n")]
    for line in lines:
        is_item = _LIST.match(line) is not None
        is_code = line.startswith("  ") and not in_list
        if line.strip() and in_code != is_code:
            language = "bash" if line.strip().startswith(_COMMANDS) else "text"
            yield from ("", f"```{language}") if is_code else ("```", "")
            in_code = is_code
        if in_code and not line.strip():
            continue
        if in_code:
            yield line.removeprefix("  ").removeprefix("  ")
            continue
        if is_item and not in_list:
            yield ""
        in_list = is_item or (in_list and bool(line.strip()))
        yield _escaped(re.sub(r"::$", ":", line.rstrip()))
    if in_code:
        yield "```"


def demo_command(step: str, *more: str) -> str:
    """Returns the command of a step of the demo as a shell takes it, with further arguments, over several lines.

    Raises:
      InputError: if the demo has no such step.
    """
    from ..studies.shared.newsroom import NEWSROOM_SEED
    from .demo.steps import Places, steps

    commands = {known.name: known.command for known in steps(Places("demo-output"), NEWSROOM_SEED, 1.0)}
    if step not in commands:
        raise InputError(f"got {step!r}, but the demo has {', '.join(commands)}", field="step")
    parts = [f"newsembed {commands[step][0]}"]
    for word in (*commands[step][1:], *more):
        follows_option = parts[-1].startswith("--") and not re.search("[ =]", parts[-1]) and not word.startswith("--")
        parts[-1:] = [f"{parts[-1]} {shlex.quote(word)}"] if follows_option else [parts[-1], shlex.quote(word)]
    lines = parts[:1]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) > _COLUMNS:
            lines.append(f"   {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n ".join(lines)
