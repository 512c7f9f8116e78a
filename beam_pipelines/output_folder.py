"""What is in the folder of a job: which files are ours, what is missing, and what may be replaced."""

import contextlib
import dataclasses
import logging
import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError
from ..formats import files
from ..formats.digests import differing as differing_content
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
from .accounting import Counts
from .output_lock import LOCK

_log = logging.getLogger(__name__)

REPORTS: Final = "_reports"  # in a workspace: a folder for each phase, with a report for each complete shard
PUBLISH: Final = "_publish.json"  # in a workspace: the manifest of a job that has run but is not completely published
_REPLACED: Final = "_replaced.json"  # in a workspace: the manifest of the older result that is being removed
_WORKSPACE: Final = re.compile(r"(\.work-[0-9a-f]{16})/")
_OURS: Final = re.compile(  # besides streams; a killed run leaves temporary files
    rf"{re.escape(TIMING)}|({re.escape(TIMING)}|{re.escape(MANIFEST)})(\.[0-9a-f]+)?\.tmp"
)
_PICKLED: Final = ".pickle"  # older versions of `vectors` wrote such files
_SHOWN: Final = 5
# What jobs published before manifests listed files: shards, archives of the crawl, and the files with one fixed name.
_PUBLISHED_BEFORE: Final = re.compile(
    r"([^/]+/){1,2}part-\d{5}-of-\d{5}\.(parquet|tfrecord)"
    r"|warc/[^/]+\.warc\.gz"
    r"|documents/table\.npz"
    r"|(aliases|entities|skew|topics|words|yields)\.tsv"
    r"|(entities|words)\.npy"
    r"|vocab\.txt|evergreen\.json"
)


def published_files(workspace: str) -> dict[str, int]:
    """The files of a workspace that are published, by relative path, with their sizes in bytes."""
    return {
        name: size
        for name, size in files.sizes_below(workspace).items()
        if not name.startswith("_") and not name.endswith(".tmp")
    }


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
    recorded = recorded_files(manifest, folder)
    if not recorded:
        return []
    found = files.sizes_below(folder)
    return [name for name, size in recorded.items() if found.get(name) != size]


def check_input(path: str, field: str) -> None:
    """Compares the files of an input with the manifest of its folder, or of the parent folder.

    Additional files are noticed in the folders that hold listed files, where readers take every shard. They are
    accepted at the top, where readers know the names that they read. A manifest that lists no files is accepted.
    Digests are compared for local files only. Others would all be fetched by this process; what reads them compares the
    checksums in Parquet and TFRecord files, and ``newsembed verify`` the digests.

    Args:
      path: of the input: a folder with a manifest, a stream or file in one, or anything else, which is not checked.
      field: the option that names it.

    Raises:
      InputError: if files are missing, additional, or of another size or content; names them.
    """
    for folder in (path, path.rstrip("/").rpartition("/")[0]):
        if has_manifest(folder):
            break
    else:
        return
    manifest = read_manifest(folder)
    recorded = recorded_files(manifest, folder)
    if recorded is None:
        return
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
        digests = recorded_digests(manifest, folder) or {}
        read["of other content than written"] = differing_content(
            folder, {name: digest for name, digest in digests.items() if _is_below(name, part)}
        )
    if any(read.values()):
        raise InputError(
            f"not the files that {MANIFEST} lists: "
            + "; ".join(f"{what}: {_shown(names)}" for what, names in read.items() if names),
            path=folder,
            field=field,
            remedy="run the job that writes this folder again, or put the files back; move additional files away",
        )


def discard_damaged(workspace: str) -> None:
    """Deletes the workspace of a killed run if it cannot be resumed, and says so.

    That is so if shards that it reports as complete are missing or changed, or if it holds pickled files.

    Digests are compared for local files only.

    Args:
      workspace: of the job that is to be resumed; it need not exist.
    """
    problem = _workspace_damage(workspace)
    if problem:
        _log.warning("%s: %s; it is discarded, and the job starts from the beginning", workspace, problem)
        files.delete([workspace])


