"""An index folder: documents with their embeddings and words.

``index.json`` (counts, the encoder) names what belongs to the index:

- parts, each a folder ``part-NNNNN`` with ``embeddings.npy`` (float32 ``[n, D]``, unit rows) and ``documents.parquet``
  (n rows, same order); the index is their concatenation;
- ``words-NNNNN``, the words of all documents (``formats.words``), unless it has none;
- ``vectors-NNNNN.faiss``, the inverted file of a large index.

NNNNN counts the versions of the folder. A version adds files and changes none; `index.json` is replaced last, in one
step, so that a reader sees either version whole, also after a crash. Then files that only the version before had are
removed. ``SHA256SUMS`` has the digests of all files. While a version is published it lacks that of `index.json`, which
has one inside, too.

The encoder's folder is kept twice: as it was given, and relative to the index (``encoder_beside``), which holds from
every working directory and after both were moved together. The latter counts where such a folder exists.

Format 1 had one part, in the folder itself, and no words. It is read, and `append_index` continues it without words.
"""

import contextlib
import dataclasses
import datetime
import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..errors import InputError, counted
from .arrays import DAMAGE
from .digests import SUMS, damage, file_sha256, read_sums, write_list
from .whole import replacing
from .words import WordsFolder, link, link_words

FORMAT_VERSION: Final = 2  # of ``index.json``; files without one have version 1
_EMBEDDINGS_FILE: Final = "embeddings.npy"
_DOCUMENTS_FILE: Final = "documents.parquet"
_INDEX_FILE: Final = "index.json"
_FIRST_FAISS_FILE: Final = "vectors.faiss"  # of format 1
_FIRST_FILES: Final = (_EMBEDDINGS_FILE, _DOCUMENTS_FILE, _FIRST_FAISS_FILE)
_PART, _WORDS, _FAISS = "part-{:05d}", "words-{:05d}", "vectors-{:05d}.faiss"
# Names that only an index has, with the number of the version that wrote the file.
_VERSIONED: Final = re.compile(
    r"(?:part|words|vectors)-(\d{5,})(?:\.faiss)?|(?:index\.json|SHA256SUMS)\.[0-9a-f]{12}\.tmp"
)
_EXACT, _INVERTED = "exact", "faiss-ivf"
_READS: Final = 5  # while other processes publish versions
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
    language: str = ""
    image_url: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return dataclasses.asdict(self) | {"byline_date": self.byline_date.isoformat() if self.byline_date else None}


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """How the encoder of an index read its documents, under the names of ``index.json``.

    Attributes:
      document_prompt: the text before each document, where it was not the encoder's own.
      long_documents: how documents of more tokens were read, where it was not as the encoder does itself.
      max_length: tokens that the encoder read of each document; None where it is not known.
    """

    document_prompt: str | None = None
    long_documents: str | None = None
    max_length: int | None = None


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
      reading: how the encoder read the documents.
      words: of the documents, by their numbers; None for an index of vectors only.
      ranking: how scores of words and vectors are joined, JSON values; None where nothing was learned.
    """

    embeddings: npt.NDArray[np.float32]
    documents: tuple[IndexedDocument, ...]
    encoder: str = ""
    encoder_digest: str = ""
    exact_limit: int | None = None
    inverted_file: Any = None
    reading: Reading = Reading()
    words: WordsFolder | None = None
    ranking: Mapping[str, Any] | None = None


def facts_file(folder: str) -> str:
    """The file that is written last: a folder with it is complete."""
    return os.path.join(folder, _INDEX_FILE)


def write_index(folder: str, index: StoredIndex, *, replace: bool = True) -> None:
    """Writes an index folder, or replaces the index in it.

    Args:
      folder: made if it does not exist.
      index: what is written.
      replace: whether an index that is there is replaced, else refused.

    Raises:
      InputError: if another process writes it, or has written one that is not to be replaced.
      OSError: if it cannot be written; the index before stays.
    """
    os.makedirs(folder, exist_ok=True)
    with _writing(folder) as version:
        if not replace and os.path.exists(facts_file(folder)):
            remedy = "name another folder, or add to it by --append"
            raise InputError("another process has written an index here", path=folder, remedy=remedy)
        _write_part(os.path.join(folder, _PART.format(version)), index.embeddings, index.documents)
        facts = {
            "documents": len(index.documents),
            "dimensions": index.embeddings.shape[1],
            "parts": [{"folder": _PART.format(version), "documents": len(index.documents)}],
            "words": None if index.words is None else _WORDS.format(version),
            "ranking": None if index.ranking is None else dict(index.ranking),
            **_write_faiss(folder, version, index.inverted_file),
            "exact_limit": index.exact_limit,
            "encoder": index.encoder,
            "encoder_beside": _beside(folder, index.encoder),
            "encoder_digest": index.encoder_digest,
            **dataclasses.asdict(index.reading),
        }
        if index.words is not None:
            link_words(index.words.folder, os.path.join(folder, _WORDS.format(version)))
        _publish(folder, version, facts)


def append_index(
    folder: str, addition: StoredIndex, count_before: int, add_words: Callable[[str], None] | None = None
) -> None:
    """Writes the next version of an index folder, with more documents; what does not change is shared, not copied.

    Parts at the end that are not larger than the new one are joined with it, so that their number grows with the
    logarithm of the number of documents.

    Args:
      folder: of the index.
      addition: the new documents and their embeddings, the inverted file of all, and `ranking`, None to keep that of
        the folder; other fields are not read.
      count_before: documents that the caller found in the folder.
      add_words: called with a folder of words to add those of the new documents to, numbered from the number of
        documents before; not called for an index of vectors only.

    Raises:
      InputError: if there is no readable index, another process writes it or has written it since, or its vectors
        have another width.
      OSError: if it cannot be written; the index before stays.
    """
    with _writing(folder) as version:
        facts = _read_facts(folder)
        _check_content(folder, facts)
        if facts["documents"] != count_before:
            problem = f"another process has changed the index to {counted(facts['documents'], 'document')}"
            raise InputError(problem, path=folder, remedy="run the command again")
        if addition.embeddings.shape[1] != facts["dimensions"]:
            problem = (
                f"got embeddings of {addition.embeddings.shape[1]} dimensions for an index of {facts['dimensions']}"
            )
            raise InputError(problem, path=folder, remedy="use the index's encoder")
        parts, embeddings, documents = _shared_parts(folder, version, facts), [addition.embeddings], addition.documents
        while parts and parts[-1]["documents"] <= len(documents):
            vectors, rows = _read_part(os.path.join(folder, parts.pop()["folder"]))
            embeddings, documents = [vectors, *embeddings], rows + documents
        _write_part(os.path.join(folder, _PART.format(version)), np.concatenate(embeddings), documents)
        parts.append({"folder": _PART.format(version), "documents": len(documents)})
        changed = {
            "parts": parts,
            "documents": sum(part["documents"] for part in parts),
            **_write_faiss(folder, version, addition.inverted_file),
        }
        if addition.ranking is not None:
            changed["ranking"] = dict(addition.ranking)
        if facts.get("words") and add_words is not None:
            target = os.path.join(folder, _WORDS.format(version))
            link_words(os.path.join(folder, facts["words"]), target)
            add_words(target)
            changed["words"] = _WORDS.format(version)
        _publish(folder, version, {**facts, **changed})


def read_index(folder: str) -> StoredIndex:
    """Reads what `write_index` and `append_index` wrote.

    Raises:
      InputError: if a part is missing, broken, changed since it was written, of another index or of a later version.
    """
    for _ in range(_READS):
        facts = _read_facts(folder)
        try:
            return _read_version(folder, facts)
        except InputError:
            if _version_of(folder) == _number(facts):
                raise
            # Another process has published the next version, and removed files of this one.
    return _read_version(folder, _read_facts(folder))


def split_encoder(spec: str) -> tuple[str, str, str]:
    """``KIND:DIR@N`` of an encoder in its parts, the last with its @; "" for parts that are not there.

    >>> split_encoder("model:work/model@400"), split_encoder("savedmodel:m@il")
    (('model', 'work/model', '@400'), ('savedmodel', 'm@il', ''))
    """
    kind, _, rest = spec.partition(":")
    folder, at, number = rest.rpartition("@")
    return (kind, folder, at + number) if folder and number.isdigit() else (kind, rest, "")


# Reading


def _read_facts(folder: str) -> dict[str, Any]:
    """The content of ``index.json``, with the parts of format 1.

    Raises:
      InputError: if it is missing, damaged or of a later version.
    """
    try:
        with open(facts_file(folder), encoding="utf-8") as file:
            facts = json.load(file)
        version = facts.get("format_version", 1)
        if version == 1:
            faiss_file = None if facts["search"] == _EXACT else _FIRST_FAISS_FILE
            return {**facts, "parts": [{"folder": "", "documents": facts["documents"]}], "vectors": faiss_file}
    except DAMAGE as error:
        absent = isinstance(error, FileNotFoundError)
        problem = (f"it has no {_INDEX_FILE}" if os.path.isdir(folder) else "no such folder") if absent else str(error)
        raise InputError(f"no readable index: {problem}", path=folder, remedy=_REMEDY) from error
    if version != FORMAT_VERSION:
        problem = f"got an index of version {version}, expected at most {FORMAT_VERSION}"
        raise InputError(problem, path=facts_file(folder), field="format_version", remedy=_REMEDY)
    if facts.pop("sha256", "") != _digest(facts) and os.path.exists(os.path.join(folder, SUMS)):
        problem = f"no readable index: {_INDEX_FILE} is not the content that was written"
        raise InputError(problem, path=folder, remedy=_DAMAGED_REMEDY)
    return dict(facts)


def _read_version(folder: str, facts: dict[str, Any]) -> StoredIndex:
    """What ``index.json`` names.

    Raises:
      InputError: if a file is missing or damaged.
    """
    import pyarrow as pa

    try:
        _check_content(folder, facts)
        parts = [_read_part(os.path.join(folder, part["folder"])) for part in facts["parts"]]
        documents = tuple(itertools.chain.from_iterable(rows for _, rows in parts))
        inverted, words = facts.get("vectors"), facts.get("words")
        return StoredIndex(
            parts[0][0] if len(parts) == 1 else np.concatenate([vectors for vectors, _ in parts]),
            documents,
            _found_encoder(folder, facts),
            facts["encoder_digest"],
            facts.get("exact_limit"),
            None if inverted is None else _read_faiss(os.path.join(folder, inverted), len(documents)),
            Reading(*(facts.get(field.name) for field in dataclasses.fields(Reading))),
            None if words is None else _read_words(os.path.join(folder, words), len(documents)),
            facts.get("ranking"),
        )
    except InputError:
        raise
    except (*DAMAGE, RuntimeError, pa.ArrowException) as error:
        raise InputError(f"no readable index: {error}", path=folder, remedy=_REMEDY) from error


def _read_part(folder: str) -> tuple[npt.NDArray[np.float32], tuple[IndexedDocument, ...]]:
    import pyarrow.parquet as pq

    vectors = np.load(os.path.join(folder, _EMBEDDINGS_FILE), allow_pickle=False)
    rows = pq.read_table(os.path.join(folder, _DOCUMENTS_FILE)).to_pylist()
    return vectors, tuple(IndexedDocument(**row) for row in rows)


def _read_faiss(path: str, rows: int) -> Any:
    import faiss

    index = faiss.read_index(path)
    if index.ntotal != rows:
        raise InputError(f"holds {index.ntotal:,} vectors for {rows:,} documents", path=path, remedy=_REMEDY)
    return index


def _read_words(path: str, rows: int) -> WordsFolder:
    words = WordsFolder(path)
    if len(words) != rows:
        raise InputError(f"holds the words of {len(words):,} documents, expected {rows:,}", path=path, remedy=_REMEDY)
    return words


def _found_encoder(folder: str, facts: Mapping[str, Any]) -> str:
    """The encoder's ``KIND:REST``: the encoder next to the index if there is one, else as it was given."""
    given = str(facts["encoder"])
    kind, path, number = split_encoder(str(facts.get("encoder_beside", "")))
    found = os.path.normpath(os.path.join(os.path.realpath(folder), path))
    if not path or not os.path.isdir(found) or found == os.path.realpath(split_encoder(given)[1]):
        return given
    return f"{kind}:{os.path.relpath(found)}{number}"


