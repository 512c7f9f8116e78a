"""Options that all studies share, and their commands as text."""

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import InputError
from ...evaluation.benchmark import Benchmark
from ...evaluation.registry import ALL_SUITES, SUITES, Options, discover

_IMPORTS: Final = "NEWSEMBED_IMPORT"  # modules that this process has imported, see launch.extensions


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where to work, what to train, and how often."""
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder of the study; the same command resumes a study"
    )
    parser.add_argument(
        "--newsroom",
        nargs="?",
        const="",
        metavar="DIR",
        help="run on a generated newsroom, small enough for two cores: a new one in OUTPUT/newsroom, or with DIR the "
        "one that `newsembed demo` or another study made there",
    )
    parser.add_argument(
        "--base", metavar="FILE", help="run file of weak supervision (default: runs/weak_supervision_paper.gin)"
    )
    parser.add_argument(
        "--pretrain_base", metavar="FILE", help="run file of pretraining (default: runs/pretrain_paper.gin)"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="steps of weak supervision (default: the run file's)")
    parser.add_argument(
        "--pretrain_steps", type=int, metavar="N", help="steps of pretraining (default: the run file's)"
    )
    add_repeated(parser, "--gin", "NAME=VALUE", "gin binding of weak supervision")
    add_repeated(parser, "--pretrain_gin", "NAME=VALUE", "gin binding of pretraining")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="train each model N times, with seeds 0 to N-1 (default: 3)"
    )
    parser.add_argument(
        "--parallel", type=int, metavar="N", help="trainings at a time, each on its share of the cores (default: 1)"
    )
    add_repeated(parser, "--beam", "=--OPTION", "a Beam option for mining, such as --beam=--runner=DataflowRunner")
    parser.add_argument(
        "--print_commands", action="store_true", help="run nothing; print one command for each launch on a cluster"
    )
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="only mine, and pretrain what all launches share: the first of these commands",
    )


def add_repeated(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    """Adds an option that may be given several times, a list."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=f"{text}; may be repeated")


def add_suite_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--suite`` and ``--cross_publisher``, see :func:`benchmarks_of`."""
    add_repeated(
        parser, "--suite", "SUITE=PATH", "a benchmark as for `newsembed evaluate`, such as events=heldout.jsonl"
    )
    parser.add_argument(
        "--cross_publisher", action="store_true", help="events: leave out candidates of the query's publisher"
    )


def add_numbers(
    parser: argparse.ArgumentParser, defaults: Any, kind: type[int | float], *rows: tuple[str, str, str]
) -> None:
    """Adds options with a number.

    Args:
      parser: of the command.
      defaults: an object with a field for each option.
      kind: of the numbers.
      rows: (name, metavar, help) of each option.
    """
    for name, metavar, text in rows:
        default = getattr(defaults, name)
        parser.add_argument(
            f"--{name}", type=kind, default=default, metavar=metavar, help=f"{text} (default: {default})"
        )


def require_positive(args: argparse.Namespace, *names: str) -> None:
    """Checks numbers of the command line.

    Raises:
      InputError: if one is given and below 1.
    """
    for name in names:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f"got {value}, expected at least 1", field=f"--{name}", remedy="give a positive number")


def fill_in(args: argparse.Namespace, defaults: Mapping[str, Any]) -> None:
    """Sets options that are not given to these defaults; in lists, defaults come before the given values."""
    for name, value in defaults.items():
        given = getattr(args, name)
        if isinstance(given, list):
            setattr(args, name, [*value, *given])
        elif given is None:
            setattr(args, name, value)


def print_launches(command: str, args: argparse.Namespace, option: str, values: Sequence[str]) -> int:
    """Prints the commands that split a study over a cluster: preparation, one launch for each value, the table."""
    without = ("print_commands", "prepare", option)
    print("# first, once:")
    print(command_text(command, args, ["--prepare"], without))
    print("# then these, in any order or at the same time:")
    for value in values:
        print(command_text(command, args, [f"--{option}", value], without))
    print("# last, the table:")
    print(command_text(command, args, [], without))
    return 0


def command_text(name: str, args: argparse.Namespace, extra: Sequence[str], without: Sequence[str]) -> str:
    """The command line with these arguments, quoted for a shell."""
    modules = [module for module in os.environ.get(_IMPORTS, "").split(",") if module]
    words = ["newsembed", *(f"--import={module}" for module in modules), name]
    for option, value in vars(args).items():
        if option in without or value in (None, False, []):
            continue
        if value is True or value == "":
            words.append(f"--{option}")
        elif isinstance(value, list):
            words += [f"--{option}={item}" for item in value]
        else:
            words += [f"--{option}", str(value)]
    return shlex.join([*words, *extra])


def tell(problems: Mapping[str, str]) -> int:
    """Prints what went wrong, by name; returns the exit code: 1 if anything did."""
    for name, text in problems.items():
        print(f"failed: {name}: {text}", file=sys.stderr)
    return 1 if problems else 0


def benchmarks_of(suites: Sequence[str], options: Options) -> list[Benchmark]:
    """Benchmarks from ``SUITE=PATH``.

    Raises:
      InputError: for an unknown suite, a path that does not exist, or no suite at all.
    """
    pairs = [suite.partition("=") for suite in suites]
    kinds = [kind for kind, _, _ in pairs]
    found: list[Benchmark] = []
    for kind, _, path in pairs:
        if kind not in {*SUITES, ALL_SUITES} or not path:
            known = ", ".join([*SUITES, ALL_SUITES])
            raise InputError(f"got {kind!r}", field="--suite", remedy=f"write SUITE=PATH with one of {known}")
        if not os.path.exists(path):
            raise InputError("no such file or folder", path=path, field="--suite", remedy="check the path")
        if kind == ALL_SUITES:
            found += discover(path, options)
        else:
            found.append(
                SUITES[kind](path, f"{kind} {os.path.basename(path)}" if kinds.count(kind) > 1 else kind, options)
            )
    if not found:
        raise InputError(
            "no benchmark", field="--suite", remedy="give at least one, such as --suite events=heldout.jsonl"
        )
    return found


def write_text(path: str, text: str) -> None:
    """Writes a file, complete or not at all."""
    # Half a surrogate pair, which JSON input may contain, has no UTF-8 form.
    with open(f"{path}.tmp", "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    os.replace(f"{path}.tmp", path)
