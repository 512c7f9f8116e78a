"""JSON-lines and CSV files, plain, ``.gz``, ``.bz2``, ``.xz`` or ``.zst``, with errors that name the line."""

import bz2
import codecs
import contextlib
import csv
import functools
import itertools
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from ..errors import InputError, reading
from .fields import standard

COMPRESSIONS: Final = ("", ".gz", ".bz2", ".xz", ".zst")
ENDINGS: Final = tuple(
    f"{kind}{packed}" for kind in (".jsonl", ".json", ".ndjson", ".csv", ".tsv") for packed in COMPRESSIONS
)  # of the files that `read_values` reads
_IS_TABLE: Final = re.compile(r"(?i)\.[ct]sv(?:\.\w+)?$")
_SEPARATORS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(r"(?i)\"?sep=(.)\"?\s*$")  # Excel's, before the names
_LONGEST_NAME: Final = 80  # characters; a longer cell of the first row is a text
_LONGEST_CELL: Final = 1 << 26
# Where answers of APIs, dumps of feeds and of search engines have their articles, also inside an object.
_LISTS: Final = str.split(
    "articles results docs posts items item entries news news_results stories feed value data children hits"
)
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # Excel's "Unicode text", and what PowerShell writes
_CHUNK_BYTES: Final = 1 << 18
_SEVERAL_LINES: Final = re.compile(rb"\s*(?:\[|\{\s*$)")  # the beginning of JSON that is no JSON-lines file
_BETWEEN: Final = re.compile(r"[\s,\[\]]*")
_REMEDY: Final = "write one JSON object a line; convert another charset, as by `iconv -f WINDOWS-1252 -t UTF-8`"


class CompressionError(OSError):
    """A file is not compressed as its name says."""


