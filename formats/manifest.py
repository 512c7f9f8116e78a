"""The folder of a finished job: ``manifest.json``, written last, ``timing.json``, and the layout of training data.

A folder without a manifest is not a result. The key ``"files"`` lists every published file with its size, and
``"sha256"`` its digest. Training data are in
``task=<task>/language=<language>/part-*.tfrecord``, and the manifest counts their records under ``"examples"`` as
``{"<task>/<language>": count}``. Where records of a task differ in size, ``"row_sizes"`` has the largest sizes.

``"blocks"`` says for each file of training data how many records it holds, and the byte at which every 1,024 of them
begin: a reader finds its records without looking at the others.

Training data may have a part ``held_out/`` with a manifest and sets of its own, which no run trains on.
"""

import dataclasses
import glob
import os
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from ..errors import InputError, reading
from .files import exists, list_files, read_json, write_json
from .tfrecords import Blocks

T = TypeVar("T", int, str)
MANIFEST: Final = "manifest.json"
TIMING: Final = "timing.json"
HELD_OUT: Final = "held_out"  # the folder of held-out examples, below the training data
_REMEDY: Final = "name a folder that a job finished, or run the job that writes it to its end"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a finished job left behind. Holds no times: an unbroken and a resumed run write the same bytes.

    Attributes:
      job: its name.
      code_version: of the program.
      digest: of job, version, options and inputs; a finished job with the same digest is not run again.
      options: of the job, as JSON values.
      inputs: digests of the inputs, by name.
      counts: of the job: records in, out, rejected and failed, and tallies.
      phases: the same of every phase.
      extra: further entries of this job, such as ``"examples"``.
      files: every published file: path relative to the folder -> size in bytes.
      sha256: digests of the same files, in hexadecimal digits.
    """

    job: str
    code_version: str
    digest: str
    options: Mapping[str, Any]
    inputs: Mapping[str, Any]
    counts: Mapping[str, Any]
    phases: Mapping[str, Mapping[str, Any]]
    extra: Mapping[str, Any]
    files: Mapping[str, int]
    sha256: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "extra"}
        return values | dict(self.extra)


@dataclasses.dataclass(frozen=True, order=True)
class DataSet:
    """One (task, language) set of TFRecords.

    Attributes:
      task: name of the task.
      language: BCP-47 tag, or the two tags of translation pairs.
    """

    task: str
    language: str

    def __str__(self) -> str:
        return f"{self.task}/{self.language}"

    @property
    def stream(self) -> str:
        """The folder of the set below the folder of the job."""
        return f"task={self.task}/language={self.language}"


def manifest_path(folder: str) -> str:
    """The path of the manifest of a folder."""
    return f"{folder.rstrip('/')}/{MANIFEST}"


def has_manifest(folder: str) -> bool:
    """Whether the folder is the result of a job."""
    return exists(manifest_path(folder))


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a folder, as in the file.

    Raises:
      InputError: if there is none, or it is not a JSON object.
    """
    return read_json(manifest_path(folder), _REMEDY, dict)


def recorded_files(manifest: Mapping[str, Any], folder: str) -> dict[str, int]:
    """The files that a manifest lists, relative to its folder, with their sizes in bytes."""
    return _recorded(manifest, folder, "files", int)


def recorded_digests(manifest: Mapping[str, Any], folder: str) -> dict[str, str]:
    """The SHA-256 digests of the files that a manifest lists."""
    return _recorded(manifest, folder, "sha256", str)


def _recorded(manifest: Mapping[str, Any], folder: str, field: str, kind: type[T]) -> dict[str, T]:
    found = manifest.get(field, {})
    if not isinstance(found, dict) or not all(isinstance(value, kind) for value in found.values()):
        problem = f"got {type(found).__name__}, expected a JSON object of paths, each with a {kind.__name__}"
        raise InputError(problem, path=manifest_path(folder), field=field, remedy=_REMEDY)
    return found


def write_manifest(folder: str, values: Mapping[str, Any]) -> None:
    """Writes the content of a manifest, complete or not at all."""
    write_json(manifest_path(folder), values)


def read_seconds(folder: str) -> float:
    """The seconds that the job which wrote this folder took; 0 if they were not recorded."""
    path = _timing_path(folder)
    return float(read_json(path, _REMEDY)["seconds"]) if exists(path) else 0.0


def write_seconds(folder: str, seconds: float) -> None:
    """Records the seconds that a job took, next to its manifest: they differ between runs that write the same bytes."""
    write_json(_timing_path(folder), {"seconds": round(seconds, 2)})


def read_example_counts(folder: str) -> dict[DataSet, int]:
    """The sets of training data in a local folder with their record counts; empty sets are left out.

    Raises:
      InputError: without a readable manifest that counts examples.
    """
    path, examples = manifest_path(folder), read_manifest(folder).get("examples")
    if not isinstance(examples, dict):
        raise InputError('got no JSON object with the key "examples"', path=path, field="examples", remedy=_REMEDY)
    counts = {}
    for key, count in examples.items():
        task, _, language = key.partition("/")
        if not task or not language or not isinstance(count, int):
            problem = f'got {key!r}: {count!r}, expected "<task>/<language>": count'
            raise InputError(problem, path=path, field="examples", remedy=_REMEDY)
        if count:
            counts[DataSet(task, language)] = count
    return counts


def read_row_sizes(folder: str) -> dict[str, dict[str, int]]:
    """The sizes of the largest records in a local folder of training data, by task and name of the size.

    ``{"topics": {"documents": 3, "topic_ids": 40}}``. Tasks whose records have no such sizes are left out.

    Raises:
      InputError: without a readable manifest, or if the entry is damaged.
    """
    found = read_manifest(folder).get("row_sizes", {})
    with reading(manifest_path(folder), _REMEDY, AttributeError):
        return {task: {name: int(size) for name, size in sizes.items()} for task, sizes in found.items()}


def read_inputs(folder: str, name: str) -> list[str]:
    """The digests of an input of the job that wrote a folder; none if no job did.

    Raises:
      InputError: without a readable manifest, or if the entry is damaged.
    """
    found = read_manifest(folder).get("inputs", {})
    with reading(manifest_path(folder), _REMEDY, AttributeError):
        return [str(digest) for digest in found.get(name, [])]


def read_blocks(folder: str) -> dict[str, Blocks]:
    """Where the records of the files of training data are, by path relative to the folder; files may be missing.

    Raises:
      InputError: without a readable manifest, or if the entry is damaged.
    """
    found = read_manifest(folder).get("blocks", {})
    with reading(manifest_path(folder), _REMEDY, AttributeError):
        return {name: Blocks(int(count), tuple(map(int, offsets))) for name, (count, *offsets) in found.items()}


def example_pattern(folder: str, data_set: DataSet) -> str:
    """A pattern of the files of one set of training data."""
    return os.path.join(glob.escape(folder), data_set.stream, "part-*.tfrecord")


def example_paths(folder: str, data_set: DataSet) -> list[str]:
    """The files of one set of training data, sorted.

    Raises:
      InputError: if there are none.
    """
    pattern = example_pattern(folder, data_set)
    paths = list_files(pattern)
    if not paths:
        remedy = "Run the job that writes this set again."
        raise InputError(f"no file of {data_set} is here", path=pattern, remedy=remedy)
    return paths


def _timing_path(folder: str) -> str:
    return f"{folder.rstrip('/')}/{TIMING}"
