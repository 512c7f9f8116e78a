"""The report of a build: ``report.json`` with every number, and ``report.html`` with plots and samples."""

import datetime
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ... import __version__
from ...formats import files
from . import page, plots, samples, yields

_SECRET: Final = re.compile(r"--\S*(secret|token|password|key|credential)", re.IGNORECASE)  # options of Beam, too


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
    shown, hidden = ["newsembed"], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        secret = bool(_SECRET.match(name))
        if secret and equals:
            shown.append(f"{name}=…")
        else:
            shown.append("…" if hidden and not argument.startswith("--") else shlex.quote(argument))
        hidden = secret and not equals
    return " ".join(shown)
