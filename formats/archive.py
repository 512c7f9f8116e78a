"""The archive of ``newsembed update``: complete versions in folders of their own, and a pointer to the current one.

::

    archive.json             the pointer: number of the current version, digests of its manifest and its index
    last_run.json            report of the last run, whatever came of it
    dead_letters/part-*.parquet        what the last run rejected
    versions/000031/         a version: never changed once the pointer names it
      manifest.json          sizes and SHA-256 digests of all files below, options, counts of the run
      history.jsonl          the report of each run that made a version, oldest first
      articles/part-*.parquet          the articles (stream ``Article``)
      vectors/part-*.npy               float32 [n, D], unit rows, in the order of the articles
      signatures/part-*.npy            one row for each article that passed the rules, duplicates included
      sketches/part-*.npy              their sketches, uint32, one after another
      parents.npy                      int64, for each signature the row of what it duplicates; its own row if kept
      events/members.parquet           one row for each article, in the same order: its event
      events/merges.parquet            events that became one, oldest first
      crawl_state/*.json.gz            see ``newsembed crawl --state``
      dead_letters/part-*.parquet      what this run rejected
      index/                           see :mod:`.index`
    trainings/000001/        of a training on the archive: decision.json, the articles of its trial/, and perhaps model/
    .work/                   of the run in progress, or of one that was cut off
    .training/               of the training in progress, or of one that was cut off

Files that a version shares with the one before are hard links, so that a version costs the disk only what is new in it.
A file of a version is therefore never changed in place: it is rewritten and moved to its name.
"""

import dataclasses
import datetime
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any, Final

from .. import __version__
from ..errors import InputError
from .arrays import DAMAGE
from .digests import SUMS, differing, file_sha256
from .manifest import MANIFEST, Manifest, read_manifest, recorded_digests
from .whole import replacing

FORMAT_VERSION: Final = 1  # of ``archive.json``
POINTER: Final = "archive.json"
LAST_RUN: Final = "last_run.json"
BASE: Final = "base.json"  # in the folder of the run in progress: the version that it began from, 0 for none
HISTORY: Final = "history.jsonl"
INDEX: Final = "index"
CRAWL_STATE: Final = "crawl_state"
MEMBERS: Final = "events/members.parquet"
_DEAD_LETTERS: Final = "dead_letters"
DEAD_LETTERS_FILE: Final = f"{_DEAD_LETTERS}/part-00000-of-00001.parquet"  # of a version, or of the last run
_VERSIONS: Final = "versions"
_WORK: Final = ".work"
_TRAININGS: Final = "trainings"
_TRAINING_WORK: Final = ".training"
_DECISION: Final = "decision.json"
MODEL: Final = "model"  # of a training, or of the training in progress
TRIAL: Final = "trial"  # what a training was evaluated on
_READ: Final = ("articles/", "vectors/", "signatures/", "sketches/", "parents.npy", "events/", HISTORY)
_SHOWN: Final = 5
_REMEDY: Final = "restore the archive from a copy, or start a new one in another folder"


@dataclasses.dataclass(frozen=True, slots=True)
class Pointer:
    """The current version of an archive.

    Attributes:
      version: its number, from 1.
      manifest_sha256: digest of its manifest, in hexadecimal digits.
      index_sha256: digest of the list of digests of its index; differs whenever the index differs.
    """

    version: int
    manifest_sha256: str
    index_sha256: str


@dataclasses.dataclass(frozen=True, slots=True)
class EventMember:
    """The event of an article.

    Attributes:
      doc_id: of the article.
      event_id: doc_id of the article that opened the event; "" for an article without a byline date.
      byline_date: of the article.
    """

    doc_id: str
    event_id: str
    byline_date: datetime.date | None


@dataclasses.dataclass(frozen=True, slots=True)
class EventMerge:
    """Two events that turned out to be one.

    Attributes:
      event_id: of the event that ended.
      into: of the event that has its articles since.
      doc_id: of the article that joined them.
      version: of the archive.
      date: UTC day of the run.
    """

    event_id: str
    into: str
    doc_id: str
    version: int
    date: datetime.date


def is_archive(path: str) -> bool:
    """Whether a folder holds an archive that has a version."""
    return os.path.isfile(os.path.join(path, POINTER))


