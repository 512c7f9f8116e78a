"""What the jobs that read texts share: articles without the columns they do not need, languages as keys, draws that repeat."""

import dataclasses
import functools
import hashlib
import re
from collections.abc import Iterator
from typing import Final

from ..errors import InputError
from ..formats import files
from ..formats.parquet import read_records
from ..formats.vocabulary import VOCABULARY_FILE
from ..tasks.vocabulary import Vocabulary

UNDETERMINED: Final = "und"  # BCP-47's own tag for a language nobody knows
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_BATCH_DOCUMENTS = 256


@dataclasses.dataclass(frozen=True, slots=True)
class ArticleText:
    """The columns of an :class:`~.records.Article` that a tokenizer needs."""

    doc_id: str
    title: str
    body: str
    language: str
    anchor_texts: tuple[str, ...]


def read_text_batches(path: str, size: int = _BATCH_DOCUMENTS) -> Iterator[list[ArticleText]]:
    """Articles of one shard in batches that suit TensorFlow's operations."""
    batch: list[ArticleText] = []
    for article in read_records(path, ArticleText):
        batch.append(article)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def language_key(language: str) -> str | None:
    """A language tag as part of a path: the tag, ``und`` for none, ``None`` for what is no BCP-47 tag."""
    if not language:
        return UNDETERMINED
    return language if _LANGUAGE.fullmatch(language) else None


def uniform_draw(*keys: object) -> float:
    """A number in [0, 1) that depends on the keys alone: the same on every machine, in every run."""
    digest = hashlib.blake2b("\0".join(map(str, keys)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


def shuffle_key(*keys: object) -> bytes:
    """Sorting by this key shuffles, and shuffles the same way every time."""
    return hashlib.blake2b("\0".join(map(str, keys)).encode(), digest_size=16).digest()


def vocabulary_path(path: str) -> str:
    """The vocabulary file of a job's folder, or the file itself.

    Raises:
      InputError: if there is none.
    """
    inside = f"{path.rstrip('/')}/{VOCABULARY_FILE}"
    if files.exists(inside):
        return inside
    if path.endswith(".txt") and files.exists(path):
        return path
    raise InputError(
        f"no {VOCABULARY_FILE} here",
        path=path,
        field="--vocabulary",
        remedy="name the folder that `newsembed vocabulary` wrote, or its file",
    )


def load_vocabulary(path: str) -> Vocabulary:
    """The vocabulary in a file, one for each process: building its tokenizer takes seconds at 500 000 pieces."""
    return _load_vocabulary(path, files.file_digest(path))


@functools.lru_cache(maxsize=2)
def _load_vocabulary(path: str, _digest: str) -> Vocabulary:
    return Vocabulary.load(path)
