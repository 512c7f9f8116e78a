"""Loads gin files strictly: a key that nothing uses is an error that names its place and what was probably meant.

All statements are read first, the included ones in their place, and checked; gin gets those that are in force.
"""

import collections.abc
import dataclasses
import difflib
import importlib
import inspect
import os
import shlex
import sys
import types
import typing
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
from . import gin_t5x
from .guards import Guards
from .held_out import HeldOut
from .options import CalibrationOptions, CheckpointOptions, OptimizerOptions, RunOptions
from .train import TrainResult, train

_GROUPS: Final = (RunOptions, DataOptions, ModelOptions, OptimizerOptions, CheckpointOptions, CalibrationOptions)
_OPTIMIZERS: Final = (Moments, adam, sgd, learning_rate_schedule)
_OTHERS: Final = (train, HeldOut, Guards, Partitioner, GrainBatches, *_OPTIMIZERS)
# Read before every run file, which may take other objectives and another optimizer. The second is included in the
# first, the third in "models/trainer.gin".
_DEFAULTS: Final = ("models/defaults.gin", "models/objectives.gin", "models/adam.gin")
# What gin files of newsembed and of T5X import; these modules only define things when they are imported. Importing a
# module runs its code, and gin files come from others, too.
ALLOWED: Final = ((__package__ or "").partition(".")[0], "flax", "jax", "optax", "seqio", "t5x")
ENVIRONMENT: Final = "NEWSEMBED_IMPORT"  # names the modules of `newsembed --import`, separated by commas
_REQUIRED: Final = "%gin.REQUIRED"
_KINDS: Final = {
    int: "an integer",
    float: "a number",
    str: "a string in quotes",
    bool: "True or False",
    type(None): "None",
    dict: "a dictionary",
    tuple: "a tuple or list",
}
_LISTS: Final = (tuple, list, collections.abc.Sequence, collections.abc.Collection)
GIN_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gin")


def _names() -> list[str]:
    """Returns the names that a run file may configure, from the package and the imported modules."""
    classes = {*_GROUPS, *_OTHERS, *KINDS.values(), *OBJECTIVES.values(), *ALTERNATIVES}
    return sorted(kind.__name__ for kind in classes)


@dataclasses.dataclass(frozen=True)
class _Reference:
    """A reference in a value.

    Attributes:
      name: "%NAME" of a macro, or the last part of a configurable's name.
      text: as gin reads it.
    """

    name: str
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class _Statement:
    """One "key = value" of a file or the command line.

    Attributes:
      owner: "%NAME" of a macro, or the last part of the configurable's name.
      parameter: empty for a macro.
      key: for gin.
      value: the literal, with references inside; a `_Reference` if it is one.
      references: in the value.
      place: "file:line" or the option.
      path: of the file of T5X that has it, else empty.
    """

    owner: str
    parameter: str
    key: str
    value: Any
    references: tuple[_Reference, ...]
    place: str
    path: str = ""

    @property
    def is_default(self) -> bool:
        """Whether no run file has written it; a run may use another optimizer than the defaults do."""
        return self.place.startswith(tuple(f"{os.path.join(GIN_FOLDER, name)}:" for name in _DEFAULTS))

    @property
    def is_of_architecture(self) -> bool:
        """Whether a file of the package configures an architecture; a run file may choose another one after it."""
        is_of_package = self.place.startswith(f"{GIN_FOLDER}{os.sep}")
        return bool(self.parameter) and is_of_package and self.owner in {kind.__name__ for kind in KINDS.values()}


class _Recorder(config_parser.ParserDelegate):
    """Makes the references of a value while gin's own parser reads it; those of T5X get our names."""

    def __init__(self, *, is_of_t5x: bool) -> None:
        self.references: list[_Reference] = []
        self._is_of_t5x = is_of_t5x

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> _Reference:
        name = scoped_configurable_name.rsplit("/", maxsplit=1)[-1].rsplit(".", maxsplit=1)[-1]
        written = name if self._is_of_t5x else scoped_configurable_name
        return self._noted(_Reference(name, f"@{written}{'()' if evaluate else ''}"))

    def macro(self, macro_name: str) -> _Reference:
        name = f"%{gin_t5x.MACROS.get(macro_name, macro_name) if self._is_of_t5x else macro_name}"
        return self._noted(_Reference(name, name))

    def _noted(self, reference: _Reference) -> _Reference:
        self.references.append(reference)
        return reference


