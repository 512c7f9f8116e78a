"""The vectors of articles, as ``newsembed embed`` writes them: a folder of NumPy and text, or one Parquet file."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .digests import remove_sums, write_sums
from .whole import replacing

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
    with replacing(os.path.join(output, "embeddings.npy")) as temporary, open(temporary, "wb") as sink:
        np.save(sink, np.concatenate(parts))
    with replacing(os.path.join(output, "ids.txt")) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in ids)
    write_sums(output)


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
