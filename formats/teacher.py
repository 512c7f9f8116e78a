"""A teacher: the documents that a text should be near to, in what proportion, and the fixed vectors to compare it with.

`newsembed lift` writes one from an archive, and the objective `learning.objectives.distillation` reads it.
"""

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .arrays import read_arrays, write_arrays

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
    write_arrays(path, {name: getattr(teacher, name) for name in _NAMES})


def read_teacher(path: str) -> Teacher:
    """Returns the teacher of an npz file.

    Raises:
      InputError: if the file is missing, or holds other arrays than a teacher has.
    """
    arrays = read_arrays(path)
    if missing := [name for name in _NAMES if name not in arrays]:
        raise InputError("the array is missing", path=path, field=missing[0], remedy=_REMEDY)
    teacher = Teacher(*(arrays[name] for name in _NAMES))
    count, width = len(teacher.doc_ids), teacher.neighbors.shape[-1]
    shapes = ((count, 2), (count, teacher.keys.shape[-1]), (count,), (count, width), (count, width))
    for name, shape in zip(_NAMES, shapes, strict=True):
        values, kind = arrays[name], np.float32 if name in ("keys", "probabilities") else np.int32
        if values.dtype != kind or values.shape != shape or not count or not width:
            problem = f"got {values.dtype} {list(values.shape)}, expected {np.dtype(kind)} {list(shape)}, not empty"
            raise InputError(problem, path=path, field=name, remedy=_REMEDY)
    numbers, sums = np.arange(count)[:, None], teacher.probabilities.sum(axis=1)
    neighbors = np.sort(teacher.neighbors, axis=1)
    wrong = (teacher.neighbors < 0) | (teacher.neighbors >= count) | (teacher.neighbors == numbers)
    wrong[:, 1:] |= neighbors[:, 1:] == neighbors[:, :-1]
    for name, holds, expected in (
        ("keys", np.abs(np.linalg.norm(teacher.keys, axis=1) - 1) < _TOLERANCE, "vectors of length 1"),
        ("neighbors", ~wrong, "rows of other documents, each once"),
        ("probabilities", (sums < 1 + _TOLERANCE)[:, None] & (teacher.probabilities >= 0), "shares of 1 at most"),
    ):
        if not holds.all():
            where = int(np.argwhere(~holds)[0][0])
            raise InputError(f"document {where}: expected {expected}", path=path, field=name, remedy=_REMEDY)
    return teacher
