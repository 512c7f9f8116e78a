"""``newsembed rejected``: prints records that jobs rejected or could not process, with the reasons.

Example::

    newsembed rejected work/clean
    newsembed rejected work --reason no_author --count 20

Reads ``dead_letters/`` of a job's folder, or of all jobs of a work folder. Each reason has its count, and a table of
records drawn at random: the key, the detail and the start of the record. The key is a document id, a URL, or a file
with a line; in WARC files and translation pairs, with the byte at which the record begins.
"""

import dataclasses

from ..beam_pipelines.progress import print_table
from ..errors import InputError
from ..formats import files
from ..formats.archive import LAST_RUN
from ..formats.command_line import Options, option, required
from ..formats.manifest import MANIFEST

_SAMPLE = 160  # characters of a record that are printed
_COLUMNS = ("key", "detail", "record")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedOptions(Options):
    """Options of ``newsembed rejected``."""

    folder: str = required("folder of a job, or work folder of newsembed build", positional=True, metavar="FOLDER")
    reason: str | None = option(None, "print only the records with this reason (default: all reasons)", metavar="NAME")
    count: int = option(3, "records to print of each reason", ge=1)


OPTIONS = RejectedOptions


def run(options: RejectedOptions) -> int:
    """Runs the command."""
    from ..studies.report import samples

    folder = options.folder.rstrip("/")
    remedy = "give the folder of a job or a work folder"
    if not files.exists(folder):
        raise InputError("no such folder", path=folder, remedy=remedy)
    groups = samples.rejected(folder, options.count)
    if not groups:
        results = (MANIFEST, f"*/{MANIFEST}", LAST_RUN)
        if not any(files.list_files(name, folder) for name in results):
            raise InputError("no rejected or failed records", path=folder, remedy=remedy)
        print(f"{folder}: no record was rejected or failed")
        return 0
    chosen = [group for group in groups if options.reason in (None, group.reason)]
    if not chosen:
        there = ", ".join(f"{group.reason} ({group.count:,})" for group in groups)
        problem = f"no record has the reason {options.reason!r}"
        raise InputError(problem, path=folder, field="--reason", remedy=f"choose one of {there}")
    for group in chosen:
        rows = [(letter.key, letter.detail, letter.sample[:_SAMPLE]) for letter in group.letters]
        filled = [place for place in range(len(_COLUMNS)) if any(row[place] for row in rows)]  # leaves room for keys
        print_table(
            [_COLUMNS[place] for place in filled],
            [[row[place] for place in filled] for row in rows],
            title=f"{group.job}: {group.reason}, {group.count:,} {group.outcome}",
        )
    return 0
