r"""All mining jobs in order: WARC and article files to TFRecords for training.

The next run skips finished jobs and resumes an interrupted one. Options of a job are prefixed with its name.
--preset=paper sets those of the data that gin/runs/*_paper.gin reads; options that are given win.

example:
  newsembed build --warc 'crawl/*.warc.gz' --articles archive.jsonl.zst --output work \
      --clean.min_words=80 --vocabulary.size=32000
  newsembed build --warc 'crawl/*.warc.gz' --output work --print_config > build.toml
  newsembed build --config build.toml
"""

import argparse
from collections.abc import Sequence
from typing import Any

from ..beam_pipelines.progress import job_row, print_rows
from ..beam_pipelines.workflow import PRESETS, STEPS, USER_INPUTS, build, load_job
from ..errors import InputError
from . import config_file, encoders
from .job_command import add_options, check_beam_args, options_from
from .parsing import Parser


def main(argv: Sequence[str]) -> int:
    """Runs ``newsembed build``.

    Raises:
      InputError: for bad options, or from the first job that fails.
    """
    parser = make_parser()
    given_arguments = config_file.with_config(parser, argv)
    args, beam_args = parser.parse_known_args(given_arguments)
    if args.preset:
        parser.set_defaults(**preset_values(args.preset))
        args, beam_args = parser.parse_known_args(given_arguments)
    check_beam_args(beam_args, parser)
    if args.print_config:
        print(config_file.text_of(parser, args, beam_args))
        return 0
    given = {name: tuple(getattr(args, name) or ()) for name in USER_INPUTS}
    if not given["warc"] and not given["articles"]:
        raise InputError("no input", field="--warc, --articles", remedy="give WARC files, article files or both")
    options = job_options(args)
    encoders.use()
    rows: list[dict[str, Any]] = []
    try:
        build(given, args.output, options, beam_args, lambda name, outcome: rows.append(job_row(name, outcome)))
    finally:  # the counts and notes of earlier jobs often say why a job fails
        if rows:
            print_rows(rows)

    from ..studies.report import write_report

    write_report(args.output, rows)
    print(f"numbers: {args.output}/report.json   plots and samples: {args.output}/report.html")
    return 0


def job_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of every job, checked.

    Raises:
      InputError: for a value that a job refuses.
    """
    return {step.job: options_from(load_job(step.job).options, vars(args), f"{step.job}.") for step in STEPS}


def preset_values(preset: str) -> dict[str, Any]:
    """The values of a preset by option, such as "pack.max_length"."""
    return {f"{job}.{name}": value for job, values in PRESETS[preset].items() for name, value in values.items()}


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``newsembed build``: the inputs, and the options of every job, prefixed with its name."""
    parser = Parser(
        prog="newsembed build",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, text in USER_INPUTS.items():
        parser.add_argument(f"--{name}", nargs="+", metavar="PATH", help=text)
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="work folder; each job publishes in a folder of its name"
    )
    config_file.add_arguments(parser)
    parser.add_argument(
        "--preset", choices=sorted(PRESETS), help="options of all jobs for the sizes of a published system"
    )
    for step in STEPS:
        add_options(parser.add_argument_group(f"{step.job} options"), load_job(step.job).options, f"{step.job}.")
    return parser
