"""The report of a build: ``report.json`` with every number, and ``report.html`` with plots and samples."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...formats import files
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
    )
    with files.open_write(f"{output}/report.html") as sink:
        sink.write(text.encode("utf-8"))