def _check_content(folder: str, facts: Mapping[str, Any]) -> None:
    if problem := damage(folder, _named(facts)):
        raise InputError(f"no readable index: {problem}", path=folder, remedy=_DAMAGED_REMEDY)


# Writing


@contextlib.contextmanager
def _writing(folder: str) -> Iterator[int]:
    """The number of the next version. One process writes at a time; what it leaves unpublished is removed.

    Raises:
      InputError: if another process writes the folder.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"no readable index: {error}", path=folder, remedy=_REMEDY) from error
    try:
        _lock(handle, folder)
        _remove_unpublished(folder)
        try:
            found = (_VERSIONED.fullmatch(name) for name in os.listdir(folder))
            yield 1 + max([_version_of(folder), *(int(name[1]) for name in found if name and name[1])])
        finally:
            _remove_unpublished(folder)
    finally:
        os.close(handle)


def _lock(handle: int, folder: str) -> None:
    """Locks a folder until its handle is closed.

    Raises:
      InputError: if another process has locked it.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        problem = "another process writes this index"
        raise InputError(problem, path=folder, remedy="run the command again when it has ended") from error
    except OSError:
        return  # a file system without locks


def _publish(folder: str, version: int, facts: Mapping[str, Any]) -> None:
    """Makes files that are written the index. Each step leaves a folder whose files are as its lists say."""
    kept = {name: value for name, value in facts.items() if value is not None}
    kept |= {"format_version": FORMAT_VERSION, "index_version": version, "version": __version__}
    files_before = _files_before(folder)
    listed = _listed(folder)
    before = {name: listed[name] for name in files_before if name in listed}
    sums = {name: before.get(name) or file_sha256(os.path.join(folder, name)) for name in _files(folder, kept)}
    write_list(folder, before | sums)
    with replacing(facts_file(folder)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        json.dump({**kept, "sha256": _digest(kept)}, file, indent=2)
    write_list(folder, {**sums, _INDEX_FILE: file_sha256(facts_file(folder))})
    for name in _FIRST_FILES:
        if name in files_before:
            os.remove(os.path.join(folder, name))


def _listed(folder: str) -> dict[str, str]:
    """The digests in a folder; none where the list is damaged."""
    try:
        return read_sums(folder) or {}
    except InputError:
        return {}


def _files_before(folder: str) -> list[str]:
    """The files of the index that is in a folder; none where it is damaged."""
    try:
        return _files(folder, _read_facts(folder)) if os.path.exists(facts_file(folder)) else []
    except (InputError, *DAMAGE):
        return []


def _remove_unpublished(folder: str) -> None:
    """Removes what an index wrote and its ``index.json`` does not name; nothing where that file is damaged."""
    try:
        named = set(_named(_read_facts(folder))) if os.path.exists(facts_file(folder)) else set()
    except (InputError, *DAMAGE):
        return
    named |= {os.path.dirname(name) for name in named}
    for name in os.listdir(folder):
        if _VERSIONED.fullmatch(name) and name not in named:
            path = os.path.join(folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def _named(facts: Mapping[str, Any]) -> list[str]:
    """The files and folders that ``index.json`` names, relative to the folder."""
    parts = [
        os.path.join(part["folder"], name) for part in facts["parts"] for name in (_EMBEDDINGS_FILE, _DOCUMENTS_FILE)
    ]
    return [*parts, *(facts[name] for name in ("words", "vectors") if facts.get(name))]


def _files(folder: str, facts: Mapping[str, Any]) -> list[str]:
    """The files of an index, relative to its folder."""
    found = list[str]()
    for name in _named(facts):
        path = os.path.join(folder, name)
        found += [os.path.join(name, inside) for inside in sorted(os.listdir(path))] if os.path.isdir(path) else [name]
    return found


def _shared_parts(folder: str, version: int, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of an index as folders of their own; that of format 1 gets one, with links to its files."""
    parts = list(facts["parts"])
    if parts[0]["folder"]:
        return parts
    name = _PART.format(version - 1)
    os.makedirs(os.path.join(folder, name))
    for file in (_EMBEDDINGS_FILE, _DOCUMENTS_FILE):
        link(os.path.join(folder, file), os.path.join(folder, name, file))
    return [{**parts[0], "folder": name}]


def _write_part(folder: str, embeddings: npt.NDArray[np.float32], documents: tuple[IndexedDocument, ...]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.makedirs(folder)
    np.save(os.path.join(folder, _EMBEDDINGS_FILE), embeddings)
    names = [field.name for field in dataclasses.fields(IndexedDocument)]
    schema = pa.schema([(name, pa.date32() if name == "byline_date" else pa.string()) for name in names])
    table = pa.Table.from_pylist([dataclasses.asdict(document) for document in documents], schema)
    pq.write_table(table, os.path.join(folder, _DOCUMENTS_FILE), compression="zstd", write_page_checksum=True)


def _write_faiss(folder: str, version: int, inverted_file: Any) -> dict[str, Any]:
    """Writes the inverted file, if any; returns the facts that name it."""
    if inverted_file is None:
        return {"search": _EXACT, "vectors": None}
    import faiss

    faiss.write_index(inverted_file, os.path.join(folder, _FAISS.format(version)))
    return {"search": _INVERTED, "vectors": _FAISS.format(version)}


def _version_of(folder: str) -> int:
    """The number of the version in a folder, 0 without one."""
    try:
        with open(facts_file(folder), encoding="utf-8") as file:
            return _number(json.load(file))
    except DAMAGE:
        return 0


def _number(facts: Mapping[str, Any]) -> int:
    return int(facts.get("index_version", 1))


def _beside(folder: str, spec: str) -> str | None:
    """An encoder's ``KIND:REST`` relative to the folder of the index; None where it names no folder."""
    kind, path, number = split_encoder(spec)
    if not path:
        return None
    return f"{kind}:{os.path.relpath(os.path.realpath(path), os.path.realpath(folder))}{number}"


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
