"""An index folder: documents with their embeddings.

The folder holds ``embeddings.npy`` (float32 ``[N, D]``, unit rows), ``documents.parquet`` (one row per document, same
order), ``index.json`` (counts, digests, the encoder), ``SHA256SUMS`` and, for large ones, ``vectors.faiss``.

The encoder's folder is kept twice: as it was given, and relative to the index (``encoder_beside``), which holds from
every working directory and after both were moved together. The latter counts where such a folder exists.
"""

import dataclasses
import datetime
import json
import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..errors import InputError
from .arrays import DAMAGE
from .digests import damage, remove_sums, write_sums
from .whole import replacing

FORMAT_VERSION: Final = 1  # of ``index.json``; files without one are of version 1
_EMBEDDINGS_FILE: Final = "embeddings.npy"
_DOCUMENTS_FILE: Final = "documents.parquet"
_INDEX_FILE: Final = "index.json"
_FAISS_FILE: Final = "vectors.faiss"
_EXACT, _INVERTED = "exact", "faiss-ivf"
_REMEDY: Final = "Build it with newsembed index."
_DAMAGED_REMEDY: Final = "Build it again with newsembed index, or restore it from a copy."


@dataclasses.dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The fields of a document that search results show."""

    doc_id: str
    url: str
    publisher: str
    title: str
    byline_date: datetime.date | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return dataclasses.asdict(self) | {"byline_date": self.byline_date.isoformat() if self.byline_date else None}


@dataclasses.dataclass(frozen=True)
class StoredIndex:
    """The content of an index folder.

    Attributes:
      embeddings: float32 ``[N, D]``.
      documents: N, in the same order.
      encoder: ``KIND:REST`` of the encoder that made them, "" if unknown; its folder from the working directory.
      encoder_digest: its digest.
      exact_limit: most documents searched exactly; None where the folder does not say.
      inverted_file: faiss's, None where search is exact.
      document_prompt: the text before each document, where it was not the encoder's own.
      long_documents: how documents of more tokens were read, where it was not as the encoder does itself.
    """

    embeddings: npt.NDArray[np.float32]
    documents: tuple[IndexedDocument, ...]
    encoder: str = ""
    encoder_digest: str = ""
    exact_limit: int | None = None
    inverted_file: Any = None
    document_prompt: str | None = None
    long_documents: str | None = None


def facts_file(folder: str) -> str:
    """The file that is written last: a folder with it is complete."""
    return os.path.join(folder, _INDEX_FILE)


def write_index(folder: str, index: StoredIndex) -> None:
    """Writes an index folder, or replaces it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.makedirs(folder, exist_ok=True)
    facts_path = facts_file(folder)
    if os.path.exists(facts_path):
        os.remove(facts_path)
    remove_sums(folder)
    with replacing(os.path.join(folder, _EMBEDDINGS_FILE)) as temporary, open(temporary, "wb") as sink:
        np.save(sink, index.embeddings)
    names = [field.name for field in dataclasses.fields(IndexedDocument)]
    schema = pa.schema([(name, pa.date32() if name == "byline_date" else pa.string()) for name in names])
    table = pa.Table.from_pylist([dataclasses.asdict(document) for document in index.documents], schema)
    with replacing(os.path.join(folder, _DOCUMENTS_FILE)) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
    if index.inverted_file is not None:
        import faiss

        with replacing(os.path.join(folder, _FAISS_FILE)) as temporary:
            faiss.write_index(index.inverted_file, temporary)
    facts = {
        "documents": len(index.documents),
        "dimensions": index.embeddings.shape[1],
        "search": _EXACT if index.inverted_file is None else _INVERTED,
        "exact_limit": index.exact_limit,
        "encoder": index.encoder,
        "encoder_beside": _beside(folder, index.encoder),
        "encoder_digest": index.encoder_digest,
        "document_prompt": index.document_prompt,
        "long_documents": index.long_documents,
        "version": __version__,
    }
    with replacing(facts_path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        json.dump({name: value for name, value in facts.items() if value is not None}, file, indent=2)
    write_sums(folder)


def read_index(folder: str) -> StoredIndex:
    """Reads what `write_index` wrote.

    Raises:
      InputError: if a part is missing, broken, changed since it was written, of another index or of a later version.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(facts_file(folder), encoding="utf-8") as file:
            facts = json.load(file)
        _check_version(facts, folder)
        _check_content(folder)
        rows = pq.read_table(os.path.join(folder, _DOCUMENTS_FILE)).to_pylist()
        return StoredIndex(
            np.load(os.path.join(folder, _EMBEDDINGS_FILE), allow_pickle=False),
            tuple(IndexedDocument(**row) for row in rows),
            _found_encoder(folder, facts),
            facts["encoder_digest"],
            facts.get("exact_limit"),
            None if facts["search"] == _EXACT else _read_faiss(os.path.join(folder, _FAISS_FILE), len(rows)),
            facts.get("document_prompt"),
            facts.get("long_documents"),
        )
    except InputError:
        raise
    except (*DAMAGE, RuntimeError, pa.ArrowException) as error:
        raise InputError(f"no readable index: {error}", path=folder, remedy=_REMEDY) from error


def split_encoder(spec: str) -> tuple[str, str, str]:
    """``KIND:DIR@N`` of an encoder in its parts, the last with its @; "" for parts that are not there.

    >>> split_encoder("model:work/model@400"), split_encoder("savedmodel:m@il")
    (('model', 'work/model', '@400'), ('savedmodel', 'm@il', ''))
    """
    kind, _, rest = spec.partition(":")
    folder, at, number = rest.rpartition("@")
    return (kind, folder, at + number) if at and folder and number.isdigit() else (kind, rest, "")


def _beside(folder: str, spec: str) -> str | None:
    """An encoder's ``KIND:REST`` relative to the folder of the index; None where it names no folder."""
    kind, path, number = split_encoder(spec)
    if not path:
        return None
    return f"{kind}:{os.path.relpath(os.path.realpath(path), os.path.realpath(folder))}{number}"


def _found_encoder(folder: str, facts: Any) -> str:
    """The encoder's ``KIND:REST``: beside the index where it is there, else as it was given."""
    given = str(facts["encoder"])
    kind, path, number = split_encoder(str(facts.get("encoder_beside", "")))
    found = os.path.normpath(os.path.join(os.path.realpath(folder), path))
    if not path or not os.path.isdir(found) or found == os.path.realpath(split_encoder(given)[1]):
        return given
    return f"{kind}:{os.path.relpath(found)}{number}"


def _check_content(folder: str) -> None:
    if problem := damage(folder):
        raise InputError(f"no readable index: {problem}", path=folder, remedy=_DAMAGED_REMEDY)


def _check_version(facts: Any, folder: str) -> None:
    version = facts.get("format_version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        problem = f"got an index of version {version}, expected {FORMAT_VERSION}"
        raise InputError(problem, path=facts_file(folder), field="format_version", remedy=_REMEDY)


def _read_faiss(path: str, rows: int) -> Any:
    import faiss

    index = faiss.read_index(path)
    if index.ntotal != rows:
        raise InputError(f"holds {index.ntotal} vectors for {rows} documents", path=path, remedy=_REMEDY)
    return index
