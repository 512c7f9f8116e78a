"""``newsembed COMMAND …``: finds the command, parses its arguments and prints user errors without a traceback.

``newsembed --import MODULE COMMAND …`` imports modules of the user that register architectures, objectives and tasks: a
model folder names the kind of its architecture and never code. The environment variable NEWSEMBED_IMPORT names modules
too, separated by commas; processes that a command starts inherit them.
"""

import argparse
import dataclasses
import functools
import importlib
import logging
import os
import re
import resource
import select
import signal
import sys
import tomllib
import traceback
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .. import __version__
from ..beam_pipelines.failures import VERBOSE
from ..beam_pipelines.worker import PARENT, end_with
from ..errors import InputError, exit_code_of, of_file_system, of_memory, refusing
from ..formats.command_line import IMPORTS, named_imports
from ..formats.files import packaged
from . import extras
from .parsing import Parser, add_options, beam_arguments, did_you_mean, parse

if TYPE_CHECKING:
    from ..beam_pipelines.jobs import Job

IMPORT: Final = "--import"
_ADDRESS_SPACE: Final = 16 << 30  # bytes that libraries may reserve, most of which they do not use
_VERBOSE: Final = "--verbose"
_PAGE_COLUMNS: Final = 110
# The first screen: the commands of every day, those of a model, and those of a pipeline from zero.
_FIRST: Final = str.split("explore update search serve lift evaluate embed export demo build train doctor")
_ALL: Final = ["help", "all"]
# Commands that keep nothing of a run that was stopped.
_WHOLE: Final = str.split("newsroom import-hf export embed index search evaluate diagnose cluster dedup verify")
_CLOSED_OUTPUT: Final = 141  # as a shell reports SIGPIPE


@dataclasses.dataclass(frozen=True)
class Command:
    """One command: its group and summary for ``newsembed --help``, its module, and the extras that it always needs.

    The module is a job of ``beam_pipelines`` (with ``JOB``), or offers ``OPTIONS`` and ``run(options)`` (see
    `formats.command_line`). It is imported when the command runs.
    """

    group: str
    summary: str
    module: str
    extras: tuple[str, ...] = ()


