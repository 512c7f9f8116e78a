"""The words of an index: a folder that the library tantivy writes, an inverted file with the texts of the bodies.

Each article is one row. Its title and body are given as tokens, so that the caller decides what a word is. The
files of tantivy never change once they are written, apart from two lists; `link_words` copies these, links the rest.
"""

import contextlib
import dataclasses
import errno
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

from ..errors import InputError

TEXT, NUMBER, DAY, LANGUAGE, PUBLISHER = "text", "number", "day", "language", "publisher"
_SOURCE: Final = "source"
_LISTS: Final = ("meta.json", ".managed.json")  # tantivy replaces them
_LOCK_ENDING: Final = ".lock"
_MEMORY: Final = 64 << 20  # bytes of postings before they are written
_SYSTEM_ERROR: Final = re.compile(r"\bcode: (\d+)\b")
_REMEDY: Final = "Build the index again with newsembed index."


@dataclasses.dataclass(frozen=True, slots=True)
class WordsRow:
    """One article.

    Attributes:
      number: its place in the index.
      text: the tokens of its title and body, tantivy's ``PreTokenizedString``.
      source: the body, kept for extracts.
      day: days since 1970-01-01; None without a date.
      language: what a search can be restricted to; "" if unknown.
      publisher: the same.
    """

    number: int
    text: Any
    source: str
    day: int | None = None
    language: str = ""
    publisher: str = ""


class WordsFolder:
    """The words of an index, open for searches. Later changes of the folder, even its removal, do not reach it.

    Args:
      folder: what `WordsWriter` wrote.

    Raises:
      InputError: if it cannot be read.

    Attributes:
      folder: where it was read.
      schema: tantivy's, for queries.
      searcher: tantivy's.
    """

    def __init__(self, folder: str) -> None:
        import tantivy

        self.folder = folder
        # tantivy writes lock files where it reads, also from threads of its own, and an index may be read-only. It gets
        # a folder of links.
        view = tempfile.mkdtemp(prefix="newsembed-")
        weakref.finalize(self, shutil.rmtree, view, ignore_errors=True)
        try:
            for name in _files(folder):
                os.symlink(os.path.abspath(os.path.join(folder, name)), os.path.join(view, name))
            index = tantivy.Index.open(view)
            index.config_reader("manual")
            self.schema, self.searcher = index.schema, index.searcher()
        except (OSError, ValueError) as error:
            raise InputError(f"no readable words: {error}", path=folder, remedy=_REMEDY) from error

    def __len__(self) -> int:
        return int(self.searcher.num_docs)

    def numbers(self, addresses: Sequence[Any]) -> list[Any]:
        """The numbers of rows by their addresses in the searcher."""
        return list(self.searcher.fast_field_values(NUMBER, list(addresses)))

    def source(self, address: Any) -> str:
        """The body of a row."""
        return bytes(self.searcher.doc(address)[_SOURCE][0]).decode("utf-8")


class WordsWriter:
    """Adds rows to a folder of words, or makes one. The rows are there when the context ends without an error.

    Args:
      folder: with links of `link_words`, or none yet.

    Raises:
      OSError: if they cannot be written.
      InputError: if the folder cannot be read.
    """

    def __init__(self, folder: str) -> None:
        import tantivy

        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        with self._errors():
            self._writer = tantivy.Index(_schema(), path=folder).writer(_MEMORY, num_threads=1)  # one keeps the order

    def add(self, row: WordsRow) -> None:
        """Adds a row of a new number."""
        with self._errors():
            self._writer.add_document(_document(row))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            with self._errors():
                self._writer.commit()
                self._writer.wait_merging_threads()
        del self._writer
        for name in os.listdir(self.folder):
            if name.endswith(_LOCK_ENDING):
                os.remove(os.path.join(self.folder, name))

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Makes the system's errors of those of tantivy, which holds their numbers in its messages.

        Raises:
          OSError: for an error of the system.
          InputError: for all else.
        """
        try:
            yield
        except ValueError as error:
            code = _SYSTEM_ERROR.search(str(error))
            if code is None:
                problem = f"the words cannot be written: {error}"
                raise InputError(problem, path=self.folder, remedy=_REMEDY) from error
            raise OSError(int(code[1]), os.strerror(int(code[1])), self.folder) from error


def link_words(source: str, target: str) -> None:
    """Makes a folder with the words of another, which shares its files where the file system has hard links.

    Args:
      source: what `WordsWriter` wrote; it never changes through the new folder.
      target: a folder that is not there.

    Raises:
      OSError: if it cannot be written.
    """
    os.makedirs(target)
    for name in _files(source):
        given, made = os.path.join(source, name), os.path.join(target, name)
        if name in _LISTS:
            shutil.copyfile(given, made)
        else:
            link(given, made)


def link(source: str, target: str) -> None:
    """A second name of a file; a copy where the file system has no hard links, or the names are on two of them.

    Raises:
      OSError: if it cannot be written.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES}:
            raise
        shutil.copyfile(source, target)


def _files(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.endswith(_LOCK_ENDING))


def _document(row: WordsRow) -> Any:
    import tantivy

    document = tantivy.Document()
    document.add_unsigned(NUMBER, row.number)
    document.add_pre_tokenized_text(TEXT, row.text)
    document.add_bytes(_SOURCE, row.source.encode("utf-8", "replace"))
    if row.day is not None:
        document.add_integer(DAY, row.day)
    document.add_text(LANGUAGE, row.language)
    document.add_text(PUBLISHER, row.publisher)
    return document


def _schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TEXT, index_option="freq")
    builder.add_unsigned_field(NUMBER, indexed=True, fast=True)
    builder.add_integer_field(DAY, indexed=True, fast=True)
    for name in (LANGUAGE, PUBLISHER):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field(_SOURCE, stored=True)
    return builder.build()
