"""Reads gin files: the statements of a file and of those that it includes, each with its place.

It needs gin alone, so that what is wrong in a file is said before anything large is imported.
"""

import dataclasses
import difflib
import importlib
import os
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import gin
from gin import config_parser

from ..errors import InputError, reading, refusing
from ..formats.command_line import named_imports
from ..formats.files import read_bytes
from . import gin_t5x

# Read before every run file, which may take other objectives and another optimizer. The second is included in the
# first, the third in "models/trainer.gin".
DEFAULTS: Final = ("models/defaults.gin", "models/objectives.gin", "models/adam.gin")
# What gin files of newsembed and of T5X import; these modules only define things when they are imported. Importing a
# module runs its code, and gin files come from others, too.
ALLOWED: Final = ((__package__ or "").partition(".")[0], "flax", "jax", "optax", "seqio", "t5x")
REQUIRED: Final = "%gin.REQUIRED"
UNUSED: Final = "got a key that nothing uses"
GIN_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gin")


@dataclasses.dataclass(frozen=True)
class Reference:
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
class Statement:
    """One "key = value" of a file or the command line.

    Attributes:
      owner: "%NAME" of a macro, or the last part of the configurable's name.
      parameter: empty for a macro.
      key: for gin.
      value: the literal, with references inside; a `Reference` if it is one.
      references: in the value.
      place: "file:line" or the option.
      path: of the file of T5X that has it, else empty.
    """

    owner: str
    parameter: str
    key: str
    value: Any
    references: tuple[Reference, ...]
    place: str
    path: str = ""

    @property
    def is_default(self) -> bool:
        """Whether no run file has written it; a run may use another optimizer than the defaults do."""
        return self.place.startswith(tuple(f"{os.path.join(GIN_FOLDER, name)}:" for name in DEFAULTS))

    @property
    def is_of_package(self) -> bool:
        """Whether a file of the package has written it."""
        return self.place.startswith(f"{GIN_FOLDER}{os.sep}")


class _Recorder(config_parser.ParserDelegate):
    """Makes the references of a value while gin's own parser reads it; those of T5X get our names."""

    def __init__(self, *, is_of_t5x: bool) -> None:
        self.references: list[Reference] = []
        self._is_of_t5x = is_of_t5x

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> Reference:
        name = scoped_configurable_name.rsplit("/", maxsplit=1)[-1].rsplit(".", maxsplit=1)[-1]
        written = name if self._is_of_t5x else scoped_configurable_name
        return self._noted(Reference(name, f"@{written}{'()' if evaluate else ''}"))

    def macro(self, macro_name: str) -> Reference:
        name = f"%{gin_t5x.MACROS.get(macro_name, macro_name) if self._is_of_t5x else macro_name}"
        return self._noted(Reference(name, name))

    def _noted(self, reference: Reference) -> Reference:
        self.references.append(reference)
        return reference