COMMANDS: Final = {
    name: Command(group, summary, module, tuple(needed.split()))
    for group, rows in tomllib.loads(packaged(__package__, "commands.toml")).items()
    for name, (module, needed, summary) in rows.items()
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Returns:
      0 for success, 1 for a result that misses its target, 2 for an error that the user can fix, 130 for Ctrl-C, 143
      for SIGTERM where a command can be resumed, 141 where the reader of the output has closed it, such as ``head``.

    Raises:
      BrokenPipeError: of another pipe or connection.
    """
    try:
        code = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # not at the end of the process, where an error can only be printed
    except BrokenPipeError:
        pipe, poll = sys.stdout.fileno(), select.poll()
        poll.register(pipe, select.POLLOUT)
        if not any(events & select.POLLERR for _, events in poll.poll(0)):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)  # what is still in the buffer goes there
        return _CLOSED_OUTPUT
    return code


def _main(given: list[str]) -> int:
    if _VERBOSE in given:
        given.remove(_VERBOSE)
        os.environ[VERBOSE] = "1"
    modules, arguments = split_imports(given)
    if arguments[:1] == ["help"] and len(arguments) > 1 and arguments != _ALL:
        arguments = [arguments[1], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview(is_all=arguments == _ALL))
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"newsembed {__version__}")
        return 0
    name = arguments[0]
    prepare_libraries()
    _note_limit()
    parent = int(os.environ.get(PARENT, os.getpid()))
    if parent != os.getpid():  # a study started this process; SIGTERM lets training save
        end_with(parent, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        import_modules(modules)
        return _run(name, arguments[1:])
    except KeyboardInterrupt as stopped:
        advice = "the same command starts from the beginning"
        advice = advice if name in _WHOLE else "run the same command again to resume"
        print(f"\nnewsembed {name}: stopped; {advice}", file=sys.stderr)
        return exit_code_of(type(stopped))
    except Exception as error:
        if (said := _correctable(error)) is None:
            raise
        if VERBOSE in os.environ:
            traceback.print_exc()
        print(f"newsembed {name}: error: {said}", file=sys.stderr)
        return 2


def _note_limit() -> None:
    """Says that a limit of memory is low: libraries that meet it stop the process before anything can be said."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _ADDRESS_SPACE and PARENT not in os.environ:
        said = f"ulimit -v allows {limit / (1 << 30):.1f} GB of memory; if a library aborts, allow more"
        print(f"newsembed: note: {said}", file=sys.stderr)


def _correctable(error: Exception) -> InputError | None:
    """The error that tells the user what to do; None for errors of ours."""
    if isinstance(error, ModuleNotFoundError):
        module = error.name or ""
        return extras.not_installed(module, extra) if (extra := extras.of_module(module)) else None
    if isinstance(error, InputError):
        return error
    return (of_file_system(error) if isinstance(error, OSError) else None) or of_memory(error)


def split_imports(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The modules that options before the command name, and the other arguments.

    >>> split_imports(["--import", "star", "--import=tree", "embed", "--model", "m"])
    (['star', 'tree'], ['embed', '--model', 'm'])
    """
    modules, rest = [], list(arguments)
    while rest and rest[0].partition("=")[0] == IMPORT:
        _, equals, module = rest.pop(0).partition("=")
        modules.append(module if equals or not rest else rest.pop(0))
    return modules, rest


def import_modules(modules: Sequence[str]) -> None:
    """Imports these modules and those that the environment names, and tells child processes to do so."""
    wanted = list(dict.fromkeys([*named_imports(), *modules]))
    for module in wanted:
        remedy = "write newsembed --import MODULE COMMAND …; install the module, or add its folder to PYTHONPATH"
        wrong = (ImportError, ValueError)  # the second for an empty name
        with refusing(f"cannot import {module}:", *wrong, field=IMPORT, remedy=remedy):
            importlib.import_module(module)
    if wanted:
        os.environ[IMPORTS] = ",".join(wanted)


def overview(*, is_all: bool = False) -> str:
    """The text of ``newsembed --help``, or that of ``newsembed help all``, with every command by its group."""
    lines = [
        f"newsembed {__version__}: document embeddings for news, from raw crawl to served encoder",
        "",
        "usage: newsembed [--import MODULE] [--verbose] COMMAND [options]",
    ]
    groups: dict[str, list[str]] = {}
    for name in COMMANDS if is_all else _FIRST:
        groups.setdefault(f"{COMMANDS[name].group}:" if is_all else "", []).append(name)
    for group, names in groups.items():
        width = max(map(len, COMMANDS)) + 1
        lines += ["", *filter(None, [group])]
        lines += [f"  {name:<{width}}{COMMANDS[name].summary}" for name in names]
    more = [] if is_all else [f"`newsembed {' '.join(_ALL)}` shows all {len(COMMANDS)} commands."]
    lines += ["", "`newsembed COMMAND --help` shows the options of a command and an example.", *more]
    return "\n".join([*lines, "--verbose shows the traceback of an error."])


def overview_page() -> str:
    """The page of the documentation that lists all commands by group, with links to their pages in the same folder."""
    text = re.sub(r"^  (\S+)( +.*)$", r"- [`\1`](\1.md): \2", overview(is_all=True), flags=re.MULTILINE)
    text = re.sub(r"^usage: (.*)$", r"usage: `\1`", re.sub(": +", ": ", text), flags=re.MULTILINE)
    return f"# Commands\n\n{text}\n"


def command_page(name: str) -> str:
    """The page of the documentation for a command: what ``--help`` prints."""
    parser = parser_of(name)
    parser.formatter_class = functools.partial(argparse.RawDescriptionHelpFormatter, width=_PAGE_COLUMNS)
    return f"# newsembed {name}\n\n```text\n{parser.format_help()}```\n"


def prepare_libraries() -> None:
    """Hides the log messages of libraries but their errors, and lets OpenBLAS's threads sleep while they wait.

    Must be called before any library is imported: some log during the import, which installs a handler for everything,
    and OpenBLAS reads its settings then.
    """
    own = (__package__ or "").partition(".")[0]
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.levelno >= logging.ERROR or record.name.startswith(f"{own}."))
    # An error inside a pipeline is raised again where it is reported.
    handler.addFilter(lambda record: VERBOSE in os.environ or not record.name.startswith("apache_beam.runners"))
    logging.getLogger().addHandler(handler)
    # TensorFlow raises its errors as exceptions too; most errors that its C++ code logs only say that there is no GPU.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of a table that it makes
    # 2^4 cycles in place of 2^26: on busy cores, threads that wait in a loop double the CPU time of a search, and take
    # nine times that of latent semantics.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def parser_of(name: str, module: types.ModuleType | None = None) -> Parser:
    """Returns the parser of a command; imports its module unless it is given."""
    module = module or load(name)
    if hasattr(module, "JOB"):
        epilog = f"example:\n  {module.JOB.example}\n\nBeam's own options may follow, such as --runner=DataflowRunner "
        epilog += "--region=europe-west4"
        summary = COMMANDS[name].summary
        parser = Parser(f"newsembed {name}", summary[0].upper() + summary[1:], epilog)
    else:
        parser = Parser(f"newsembed {name}", module.__doc__)
    add_options(parser, options_of(module))
    return parser


def options_of(module: types.ModuleType) -> type:
    """The dataclass of the options of a command; that of a job has its inputs, ``--output`` and Beam's options too."""
    if not hasattr(module, "JOB"):
        return module.OPTIONS
    from ..formats.command_line import Options, option, required

    job: Job = module.JOB
    fields: list[tuple[str, Any, Any]] = [
        (spec.name, tuple[str, ...], declare(spec.help, many=True, metavar="PATH"))
        for spec in job.inputs
        for declare in (required if spec.required else functools.partial(option, ()),)
    ]
    fields += [
        ("output", str, required("folder to publish the result in", metavar="DIR")),
        ("job", job.options, dataclasses.field(metadata={"prefix": ""})),
        ("beam_args", tuple[str, ...], beam_arguments()),
    ]
    return dataclasses.make_dataclass(job.name, fields, bases=(Options,), frozen=True, kw_only=True)


def load(name: str) -> types.ModuleType:
    """Imports the module of a command.

    Raises:
      InputError: if there is no such command.
    """
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        raise InputError(f"no such command: {name}", remedy=f"{hint}see `newsembed {' '.join(_ALL)}`")
    return importlib.import_module(f"..{COMMANDS[name].module}", __package__)


def _run(name: str, rest: list[str]) -> int:
    if name in COMMANDS:
        extras.require(COMMANDS[name].extras)
    module = load(name)
    options = parsed(name, module, rest)
    return _run_job(module.JOB, options) if hasattr(module, "JOB") else int(module.run(options))


def parsed(name: str, module: types.ModuleType, rest: Sequence[str]) -> Any:
    """What a command gets for the words of a command line."""
    return parse(parser_of(name, module), options_of(module), rest)


def _run_job(job: "Job", options: Any) -> int:
    """Runs one job and prints its counts."""
    from ..beam_pipelines.jobs import execute
    from ..beam_pipelines.progress import JobProgress, print_outcome, why_empty

    inputs = {spec.name: getattr(options, spec.name) for spec in job.inputs}
    with JobProgress(job.name) as progress:
        outcome = execute(job, inputs, options.output, options.job, options.beam_args, progress)
    print_outcome(job.name, outcome)
    if empty := why_empty(job, inputs, outcome.manifest, options.output):
        print(f"newsembed {job.name}: note: {empty}", file=sys.stderr)
    return 0
