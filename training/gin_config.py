"""Loads gin files strictly: a key that nothing uses is an error that names its place and what was probably meant."""

import dataclasses
import difflib
import functools
import importlib
import inspect
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import gin
from gin import config_parser

from ..errors import InputError
from ..learning.batches import GrainBatches
from ..learning.objectives import ALTERNATIVES, OBJECTIVES
from ..learning.optimizers import Moments, adam, learning_rate_schedule, sgd
from ..learning.options import DataOptions, ModelOptions, register_architectures
from ..learning.partitioning import Partitioner
from ..models.encoders import KINDS
from .gin_imports import check_expanded, check_import
from .gin_renames import RENAMED, with_new_names
from .gin_t5x import is_of_t5x, translated
from .gin_types import expected_type
from .guards import Guards
from .held_out import HeldOut
from .keeping import Keeping
from .options import CalibrationOptions, CheckpointOptions, OptimizerOptions, RunOptions
from .train import train

_MACRO: Final = re.compile(r"%([A-Z_]+)")
_INCLUDE: Final = re.compile(r"""^include\s+["'](.+?)["'].*$""", re.MULTILINE)
_GROUPS: Final = (RunOptions, DataOptions, ModelOptions, OptimizerOptions, CheckpointOptions, CalibrationOptions)
_OPTIMIZERS: Final = (Moments, adam, sgd, learning_rate_schedule)
_OTHERS: Final = (train, HeldOut, Keeping, Guards, Partitioner, GrainBatches, *_OPTIMIZERS)
# Read before every run file, which may take other objectives and another optimizer. The second is included in the
# first, the third in "models/trainer.gin".
_DEFAULTS: Final = ("models/defaults.gin", "models/objectives.gin", "models/adam.gin")
_SHOWN_NAMES: Final = 3
GIN_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gin")


def _names() -> list[str]:
    """Returns the names that a run file may configure, from the package and the imported modules."""
    classes = {*_GROUPS, *_OTHERS, *KINDS.values(), *OBJECTIVES.values(), *ALTERNATIVES}
    return sorted(kind.__name__ for kind in classes)


@dataclasses.dataclass(frozen=True)
class _Reference:
    """A reference in a value: "%NAME" or "@name"."""

    name: str
    is_macro: bool


@dataclasses.dataclass(frozen=True)
class _Binding:
    """One "key = value" of a file or the command line.

    Attributes:
      owner: the macro, or the configurable's last name.
      parameter: empty for a macro.
      key: as written.
      references: in the value.
      is_required: True if the value is still %gin.REQUIRED.
      place: "file:line" or the option.
      value: the literal, with references inside; a `_Reference` if it is one.
      may_be_unused: True for a macro of a T5X file: nothing reads it where a later value replaces it.
    """

    owner: str
    parameter: str
    key: str
    references: tuple[_Reference, ...]
    is_required: bool
    place: str
    value: Any
    may_be_unused: bool = False


@dataclasses.dataclass(frozen=True)
class _Sources:
    """Where gin files are looked up, and which further modules they may import."""

    folders: Sequence[str]
    allow_imports: Collection[str]


def load_gin(
    files: Sequence[str],
    bindings: Sequence[str],
    search_paths: Sequence[str] = (),
    allow_imports: Collection[str] = (),
) -> None:
    """Replaces gin's configuration by these files and bindings, the later ones winning.

    Args:
      files: gin files, absolute or below one of the search paths.
      bindings: "NAME = value" with gin's literals.
      search_paths: looked up before the working directory and the installed package's `gin/` folder.
      allow_imports: modules that the files may import, in addition to `gin_imports.ALLOWED`.

    Raises:
      InputError: for a file that does not exist or parse, that imports another module, a key that nothing uses, or a
        required one without value.
    """
    folders = [*search_paths, "", GIN_FOLDER]
    paths = [os.path.join(GIN_FOLDER, _DEFAULTS[0]), *(_find(file, folders, "--gin_file") for file in files)]
    sources = _Sources(folders, tuple(allow_imports))
    statements = [statement for path in paths for statement in _parse_file(path, sources)]
    new_bindings = _renamed_bindings(bindings)
    statements += [statement for binding in new_bindings for statement in _parse(binding, None, sources)]
    register_architectures()
    _check(statements)
    gin.clear_config()
    try:
        # Includes are put in place here: gin itself would log an error for each folder that a file is not in.
        texts = [*(_expanded(path, folders) for path in paths), *new_bindings]
        check_expanded(texts, allow_imports)
        gin.parse_config(texts)
        gin.finalize()
    except InputError:
        raise
    except (ValueError, SyntaxError) as error:
        raise InputError(str(error).strip(), field="--gin_file", remedy="Correct this line.") from error


def _expanded(path: str, folders: Sequence[str]) -> str:
    """Returns a file's text with new names and its includes in place."""
    text, _ = with_new_names(_read(path)[0])
    return _INCLUDE.sub(lambda match: _expanded(_find(match[1], folders, path), folders), text)


