r"""All mining jobs in order: WARC and article files to TFRecords for training.

The next run skips finished jobs and resumes an interrupted one. Options of a job are prefixed with its name.
--preset=paper sets those of the data that gin/runs/*_paper.gin reads; options that are given win.

example:
  newsembed build --warc 'crawl/*.warc.gz' --articles archive.jsonl.zst --output work \
      --clean.min_words=80 --vocabulary.size=32000
  newsembed build @build.txt --output work      # options of a file, with comments; those after it win
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..beam_pipelines.progress import job_row, print_rows
from ..beam_pipelines.workflow import PRESETS, STEPS, USER_INPUTS, build, load_job
from ..errors import InputError
from ..formats.command_line import Options, option, required
from .parsing import beam_arguments, from_files, value_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Output(Options):
    output: str = required("work folder; each job publishes in a folder of its name", metavar="DIR")
    preset: str | None = option(
        None, "options of all jobs for the sizes of a published system", choices=sorted(PRESETS)
    )
    beam_args: tuple[str, ...] = beam_arguments()

    @classmethod
    def expanded(cls, arguments: Sequence[str]) -> list[str]:
        """The arguments with those of files and of the preset."""
        arguments = from_files(arguments)
        chosen = PRESETS.get(value_of("preset", arguments) or "", {})
        return [*(f"--{job}.{name}={value}" for job in chosen for name, value in chosen[job].items()), *arguments]


OPTIONS = dataclasses.make_dataclass(
    "BuildOptions",
    [
        *((name, tuple[str, ...], option((), text, many=True, metavar="PATH")) for name, text in USER_INPUTS.items()),
        *(
            (f"of_{step.job}", load_job(step.job).options, dataclasses.field(metadata={"prefix": f"{step.job}."}))
            for step in STEPS
        ),
    ],
    bases=(_Output,),
    frozen=True,
    kw_only=True,
)
"""The inputs, and a group of options for each job."""


def run(options: Any) -> int:
    """Runs ``newsembed build``."""
    given = {name: getattr(options, name) for name in USER_INPUTS}
    if not given["warc"] and not given["articles"]:
        raise InputError("no input", field="--warc, --articles", remedy="give WARC files, article files or both")
    of_jobs = {step.job: getattr(options, f"of_{step.job}") for step in STEPS}
    rows: list[dict[str, Any]] = []
    try:
        build(given, options.output, of_jobs, options.beam_args, lambda *done: rows.append(job_row(*done)))
    finally:  # the counts and notes of earlier jobs often say why a job fails
        if rows:
            print_rows(rows)

    from ..studies.report import write_report

    write_report(options.output, rows)
    print(f"numbers: {options.output}/report.json   plots and samples: {options.output}/report.html")
    return 0
