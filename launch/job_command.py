"""The command line of a mining job, made from its declaration; Beam's own options may follow the job's."""

import argparse
import dataclasses
import datetime
import enum
import sys
import types
import typing
from collections.abc import Sequence
from typing import Any, Final

from ..beam_pipelines import dry_run
from ..beam_pipelines.emptiness import why_empty
from ..beam_pipelines.jobs import Job, execute
from ..beam_pipelines.progress import JobProgress, print_outcomes
from ..errors import InputError, counted
from . import encoders
from .parsing import Parser, nearest, option_names

_DRY_RUN: Final = "--dry_run"


def run(job: Job, argv: Sequence[str]) -> int:
    """Runs one job from its command line and prints its counts."""
    parser = make_parser(job)
    args, beam_args = parser.parse_known_args(argv)
    check_beam_args(beam_args, parser)
    inputs = {spec.name: tuple(getattr(args, spec.name) or ()) for spec in job.inputs}
    options = options_from(job.options, vars(args))
    encoders.use()
    if args.dry_run:
        _show_plan(dry_run.plan(job, inputs, args.output, options, beam_args, args.dry_run))
        return 0
    with JobProgress(job.name) as progress:
        outcome = execute(job, inputs, args.output, options, beam_args, progress, progress.say)
    print_outcomes([(job.name, outcome)])
    if empty := why_empty(job, outcome.manifest, args.output):
        print(f"newsembed {job.name}: note: {empty}", file=sys.stderr)
    return 0


def _show_plan(planned: dry_run.Plan) -> None:
    for pipeline in planned.pipelines:
        print(f"pipeline {pipeline.name}: {counted(pipeline.stages, 'stage')}, {counted(pipeline.shuffles, 'shuffle')}")
        for name, shard_count in pipeline.phases:
            print(f"  phase {name}: {counted(shard_count, 'shard')}")
        for transform in pipeline.transforms:
            print(f"    {transform}")
    print("sent to workers: " + (", ".join(planned.staged) or "nothing"))
    for remark in planned.remarks:
        print(f"note: {remark}")
    print("nothing was run; written:\n  " + "\n  ".join(planned.files))


def make_parser(job: Job) -> argparse.ArgumentParser:
    """The parser of ``newsembed <job>``."""
    parser = Parser(
        prog=f"newsembed {job.name}",
        description=job.summary[0].upper() + job.summary[1:],
        epilog=f"example:\n  {job.example}\n\nBeam's own options may follow, such as --runner=DataflowRunner "
        "--region=europe-west4 --setup_file=./setup.py",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for spec in job.inputs:
        parser.add_argument(f"--{spec.name}", nargs="+", required=spec.required, metavar="PATH", help=spec.help)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to publish the result in")
    parser.add_argument(
        _DRY_RUN,
        nargs="?",
        const="dry-run",
        metavar="DIR",
        help="run nothing: check the runner's options, build the pipelines and the package for its workers, and write "
        "them to DIR (default: dry-run)",
    )
    add_options(parser, job.options)
    return parser


def add_options(parser: argparse._ActionsContainer, options: type, prefix: str = "") -> None:
    """Adds ``--[prefix]name=value`` for each field of an options dataclass, with the field's default and help."""
    hints = typing.get_type_hints(options)
    for field in dataclasses.fields(options):
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        parser.add_argument(
            f"--{prefix}{field.name}",
            dest=f"{prefix}{field.name}",
            type=_converter(hints[field.name]),
            default=default,
            metavar=_metavar(hints[field.name]),
            help=(field.metadata.get("help", "") + _shown_default(default)).replace("%", "%%"),
        )


def _shown_default(value: Any) -> str:
    """The default as it is written on the command line; nothing where an option is empty."""
    if value in (None, "", ()):
        return ""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(getattr(value, "value", value))
    return f" (default: {text.lower() if isinstance(value, bool) else text})"


def options_from(options: type, values: dict[str, Any], prefix: str = "") -> Any:
    """Builds the options dataclass from parsed arguments; its ``__post_init__`` checks the values."""
    return options(**{field.name: values[f"{prefix}{field.name}"] for field in dataclasses.fields(options)})


def _converter(hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _converter(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        item = _converter(arguments[0])
        return lambda text: tuple(item(part) for part in text.split(",") if part)
    if hint is bool:
        return _boolean
    if hint is datetime.date:
        return datetime.date.fromisoformat
    return hint


def _boolean(text: str) -> bool:
    choices = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in choices:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected true or false")
    return choices[text.lower()]


def _metavar(hint: Any) -> str:
    arguments = [
        argument for argument in typing.get_args(hint) if argument is not type(None) and argument is not Ellipsis
    ]
    if typing.get_origin(hint) is tuple:
        return f"{_metavar(arguments[0])},…"
    if arguments:
        return _metavar(arguments[0])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "{" + ",".join(str(member.value) for member in hint) + "}"
    return {int: "N", float: "X", bool: "true|false", str: "TEXT", datetime.date: "YYYY-MM-DD"}.get(hint, "VALUE")


def check_beam_args(beam_args: Sequence[str], own: argparse.ArgumentParser | None = None) -> None:
    """Checks that Beam knows these options: Beam itself drops unknown ones with a warning.

    Args:
      beam_args: what the job's own parser does not know.
      own: that parser; its options are named first.

    Raises:
      InputError: for an unknown option, with the closest known one; for a dry run of a command that has none.
    """
    if not beam_args:
        return
    if any(argument.partition("=")[0] == _DRY_RUN for argument in beam_args):  # Beam has one for its own tests
        raise InputError(
            "only the command of a single job has it", field=_DRY_RUN, remedy="try `newsembed clean --help`"
        )
    from apache_beam.options.pipeline_options import PipelineOptions

    prog = own.prog if own else "newsembed"
    parser = Parser(prog, add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)  # noqa: SLF001 - Beam offers no public list of its options
    _, unknown = parser.parse_known_args(list(beam_args))
    if unknown:
        name = unknown[0].partition("=")[0]
        actions = parser._actions  # noqa: SLF001 - argparse offers no public list either
        known = [option for action in actions for option in action.option_strings]
        close = nearest(name, option_names(own)) if own else []
        close = close or nearest(name, known)
        raise InputError(
            "no such option",
            field=name,
            remedy=f"{f'did you mean {close[0]}? ' if close else ''}see --help for the job's own options",
        )
