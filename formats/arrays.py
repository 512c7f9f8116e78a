"""Named arrays in npz and npy files (no Python objects), safetensors, word vectors; the highest scores of an array.

The vectors of articles, as ``newsembed embed`` writes them: NumPy and text, a Parquet file or a LanceDB table.
"""

import contextlib
import dataclasses
import gzip
import io
import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError, reading, refusing
from . import files
from .articles import ArticleText
from .digests import check_sums, write_sums
from .files import read_bytes, replacing
from .folders import written

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]

# What NumPy raises for damaged files: their headers are Python literals, and a wrong shape asks for any memory.
DAMAGE: Final = (
    *(ValueError, TypeError, OSError, EOFError, KeyError, AttributeError, OverflowError, MemoryError, SyntaxError),
    *(NotImplementedError, RecursionError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
# Integers, because files of old libraries keep position numbers.
_PLAIN_DTYPES: Final = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4"}
_ROUNDING: Final = 1e-6  # of the length of a unit vector
WORD_VECTORS_REMEDY: Final = (
    "give a text file of word vectors: `word v1 v2 … vD` on each line, as GloVe and word2vec distribute them"
)


def write_arrays(path: str, arrays: Mapping[str, Array]) -> None:
    """Writes an npz file of numbers or texts completely or not at all.

    Raises:
      ValueError: for an array of Python objects, which only pickle could hold.
    """
    if objects := [name for name, values in arrays.items() if values.dtype.hasobject]:
        raise ValueError(f"got an array of Python objects as {objects[0]!r}, expected numbers or texts")
    raw = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez(raw, **named)
    files.write_whole(path, raw.getvalue())


def read_arrays(path: str) -> dict[str, Array]:
    """Reads an npz file; arrays of Python objects are refused.

    Raises:
      InputError: if the file is missing, is not an npz file, or has an array of Python objects.
    """
    with files.open_read(path) as source:
        raw = source.read()
    about, content = {"path": path, "remedy": "delete it, and run what wrote it again"}, io.BytesIO(raw)
    with refusing("not an npz file of numbers:", *DAMAGE, **about), np.load(content, allow_pickle=False) as arrays:
        return {name: _array(name, arrays[name]) for name in arrays.files}


def read_npy(source: BinaryIO | str, path: str) -> Array:
    """Reads an npy file; an array of Python objects is refused.

    Args:
      source: the open file, or its path.
      path: named in the error.

    Raises:
      FileNotFoundError: if there is no such file.
      InputError: if it is not an npy file, or has an array of Python objects.
    """
    try:
        return _array(path, np.load(source, allow_pickle=False))
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise InputError(f"not an npy file: {error}", path=path, remedy="write it with numpy.save") from error


def _array(name: str, values: Any) -> Array:
    """The values of an entry; NumPy gives the bytes of entries in another format."""
    if not isinstance(values, np.ndarray):
        raise TypeError(f"the entry {name!r} is not an array")
    return values


def flatten(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of nested parameters by path, joined with dots and sorted.

    >>> flatten({"b": 1, "a": {"kernel": 2}})
    {'a.kernel': 2, 'b': 1}
    """
    flat: dict[str, Any] = {}
    for name in sorted(params):
        value = params[name]
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of `flatten`.

    >>> unflatten({"a.kernel": 2, "b": 1})
    {'a': {'kernel': 2}, 'b': 1}
    """
    params: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        node = params
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return params


def read_safetensors(path: str, remedy: str = "Fetch, save or export the file again.") -> dict[str, Array]:
    """Arrays by name; bfloat16, which the library's own NumPy reader lacks, by ml_dtypes.

    Raises:
      InputError: if the file is missing or broken, or holds another number type.
    """
    import ml_dtypes
    from safetensors import SafetensorError, deserialize

    dtypes: dict[str, Any] = {**_PLAIN_DTYPES, "BF16": ml_dtypes.bfloat16}
    with reading(path, remedy, SafetensorError):
        found = deserialize(read_bytes(path, remedy))  # type: ignore[no-untyped-call]
    for name, array in found:
        if array["dtype"] not in dtypes:
            problem = f"got the number type {array['dtype']}, expected one of {', '.join(dtypes)}"
            raise InputError(problem, path=path, field=name)
    return {name: np.frombuffer(one["data"], dtypes[one["dtype"]]).reshape(one["shape"]) for name, one in found}


def write_safetensors(path: str, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Writes arrays by name; they need not be contiguous. Equal values give equal bytes."""
    from safetensors.numpy import save

    # Not `np.ascontiguousarray`, which makes one dimension of none.
    content = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    # The library writes metadata in any order.
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps({"__metadata__": dict(sorted(metadata.items())), **json.loads(content[8:end])}).encode()
    header += b" " * (-len(header) % 8)
    content = len(header).to_bytes(8, "little") + header + content[end:]
    with open(path, "wb") as file:  # the library's own files are readable by their owner only
        file.write(content)


class WordVectorFile:
    """A file of word vectors in the text formats of GloVe and word2vec, ``.gz`` too, read a line at a time.

    Attributes:
      path: of the file.
      dimensions: D.

    Raises:
      InputError: from the constructor, if the first lines are not word vectors.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._opened() as file:
            first, second = file.readline().split(), file.readline().split()
        self._has_header = len(first) == 2 and all(field.isdigit() for field in first)  # of word2vec: ``words D``
        sample = second if self._has_header else first
        self.dimensions = int(first[1]) if self._has_header else len(first) - 1
        try:
            np.array(sample[-self.dimensions :], np.float32)
        except ValueError:
            self.dimensions = 0
        if self.dimensions < 1 or len(sample) <= self.dimensions:
            remedy = f"{WORD_VECTORS_REMEDY}; binary word2vec files are not read"
            raise InputError("the first lines contain no word vector", path=path, remedy=remedy)

    def read(self, wanted: Collection[str]) -> dict[str, Floats]:
        """Returns the vectors of the wanted words that the file has; only these are held in memory.

        Raises:
          InputError: for a line of a wanted word that is broken.
        """
        table: dict[str, Floats] = {}
        keys = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
        with self._opened() as file:
            for number, line in enumerate(file, 1):
                # Tokens of GloVe's largest file may contain spaces; they match none of our words.
                if (number == 1 and self._has_header) or line.partition(b" ")[0] not in keys:
                    continue
                word, *values = line.rstrip().rsplit(b" ", self.dimensions)
                if word not in keys:
                    continue
                with reading(f"{self.path}:{number}", "the file may be truncated: download it again"):
                    table[keys[word]] = np.array(values, np.float32)
                    if len(values) != self.dimensions:
                        raise InputError(f"got {len(values)} numbers, expected {self.dimensions}")
        return table

    @contextlib.contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        opener: Any = gzip.open if self.path.endswith(".gz") else open
        with reading(self.path, WORD_VECTORS_REMEDY, OSError, EOFError), opener(self.path, "rb") as file:
            yield file


def unit_rows(vectors: Array) -> Floats:
    """Rows ``[n, D]`` scaled to length 1, float32; those of zeros stay. Rows of length 1 or 0 only are not copied."""
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
    if vectors.dtype == np.float32 and np.all((np.abs(norms - 1) < _ROUNDING) | (norms == 0)):
        return vectors
    return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)


def unit(vector: Array) -> Floats:
    """A vector scaled to length 1, in float32; one of zeros stays as it is."""
    return unit_rows(vector[None])[0]


def highest(scores: Array, count: int) -> tuple[Array, Array]:
    """Returns the columns and values of the ``count`` highest scores of each row, ties by lower column.

    Args:
      scores: floats ``[Q, N]`` without NaN.
      count: K, from 1 to N.

    Returns:
      Columns, int64 ``[Q, K]``, and scores ``[Q, K]``, both by falling score.
    """
    place = scores.shape[1] - count
    lowest = np.partition(scores, place, axis=1)[:, place, None]
    chosen = scores >= lowest
    # Many scores may tie with the lowest one wanted: similarities of images have few values.
    tied = np.flatnonzero(np.count_nonzero(chosen, axis=1) > count)
    equal = scores[tied] == lowest[tied]
    missing = count - np.count_nonzero(chosen[tied] & ~equal, axis=1, keepdims=True)
    chosen[tied] &= ~equal | (np.cumsum(equal, axis=1) <= missing)
    columns = np.nonzero(chosen)[1].reshape(-1, count)
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


_EMBEDDINGS: Final = "embeddings.npy"
TABLE: Final = ".lance"  # the end of the name of a table

Chunk = tuple[Sequence[ArticleText], Floats]  # articles, their embeddings [n, D]
Named = tuple[Sequence[str], Floats]  # document ids, their embeddings [n, D]
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


def read_folder(path: str) -> Floats:
    """The embeddings of a folder that `write_folder` wrote, [N, D].

    Raises:
      InputError: if the folder is incomplete, or a file changed since it was written.
    """
    remedy = "Remove the folder and run the command again."
    check_sums(path, remedy)
    with reading(path, remedy, *DAMAGE):
        embeddings: Floats = np.load(os.path.join(path, _EMBEDDINGS), allow_pickle=False)
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


_NAMES: Final = ("doc_ids", "keys", "days", "languages", "lengths", "neighbors", "probabilities")
NO_DAY: Final = 0  # ordinals begin at 1
_REMEDY: Final = "Delete it, and run what wrote it again."


@dataclasses.dataclass(frozen=True, eq=False)
class Teacher:
    """What a teacher knows of N documents.

    Attributes:
      doc_ids: int32 [N, 2], the two words of each document's id, see `records.doc_id_to_words`.
      keys: float32 [N, D], a fixed vector of length 1 of each document.
      days: int32 [N], the ordinal of the byline date, see `datetime.date.toordinal`; `NO_DAY` where it is unknown.
      languages: int32 [N], a number for each language.
      lengths: int32 [N], characters of title and body.
      neighbors: int32 [N, K], rows of the documents that document i is near to; i itself is not among them.
      probabilities: float32 [N, K], the share of each neighbor; the shares of a document add up to 1 at most, and
        the rest is the share of all other documents together.
    """

    doc_ids: npt.NDArray[np.int32]
    keys: Floats
    days: npt.NDArray[np.int32]
    languages: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    neighbors: npt.NDArray[np.int32]
    probabilities: Floats


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
    shapes = ((count, 2), (count, teacher.keys.shape[-1]), *3 * [(count,)], *2 * [(count, width)])
    for name, shape in zip(_NAMES, shapes, strict=True):
        values, kind = arrays[name], np.float32 if name in ("keys", "probabilities") else np.int32
        if values.dtype != kind or values.shape != shape or not count or not width:
            problem = f"got {values.dtype} {list(values.shape)}, expected {np.dtype(kind)} {list(shape)}, not empty"
            raise InputError(problem, path=path, field=name, remedy=_REMEDY)
    return teacher