class _Reader:
    """Reads statements, and imports what they import.

    Attributes:
      imports: import statements, as written.
      unknown: by file of T5X, the names in it without a meaning here.
    """

    def __init__(self, search_paths: Sequence[str], allow_imports: Collection[str]) -> None:
        self._folders, self._allowed = [*search_paths, "", GIN_FOLDER], allow_imports
        self.imports: list[str] = []
        self.unknown: dict[str, list[str]] = collections.defaultdict(list)

    def file(self, name: str, asked_by: str) -> Iterator[_Statement]:
        """Yields the statements of a file and of those that it includes."""
        path = _find(name, self._folders, asked_by)
        with open(path, encoding="utf-8") as file:
            yield from self.text(file.read(), path)

    def text(self, text: str, path: str = "") -> Iterator[_Statement]:
        """Yields the statements of the text of a file, or of one binding of the command line."""
        is_of_t5x = gin_t5x.is_of_t5x(text)
        recorder = _Recorder(is_of_t5x=is_of_t5x)
        try:
            for statement in config_parser.ConfigParser(text, recorder):
                place = f"{path}:{statement.location.line_num}" if path else f"--gin.{text.strip()}"
                references, recorder.references = tuple(recorder.references), []
                if isinstance(statement, config_parser.IncludeStatement):
                    if is_of_t5x and statement.filename.startswith(gin_t5x.INCLUDES):
                        self.unknown[path].append(f"include {statement.filename!r}")
                    else:
                        yield from self.file(statement.filename, place)
                elif isinstance(statement, config_parser.ImportStatement):
                    if not is_of_t5x or statement.module.split(".")[0] not in gin_t5x.MODULES:
                        self._import(statement, place)
                elif isinstance(statement, config_parser.BindingStatement):
                    yield from self._binding(statement, references, place, path if is_of_t5x else "")
        except SyntaxError as error:
            raise _unreadable(error, text, path) from error

    def _import(self, statement: Any, place: str) -> None:
        module = statement.module
        named = [name for name in os.environ.get(ENVIRONMENT, "").split(",") if name]
        if not any(module == name or module.startswith(f"{name}.") for name in (*ALLOWED, *named, *self._allowed)):
            raise InputError(
                "a gin file may not import this module, because that runs its code",
                path=place,
                field=f"import {module}",
                remedy=f"If you trust this module, add --allow_import {module.partition('.')[0]}; otherwise do not use "
                "the file.",
            )
        try:
            with gin.unlock_config():  # what it registers; a run in this process may have locked it
                importlib.import_module(module)
        except ImportError as error:
            remedy = "Install it, or add its folder to PYTHONPATH."
            raise InputError(f"cannot import a module ({error})", path=place, remedy=remedy) from error
        self.imports.append(statement.format())

    def _binding(
        self, statement: Any, references: tuple[_Reference, ...], place: str, t5x_path: str
    ) -> Iterator[_Statement]:
        parameter, value = statement.arg_name, statement.value
        scope = f"{statement.scope}/" if statement.scope else ""
        written = f"{scope}{statement.selector}" + (f".{parameter}" if parameter else "")
        owner, key = statement.selector.rsplit(".", maxsplit=1)[-1], written
        if t5x_path:
            if f"{scope}{owner}.{parameter}" in gin_t5x.WIRING:
                return
            ours = gin_t5x.translated(scope, owner, parameter, value, _names())
            if ours is None:
                self.unknown[t5x_path].append(written)
                return
            key, value = ours
            if repr(value) == f"%{key}":  # the macro has its value elsewhere
                return
            parameter = parameter if "." in key else ""
        yield _Statement(owner if parameter else f"%{key}", parameter, key, value, references, place, t5x_path)


