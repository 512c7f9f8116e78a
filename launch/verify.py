"""``newsembed verify``: compares results with the digests that were written with them.

Example::

    newsembed verify work models/news index

Looks for results in each folder and the folders below it: folders of jobs (manifest.json), and checkpoints, indexes,
embeddings and exports (SHA256SUMS). Reads every file that they list. The exit code is 1 if one is missing or differs.
"""

import dataclasses
import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import InputError, counted
from ..formats import files
from ..formats.command_line import Options, required
from ..formats.digests import SUMS, differing, read_sums
from ..formats.manifest import HELD_OUT, MANIFEST, read_manifest, recorded_digests, recorded_files


class Result(NamedTuple):
    """A result that was compared: its folder, its number of files, and those that are missing or differ."""

    folder: str
    files: int
    wrong: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyOptions(Options):
    """Options of ``newsembed verify``."""

    folders: tuple[str, ...] = required("results, or folders of results", positional=True, many=True, metavar="FOLDER")


OPTIONS = VerifyOptions


def run(options: VerifyOptions) -> int:
    """Runs the command."""
    is_right = True
    for folder in options.folders:
        for result in verify(folder):
            is_right &= not result.wrong
            state = f"{len(result.wrong)} missing or changed" if result.wrong else "as written"
            print(f"{result.folder}: {counted(result.files, 'file')}, {state}")
            for name in result.wrong:
                print(f"  missing or changed: {name}")
    return 0 if is_right else 1


def verify(folder: str) -> Iterator[Result]:
    """Yields each result in a folder or below it, compared with its digests."""
    folder, remedy = folder.rstrip("/") or "/", "name the folder of a job, model, index or export"
    if not files.exists(folder):
        raise InputError("no such folder", path=folder, remedy=remedy)
    lists = [name for name in files.sizes_below(folder) if posixpath.basename(name) in (MANIFEST, SUMS)]
    if not lists:
        raise InputError(f"neither {MANIFEST} nor {SUMS} is here or below", path=folder, remedy=remedy)
    for name in lists:
        place = posixpath.join(folder, posixpath.dirname(name)).rstrip("/")
        if posixpath.basename(name) == SUMS:
            sums = read_sums(place) or {}
            yield Result(place, len(sums), tuple(differing(place, sums)))
        else:
            yield _of_job(place)


def _of_job(folder: str) -> Result:
    manifest = read_manifest(folder)
    sizes, digests = recorded_files(manifest, folder), recorded_digests(manifest, folder)
    whole, _, part = folder.rpartition("/")
    if not digests and part == HELD_OUT and files.exists(f"{whole}/{MANIFEST}"):  # the whole lists its digests
        listed = recorded_digests(read_manifest(whole), whole)
        digests = {name: listed[f"{part}/{name}"] for name in sizes if f"{part}/{name}" in listed}
    found = files.sizes_below(folder)
    # A file without a digest cannot be called as written: every job records one for each file.
    wrong = {name for name, size in sizes.items() if found.get(name) != size or name not in digests}
    wrong.update(differing(folder, {name: digest for name, digest in digests.items() if name not in wrong}))
    return Result(folder, len(sizes), tuple(sorted(wrong)))
