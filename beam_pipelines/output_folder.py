"""The folder of a job: its lock, which files are ours, what is missing, and what may be replaced."""

import contextlib
import dataclasses
import logging
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError, reading
from ..formats import files
from ..formats.digests import differing as differing_content
from ..formats.digests import some_of
from ..formats.folders import LOCK
from ..formats.manifest import (
    MANIFEST,
    TIMING,
    has_manifest,
    manifest_path,
    read_manifest,
    recorded_digests,
    recorded_files,
    write_manifest,
    write_seconds,
)
from .shards import REPORTS, Counts

_log = logging.getLogger(__name__)

PUBLISH: Final = "_publish.json"  # in a workspace: the manifest of a job that has run but is not completely published
_REPLACED: Final = "_replaced.json"  # in a workspace: the manifest of the older result that is being removed
_WORKSPACE: Final = re.compile(r"(\.work-[0-9a-f]{16})/")
_OURS: Final = re.compile(  # besides streams; a killed run leaves temporary files
    rf"{re.escape(TIMING)}|({re.escape(TIMING)}|{re.escape(MANIFEST)})(\.[0-9a-f]+)?\.tmp"
)


def published_files(workspace: str) -> dict[str, int]:
    """The files of a workspace that are published, by relative path, with their sizes in bytes."""
    found = files.sizes_below(workspace).items()
    return {name: size for name, size in found if not name.startswith("_") and not name.endswith(".tmp")}


def publish(workspace: str, output: str, seconds: float) -> None:
    """Moves every stream in, then writes the manifest. It is continued where it was if it was cut off.

    Args:
      workspace: with the manifest as `PUBLISH`.
      output: the folder of the result.
      seconds: that the job took.
    """
    manifest = files.read_json(f"{workspace}/{PUBLISH}")
    files.move_all([(f"{workspace}/{name}", f"{output}/{name}") for name in published_files(workspace)])
    write_seconds(output, seconds)
    write_manifest(output, manifest)
    files.delete([workspace])


def missing_files(folder: str, manifest: Mapping[str, Any]) -> list[str]:
    """The files that a manifest lists and that are not in its folder, or have another size."""
    recorded, found = recorded_files(manifest, folder), files.sizes_below(folder)
    return [name for name, size in recorded.items() if found.get(name) != size]


def result_folders(path: str) -> tuple[str, str]:
    """Returns where the manifest of a path may be: in it, or in the folder that holds it."""
    return path, path.rstrip("/").rpartition("/")[0]


def check_input(path: str, field: str) -> None:
    """Compares the files of an input with the manifest of its folder, or of the parent folder.

    Additional files are noticed in the folders that hold listed files, where readers take every shard. They are
    accepted at the top, where readers know the names that they read.
    Digests are compared for local files only. Others would all be fetched by this process; what reads them compares the
    checksums in Parquet and TFRecord files, and ``newsembed verify`` the digests.

    Args:
      path: of the input: a folder with a manifest, a stream or file in one, or anything else, which is not checked.
      field: the option that names it.

    Raises:
      InputError: if files are missing, additional, or of another size or content; names them.
    """
    folder = next(filter(has_manifest, result_folders(path)), None)
    if folder is None:
        return
    manifest = read_manifest(folder)
    recorded = recorded_files(manifest, folder)
    part = path[len(folder) :].strip("/")  # of the result, empty for all of it
    found = files.sizes_below(folder)
    streams = {name.rpartition("/")[0] for name in recorded} - {""}
    differing = {
        "missing": recorded.keys() - found.keys(),
        "of another size than written": {name for name in recorded.keys() & found if recorded[name] != found[name]},
        "not written by the job": {name for name in found.keys() - recorded if name.rpartition("/")[0] in streams},
    }
    read = {what: [name for name in sorted(names) if _is_below(name, part)] for what, names in differing.items()}
    if not any(read.values()) and "://" not in folder:
        digests = {name: one for name, one in recorded_digests(manifest, folder).items() if _is_below(name, part)}
        read["of other content than written"] = differing_content(folder, digests)
    if any(read.values()):
        wrong = "; ".join(f"{what}: {some_of(names)}" for what, names in read.items() if names)
        remedy = "run the job that writes this folder again, or put the files back; move additional files away"
        raise InputError(f"not the files that {MANIFEST} lists: {wrong}", path=folder, field=field, remedy=remedy)