def load_gin(
    files: Sequence[str], bindings: Sequence[str], search_paths: Sequence[str] = (), allow_imports: Collection[str] = ()
) -> None:
    """Replaces gin's configuration by these files and bindings, the later ones winning.

    Args:
      files: gin files, absolute or below one of the search paths.
      bindings: "NAME = value" with gin's literals.
      search_paths: looked up before the working directory and the installed package's `gin/` folder.
      allow_imports: modules that the files may import, in addition to `ALLOWED` and those of `newsembed --import`.

    Raises:
      InputError: for a file that does not exist or parse, that imports another module, a key that nothing uses, or a
        required one without value.
    """
    reader = _Reader(search_paths, allow_imports)
    statements = list(reader.file(os.path.join(GIN_FOLDER, _DEFAULTS[0]), "--gin_file"))
    statements += [statement for file in files for statement in reader.file(file, "--gin_file")]
    statements += [statement for binding in bindings for statement in reader.text(binding)]
    register_architectures()
    in_force = {statement.key: statement for statement in statements}
    used = _reachable(in_force.values())
    for statement in list(in_force.values()):
        if statement.path and not statement.parameter and statement.owner not in used:
            reader.unknown[statement.path].append(statement.key)
            del in_force[statement.key]
    _check(in_force, used)
    for path, names in reader.unknown.items():
        listed = ", ".join(dict.fromkeys(names))
        print(f"newsembed train: note: names of T5X in {path} without a meaning here: {listed}", file=sys.stderr)
    gin.clear_config()
    try:
        gin.parse_config([*reader.imports, *(f"{key} = {one.value!r}" for key, one in in_force.items())])
        gin.finalize()
    except (ValueError, SyntaxError) as error:
        raise InputError(str(error).strip(), field="--gin_file", remedy="Correct this line.") from error


def run_training(
    files: Sequence[str],
    bindings: Sequence[str] = (),
    search_paths: Sequence[str] = (),
    allow_imports: Collection[str] = (),
) -> TrainResult:
    """Trains as configured by gin files and bindings, see `load_gin` and `train.train`."""
    load_gin(files, bindings, search_paths, allow_imports)
    try:
        return train()
    except InputError as error:
        # gin adds lines to errors that pass through it; the user needs ours only.
        raise InputError(error.problem, path=error.path, field=error.field, remedy=error.remedy) from error.__cause__


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
    there = f"The package has {', '.join(known)}; give other folders with --gin_search_paths."
    problem = f"no such file (looked for {', '.join(candidates)})"
    raise InputError(problem, path=name, field=asked_by, remedy=_suggest(name, known) or there)


def _unreadable(error: SyntaxError, text: str, path: str) -> InputError:
    line = (error.text or text).strip()
    where = f"{path}:{error.lineno}" if path else f"--gin.{line}"
    remedy = (
        "Write a gin value: numbers bare, strings in quotes, which the shell must not remove: --gin.MODEL_DIR="
        + shlex.quote('"/tmp/model"')
    )
    return InputError(f"got {line!r}, which gin cannot read ({error.msg})", path=where, remedy=remedy)


def _check(in_force: Mapping[str, _Statement], used: set[str]) -> None:
    """Raises InputError for the first key that is unknown, unused, or required and not set."""
    macros = {statement.owner for statement in in_force.values() if not statement.parameter}
    for statement in in_force.values():
        _check_names(statement, macros)
    for statement in in_force.values():
        if statement.owner not in used and not statement.is_default and not statement.is_of_architecture:
            known = _names() if statement.parameter else [name for name in used if name.startswith("%")]
            raise _typo(statement, "got a key that nothing uses", statement.owner, known)
    _check_required(in_force)
    for statement in in_force.values():
        if statement.parameter:
            _check_type(statement, in_force)


def _check_names(statement: _Statement, macros: Collection[str]) -> None:
    owner, name = statement.owner, statement.parameter
    if name:
        try:
            parameters = _parameters(statement)
        except ValueError:
            raise _typo(statement, f"got the unknown name {owner}", owner, _names()) from None
        if name not in parameters:
            raise _typo(statement, f"{owner} has no parameter {name}", name, parameters)
    for reference in statement.references:
        if reference.name.startswith("%") and reference.name not in (*macros, _REQUIRED):
            raise _typo(statement, f"the value names {reference}, which nothing sets", reference.name, macros)


