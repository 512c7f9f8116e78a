"""``newsembed verify``: compares results with the digests that were written with them.

Example::

    newsembed verify work models/news index

Looks for results in each folder and the folders below it: folders of jobs (manifest.json), and checkpoints, indexes,
embeddings and exports (SHA256SUMS). Reads every file that they list. The exit code is 1 if one is missing or differs.
"""

import argparse
import dataclasses
import posixpath
from collections.abc import Iterator

from ..errors import InputError, counted
from ..formats import files
from ..formats.digests import SUMS, differing, read_sums
from ..formats.manifest import HELD_OUT, MANIFEST, read_manifest, recorded_digests, recorded_files


@dataclasses.dataclass(frozen=True)
class Verified:
    """One result that was compared.

    Attributes:
      folder: of the result.
      files: number of files that its list names.
      wrong: the files that are missing or differ, relative to the folder.
      is_digested: whether contents were compared; older manifests list sizes only, or nothing.
    """

    folder: str
    files: int
    wrong: tuple[str, ...]
    is_digested: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed verify``."""
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="results, or folders that hold results")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    is_right = True
    for folder in args.folders:
        for result in verify(folder):
            is_right &= not result.wrong
            print(_line(result))
            for name in result.wrong:
                print(f"  missing or changed: {name}")
    return 0 if is_right else 1


def verify(folder: str) -> Iterator[Verified]:
    """Yields each result in a folder or below it, compared with its digests.

    Raises:
      InputError: if the folder or a result in it is not there, or a list of digests is damaged.
    """
    folder = folder.rstrip("/") or "/"
    if not files.exists(folder):
        raise InputError("no such folder", path=folder, remedy="name the folder of a job, model, index or export")
    found = files.sizes_below(folder)
    lists = [name for name in found if posixpath.basename(name) in (MANIFEST, SUMS)]
    if not lists:
        problem = f"neither {MANIFEST} nor {SUMS} is here or below"
        raise InputError(problem, path=folder, remedy="name the folder of a job, model, index or export")
    for name in lists:
        place = posixpath.join(folder, posixpath.dirname(name)).rstrip("/")
        yield _verified_sums(place) if posixpath.basename(name) == SUMS else _verified_job(place)


def _verified_sums(folder: str) -> Verified:
    sums = read_sums(folder) or {}
    return Verified(folder, len(sums), tuple(differing(folder, sums)), is_digested=True)


def _verified_job(folder: str) -> Verified:
    manifest = read_manifest(folder)
    sizes, digests = recorded_files(manifest, folder) or {}, recorded_digests(manifest, folder)
    whole, _, part = folder.rpartition("/")
    if digests is None and part == HELD_OUT and files.exists(f"{whole}/{MANIFEST}"):  # the whole lists its digests
        listed = recorded_digests(read_manifest(whole), whole)
        digests = listed and {name: listed[f"{part}/{name}"] for name in sizes if f"{part}/{name}" in listed}
    found = files.sizes_below(folder)
    wrong = {name for name, size in sizes.items() if found.get(name) != size}
    wrong.update(differing(folder, {name: digest for name, digest in (digests or {}).items() if name not in wrong}))
    return Verified(folder, len(sizes), tuple(sorted(wrong)), digests is not None)


def _line(result: Verified) -> str:
    if not result.files:
        return f"{result.folder}: lists no files; an older version of newsembed wrote it"
    what = "" if result.is_digested else ", sizes only; an older version of newsembed wrote it"
    state = f"{len(result.wrong)} missing or changed" if result.wrong else "as written"
    return f"{result.folder}: {counted(result.files, 'file')}, {state}{what}"
