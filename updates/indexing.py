"""The search index of a version."""

import numpy as np

from ..formats.archive import INDEX, VersionWriter
from ..formats.archive_parts import VECTORS, part_paths, read_array_part, read_columns
from ..formats.index import IndexedDocument
from ..serving.index import DocumentIndex
from ..serving.interface import TextEncoder
from .options import EncoderChoice

_COLUMNS = ("doc_id", "url", "publisher", "title", "byline_date")


def write_index(writer: VersionWriter, encoder: TextEncoder, choice: EncoderChoice) -> None:
    """Writes the index of all articles of the new version from their vectors; nothing is embedded again."""
    rows = read_columns(writer.folder, _COLUMNS).to_pylist()
    vectors = np.concatenate([read_array_part(path) for path in part_paths(writer.folder, VECTORS)])
    index = DocumentIndex(
        vectors,
        [IndexedDocument(**row) for row in rows],
        encoder=choice.spec,
        encoder_digest=encoder.digest,
        document_prompt=choice.document_prompt,
        long_documents=choice.long_documents,
    )
    index.save(writer.path(INDEX))