def _check_required(in_force: Mapping[str, _Statement]) -> None:
    problem = "the key is required and has no value"
    for statement in in_force.values():
        if any(reference.name == _REQUIRED for reference in statement.references):
            remedy = f"Set it: --gin.{statement.key}=<value>, strings in quotes."
            raise InputError(problem, path=statement.place, field=statement.key, remedy=remedy)
    for group in _GROUPS:
        for field in dataclasses.fields(group):
            is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if is_required and (key := f"{group.__name__}.{field.name}") not in in_force:
                raise InputError(problem, field=key, remedy='Set it, or include "models/trainer.gin", which does.')


def _check_type(statement: _Statement, in_force: Mapping[str, _Statement]) -> None:
    """Refuses a literal of a type that the parameter has not, where it stands: at its macro if it has one."""
    source, passed = statement, set[str]()
    while isinstance(source.value, _Reference):
        name = source.value.name
        if not name.startswith("%"):
            return  # what "@name" makes has a check of its own
        if source.key in passed:
            raise InputError("the macros name each other", path=source.place, field=source.key, remedy="Give a value.")
        passed.add(source.key)
        source = in_force[name[1:]]
    if expected := expected_type(source.value, _parameters(statement)[statement.parameter].annotation):
        problem = f"got {source.value!r}, expected {expected}"
        raise InputError(problem, path=source.place, field=source.key, remedy=f"Correct it; {statement.key} gets it.")


def _parameters(statement: _Statement) -> Mapping[str, inspect.Parameter]:
    configurable: Any = gin.get_configurable(statement.key.rsplit(".", 1)[0].split("/")[-1])
    # gin hides a class's signature behind its own __call__; that of __init__ stays.
    return inspect.signature(configurable.__init__ if inspect.isclass(configurable) else configurable).parameters


def _reachable(statements: Collection[_Statement]) -> set[str]:
    """Returns the owners of everything that `train` and the objectives use, directly or not."""
    waiting = [root.__name__ for root in (train, *OBJECTIVES.values())]
    # Macros of an architecture that the run does not choose.
    waiting += [one.name for statement in statements if statement.is_of_architecture for one in statement.references]
    used: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in used:
            used.add(name)
            waiting += [one.name for statement in statements if statement.owner == name for one in statement.references]
    return used


def _typo(statement: _Statement, problem: str, name: str, known: Iterable[str]) -> InputError:
    plain = sorted(other.removeprefix("%") for other in known)
    remedy = _suggest(name.removeprefix("%"), plain) or f"Correct or delete it; known here: {', '.join(plain)}."
    return InputError(f"{problem}; probably a typo", path=statement.place, field=statement.key, remedy=remedy)


def _suggest(name: str, known: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else None


def expected_type(value: Any, annotation: Any) -> str:
    """Returns what a value should be instead; "" if it fits, or if the annotation is not one of gin's plain types.

    >>> expected_type("x", float | None), expected_type(1.5, int), expected_type(1e5, int)
    ('a number or None', 'an integer', '')

    Args:
      value: a literal of gin. What is inside of a container is not compared.
      annotation: of the parameter that gets it.
    """
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    kinds = [_plain(one) for one in (typing.get_args(annotation) if is_union else (annotation,))]
    if None in kinds or any(_fits(value, kind) for kind in kinds):
        return ""
    return " or ".join(_KINDS[kind] for kind in dict.fromkeys(kinds))


def _plain(annotation: Any) -> Any:
    """Returns the type in `_KINDS` that an annotation means, or None."""
    origin = typing.get_origin(annotation) or annotation
    if origin in (dict, collections.abc.Mapping):
        return dict
    if origin in _LISTS:
        return tuple
    return origin if isinstance(origin, type) and origin in _KINDS else None


def _fits(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return kind is bool and isinstance(value, bool)
    if isinstance(value, float) and kind is int:  # 1e5 is how people write large numbers of steps
        return value.is_integer()
    return isinstance(value, {float: (int, float), tuple: (tuple, list)}.get(kind, kind))
