"""Writes the defaults of all options to ``tests/golden/option_defaults.txt``, which a test compares with the code.

    python tests/option_defaults.py

A default is a promise to everyone who leaves the option out. So it changes on purpose only: run this after you have
changed one, read the difference, and name the change in ``CHANGELOG.md``.
"""

import argparse
import ast
import dataclasses
import datetime
import enum
import importlib
import inspect
import types
from collections.abc import Iterator, Mapping
from pathlib import Path

import gin

ROOT = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_name("golden") / "option_defaults.txt"
_APART = {"tests", "benchmarks", "docs", "build"}
_REQUIRED = gin.REQUIRED


def sections() -> dict[str, list[str]]:
    """The record: a command ("newsembed clean") or a module ("models/losses.py") -> lines of an option and a value."""
    found: dict[str, list[str]] = {}
    for part in RECORD.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, *lines = part.splitlines()
        found[name] = [line for line in lines if line]
    return found


def module_paths() -> list[str]:
    """The modules that declare a public frozen dataclass with a default, or a function that gin configures."""
    paths = (path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py")))
    return [
        str(path)
        for path in paths
        if not path.parts[0].startswith(".")
        and path.parts[0] not in _APART
        and any(map(_has_defaults, ast.parse((ROOT / path).read_text(encoding="utf-8")).body))
    ]


def _has_defaults(node: ast.stmt) -> bool:
    if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
        return False
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    if isinstance(node, ast.FunctionDef):
        return decorators.startswith("gin.")
    given = any(isinstance(line, ast.AnnAssign) and line.value is not None for line in node.body)
    is_frozen = "dataclass" in decorators and "frozen=True" in decorators
    return given and (is_frozen or "flax.struct.PyTreeNode" in map(ast.unparse, node.bases))


def command_defaults(command: str) -> list[str]:
    """The lines of a command and its subcommands."""
    from newsembed.launch.cli import parser_of

    return [
        f"{' '.join([*parser.prog.split()[2:], *(action.option_strings or [action.dest])])} = {shown(action.default)}"
        for parser in _parsers(parser_of(command))
        for action in parser._actions
        if action.dest != "help" and not isinstance(action, argparse._SubParsersAction)
    ]


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _parsers(sub)


def module_defaults(path: str) -> list[str]:
    """The lines of a module: fields of its public frozen dataclasses, and arguments of its functions that gin knows."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    module = importlib.import_module(f"newsembed.{name}")
    return [
        f"{owner}.{option} = {shown(value)}"
        for owner, declared in _declared(module)
        for option, value in declared.items()
        if value is not _REQUIRED
    ]


def _declared(module: types.ModuleType) -> Iterator[tuple[str, Mapping[str, object]]]:
    nodes = ast.parse(inspect.getsource(module)).body
    for name in (
        node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef) and _has_defaults(node)
    ):
        declared = getattr(module, name)
        if isinstance(declared, type):
            own = vars(declared).get("__annotations__", {})
            yield name, {field.name: _of_field(field) for field in dataclasses.fields(declared) if field.name in own}
        else:
            arguments = inspect.signature(declared).parameters.values()
            yield name, {one.name: _REQUIRED if one.default is one.empty else one.default for one in arguments}


def _of_field(field: "dataclasses.Field[object]") -> object:
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return field.default_factory if isinstance(made, datetime.date) else made  # a time is that of the call
    return _REQUIRED if field.default is dataclasses.MISSING else field.default


def shown(value: object) -> str:
    """A default as one line; the same on every machine."""
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
        changed = (f"{field.name}={shown(one)}" for field, one in given.items() if one != _of_field(field))
        return f"{type(value).__name__}({', '.join(changed)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {shown(each)}" for key, each in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(shown, value)) + "]"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)


def main() -> None:
    from newsembed.launch.cli import COMMANDS

    found = {f"newsembed {command}": command_defaults(command) for command in COMMANDS}
    found |= {path: module_defaults(path) for path in module_paths()}
    text = "".join(f"\n## {name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in found.items())
    RECORD.write_text(f"# Defaults of all options, by command and module; `python tests/option_defaults.py`.\n{text}")


if __name__ == "__main__":
    main()