def _workspace_damage(workspace: str) -> str:
    digests: dict[str, str] = {}
    for path in files.list_files(f"{workspace}/{REPORTS}/*/*.json"):
        try:
            report = files.read_json(path)
            digests |= report.get("sha256", {})  # older programs did not write it
            Counts.from_json(report)
        except (InputError, KeyError, TypeError, AttributeError):
            return f"the report {path[len(workspace) + 1 :]} of a killed run is damaged"
    found = files.sizes_below(workspace)
    if any(name.endswith(_PICKLED) for name in found):
        return "a killed run of an older version left pickled files, which are never read"
    wrong = sorted(digests.keys() - found.keys())
    if not wrong and "://" not in workspace:
        wrong = differing_content(workspace, digests)
    return f"files of a killed run are missing or changed: {_shown(wrong)}" if wrong else ""


def clear(output: str, keep: str) -> None:
    """Removes an older result and the workspaces of other digests, the manifest first.

    Only files that manifests of ours list are removed: ``manifest.json``, that of a result which is not completely
    published, and that of a result whose removal was cut off. Manifests of older versions list no files. Next to such a
    manifest, ours are the files with the names that jobs publish: ``part-*-of-*.parquet`` and ``.tfrecord`` in folders,
    ``warc/*.warc.gz`` and the fixed names, such as ``vocab.txt``. Empty folders of the user are left alone.

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
    ours, by_name = _listed(manifests, output)
    foreign = [name for name in content if name not in ours and not (by_name and _PUBLISHED_BEFORE.fullmatch(name))]
    if foreign:
        raise InputError(
            f"the folder holds files that are not of an earlier result: {_shown(foreign)}",
            path=output,
            field="--output",
            remedy="name another folder, or move these files away",
        )
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
      InputError: if one is; names its option.
    """
    problem = "is in the output folder"
    for name, paths in inputs.items():
        if any(is_inside(path, output) for path in paths):
            remedy = "copy it elsewhere, or publish elsewhere"
            raise InputError(problem, path=output, field=f"--{name}", remedy=remedy)
    for field in dataclasses.fields(options):
        folder = getattr(options, field.name) if field.metadata.get("lasting_folder") else ""
        if folder and is_inside(folder, output):
            raise InputError(problem, path=output, field=f"--{field.name}", remedy="name a folder next to it")


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it, however both are written: relative, with ``..``, or through links."""
    return any(_is_below(normal(path), normal(folder)) for normal in (_real_path, _absolute_path))


def _real_path(path: str) -> str:
    return _absolute_path(path) if "://" in path else os.path.realpath(path)


def _absolute_path(path: str) -> str:
    """The normal form of a path; links are kept, because what is deleted is the link."""
    scheme, separator, rest = path.partition("://")
    return f"{scheme}://{posixpath.normpath(f'/{rest}').strip('/')}" if separator else os.path.abspath(path)


def _is_below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _listed(manifests: Iterable[Mapping[str, Any]], folder: str) -> tuple[set[str], bool]:
    """The files that manifests list, with the manifest itself, and whether one of ours lists none."""
    ours: set[str] = set()
    lists_none = False
    for manifest in manifests:
        # Web applications have files of this name too.
        if isinstance(manifest.get("job"), str) and isinstance(manifest.get("digest"), str):
            recorded = recorded_files(manifest, folder)
            ours |= {MANIFEST, *(recorded or ())}
            lists_none |= recorded is None
    return ours, lists_none


def _remove_empty_folders(output: str, removed: Iterable[str]) -> None:
    """Removes the folders that removed files leave empty; object stores have no folders."""
    folders = {posixpath.dirname(name) for name in removed} - {""}
    folders |= {posixpath.dirname(name) for name in folders} - {""}
    for folder in sorted(folders, reverse=True) if "://" not in output else ():
        with contextlib.suppress(OSError):  # not empty, or a link
            os.rmdir(os.path.join(output, folder))


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