def read_jsonl(
    path: str, name: str = "", remedy: str = "give a complete JSON-lines file"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("path:line", object) of every line of a local file that is not blank.

    Args:
      path: of the file.
      name: what places and errors of lines call it; "" for its path.
      remedy: for a file that cannot be opened or is truncated.

    Raises:
      InputError: for a file that cannot be opened, is truncated or is not compressed as its name says, and for a line
        that is not a JSON object.
    """
    with reading(path, remedy, OSError, EOFError), open(path, "rb") as source:
        for number, line in enumerate(read_values(source, path), 1):
            if line.strip():
                where = f"{name or path}:{number}"
                try:
                    row = json.loads(line.decode("utf-8"))  # json itself would guess UTF-16
                except ValueError as error:
                    raise InputError(f"not JSON in UTF-8: {error}", path=where, remedy=_REMEDY) from error
                if not isinstance(row, dict):
                    raise InputError(f"got a JSON {type(row).__name__}, expected an object", path=where, remedy=_REMEDY)
                yield where, row


def read_lines(source: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the complete lines of an open file, without line ends and without a byte order mark before the first.

    Args:
      source: the file as it is stored.
      path: its name, whose ending says how the file is compressed.

    Raises:
      CompressionError: if the file is not compressed as its name says.
      EOFError: after the last complete line, if the compressed data is truncated or corrupt.
    """
    for number, line in enumerate(_split(_as_utf8(_chunks(source, path)))):
        yield line if number else line.removeprefix(codecs.BOM_UTF8)


def read_values(source: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the objects of a JSON-lines or CSV file, as JSON.

    The file may also be a JSON array, have objects of several lines, or be the answer of a news API, whose articles are
    yielded. The rows of CSV and TSV are objects by the names in their first row. See `read_lines`, whose lines are
    yielded unless the first shows that objects are no lines.
    """
    lines = read_lines(source, path)
    if _IS_TABLE.search(path):
        yield from _table_rows(lines, path)
        return
    for first in itertools.islice(lines, 1):
        whole = itertools.chain([first], lines)
        values = _values(line + b"\n" for line in whole) if _SEVERAL_LINES.match(first) else whole
        holds_answers: bool | None = None  # or articles: the objects of a file are of one kind
        for value in values:
            rows = None if holds_answers is False else _rows_of_answer(value)
            if holds_answers is None and rows != []:  # an empty list may be of either
                holds_answers = rows is not None
            if rows is None or holds_answers is None:
                yield value
            else:
                yield from (json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") for row in rows)


def _rows_of_answer(raw: bytes) -> list[Any] | None:
    """Returns the articles of an answer; None for another object, such as an article."""
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(raw, strict=False)
        if isinstance(value, dict) and not {"title", "body"} <= standard(value).keys():
            if all(_are_rows(rows) and rows for rows in value.values()):  # by topic or by site
                return [row for rows in value.values() for row in rows]
            return _rows_inside(value)
    return None


def _rows_inside(value: dict[str, Any]) -> list[Any] | None:
    found = next((value[name] for name in _LISTS if _are_rows(value.get(name))), None)
    inside = (rows for part in value.values() if isinstance(part, dict) and (rows := _rows_inside(part)))
    return found or next(inside, found)


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _values(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the elements of a JSON array, or objects one after another; what is no JSON comes last, as it is."""
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    scan = json.JSONDecoder(strict=False).raw_decode  # some tools leave line ends inside texts
    pieces, held, enough, rest = list[str](), 0, 0, ""
    for chunk in itertools.chain(chunks, [b""]):
        pieces.append(decode(chunk, final=not chunk))
        held += len(pieces[-1])
        if chunk and held < enough:  # a value of many lines would be read again with each of them
            continue
        text, place = "".join(pieces), 0
        while (between := _BETWEEN.match(text, place)) and (place := between.end()) < len(text):
            try:
                _, end = scan(text, place)
            except ValueError:  # the value goes on in the next chunk, or is broken
                break
            yield text[place:end].encode("utf-8", "surrogateescape")
            place = end
        rest = text[place:]
        pieces, held, enough = [rest], len(rest), 2 * len(rest)
    if rest := rest.strip():
        yield rest.encode("utf-8", "surrogateescape")


class _Lines:
    """Lines, of which those after the first of a row can be given back."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.taken, self.back = lines, list[str](), list[str]()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.taken.append(self.back.pop() if self.back else next(self.lines))
        return self.taken[-1]


def _rows_of_cells(lines: Iterator[str], separator: str) -> Iterator[list[str] | str]:
    """Yields the cells of each row, or what is wrong with it.

    Tables with tabs or bars often have quotes that quote no cell. So a line that is no row by the rules of CSV is one
    without them if it has as many cells as the first; then no cell of the table has several lines.
    """
    source = _Lines(lines)
    reader = csv.reader(source, delimiter=separator, strict=True)
    width, quotes_none = 0, False
    while True:
        problem, row = "", None
        try:
            row = next(reader, None)
        except csv.Error as error:
            problem = f"row {reader.line_num}: {error}"
        if separator in "\t|" and (problem or (quotes_none and len(source.taken) > 1)):
            cells = source.taken[0].rstrip("\r\n").split(separator)
            if len(cells) == width:
                problem, row, quotes_none = "", cells, True
                source.back += reversed(source.taken[1:])
        if row is None and not problem:
            return
        width = width or len(row or ())
        source.taken.clear()
        yield problem or row or []


def _table_rows(lines: Iterator[bytes], path: str) -> Iterator[bytes]:
    """Yields the rows of CSV or TSV as JSON objects; one with more cells than names comes as a text.

    The columns of a table without names are called by their numbers: an article would be lost as a name of each.
    """
    csv.field_size_limit(_LONGEST_CELL)
    texts = (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
    first = next(texts, "")
    separator = "\t" if ".tsv" in os.path.basename(path).lower() else max(_SEPARATORS, key=first.count)
    if stated := _SEPARATOR_LINE.match(first):
        separator, first = stated[1], next(texts, "")
    names: list[str] | None = None
    for row in _rows_of_cells(itertools.chain([first], texts), separator):
        if isinstance(row, str):
            yield row.encode()
        elif names is None and not any(len(cell) > _LONGEST_NAME or "://" in cell for cell in row):
            names = [name.strip() for name in row]
        else:
            names = names or [str(number) for number in range(1, len(row) + 1)]
            value = json.dumps(dict(zip(names, row, strict=False)), ensure_ascii=False)
            if len(row) > len(names):
                value = f"{len(row)} cells, the first row has {len(names)}: {separator.join(row)}"
            if row:
                yield value.encode("utf-8", "surrogateescape")


def _as_utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-16 with a byte order mark becomes UTF-8; anything else stays."""
    whole = itertools.chain([first := next(chunks, b"")], chunks)
    texts = codecs.iterdecode(whole, "utf-16", "replace")
    return codecs.iterencode(texts, "utf-8", "surrogatepass") if first.startswith(_UTF16) else whole


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    pending = b""
    for chunk in chunks:
        *lines, pending = (pending + chunk).split(b"\n")
        yield from lines
    if pending:
        yield pending


def _chunks(source: BinaryIO, path: str) -> Iterator[bytes]:
    ending = path.rpartition(".")[2]
    raw = iter(lambda: source.read(_CHUNK_BYTES), b"")
    if f".{ending}" not in COMPRESSIONS:
        yield from raw
        return
    new_stream, broken = _codec(ending)
    is_started = False
    try:
        for chunk in _decompressed(raw, new_stream, ending):
            is_started = is_started or bool(chunk)
            yield chunk
    except (OSError, broken) as error:
        raise (EOFError if is_started else CompressionError)(str(error)) from error


def _codec(ending: str) -> tuple[Callable[[], Any], type[Exception]]:
    """What begins a stream of a compression, and the error of its library for broken data."""
    if ending == "zst":
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError
    if ending == "bz2":
        return bz2.BZ2Decompressor, OSError
    if ending == "xz":
        return lzma.LZMADecompressor, lzma.LZMAError
    return functools.partial(zlib.decompressobj, wbits=31), zlib.error  # with the header of gzip


def _decompressed(raw: Iterator[bytes], new_stream: Callable[[], Any], ending: str) -> Iterator[bytes]:
    """Stream by stream: the readers of the libraries ignore a truncated last stream, or lose what is before the end."""
    stream: Any = None
    for chunk in raw:
        rest = chunk
        while rest := rest.lstrip(b"\0") if stream is None else rest:  # streams may be padded
            stream = stream or new_stream()
            yield stream.decompress(rest)
            rest, stream = (stream.unused_data, None) if stream.eof else (b"", stream)
    if stream:
        raise EOFError(f"the last .{ending} stream is truncated")


def load_json(raw: str | bytes) -> Any:
    r"""Returns untrusted JSON; unpaired surrogates, which JSON can escape but UTF-8 cannot encode, become U+FFFD.

    >>> load_json('"cut emoji \\ud83d"')
    'cut emoji �'

    Args:
      raw: text, or bytes in UTF-8.

    Raises:
      ValueError: if the input is not JSON, not UTF-8, or nested too deeply.
    """
    text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw  # the json module may detect UTF-16
    try:
        value = json.loads(text, strict=False)
        return _replace_surrogates(value) if "\\ud" in text or "\\uD" in text else value
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()}
    return value
