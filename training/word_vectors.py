"""The start of a table of plain word vectors from a file of them, such as GloVe (Pennington et al. 2014)."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.word_vectors import WordVectorFile
from ..learning.partitioning import Partitioner, place, replicated
from ..models.encoders import Architecture, Capability, require


def start_from_file(
    config: Architecture, params: Any, path: str, pieces: Sequence[str], partitioner: Partitioner, mesh: Mesh
) -> tuple[Any, int]:
    """Replaces the vectors of the pieces that are words of a file by the file's.

    A piece is looked up as written, then in lower case. Parts of words ("##ing") and pieces that the file lacks keep
    their random vector.

    Args:
      config: the model's.
      params: on the mesh, with `token_embedding` [V, H].
      path: text file of word vectors of width H, see `formats.word_vectors`.
      pieces: of the vocabulary, V.
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      The parameters, and the number of pieces whose vector is the file's.

    Raises:
      InputError: if the architecture has no such table, for vectors of another width, or if no piece is in the file.
    """
    remedy = "Leave WORD_VECTORS out, or choose StarConfig or another architecture of word vectors."
    require(config, Capability.WORD_VECTORS, by="a start from word vectors (WORD_VECTORS)", remedy=remedy)
    table = params["token_embedding"]
    file = WordVectorFile(path)
    if file.dimensions != table.shape[1]:
        raise InputError(
            f"got vectors of {file.dimensions} numbers, the model's hidden_size is {table.shape[1]}",
            path=path,
            field="WORD_VECTORS",
            remedy=f"Set {type(config).__name__}.hidden_size = {file.dimensions}.",
        )
    found = file.read({form for piece in pieces for form in (piece, piece.lower())})
    whole = partitioner.wrap(jax.jit(lambda array: array, out_shardings=replicated(mesh)), mesh)
    start, count = np.array(whole(table)), 0
    for number, piece in enumerate(pieces):
        vector = found.get(piece, found.get(piece.lower()))
        if vector is not None:
            start[number] = vector
            count += 1
    if not count:
        remedy = "Give vectors of the language of the vocabulary."
        raise InputError("no word piece is a word of the file", path=path, field="WORD_VECTORS", remedy=remedy)
    return {**params, "token_embedding": place(start, table.sharding)}, count
