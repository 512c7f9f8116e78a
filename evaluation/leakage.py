"""Leakage: texts of a benchmark that the encoder was trained on.

A text of a benchmark leaks if a training article contains it exactly or nearly. Exactly: as its title, its body or
both, in lower case and words only. Nearly: the MinHash estimate of the Jaccard similarity with its title, its body or
both is at least 0.8 (shingles of five words, 128 permutations, candidates from 16 bands of 8 rows). Texts of fewer than
20 words are only compared exactly: they have too few shingles for an estimate. Benchmark texts are held in memory;
training articles are streamed.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..errors import InputError
from ..formats.articles import article_files, read_rows
from ..tasks.sentences import words_of
from .benchmark import Benchmark
from .encoders import Document

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

    def to_dict(self) -> dict[str, int]:
        """Returns the counts for the results manifest."""
        counts = {"texts": self.texts, "exact": len(self.exact), "near": len(self.near)}
        return {**counts, "training_articles": self.articles}


def find_leakage(benchmarks: Sequence[Sequence[Document]], articles: Iterable[Document]) -> list[Leakage]:
    """Finds the leakage of each benchmark in one pass over the training articles.

    Args:
      benchmarks: the documents of each benchmark.
      articles: the training articles.

    Returns:
      The leakage of each benchmark, in order.
    """
    from rensa import RMinHashLSH

    documents = list(dict.fromkeys(document for benchmark in benchmarks for document in benchmark))
    by_text: dict[str, list[Document]] = {}
    candidates = RMinHashLSH(threshold=_SIMILARITY, num_perm=_PERMUTATIONS, num_bands=_BANDS)
    hashes: dict[int, Any] = {}
    for number, document in enumerate(documents):
        words = words_of(document.text.lower())
        by_text.setdefault(" ".join(words), []).append(document)
        if len(words) >= _MIN_WORDS:
            hashes[number] = _minhash(words)
            candidates.insert(number, hashes[number])
    exact, near, count = set[Document](), set[Document](), 0
    for article in articles:
        count += 1
        for text in dict.fromkeys((article.title, article.body, article.text)):
            words = words_of(text.lower())
            exact.update(by_text.get(" ".join(words), ()))
            if len(words) >= _MIN_WORDS:
                own = _minhash(words)
                found = (number for number in candidates.query(own) if own.jaccard(hashes[number]) >= _SIMILARITY)
                near.update(documents[number] for number in found)
    near -= exact
    return [Leakage(frozenset(exact & own), frozenset(near & own), len(own), count) for own in map(set, benchmarks)]


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
    documents: dict[str, Sequence[Document]] = {}
    for benchmark in benchmarks:
        try:
            documents[benchmark.name] = benchmark.documents()
        except InputError:
            continue
    found = dict(zip(documents, find_leakage(list(documents.values()), read_articles(path)), strict=True))
    kept = [
        dataclasses.replace(benchmark, excluded=one.exact | one.near)
        if drop and (one := found.get(benchmark.name)) and (one.exact or one.near)
        else benchmark
        for benchmark in benchmarks
    ]
    counts = {name: leakage.to_dict() for name, leakage in found.items()}
    return kept, {"articles": path, "dropped": drop, "benchmarks": counts}


def read_articles(path: str) -> Iterator[Document]:
    """Yields the texts of training articles: JSONL (plain, ``.gz``, ``.zst``), Parquet, or a folder of either."""
    for _, row in read_rows(article_files(path) if os.path.isdir(path) else [path], ("title", "body")):
        yield Document(str(row.get("title") or ""), str(row.get("body") or ""))


def _minhash(words: list[str]) -> Any:
    from rensa import RMinHash

    minhash = RMinHash(num_perm=_PERMUTATIONS, seed=0)
    minhash.update(
        [" ".join(words[start : start + _SHINGLE_WORDS]) for start in range(len(words) - _SHINGLE_WORDS + 1)]
    )
    return minhash
