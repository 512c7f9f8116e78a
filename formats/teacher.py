"""A teacher: the documents that a text should be near to, in what proportion, and the fixed vectors to compare it with.

`newsembed lift` writes one from an archive, and the objective `learning.objectives.distillation` reads it.
"""

import dataclasses
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .arrays import read_arrays, write_arrays

_VERSION: Final = 2  # the first had no days, and shares of 1
_NAMES: Final = ("doc_ids", "keys", "days", "neighbors", "probabilities")
NO_DAY: Final = 0  # ordinals begin at 1
_REMEDY: Final = "Delete it, and run what wrote it again."
_TOLERANCE: Final = 1e-3  # of sums of float32


@dataclasses.dataclass(frozen=True, eq=False)
class Teacher:
    """What a teacher knows of N documents.

    Attributes:
      doc_ids: int32 [N, 2], the two words of each document's id, see `records.doc_id_to_words`.
      keys: float32 [N, D], a fixed vector of length 1 of each document.
      days: int32 [N], the ordinal of the byline date, see `datetime.date.toordinal`; `NO_DAY` where it is unknown.
      neighbors: int32 [N, K], rows of the documents that document i is near to; i itself is not among them.
      probabilities: float32 [N, K], the share of each neighbor; the shares of a document add up to 1 at most, and
        the rest is the share of all other documents together.
    """

    doc_ids: npt.NDArray[np.int32]
    keys: npt.NDArray[np.float32]
    days: npt.NDArray[np.int32]
    neighbors: npt.NDArray[np.int32]
    probabilities: npt.NDArray[np.float32]


def write_teacher(path: str, teacher: Teacher) -> None:
    """Writes an npz file completely or not at all."""
    arrays: dict[str, Any] = {name: getattr(teacher, name) for name in _NAMES}
    write_arrays(path, arrays | {"version": np.int32(_VERSION)})


def read_teacher(path: str) -> Teacher:
    """Returns the teacher of an npz file.

    Raises:
      InputError: if the file is missing, of another version, or holds other arrays than a teacher has.
    """
    arrays = read_arrays(path)
    version = int(arrays.get("version", np.int32(0)).ravel()[0])
    if version != _VERSION:
        raise InputError(f"got {version}, this version reads {_VERSION}", path=path, field="version", remedy=_REMEDY)
    missing = [name for name in _NAMES if name not in arrays]
    if missing:
        raise InputError("the array is missing", path=path, field=missing[0], remedy=_REMEDY)
    teacher = Teacher(*(arrays[name] for name in _NAMES))
    count = len(teacher.doc_ids)
    width = teacher.neighbors.shape[-1]
    shapes: dict[str, tuple[int, ...]] = {
        "doc_ids": (count, 2),
        "keys": (count, teacher.keys.shape[-1]),
        "days": (count,),
    }
    shapes |= dict.fromkeys(("neighbors", "probabilities"), (count, width))
    for name, shape in shapes.items():
        values, kind = arrays[name], np.float32 if name in ("keys", "probabilities") else np.int32
        if values.dtype != kind or values.shape != shape or not count or not width:
            problem = f"got {values.dtype} {list(values.shape)}, expected {np.dtype(kind)} {list(shape)}, not empty"
            raise InputError(problem, path=path, field=name, remedy=_REMEDY)
    _check_values(path, teacher)
    return teacher


def _check_values(path: str, teacher: Teacher) -> None:
    """Refuses vectors that are not of length 1, rows that do not exist or are repeated, and shares above 1 together.

    Raises:
      InputError: naming the array.
    """
    numbers = np.arange(len(teacher.keys))[:, None]
    lengths, sums = np.linalg.norm(teacher.keys, axis=1), teacher.probabilities.sum(axis=1)
    neighbors = np.sort(teacher.neighbors, axis=1)
    wrong = (teacher.neighbors < 0) | (teacher.neighbors >= len(numbers)) | (teacher.neighbors == numbers)
    wrong[:, 1:] |= neighbors[:, 1:] == neighbors[:, :-1]
    for name, holds, expected in (
        ("keys", np.abs(lengths - 1) < _TOLERANCE, "vectors of length 1"),
        ("neighbors", ~wrong, "rows of other documents, each once"),
        ("probabilities", (sums < 1 + _TOLERANCE)[:, None] & (teacher.probabilities >= 0), "shares of 1 at most"),
    ):
        if not holds.all():
            where = int(np.argwhere(~holds)[0][0])
            raise InputError(f"document {where}: expected {expected}", path=path, field=name, remedy=_REMEDY)