def discard_damaged(workspace: str) -> None:
    """Deletes the workspace of a killed run, and says so, if complete shards of it are missing or changed.

    Digests are compared for local files only.

    Args:
      workspace: of the job that is to be resumed; it need not exist.
    """
    digests, wrong = dict[str, str](), list[str]()
    for path in files.list_files(f"{REPORTS}/*/*.json", workspace):
        try:
            with reading(path, "", AttributeError):
                report = files.read_json(path)
                digests |= report["sha256"]
                Counts.from_json(report)
        except InputError:
            wrong.append(path[len(workspace) + 1 :])
    found = files.sizes_below(workspace)
    wrong += sorted(digests.keys() - found.keys())
    if not wrong and "://" not in workspace:
        wrong = differing_content(workspace, digests)
    if wrong:
        what = f"files of a killed run are missing or changed: {some_of(wrong)}"
        _log.warning("%s: %s; it is discarded, and the job starts from the beginning", workspace, what)
        files.delete([workspace])


def clear(output: str, keep: str) -> None:
    """Removes an older result and the workspaces of other digests, the manifest first.

    Only files that manifests of ours list are removed: ``manifest.json``, that of a result which is not completely
    published, and that of a result whose removal was cut off. Empty folders of the user are left alone.

    Args:
      output: the folder of the job.
      keep: the workspace to keep.

    Raises:
      InputError: if anything else is in the folder; nothing is removed then.
    """
    found = files.sizes_below(output)
    workspaces = {match[1] for name in found if (match := _WORKSPACE.match(name))}
    content = [name for name in found if not _WORKSPACE.match(name) and name != LOCK and not _OURS.fullmatch(name)]
    manifests = [read_manifest(output)] if MANIFEST in found else []
    kept = [f"{workspace}/{name}" for workspace in sorted(workspaces) for name in (PUBLISH, _REPLACED)]
    manifests += [files.read_json(f"{output}/{name}") for name in kept if name in found]
    ours = {
        name
        for manifest in manifests
        if isinstance(manifest.get("job"), str)  # web applications have files of this name too
        for name in (MANIFEST, *recorded_files(manifest, output))
    }
    if foreign := [name for name in content if name not in ours]:
        problem = f"the folder holds files that are not of an earlier result: {some_of(foreign)}"
        raise InputError(problem, path=output, field="--output", remedy="name another folder, or move these files away")
    if MANIFEST in content:
        files.move(manifest_path(output), f"{keep}/{_REPLACED}")
    removed = [name for name in content if name != MANIFEST] + [name for name in found if _OURS.fullmatch(name)]
    files.delete(f"{output}/{name}" for name in removed)
    _remove_empty_folders(output, removed)
    files.delete(path for name in sorted(workspaces) if (path := f"{output}/{name}") != keep)
    files.delete([f"{keep}/{_REPLACED}"])


def refuse_overlaps(output: str, options: Any, inputs: Mapping[str, Sequence[str]]) -> None:
    """Checks that neither an input nor a folder that outlives the output is in the output folder.

    Raises:
      InputError: if one is, or where that folder is a file; names its option.
    """
    problem = "is in the output folder"
    for name, paths in inputs.items():
        if any(is_inside(path, output) for path in paths):
            raise InputError(problem, path=output, field=f"--{name}", remedy="copy it elsewhere, or publish elsewhere")
    for field in dataclasses.fields(options):
        folder = getattr(options, field.name) if field.metadata.get("lasting_folder") else ""
        about = {"field": f"--{field.name}", "remedy": "name a folder next to the output"}
        if folder and is_inside(folder, output):
            raise InputError(problem, path=output, **about)
        if os.path.isfile(folder):
            raise InputError("is a file, expected a folder", path=folder, **about)


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it, however both are written: relative, with ``..``, or through links."""
    return _is_below(_normal(path), _normal(folder))


def _normal(path: str) -> str:
    scheme, separator, rest = path.partition("://")
    return f"{scheme}://{posixpath.normpath(f'/{rest}').strip('/')}" if separator else os.path.realpath(path)


def _is_below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _remove_empty_folders(output: str, removed: Iterable[str]) -> None:
    """Removes the folders that removed files leave empty; object stores have no folders."""
    folders = {posixpath.dirname(name) for name in removed} - {""}
    folders |= {posixpath.dirname(name) for name in folders} - {""}
    for folder in sorted(folders, reverse=True) if "://" not in output else ():
        with contextlib.suppress(OSError):  # not empty, or a link
            os.rmdir(os.path.join(output, folder))
