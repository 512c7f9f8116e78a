"""Loads gin files strictly: a key that nothing uses is an error that names its place and what was probably meant.

All statements are read first (`gin_files`) and checked; gin gets those that are in force.
"""

import collections.abc
import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import gin

from ..errors import InputError, refusing
from ..learning.batches import GrainBatches
from ..learning.objectives import ALTERNATIVES, OBJECTIVES
from ..learning.optimizers import Moments, adam, learning_rate_schedule, sgd
from ..learning.options import DataOptions, ModelOptions, register_architectures
from ..learning.partitioning import Partitioner
from ..models.encoders import KINDS
from .gin_files import UNUSED, Reader, Reference, Statement, check_macros, typo
from .guards import Guards
from .held_out import HeldOut
from .options import CalibrationOptions, CheckpointOptions, OptimizerOptions, RunOptions
from .train import TrainResult, train

_GROUPS: Final = (RunOptions, DataOptions, ModelOptions, OptimizerOptions, CheckpointOptions, CalibrationOptions)
_OPTIMIZERS: Final = (Moments, adam, sgd, learning_rate_schedule)
_OTHERS: Final = (train, HeldOut, Guards, Partitioner, GrainBatches, *_OPTIMIZERS)
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


def _names() -> list[str]:
    """Returns the names that a run file may configure, from the package and the imported modules."""
    classes = {*_GROUPS, *_OTHERS, *KINDS.values(), *OBJECTIVES.values(), *ALTERNATIVES}
    return sorted(kind.__name__ for kind in classes)


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
    reader = Reader(search_paths, allow_imports, _names)
    in_force = reader.all(files, bindings)
    register_architectures()
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
    with refusing("", ValueError, SyntaxError, field="--gin_file", remedy="Correct this line."):
        gin.parse_config([*reader.imports, *(f"{key} = {one.value!r}" for key, one in in_force.items())])
        gin.finalize()


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


def _check(in_force: Mapping[str, Statement], used: set[str]) -> None:
    """Raises InputError for the first key that is unknown, unused, or required and not set."""
    check_macros(in_force)
    for statement in in_force.values():
        if statement.parameter:
            _check_name(statement)
    for statement in in_force.values():
        if statement.owner not in used and not statement.is_default and not _is_of_architecture(statement):
            known = _names() if statement.parameter else [name for name in used if name.startswith("%")]
            raise typo(statement, UNUSED, statement.owner, known)
    for group in _GROUPS:
        for field in dataclasses.fields(group):
            is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if is_required and (key := f"{group.__name__}.{field.name}") not in in_force:
                remedy = 'Set it, or include "models/trainer.gin", which does.'
                raise InputError("the key is required and has no value", field=key, remedy=remedy)
    for statement in in_force.values():
        if statement.parameter:
            _check_type(statement, in_force)


def _check_name(statement: Statement) -> None:
    owner, name = statement.owner, statement.parameter
    try:
        parameters = _parameters(statement)
    except ValueError:
        raise typo(statement, f"got the unknown name {owner}", owner, _names()) from None
    if name not in parameters:
        raise typo(statement, f"{owner} has no parameter {name}", name, parameters)


def _is_of_architecture(statement: Statement) -> bool:
    """Whether a file of the package configures an architecture; a run file may choose another one after it."""
    names = {kind.__name__ for kind in KINDS.values()}
    return statement.is_of_package and bool(statement.parameter) and statement.owner in names


def _check_type(statement: Statement, in_force: Mapping[str, Statement]) -> None:
    """Refuses a literal of a type that the parameter has not, where it stands: at its macro if it has one."""
    source, passed = statement, set[str]()
    while isinstance(source.value, Reference):
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


def _parameters(statement: Statement) -> Mapping[str, inspect.Parameter]:
    configurable: Any = gin.get_configurable(statement.key.rsplit(".", 1)[0].split("/")[-1])
    # gin hides a class's signature behind its own __call__; that of __init__ stays.
    return inspect.signature(configurable.__init__ if inspect.isclass(configurable) else configurable).parameters


def _reachable(statements: Collection[Statement]) -> set[str]:
    """Returns the owners of everything that `train` and the objectives use, directly or not."""
    waiting = [root.__name__ for root in (train, *OBJECTIVES.values())]
    # Macros of an architecture that the run does not choose.
    waiting += [one.name for statement in statements if _is_of_architecture(statement) for one in statement.references]
    used: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in used:
            used.add(name)
            waiting += [one.name for statement in statements if statement.owner == name for one in statement.references]
    return used


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
