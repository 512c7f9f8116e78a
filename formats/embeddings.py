"""The vectors of articles, as ``newsembed embed`` writes them: a folder of NumPy and text, or one Parquet file."""

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .arrays import DAMAGE
from .digests import check_sums, remove_sums, write_sums
from .whole import replacing

_EMBEDDINGS: Final = "embeddings.npy"

Chunk = tuple[list[str], list[str], npt.NDArray[np.float32]]  # document ids, URLs, embeddings [n, D]


def write_folder(output: str, chunks: Iterator[Chunk], dimensions: int) -> None:
    """Writes ``embeddings.npy`` (float32 [N, D]) and ``ids.txt`` (N lines) into a folder, with their digests.

    Args:
      output: the folder.
      chunks: of documents with their embeddings.
      dimensions: D.
    """
    parts, ids = [np.zeros((0, dimensions), np.float32)], list[str]()
    for doc_ids, _, embeddings in chunks:
        ids += doc_ids
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
    """Writes one row per document with ``doc_id``, ``url`` and ``embedding``; the file appears when it is complete.

    Args:
      output: the file.
      chunks: of documents with their embeddings.
      dimensions: D.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.list_(pa.float32(), dimensions)
    schema = pa.schema([("doc_id", pa.string()), ("url", pa.string()), ("embedding", kind)])
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with (
        replacing(output) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for doc_ids, urls, embeddings in chunks:
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), dimensions)
            columns: list[Any] = [pa.array(doc_ids), pa.array(urls), vectors]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