def read_pointer(archive: str) -> Pointer | None:
    """The pointer of an archive; None before its first version.

    Raises:
      InputError: if it is damaged, or of a later version of newsembed.
    """
    path = os.path.join(archive, POINTER)
    try:
        with open(path, "rb") as source:
            found = json.loads(source.read())
        version = found["format"]
        pointer = Pointer(int(found["version"]), str(found["manifest_sha256"]), str(found["index_sha256"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DAMAGE as error:
        raise InputError(f"a damaged pointer: {error!r}", path=path, remedy=_REMEDY) from error
    if version != FORMAT_VERSION:
        problem = f"got the format {version!r}, expected {FORMAT_VERSION}"
        raise InputError(problem, path=path, field="format", remedy="install a newer version of newsembed")
    return pointer


def check_startable(archive: str) -> None:
    """Checks that a first run may write to a folder: it has an archive, or nothing but what a first run leaves.

    A first run that was cut off has ``.work/base.json``, which says that it began from no version, and perhaps a part
    of version 1. One that found nothing new leaves its report.

    Raises:
      InputError: for the remains of an archive without its pointer, and for files of others; names one of them.
    """
    if os.path.exists(archive) and not os.path.isdir(archive):
        raise InputError("is a file", path=archive, field="--archive", remedy="name a new or an empty folder")
    remains, others = _in_the_way(archive)
    if is_archive(archive) or not (remains or others):
        return
    if remains:
        problem = f"has {remains[0]} of an archive, but no {POINTER}, which names its current version"
        remedy = f"restore {POINTER} from a copy; to start a new archive, name another folder or empty this one"
        raise InputError(problem, path=archive, field="--archive", remedy=remedy)
    shown = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    problem, remedy = f"is not an archive, and not empty: it has {shown}", "name a new or an empty folder"
    raise InputError(problem, path=archive, field="--archive", remedy=remedy)


def _in_the_way(archive: str) -> tuple[list[str], list[str]]:
    """Files of an archive, and files of others, that no first run leaves in a folder; paths below it."""
    names = set(os.listdir(archive)) if os.path.isdir(archive) else set()
    base = read_json(os.path.join(archive, _WORK, BASE))
    remains = []
    if base is None:  # no run is in progress
        remains += [f"{_VERSIONS}/{name}" for name in _listed(archive, _VERSIONS)]
    elif base != 0:
        remains.append(f"{_WORK}/{BASE}")
    report = read_json(os.path.join(archive, LAST_RUN))
    if isinstance(report, dict) and report.get("version"):
        remains.append(LAST_RUN)
    for folder in (_TRAININGS, _TRAINING_WORK):
        remains += [f"{folder}/{name}" for name in _listed(archive, folder) if name != ".lock"]
    own = {".lock", LAST_RUN, _DEAD_LETTERS, _VERSIONS, _WORK, _TRAININGS, _TRAINING_WORK}
    return remains, sorted(name for name in names - own if not _is_temporary(name))


def _listed(archive: str, folder: str) -> list[str]:
    path = os.path.join(archive, folder)
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def publish(archive: str, number: int) -> None:
    """Makes a finished version the current one by one rename; it is on the disk before."""
    folder = version_folder(archive, number)
    values = {
        "format": FORMAT_VERSION,
        "version": number,
        "manifest_sha256": file_sha256(os.path.join(folder, MANIFEST)),
        "index_sha256": index_digest(folder),
    }
    for name in (folder, os.path.dirname(folder)):
        _sync(name)
    with replacing(os.path.join(archive, POINTER)) as temporary:
        with open(temporary, "w", encoding="utf-8") as sink:
            json.dump(values, sink, indent=1)
        _sync(temporary)
    _sync(archive)


def index_digest(version: str) -> str:
    """The digest that the pointer has of the index of a version; "" where it has none."""
    path = os.path.join(version, INDEX, SUMS)
    return file_sha256(path) if os.path.exists(path) else ""


def version_folder(archive: str, number: int) -> str:
    """The folder of a version."""
    return os.path.join(archive, _VERSIONS, f"{number:06d}")


def work_folder(archive: str) -> str:
    """The folder of the run in progress."""
    return os.path.join(archive, _WORK)


def training_work(archive: str) -> str:
    """The folder of the training in progress."""
    return os.path.join(archive, _TRAINING_WORK)


def training_folder(archive: str, number: int) -> str:
    """The folder of a finished training, from 1."""
    return os.path.join(archive, _TRAININGS, f"{number:06d}")


def trained_model(archive: str, number: int) -> str:
    """The model folder of a finished training."""
    return os.path.join(training_folder(archive, number), MODEL)


def decision_file(archive: str, number: int) -> str:
    """The file with the outcome of a training; it is written last."""
    return os.path.join(training_folder(archive, number), _DECISION)


def trainings(archive: str) -> list[int]:
    """The numbers of the trainings that have a folder, ascending."""
    folder = os.path.join(archive, _TRAININGS)
    return sorted(int(name) for name in os.listdir(folder) if name.isdigit()) if os.path.isdir(folder) else []


def current_index(path: str) -> str:
    """The folder of the index: that of the current version of an archive, or the path itself.

    Raises:
      InputError: if the pointer of the archive is damaged.
    """
    pointer = read_pointer(path)
    return path if pointer is None else os.path.join(version_folder(path, pointer.version), INDEX)


def read_version(archive: str, pointer: Pointer) -> dict[str, Any]:
    """The manifest of the current version. Its digest is compared, and those of the files that the next run reads.

    The index has digests of its own, which are compared when it is loaded.

    Raises:
      InputError: if a file is missing or is not the one that was published.
    """
    folder = version_folder(archive, pointer.version)
    path = os.path.join(folder, MANIFEST)
    if not os.path.exists(path) or file_sha256(path) != pointer.manifest_sha256:
        raise InputError("the version that the pointer names is missing or damaged", path=folder, remedy=_REMEDY)
    manifest = read_manifest(folder)
    digests = recorded_digests(manifest, folder) or {}
    wrong = differing(folder, {name: digest for name, digest in digests.items() if name.startswith(_READ)})
    if wrong:
        shown = ", ".join(wrong[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
        raise InputError(f"missing or changed since it was published: {shown}", path=folder, remedy=_REMEDY)
    return manifest


def read_events(version: str) -> dict[str, str]:
    """The event of each article of a version, by their ids; "" for articles without a byline date.

    Raises:
      InputError: if the file is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = os.path.join(version, MEMBERS)
    try:
        table = pq.read_table(path, columns=["doc_id", "event_id"])
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"no readable events: {error}", path=path, remedy=_REMEDY) from error
    return dict(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))


def remove_other_versions(archive: str, kept: set[int]) -> list[int]:
    """Deletes the folders of all other versions, whether complete or not; returns their numbers."""
    folder = os.path.join(archive, _VERSIONS)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    removed = [int(name) for name in names if name.isdigit() and int(name) not in kept]
    for number in removed:
        shutil.rmtree(version_folder(archive, number))
    return removed


def remove_temporary_files(archive: str) -> None:
    """Deletes what a process that was killed had not yet moved to its name, next to the pointer."""
    for name in os.listdir(archive):
        if _is_temporary(name):
            os.remove(os.path.join(archive, name))


def _is_temporary(name: str) -> bool:
    return name.startswith((f"{POINTER}.", f"{LAST_RUN}.")) and name.endswith(".tmp")


def read_json(path: str) -> Any:
    """The value in a JSON file; None where there is no such file, or a run was cut off while it wrote it."""
    try:
        with open(path, "rb") as source:
            return json.loads(source.read())
    except (FileNotFoundError, ValueError):
        return None


def write_json(path: str, value: Any) -> None:
    """Writes a JSON file completely or not at all, and its folder."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as sink:
        json.dump(value, sink, indent=1, ensure_ascii=False)
        sink.write("\n")


class VersionWriter:
    """Writes the folder of a new version next to the old ones. Nothing names it until :func:`publish`.

    Args:
      archive: its folder.
      number: of the new version; what a run that was cut off left there is deleted.
      base: number of the version before; None for the first.

    Attributes:
      folder: of the new version.
      base: folder of the version before; "" for the first.
    """

    def __init__(self, archive: str, number: int, base: int | None) -> None:
        self.number = number
        self.folder = version_folder(archive, number)
        self.base = "" if base is None else version_folder(archive, base)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def path(self, name: str) -> str:
        """The path of a new file, in an existing folder."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def carry(self, name: str) -> None:
        """Takes over a file of the version before, or a folder with all that is below it, as hard links."""
        source = os.path.join(self.base, name)
        if not self.base:
            return
        if os.path.isdir(source):
            shutil.copytree(source, self.path(name), copy_function=link)
        elif os.path.exists(source):
            link(source, self.path(name))

    def add_history(self, report: Mapping[str, Any]) -> None:
        """Appends the report of this run to those of earlier runs."""
        before = b""
        if self.base:
            with open(os.path.join(self.base, HISTORY), "rb") as source:
                before = source.read()
        with open(self.path(HISTORY), "wb") as sink:
            sink.write(before + json.dumps(report, ensure_ascii=False, sort_keys=True).encode() + b"\n")

    def finish(self, options: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
        """Writes the manifest; digests of files that are shared with the version before are taken from there."""
        known = recorded_digests(read_manifest(self.base), self.base) or {} if self.base else {}
        sizes, digests = {}, {}
        for above, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(above, name)
                relative = os.path.relpath(path, self.folder)
                sizes[relative] = os.path.getsize(path)
                before = os.path.join(self.base, relative)
                if relative in known and os.path.exists(before) and os.path.samefile(path, before):
                    digests[relative] = known[relative]
                else:
                    digests[relative] = file_sha256(path)
                    _sync(path)
        digest = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]
        manifest = Manifest(
            "update", __version__, digest, options, {}, counts, {}, {"version": self.number}, sizes, digests
        )
        write_json(os.path.join(self.folder, MANIFEST), manifest.to_json())
        _sync(os.path.join(self.folder, MANIFEST))


def copy_folder(source: str, target: str) -> None:
    """Copies a folder, completely or not at all; makes an empty one where there is no source."""
    temporary = f"{target}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    if os.path.isdir(source):
        shutil.copytree(source, temporary)
    else:
        os.makedirs(temporary)
    os.replace(temporary, target)


def link(source: str, target: str) -> None:
    """Makes a hard link to a file, or a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _sync(path: str) -> None:
    """Asks the disk to hold a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
