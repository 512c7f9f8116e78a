"""Shared helpers of the jobs that read texts: text columns of articles, language keys and repeatable random draws."""

import dataclasses
import datetime
import functools
import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Final

from ..errors import InputError
from ..formats import files
from ..formats.parquet import read_records
from ..formats.vocabulary import VOCABULARY_FILE, input_digest
from ..tasks.vocabulary import Vocabulary
from .jobs import InputSpec, JobRun

UNDETERMINED: Final = "und"  # BCP-47's tag for an undetermined language
LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_BATCH_DOCUMENTS = 256
_VOCABULARY: Final = "folder that `newsembed vocabulary` or `newsembed import-hf` wrote, or its vocab.txt"


@dataclasses.dataclass(frozen=True, slots=True)
class ArticleText:
    """The columns of an :class:`~.records.Article` that jobs with texts need."""

    doc_id: str
    title: str
    body: str
    language: str
    anchor_texts: tuple[str, ...]
    byline_date: datetime.date | None = None


def read_text_batches(path: str, size: int = _BATCH_DOCUMENTS) -> Iterator[list[ArticleText]]:
    """Yields the articles of one shard in batches of ``size``, which suit TensorFlow's operations."""
    articles = read_records(path, ArticleText)
    while batch := list(itertools.islice(articles, size)):
        yield batch


def language_key(language: str) -> str:
    """Returns a language tag as part of a path: the tag, ``und`` if empty.

    Raises:
      InputError: if it is not a BCP-47 tag; `newsembed clean` writes no other.
    """
    key = language or UNDETERMINED
    if not LANGUAGE.fullmatch(key):
        remedy = "give articles that `newsembed clean` wrote"
        raise InputError(f"got {language!r}, expected a BCP-47 tag", field="language", remedy=remedy)
    return key


@functools.lru_cache(maxsize=4_096)  # a file has few different tags
def language_tag(language: str) -> str | None:
    """Returns a language tag in the form of BCP-47 (RFC 5646, section 2.1.1), ``None`` if it is not a tag.

    A code of three letters becomes that of two letters where there is one: articles have the latter.

    >>> language_tag("EN"), language_tag("pt_br"), language_tag("ZH-hant-tw"), language_tag("deu"), language_tag("fil")
    ('en', 'pt-BR', 'zh-Hant-TW', 'de', 'fil')
    """
    tag = language.strip().replace("_", "-")
    if not LANGUAGE.fullmatch(tag):
        return None
    first, *subtags = tag.lower().split("-")
    written = [_shortest_code(first)]
    for subtag in subtags:
        private = len(first) == 1 or any(len(before) == 1 for before in written)  # after x-, u-, …: lower case
        if not private and subtag.isalpha() and len(subtag) in (2, 4):
            subtag = subtag.upper() if len(subtag) == 2 else subtag.title()  # noqa: PLW2901 - the subtag in its canonical case
        written.append(subtag)
    return "-".join(written)


def _shortest_code(code: str) -> str:
    """Returns the code of ISO 639-1 for one of ISO 639-2 or 639-3 (``deu``, ``ger``), other codes as they are."""
    if len(code) != 3:
        return code
    from babel.core import get_global

    alias = str(get_global("language_aliases").get(code, code))
    return alias if len(alias) == 2 else code


def uniform_draw(*keys: object) -> float:
    """Returns a number in [0, 1) that depends only on the keys: the same on every machine and in every run."""
    digest = hashlib.blake2b("\0".join(map(str, keys)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


def shuffle_key(*keys: object) -> bytes:
    """Returns a sort key that shuffles records, in the same way every time."""
    return hashlib.blake2b("\0".join(map(str, keys)).encode(), digest_size=16).digest()


def vocabulary_path(path: str) -> str:
    """Returns the path of the vocabulary file in a job's folder, or the file itself.

    Raises:
      InputError: if there is no vocabulary file.
    """
    inside = f"{path.rstrip('/')}/{VOCABULARY_FILE}"
    if files.exists(inside):
        return inside
    if path.endswith(".txt") and files.exists(path):
        return path
    raise InputError(f"no {VOCABULARY_FILE} here", path=path, field="--vocabulary", remedy=f"give the {_VOCABULARY}")


def _vocabulary_digest(path: str) -> str:
    """The digest of the files of a vocabulary.

    Raises:
      InputError: if there is no vocabulary file.
    """
    return input_digest(vocabulary_path(path))


VOCABULARY_INPUT: Final = InputSpec("vocabulary", _VOCABULARY, digest=_vocabulary_digest)


def checked_vocabulary(run: JobRun) -> str:
    """Returns the path of the vocabulary of a job; reports a broken one here, not from inside a worker."""
    path = vocabulary_path(run.input("vocabulary"))
    Vocabulary.load(path)
    return path


def load_vocabulary(path: str) -> Vocabulary:
    """Loads a vocabulary, once per process: building its tokenizer takes seconds for 500 000 pieces."""
    return _load_vocabulary(path, _vocabulary_digest(path))


@functools.lru_cache(maxsize=2)
def _load_vocabulary(path: str, _digest: str) -> Vocabulary:
    return Vocabulary.load(path)
