"""The vectors of articles, as ``newsembed embed`` writes them: a folder of NumPy and text, or one Parquet file."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .arrays import DAMAGE
from .articles import ArticleText
from .digests import check_sums, remove_sums, write_sums
from .whole import replacing

_EMBEDDINGS: Final = "embeddings.npy"

Chunk = tuple[Sequence[ArticleText], npt.NDArray[np.float32]]  # articles, their embeddings [n, D]
Named = tuple[Sequence[str], npt.NDArray[np.float32]]  # document ids, their embeddings [n, D]
_COLUMNS: Final = ("doc_id", "url", "title", "publisher", "language", "byline_date")


def has_vectors(output: str) -> bool:
    """Whether there are vectors at a path, as a folder or as a file."""
    return os.path.isfile(output) or os.path.exists(os.path.join(output, _EMBEDDINGS))


def write_folder(output: str, chunks: Iterator[Named], dimensions: int) -> None:
    """Writes ``embeddings.npy`` (float32 [N, D]) and ``ids.txt`` (N lines) into a folder, with their digests.

    Args:
      output: the folder.
      chunks: of documents with their embeddings.
      dimensions: D.
    """
    parts, ids = [np.zeros((0, dimensions), np.float32)], list[str]()
    for names, embeddings in chunks:
        ids += names
        parts.append(embeddings)
    os.makedirs(output, exist_ok=True)
    remove_sums(output)
    with replacing(os.path.join(output, _EMBEDDINGS)) as temporary, open(temporary, "wb") as sink:
        np.save(sink, np.concatenate(parts))
    with replacing(os.path.join(output, "ids.txt")) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in ids)
    write_sums(output)


def read_folder(path: str) -> npt.NDArray[np.float32]:
    """The embeddings of a folder that `write_folder` wrote, [N, D].

    Raises:
      InputError: if the folder is incomplete, or a file changed since it was written.
    """
    check_sums(path, "Remove the folder and run the command again.")
    try:
        embeddings: npt.NDArray[np.float32] = np.load(os.path.join(path, _EMBEDDINGS), allow_pickle=False)
    except DAMAGE as error:
        remedy = "Remove the folder and run the command again."
        raise InputError(f"no readable embeddings: {error}", path=path, remedy=remedy) from error
    return embeddings


def write_parquet(output: str, chunks: Iterator[Chunk], dimensions: int) -> None:
    """Writes one row per document with what databases of vectors load; the file appears when it is complete.

    The columns are ``doc_id``, ``url``, ``title``, ``publisher``, ``language``, ``byline_date`` (date32) and
    ``embedding`` (a list of D float32).

    Args:
      output: the file.
      chunks: of documents with their embeddings.
      dimensions: D.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [(name, pa.date32() if name == "byline_date" else pa.string()) for name in _COLUMNS]
    schema = pa.schema([*kinds, ("embedding", pa.list_(pa.float32(), dimensions))])
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with (
        replacing(output) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for articles, embeddings in chunks:
            columns: list[Any] = [
                pa.array([getattr(article, name) for article in articles], kind) for name, kind in kinds
            ]
            columns.append(pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), dimensions))
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
