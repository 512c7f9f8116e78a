"""Leakage: texts of a benchmark that the encoder was trained on.

A text of a benchmark leaks if a training article contains it exactly or nearly. Exactly: as its title, its body or
both, in lower case and words only. Nearly: the MinHash estimate of the Jaccard similarity with its title, its body or
both is at least 0.8 (shingles of five words, 128 permutations, candidates from 16 bands of 8 rows). Texts of fewer than
20 words are only compared exactly: they have too few shingles for an estimate. Benchmark texts are held in memory;
training articles are streamed.
"""

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..errors import InputError
from ..formats.articles import article_files, read_rows
from .benchmark import Benchmark
from .encoders import Document

_WORD: Final = re.compile(r"\w+")
_SHINGLE_WORDS: Final = 5
_MIN_WORDS: Final = 20
_PERMUTATIONS: Final = 128
_BANDS: Final = 16
_SIMILARITY: Final = 0.8


@dataclasses.dataclass(frozen=True, slots=True)
class Leakage:
    """The distinct texts of one benchmark that are in the training articles.

    Attributes:
      exact, near: the leaked documents; a document in ``exact`` is not in ``near``.
      texts: number of distinct documents in the benchmark.
      articles: number of training articles read.
    """

    exact: frozenset[Document]
    near: frozenset[Document]
    texts: int
    articles: int

    @property
    def leaked(self) -> frozenset[Document]:
        """The documents that leaked exactly or nearly."""
        return self.exact | self.near

    def to_dict(self) -> dict[str, int]:
        """Returns the counts for the results manifest."""
        return {
            "texts": self.texts,
            "exact": len(self.exact),
            "near": len(self.near),
            "training_articles": self.articles,
        }


def find_leakage(benchmarks: Sequence[Sequence[Document]], articles: Iterable[Document]) -> list[Leakage]:
    """Finds the leakage of each benchmark in one pass over the training articles.

    Args:
      benchmarks: the documents of each benchmark.
      articles: the training articles.

    Returns:
      The leakage of each benchmark, in order.
    """
    documents = list(dict.fromkeys(document for benchmark in benchmarks for document in benchmark))
    by_text: dict[str, list[int]] = {}
    by_band: dict[tuple[int, ...], list[int]] = {}
    signatures: dict[int, list[int]] = {}
    for number, document in enumerate(documents):
        words = _words(document.text)
        by_text.setdefault(" ".join(words), []).append(number)
        if len(words) >= _MIN_WORDS:
            signatures[number] = _signature(words)
            for band in _bands(signatures[number]):
                by_band.setdefault(band, []).append(number)
    exact, near, count = set[int](), set[int](), 0
    for article in articles:
        count += 1
        texts = [_words(text) for text in dict.fromkeys((article.title, article.body, article.text))]
        for words in texts:
            exact.update(by_text.get(" ".join(words), ()))
        for words in texts:
            if len(words) >= _MIN_WORDS:
                near.update(_near(_signature(words), by_band, signatures))
    numbers = {document: number for number, document in enumerate(documents)}
    return [
        Leakage(
            frozenset(document for document in set(benchmark) if numbers[document] in exact),
            frozenset(document for document in set(benchmark) if numbers[document] in near - exact),
            len(set(benchmark)),
            count,
        )
        for benchmark in benchmarks
    ]


def check_leakage(benchmarks: Sequence[Benchmark], path: str, *, drop: bool) -> tuple[list[Benchmark], dict[str, Any]]:
    """Finds the leakage of every benchmark from the articles at ``path``.

    A benchmark that cannot be read is returned as it is: its row in the table will give the reason.

    Args:
      benchmarks: frozen dataclasses with the field ``excluded``.
      path: see :func:`read_articles`.
      drop: whether to return the benchmarks without their leaked texts.

    Returns:
      The benchmarks, and the counts by benchmark for the manifest.
    """
    readable: list[Any] = []
    documents = []
    for benchmark in benchmarks:
        try:
            documents.append(benchmark.documents())
            readable.append(benchmark)
        except InputError:
            continue
    found = {
        benchmark.name: leakage
        for benchmark, leakage in zip(readable, find_leakage(documents, read_articles(path)), strict=True)
    }
    kept = {
        benchmark.name: dataclasses.replace(benchmark, excluded=found[benchmark.name].leaked)
        for benchmark in readable
        if drop and found[benchmark.name].leaked
    }
    facts = {
        "articles": path,
        "dropped": drop,
        "benchmarks": {name: leakage.to_dict() for name, leakage in found.items()},
    }
    return [kept.get(benchmark.name, benchmark) for benchmark in benchmarks], facts


def read_articles(path: str) -> Iterator[Document]:
    """Yields the texts of training articles: JSONL (plain, ``.gz``, ``.zst``), Parquet, or a folder of either.

    Raises:
      InputError: if nothing readable is there, or a Parquet file has no title or body.
    """
    for _, row in read_rows(article_files(path) if os.path.isdir(path) else [path], ("title", "body")):
        yield Document(str(row.get("title") or ""), str(row.get("body") or ""))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _signature(words: list[str]) -> list[int]:
    from rensa import RMinHash

    minhash = RMinHash(num_perm=_PERMUTATIONS, seed=0)
    minhash.update(
        [" ".join(words[start : start + _SHINGLE_WORDS]) for start in range(len(words) - _SHINGLE_WORDS + 1)]
    )
    return list(minhash.digest())


def _bands(signature: list[int]) -> Iterator[tuple[int, ...]]:
    rows = _PERMUTATIONS // _BANDS
    for band in range(_BANDS):
        yield (band, *signature[band * rows : (band + 1) * rows])


def _near(signature: list[int], by_band: dict[Any, list[int]], signatures: dict[int, list[int]]) -> set[int]:
    candidates = {number for band in _bands(signature) for number in by_band.get(band, ())}
    least = _SIMILARITY * _PERMUTATIONS
    return {number for number in candidates if sum(map(int.__eq__, signature, signatures[number])) >= least}
