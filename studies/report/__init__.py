"""The report of a build: ``report.json`` with every number, and ``report.html`` with plots and samples."""

import datetime
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ... import __version__
from ...formats import files
from ...formats.command_line import LEFT_OUT, without_secrets
from . import page, plots, samples, yields


def write_report(output: str, rows: Sequence[Mapping[str, Any]], sections: Mapping[str, Any] | None = None) -> None:
    """Writes ``report.json`` and a self-contained ``report.html``.

    Args:
      output: work folder of the build; plots and samples are read from its jobs' streams.
      rows: numbers by job, see ``beam_pipelines.progress.job_row``.
      sections: further parts of report.json (scores, evaluation, checks), shown as tables.
    """
    report = {"jobs": [dict(row) for row in rows], **(sections or {})}
    files.write_json(f"{output}/report.json", report)
    text = page.render(
        report,
        plots.all_plots(output, rows),
        samples.rejected(output),
        samples.triplets(output),
        yields.of_build(output),
        facts={
            "written": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "newsembed": __version__,
            "command": shown_command(sys.argv[1:]),
        },
    )
    with files.open_write(f"{output}/report.html") as sink:
        sink.write(text.encode("utf-8"))


def shown_command(arguments: Sequence[str]) -> str:
    """The command line as one would type it, without the values of options that hold secrets, such as S3 keys."""
    words = without_secrets(arguments)
    return " ".join(["newsembed", *(word if word.endswith(LEFT_OUT) else shlex.quote(word) for word in words)])