class Reader:
    """Reads statements.

    Args:
      search_paths: looked up before the working directory and the installed package's `gin/` folder.
      allow_imports: modules that the files may import, in addition to `ALLOWED` and those of `newsembed --import`.
      names: returns what a file of T5X may configure under our own name. None leaves that out, and imports nothing.

    Attributes:
      imports: import statements, as written.
      unknown: by file of T5X, the names in it without a meaning here.
    """

    def __init__(
        self,
        search_paths: Sequence[str],
        allow_imports: Collection[str],
        names: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self._folders, self._allowed, self._names = [*search_paths, "", GIN_FOLDER], allow_imports, names
        self._open: list[str] = []
        self.imports: list[str] = []
        self.unknown: dict[str, list[str]] = defaultdict(list)

    def all(self, files: Sequence[str], bindings: Sequence[str]) -> dict[str, Statement]:
        """The statements in force, by their keys: those of the defaults, the files and the command line, in this order.

        Raises:
          InputError: for a file that does not exist or parse, includes itself, or imports what it may not.
        """
        named = [os.path.join(GIN_FOLDER, DEFAULTS[0]), *files]
        statements = [one for name in named for one in self.file(name, "--gin_file")]
        statements += [one for binding in bindings for one in self.text(binding)]
        return {one.key: one for one in statements}

    def file(self, name: str, asked_by: str) -> Iterator[Statement]:
        """Yields the statements of a file and of those that it includes."""
        path = _find(name, self._folders, asked_by)
        if (real := os.path.realpath(path)) in self._open:
            chain = " includes ".join([*self._open[self._open.index(real) :], real])
            raise InputError(f"the file includes itself: {chain}", path=asked_by, remedy="Delete this line.")
        self._open.append(real)
        with reading(path, "Name a text file in UTF-8."):
            text = read_bytes(path, "Name a text file in UTF-8.").decode()
        yield from self.text(text, path)
        self._open.pop()

    def text(self, text: str, path: str = "") -> Iterator[Statement]:
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
        allowed = (*ALLOWED, *named_imports(), *self._allowed)
        if not any(module == name or module.startswith(f"{name}.") for name in allowed):
            raise InputError(
                "a gin file may not import this module, because that runs its code",
                path=place,
                field=f"import {module}",
                remedy=f"If you trust this module, add --allow_import {module.partition('.')[0]}; otherwise do not use "
                "the file.",
            )
        self.imports.append(statement.format())
        if self._names is None:
            return
        about = {"path": place, "remedy": "Install it, or add its folder to PYTHONPATH."}
        # What it registers; a run in this process may have locked it.
        with refusing("cannot import a module:", ImportError, **about), gin.unlock_config():
            importlib.import_module(module)

    def _binding(
        self, statement: Any, references: tuple[Reference, ...], place: str, t5x_path: str
    ) -> Iterator[Statement]:
        parameter, value = statement.arg_name, statement.value
        scope = f"{statement.scope}/" if statement.scope else ""
        written = f"{scope}{statement.selector}" + (f".{parameter}" if parameter else "")
        owner, key = statement.selector.rsplit(".", maxsplit=1)[-1], written
        if t5x_path:
            if f"{scope}{owner}.{parameter}" in gin_t5x.WIRING:
                return
            ours = gin_t5x.translated(scope, owner, parameter, value, self._names() if self._names else ())
            if ours is None:
                self.unknown[t5x_path].append(written)
                return
            key, value = ours
            if repr(value) == f"%{key}":  # the macro has its value elsewhere
                return
            parameter = parameter if "." in key else ""
        yield Statement(owner if parameter else f"%{key}", parameter, key, value, references, place, t5x_path)


def _find(name: str, folders: Sequence[str], asked_by: str) -> str:
    candidates = [os.path.join(folder, name) for folder in folders]
    for path in candidates:
        if os.path.isfile(path):
            return path
        if os.path.isdir(path):
            remedy = f"Name a file, such as {path.rstrip('/')}/config.gin of a run."
            raise InputError("is a folder, expected a gin file", path=path, field=asked_by, remedy=remedy)
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


def check_files(
    files: Sequence[str], bindings: Sequence[str], search_paths: Sequence[str] = (), allow_imports: Collection[str] = ()
) -> None:
    """Checks what can be said without the classes that files configure, see `gin_config.load_gin`.

    Raises:
      InputError: as `Reader.all` and `check_macros`.
    """
    in_force = Reader(search_paths, allow_imports).all(files, bindings)
    if not any(statement.path for statement in in_force.values()):  # of T5X
        check_macros(in_force)


def check_macros(in_force: Mapping[str, Statement]) -> None:
    """Checks that each macro that a value names is set, that each is used, and each required key has a value.

    Raises:
      InputError: for the first that is not, or naming all required keys.
    """
    macros = {statement.owner for statement in in_force.values() if not statement.parameter}
    used = {reference.name for statement in in_force.values() for reference in statement.references}
    for statement in in_force.values():
        for reference in statement.references:
            if reference.name.startswith("%") and reference.name not in (*macros, REQUIRED):
                problem = f"the value names {reference}, which nothing sets"
                if statement.is_of_package:  # no typo: the run leaves out what the package's file needs
                    remedy = f"Set --gin.{reference.name[1:]}=<value>, or set it in the run file."
                    raise InputError(problem, path=statement.place, field=statement.key, remedy=remedy)
                raise typo(statement, problem, reference.name, macros)
        if not statement.parameter and statement.owner not in used and not statement.is_default:
            raise typo(statement, UNUSED, statement.owner, macros & used)
    if needed := [one for one in in_force.values() if any(used.name == REQUIRED for used in one.references)]:
        options = " ".join(f"--gin.{statement.key}=<value>" for statement in needed)
        problem = (
            "the key is required and has no value" if len(needed) == 1 else "these keys are required, with a value"
        )
        names = ", ".join(statement.key for statement in needed)
        raise InputError(problem, path=needed[0].place, field=names, remedy=f"Set {options}, strings in quotes.")


def typo(statement: Statement, problem: str, name: str, known: Iterable[str]) -> InputError:
    """The error of a name that is not known, with the nearest known one."""
    plain = sorted(other.removeprefix("%") for other in known)
    remedy = _suggest(name.removeprefix("%"), plain) or f"Correct or delete it; known here: {', '.join(plain)}."
    return InputError(f"{problem}; probably a typo", path=statement.place, field=statement.key, remedy=remedy)


def _suggest(name: str, known: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else None