def _read(path: str) -> tuple[str, tuple[str, ...], bool]:
    """Returns a file's text in our names, the names of T5X in it that we do not know, and whether it is one of T5X.

    Raises:
      InputError: for a file of T5X that gin cannot read.
    """  # noqa: DOC501 - _unreadable makes an InputError
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not is_of_t5x(text):
        return text, (), False
    try:
        return *translated(text, _names(), _macros()), True
    except SyntaxError as error:
        raise _unreadable(error, text, path) from error


@functools.cache
def _macros() -> frozenset[str]:
    """The macros that the gin files of the package read."""
    found: set[str] = set()
    for folder in ("models", "architectures"):
        for name in os.listdir(os.path.join(GIN_FOLDER, folder)):
            with open(os.path.join(GIN_FOLDER, folder, name), encoding="utf-8") as file:
                found.update(_MACRO.findall(file.read()))
    return frozenset(found)


def _renamed(text: str, place: str) -> str:
    """Returns gin text with new names, and tells about the old ones on stderr."""
    new, old_names = with_new_names(text)
    _tell_renamed(place, old_names)
    return new


def _renamed_bindings(bindings: Sequence[str]) -> list[str]:
    pairs = [with_new_names(binding) for binding in bindings]
    _tell_renamed("--gin", [name for _, names in pairs for name in names])
    return [binding for binding, _ in pairs]


def _tell_renamed(place: str, old_names: Sequence[str]) -> None:
    if old_names:
        shown = ", ".join(f"{name} is now {RENAMED[name]}" for name in old_names[:_SHOWN_NAMES])
        more = f" and {len(old_names) - _SHOWN_NAMES} more" if len(old_names) > _SHOWN_NAMES else ""
        print(f"newsembed train: note: old names in {place}: {shown}{more}", file=sys.stderr)


class _Recorder(config_parser.ParserDelegate):
    """Notes the references of each value while gin's own parser reads it."""

    def __init__(self) -> None:
        self.references: list[_Reference] = []

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> _Reference:
        del evaluate
        name = scoped_configurable_name.rsplit("/", maxsplit=1)[-1].rsplit(".", maxsplit=1)[-1]
        return self._noted(_Reference(name, is_macro=False))

    def macro(self, macro_name: str) -> _Reference:
        return self._noted(_Reference(macro_name, is_macro=True))

    def _noted(self, reference: _Reference) -> _Reference:
        self.references.append(reference)
        return reference


def _find(name: str, folders: Sequence[str], asked_by: str) -> str:
    candidates = [os.path.join(folder, name) for folder in folders]
    for path in candidates:
        if os.path.isfile(path):
            return path
    known = sorted(
        os.path.relpath(os.path.join(root, file), GIN_FOLDER)
        for root, _, names in os.walk(GIN_FOLDER)
        for file in names
        if file.endswith(".gin")
    )
    raise InputError(
        f"no such file (looked for {', '.join(candidates)})",
        path=name,
        field=asked_by,
        remedy=_suggest(name, known)
        or f"The package has {', '.join(known)}; give other folders with --gin_search_paths.",
    )


def _parse_file(path: str, sources: _Sources) -> Iterator[_Binding]:
    text, unknown, is_translated = _read(path)
    if unknown:
        names = ", ".join(unknown)
        print(f"newsembed train: note: names of T5X in {path} without a meaning here: {names}", file=sys.stderr)
    for statement in _parse(_renamed(text, path), path, sources):
        is_macro = is_translated and not statement.parameter and statement.place.startswith(f"{path}:")
        yield dataclasses.replace(statement, may_be_unused=is_macro or statement.may_be_unused)


def _parse(text: str, path: str | None, sources: _Sources) -> Iterator[_Binding]:
    recorder = _Recorder()
    try:
        for statement in config_parser.ConfigParser(text, recorder):
            references, recorder.references = tuple(recorder.references), []
            if isinstance(statement, config_parser.IncludeStatement):
                place = f"{path}:{statement.location.line_num}"
                yield from _parse_file(_find(statement.filename, sources.folders, place), sources)
            elif isinstance(statement, config_parser.ImportStatement):
                place = f"{path}:{statement.location.line_num}" if path else f"--gin.{text.strip()}"
                check_import(statement.module, place, sources.allow_imports)
                with gin.unlock_config():  # what it registers; a run in this process may have locked it
                    importlib.import_module(statement.module)
            elif isinstance(statement, config_parser.BindingStatement):
                yield _binding(statement, references, path, text)
    except SyntaxError as error:
        raise _unreadable(error, text, path) from error
    except ImportError as error:
        raise InputError(
            f"cannot import a module ({error})", path=path, remedy="Install it, or add its folder to PYTHONPATH."
        ) from error


def _unreadable(error: SyntaxError, text: str, path: str | None) -> InputError:
    line = (error.text or text).strip()
    where = f"{path}:{error.lineno}" if path else f"--gin.{line}"
    remedy = (
        "Write a gin value: numbers bare, strings in quotes, which the shell must not remove: --gin.MODEL_DIR="
        + shlex.quote('"/tmp/model"')
    )
    return InputError(f"got {line!r}, which gin cannot read ({error.msg})", path=where, remedy=remedy)


