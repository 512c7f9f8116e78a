"""Loads gin files strictly: a key that nothing uses is an error that says where it stands and what was probably meant."""

import dataclasses
import difflib
import importlib
import inspect
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import gin
from gin import config_parser

from ..errors import InputError
from ..models.encoders.news import EncoderConfig

# Imported for their registration with gin.
from . import batches, guards, held_out, loop, optimizers, partitioning, steps  # noqa: F401

_INCLUDE: Final = re.compile(r"""^include\s+["'](.+?)["'].*$""", re.MULTILINE)
_ROOT: Final = "train"
_NAMES: Final = (
    "train",
    "EncoderConfig",
    "adam",
    "learning_rate_schedule",
    "Losses",
    "Partitioner",
    "GrainBatches",
    "Guards",
    "HeldOut",
)
GIN_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gin")

gin.external_configurable(EncoderConfig, module="newsembed.models")


@dataclasses.dataclass(frozen=True)
class _Reference:
    """What a value points at: "%NAME" or "@name"."""

    name: str
    is_macro: bool


@dataclasses.dataclass(frozen=True)
class _Binding:
    """One "key = value" of a file or the command line.

    Attributes:
      owner: the macro, or the configurable's last name.
      parameter: empty for a macro.
      key: as written.
      references: what the value points at.
      is_required: True if the value is still %gin.REQUIRED.
      place: "file:line" or the option.
    """

    owner: str
    parameter: str
    key: str
    references: tuple[_Reference, ...]
    is_required: bool
    place: str


def load_gin(files: Sequence[str], bindings: Sequence[str], search_paths: Sequence[str] = ()) -> None:
    """Replaces gin's configuration by these files and bindings, the later ones winning.

    Args:
      files: gin files, absolute or below one of the search paths.
      bindings: "NAME = value" with gin's literals.
      search_paths: looked up before the working directory and the installed package's `gin/` folder.

    Raises:
      InputError: for a file that does not exist or parse, a key that nothing uses, or a required one without value.
    """
    folders = [*search_paths, "", GIN_FOLDER]
    statements = [statement for file in files for statement in _read_file(file, folders, "--gin_file")]
    statements += [statement for binding in bindings for statement in _parse(binding, None, folders)]
    _check(statements)
    gin.clear_config()
    try:
        # Includes are put in place here: gin itself would log an error for each folder that a file is not in.
        gin.parse_config([*(_expanded(_find(file, folders, "--gin_file"), folders) for file in files), *bindings])
        gin.finalize()
    except (ValueError, SyntaxError) as error:
        raise InputError(str(error).strip(), field="--gin_file", remedy="Mend this line.") from error


def _expanded(path: str, folders: Sequence[str]) -> str:
    """A file's text with its includes in place."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return _INCLUDE.sub(lambda match: _expanded(_find(match[1], folders, path), folders), text)


class _Recorder(config_parser.ParserDelegate):
    """Notes the references of each value while gin's own parser reads it."""

    def __init__(self) -> None:
        self.references: list[_Reference] = []

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> None:
        del evaluate
        self.references.append(
            _Reference(scoped_configurable_name.rsplit("/", maxsplit=1)[-1].rsplit(".", maxsplit=1)[-1], is_macro=False)
        )

    def macro(self, macro_name: str) -> None:
        self.references.append(_Reference(macro_name, is_macro=True))


def _read_file(name: str, folders: Sequence[str], asked_by: str) -> Iterator[_Binding]:
    path = _find(name, folders, asked_by)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    yield from _parse(text, path, folders)


def _find(name: str, folders: Sequence[str], asked_by: str) -> str:
    candidates = [os.path.join(folder, name) for folder in folders]
    for path in candidates:
        if os.path.isfile(path):
            return path
    there = sorted(
        os.path.relpath(os.path.join(root, file), GIN_FOLDER)
        for root, _, names in os.walk(GIN_FOLDER)
        for file in names
        if file.endswith(".gin")
    )
    raise InputError(
        f"there is no such file (looked for {', '.join(candidates)})",
        path=name,
        field=asked_by,
        remedy=_suggest(name, there)
        or f"The package brings {', '.join(there)}; other folders go into --gin_search_paths.",
    )


