"""The words of an index: which documents hold the words of a query, by BM25."""

import datetime
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from typing import Final, Self

from ..formats.articles import ArticleText
from ..formats.words import WordsFolder, WordsRow, WordsWriter
from .analysis import base_language, clean, tokens

_EPOCH: Final = datetime.date(1970, 1, 1)


class Words:
    """The words of the documents of an index.

    Args:
      files: what holds them.
    """

    def __init__(self, files: WordsFolder) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)


class WordsBuilder:
    """Collects the words of articles in a folder of its own, which goes when the `Words` of `built` go."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="newsembed-words-")
        self._place = os.path.join(self._folder, "words")
        self._count = 0
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self._writer = WordsWriter(self._place)
        self._writer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self._writer.__exit__(kind, *rest)
        finally:
            if kind is not None:
                self._remove()

    def add(self, articles: Sequence[ArticleText]) -> None:
        """Adds the next articles of the index."""
        for number, article in enumerate(articles, self._count):
            self._writer.add(words_row(number, article))
        self._count += len(articles)

    def built(self) -> Words:
        """The words, when the context has ended."""
        made = Words(WordsFolder(self._place))
        self._remove.detach()
        weakref.finalize(made, shutil.rmtree, self._folder, ignore_errors=True)
        return made


def add_articles(folder: str, articles: Iterable[ArticleText], *, start: int) -> None:
    """Adds articles to a folder of words, numbered from `start` on.

    Raises:
      OSError: if they cannot be written.
    """
    with WordsWriter(folder) as writer:
        for number, article in enumerate(articles, start):
            writer.add(words_row(number, article))


def words_row(number: int, article: ArticleText) -> WordsRow:
    """What the words of an index keep of an article, which is the document `number`."""
    title, body = clean(article.title), clean(article.body)
    return WordsRow(
        number,
        tokens(title, article.language),
        tokens(body, article.language),
        body,
        None if article.byline_date is None else (article.byline_date - _EPOCH).days,
        base_language(article.language),
        article.publisher.lower(),
    )