def _binding(statement: Any, references: tuple[_Reference, ...], path: str | None, text: str) -> _Binding:
    place = f"{path}:{statement.location.line_num}" if path else f"--gin.{text.strip()}"
    required = any(reference.name == "gin.REQUIRED" for reference in references)
    references = tuple(reference for reference in references if reference.name != "gin.REQUIRED")
    scope = f"{statement.scope}/" if statement.scope else ""
    owner = statement.selector.split(".")[-1]
    key = f"{scope}{statement.selector}"
    if not statement.arg_name:
        return _Binding(key, "", key, references, required, place, statement.value)
    key = f"{key}.{statement.arg_name}"
    return _Binding(owner, statement.arg_name, key, references, required, place, statement.value)


def _check(statements: Sequence[_Binding]) -> None:
    """Raises InputError for the first key that is unknown, unused, or required and not set."""  # noqa: DOC501 - by _typo
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
        is_used = (statement.owner, not statement.parameter) in used
        if not is_used and not statement.may_be_unused and not (_is_default(statement) or _is_of_other(statement)):
            names = {name for name, is_macro in used if is_macro} if not statement.parameter else set(_names())
            raise _typo(statement, "got a key that nothing uses", statement.owner, names)
    _check_required(in_force)
    for statement in in_force.values():
        if statement.parameter:
            _check_type(statement, in_force)


def _is_default(statement: _Binding) -> bool:
    """Returns whether no run file has written a statement; a run may use another optimizer than the defaults do."""
    return statement.place.startswith(tuple(f"{os.path.join(GIN_FOLDER, name)}:" for name in _DEFAULTS))


def _is_of_other(statement: _Binding) -> bool:
    """Returns whether a file of the package configures an architecture: a run file may choose another one after it."""
    return bool(statement.parameter) and _is_of_package(statement) and statement.owner in _architectures()


def _is_of_package(statement: _Binding) -> bool:
    return statement.place.startswith(f"{GIN_FOLDER}{os.sep}")


def _architectures() -> set[str]:
    return {kind.__name__ for kind in KINDS.values()}


def _check_required(in_force: Mapping[str, _Binding]) -> None:
    problem = "the key is required and has no value"
    for statement in in_force.values():
        if statement.is_required:
            remedy = f"Set it: --gin.{statement.key}=<value>, strings in quotes."
            raise InputError(problem, path=statement.place, field=statement.key, remedy=remedy)
    for group in _GROUPS:
        for field in dataclasses.fields(group):
            is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if is_required and f"{group.__name__}.{field.name}" not in in_force:
                remedy = 'Set it, or include "models/trainer.gin", which does.'
                raise InputError(problem, field=f"{group.__name__}.{field.name}", remedy=remedy)


def _check_type(statement: _Binding, in_force: Mapping[str, _Binding]) -> None:
    """Refuses a literal of a type that the parameter has not, where it stands: at its macro if it has one.

    Raises:
      InputError: for such a literal, and for macros that name each other.
    """
    source, passed = statement, set[str]()
    while isinstance(source.value, _Reference):
        if not source.value.is_macro:
            return  # what "@name" makes has a check of its own
        if source.key in passed:
            raise InputError("the macros name each other", path=source.place, field=source.key, remedy="Give a value.")
        passed.add(source.key)
        source = in_force[source.value.name]
    if expected := expected_type(source.value, _parameters(statement)[statement.parameter].annotation):
        problem = f"got {source.value!r}, expected {expected}"
        raise InputError(problem, path=source.place, field=source.key, remedy=f"Correct it; {statement.key} gets it.")


def _parameters(statement: _Binding) -> Mapping[str, inspect.Parameter]:
    configurable: Any = gin.get_configurable(statement.key.rsplit(".", 1)[0].split("/")[-1])
    # gin hides a class's signature behind its own __call__; that of __init__ stays.
    return inspect.signature(configurable.__init__ if inspect.isclass(configurable) else configurable).parameters


def _check_parameter(statement: _Binding) -> None:
    try:
        parameters = _parameters(statement)
    except ValueError:
        raise _typo(statement, f"got the unknown name {statement.owner}", statement.owner, _names()) from None
    if statement.parameter not in parameters:
        raise _typo(
            statement, f"{statement.owner} has no parameter {statement.parameter}", statement.parameter, parameters
        )


def _reachable(statements: Iterable[_Binding]) -> set[tuple[str, bool]]:
    """Returns (name, is macro) of everything that `train` and the objectives use, directly or not."""
    bindings = list(statements)
    used: set[tuple[str, bool]] = set()
    waiting = [(root.__name__, False) for root in (train, *OBJECTIVES.values())]
    # Macros of an architecture that the run does not choose, see `_is_of_other`.
    waiting += [
        (name.name, name.is_macro) for binding in bindings if _is_of_other(binding) for name in binding.references
    ]
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