def _parse(text: str, path: str | None, folders: Sequence[str]) -> Iterator[_Binding]:
    recorder = _Recorder()
    try:
        for statement in config_parser.ConfigParser(text, recorder):
            references, recorder.references = tuple(recorder.references), []
            if isinstance(statement, config_parser.IncludeStatement):
                yield from _read_file(statement.filename, folders, f"{path}:{statement.location.line_num}")
            elif isinstance(statement, config_parser.ImportStatement):
                importlib.import_module(statement.module)
            elif isinstance(statement, config_parser.BindingStatement):
                yield _binding(statement, references, path, text)
    except SyntaxError as error:
        line = (error.text or text).strip()
        where = f"{path}:{error.lineno}" if path else f"--gin.{line}"
        remedy = (
            "Write a gin value: numbers bare, texts in quotes, which the shell must not eat: --gin.MODEL_DIR="
            + shlex.quote('"/tmp/model"')
        )
        raise InputError(f"got {line!r}, which gin cannot read ({error.msg})", path=where, remedy=remedy) from error
    except ImportError as error:
        raise InputError(
            f"cannot import a module ({error})", path=path, remedy="Install it or mend the import."
        ) from error


def _binding(statement: Any, references: tuple[_Reference, ...], path: str | None, text: str) -> _Binding:
    place = f"{path}:{statement.location.line_num}" if path else f"--gin.{text.strip()}"
    required = any(reference.name == "gin.REQUIRED" for reference in references)
    references = tuple(reference for reference in references if reference.name != "gin.REQUIRED")
    scope = f"{statement.scope}/" if statement.scope else ""
    owner = statement.selector.split(".")[-1]
    if not statement.arg_name:
        return _Binding(f"{scope}{statement.selector}", "", f"{scope}{statement.selector}", references, required, place)
    return _Binding(
        owner, statement.arg_name, f"{scope}{statement.selector}.{statement.arg_name}", references, required, place
    )


def _check(statements: Sequence[_Binding]) -> None:
    """Raises InputError for the first key that is unknown, unused, or required and not set."""
    in_force = {statement.key: statement for statement in statements}
    macros = {statement.owner for statement in in_force.values() if not statement.parameter}
    for statement in statements:
        if statement.parameter:
            _check_parameter(statement)
        for reference in statement.references:
            if reference.is_macro and reference.name not in macros:
                raise _typo(statement, f"the value names %{reference.name}, which nothing sets", reference.name, macros)
    used = _reachable(in_force.values())
    for statement in in_force.values():
        if (statement.owner, not statement.parameter) not in used:
            names = {name for name, is_macro in used if is_macro} if not statement.parameter else set(_NAMES)
            raise _typo(statement, "got a key that nothing uses", statement.owner, names)
    for statement in in_force.values():
        if statement.is_required:
            raise InputError(
                "the key is required and has no value",
                path=statement.place,
                field=statement.key,
                remedy=f"Set it: --gin.{statement.key}=<value>, texts in quotes.",
            )


def _check_parameter(statement: _Binding) -> None:
    try:
        configurable: Any = gin.get_configurable(statement.key.rsplit(".", 1)[0].split("/")[-1])
    except ValueError:
        raise _typo(statement, f"got the unknown name {statement.owner}", statement.owner, _NAMES) from None
    # gin hides a class's signature behind its own __call__; that of __init__ stays.
    parameters = inspect.signature(configurable.__init__ if inspect.isclass(configurable) else configurable).parameters
    if statement.parameter not in parameters:
        raise _typo(
            statement, f"{statement.owner} has no parameter {statement.parameter}", statement.parameter, parameters
        )


def _reachable(statements: Iterable[_Binding]) -> set[tuple[str, bool]]:
    """(name, is macro) of everything that `train` uses, directly or not."""
    bindings = list(statements)
    used: set[tuple[str, bool]] = set()
    waiting = [(_ROOT, False)]
    while waiting:
        name = waiting.pop()
        if name in used:
            continue
        used.add(name)
        for binding in bindings:
            if (binding.owner, not binding.parameter) == name:
                waiting += [(reference.name, reference.is_macro) for reference in binding.references]
    return used


def _typo(statement: _Binding, problem: str, name: str, known: Iterable[str]) -> InputError:
    suggestion = _suggest(name, known)
    remedy = suggestion or f"Correct or delete it; known here: {', '.join(sorted(known))}."
    return InputError(f"{problem}; probably a typo", path=statement.place, field=statement.key, remedy=remedy)


def _suggest(name: str, known: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else None
