"""Options that all studies share, and their commands as text."""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError
from ...evaluation.benchmark import Benchmark
from ...evaluation.registry import ALL_SUITES, SUITES, Options, discover


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds where to work, what to train and how often."""
    parser.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="folder of the study; the same command goes on from what is there",
    )
    parser.add_argument(
        "--newsroom",
        nargs="?",
        const="",
        metavar="DIR",
        help="do it on a generated newsroom, small enough for two cores: in OUTPUT/newsroom, or a folder that `newsembed demo` made",
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
    parser.add_argument(
        "--gin",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="gin binding of weak supervision; repeat for more",
    )
    parser.add_argument(
        "--pretrain_gin", action="append", default=[], metavar="NAME=VALUE", help="gin binding of pretraining"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="trainings of each, seeds 0 to N-1 (default: 3)")
    parser.add_argument(
        "--parallel", type=int, metavar="N", help="trainings at a time, each on its share of the cores (default: 1)"
    )
    parser.add_argument(
        "--beam",
        action="append",
        default=[],
        metavar="=--OPTION",
        help="an option of Beam for mining, such as --beam=--runner=DataflowRunner",
    )
    parser.add_argument(
        "--print_commands", action="store_true", help="print one command a launch, for a cluster, and do nothing"
    )
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="only mine, and pretrain what all launches share: the first of these commands",
    )


def require_positive(args: argparse.Namespace, *names: str) -> None:
    """Raises InputError for a given number below 1."""
    for name in names:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f"got {value}, expected at least 1", field=f"--{name}", remedy="give a positive number")


def fill_in(args: argparse.Namespace, defaults: Mapping[str, Any]) -> None:
    """Gives options that are not set their defaults, which depend on others; bindings come before the user's own."""
    for name, value in defaults.items():
        given = getattr(args, name)
        if isinstance(given, list):
            setattr(args, name, [*value, *given])
        elif given is None:
            setattr(args, name, value)


def command_text(name: str, args: argparse.Namespace, extra: Sequence[str] = (), without: Sequence[str] = ()) -> str:
    """The command line that gives these arguments, as a shell reads it."""
    words = ["newsembed", name]
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


def benchmarks_of(suites: Sequence[str], options: Options) -> list[Benchmark]:
    """Benchmarks from ``SUITE=PATH``.

    Raises:
      InputError: for an unknown suite, a path that is not there, or none at all.
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
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.tmp", path)
