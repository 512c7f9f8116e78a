"""``newsembed rejected``: prints records that jobs rejected or could not process, with the reasons.

Example::

    newsembed rejected work/clean
    newsembed rejected work --reason no_author --count 20

Reads ``dead_letters/`` of a job's folder, or of all jobs of a work folder. Each reason has its count, and a table of
records drawn at random: the key (a document id, a URL, or a file with a line), the detail and the start of the record.
"""

import argparse

from ..beam_pipelines.progress import print_table
from ..errors import InputError
from ..formats import files
from ..formats.archive import LAST_RUN, POINTER
from ..formats.manifest import MANIFEST

_SAMPLE = 160  # characters of a record that are printed
_COLUMNS = ("key", "detail", "record")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed rejected``."""
    parser.add_argument("folder", metavar="FOLDER", help="folder of a job, or work folder of newsembed build")
    parser.add_argument(
        "--reason", metavar="NAME", help="print only the records with this reason (default: all reasons)"
    )
    parser.add_argument(
        "--count", type=int, default=3, metavar="N", help="records to print of each reason (default: 3)"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
      InputError: if there is no such folder, it holds no result, or no record has the reason.
    """
    if args.count < 1:
        raise InputError(f"got {args.count}, expected at least 1", field="--count", remedy="give a positive number")
    from ..studies.report import samples

    if not files.exists(args.folder):
        raise InputError("no such folder", path=args.folder, remedy="give the folder of a job or a work folder")
    groups = samples.rejected(args.folder.rstrip("/"), args.count)
    if not groups:
        _require_result(args.folder.rstrip("/"))
        print(f"{args.folder}: no record was rejected or failed")
        return 0
    kept = [group for group in groups if args.reason in (None, group.reason)]
    if not kept:
        there = ", ".join(f"{group.reason} ({group.count:,})" for group in groups)
        raise InputError(
            f"no record has the reason {args.reason!r}",
            path=args.folder,
            field="--reason",
            remedy=f"choose one of {there}",
        )
    for group in kept:
        rows = [(letter.key, letter.detail, letter.sample[:_SAMPLE]) for letter in group.letters]
        filled = [place for place in range(len(_COLUMNS)) if any(row[place] for row in rows)]  # leaves room for keys
        print_table(
            [_COLUMNS[place] for place in filled],
            [[row[place] for place in filled] for row in rows],
            title=f"{group.job}: {group.reason}, {group.count:,} {group.outcome}",
        )
    return 0


def _require_result(folder: str) -> None:
    """Checks that a folder is that of a job, of a build or of an archive.

    Raises:
      InputError: if not.
    """
    names = [f"{part}{MANIFEST}" for part in ("", "*/")] + [POINTER, LAST_RUN]
    if not any(files.list_files(f"{folder}/{name}") for name in names):
        raise InputError(
            "no rejected or failed records", path=folder, remedy="give the folder of a job that has dead_letters"
        )
