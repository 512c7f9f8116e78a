"""The vectors of articles, as ``newsembed embed`` writes them: NumPy and text, a Parquet file or a LanceDB table."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import reading
from .arrays import DAMAGE
from .articles import ArticleText
from .digests import check_sums, write_sums
from .files import replacing
from .folders import written

_EMBEDDINGS: Final = "embeddings.npy"
TABLE: Final = ".lance"  # the end of the name of a table

Chunk = tuple[Sequence[ArticleText], npt.NDArray[np.float32]]  # articles, their embeddings [n, D]
Named = tuple[Sequence[str], npt.NDArray[np.float32]]  # document ids, their embeddings [n, D]
_COLUMNS: Final = ("doc_id", "url", "title", "publisher", "language", "byline_date")


def has_vectors(output: str) -> bool:
    """Whether there are vectors at a path, as a folder, a file or a table."""
    if output.endswith(TABLE):
        return os.path.isdir(output)
    return os.path.isfile(output) or os.path.exists(os.path.join(output, _EMBEDDINGS))


def write_folder(output: str, chunks: Iterator[Named], dimensions: int) -> None:
    """Writes ``embeddings.npy`` (float32 [N, D]) and ``ids.txt`` (N lines) into a folder, with their digests.

    Args:
      output: the folder; replaced, if there is nothing else in it.
      chunks: of documents with their embeddings.
      dimensions: D.
    """
    parts, ids = [np.zeros((0, dimensions), np.float32)], list[str]()
    for names, embeddings in chunks:
        ids += names
        parts.append(embeddings)
    with written(output, overwrite=True) as folder:
        np.save(os.path.join(folder, _EMBEDDINGS), np.concatenate(parts))
        with open(os.path.join(folder, "ids.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in ids)
        write_sums(folder)


def read_folder(path: str) -> npt.NDArray[np.float32]:
    """The embeddings of a folder that `write_folder` wrote, [N, D].

    Raises:
      InputError: if the folder is incomplete, or a file changed since it was written.
    """
    remedy = "Remove the folder and run the command again."
    check_sums(path, remedy)
    with reading(path, remedy, *DAMAGE):
        embeddings: npt.NDArray[np.float32] = np.load(os.path.join(path, _EMBEDDINGS), allow_pickle=False)
    return embeddings


def write_table(output: str, chunks: Iterator[Chunk], dimensions: int) -> None:
    """Writes one row per document with what databases of vectors load; the rows appear when all are written.

    The columns are ``doc_id``, ``url``, ``title``, ``publisher``, ``language``, ``byline_date`` (date32) and
    ``embedding`` (a list of D float32).

    Args:
      output: a Parquet file, or ``FOLDER/NAME.lance``, a table of a LanceDB database (a folder or a URI).
      chunks: of documents with their embeddings.
      dimensions: D.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [(name, pa.date32() if name == "byline_date" else pa.string()) for name in _COLUMNS]
    schema = pa.schema([*kinds, ("embedding", pa.list_(pa.float32(), dimensions))])

    def batches() -> Iterator[pa.RecordBatch]:
        for articles, embeddings in chunks:
            columns: list[Any] = [pa.array([getattr(one, name) for one in articles], kind) for name, kind in kinds]
            columns.append(pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), dimensions))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    if output.endswith(TABLE):
        import lancedb

        folder, _, name = output.rpartition("/")
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        lancedb.connect(folder or ".").create_table(name.removesuffix(TABLE), reader, mode="overwrite")
        return
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with (
        replacing(output) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for batch in batches():
            writer.write_batch(batch)
