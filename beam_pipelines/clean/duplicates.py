"""Exact and near duplicates: MinHash signatures, LSH bands, verified pairs, connected components.

Only keys and digests pass the joins. The signatures lie in one ``.npy`` file a shard and are looked up, memory-mapped,
to verify the candidates that the bands propose.
"""

import dataclasses
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from .. import files
from ..parquet import read_records
from ..records import Article, Rejection
from .options import CleanOptions

_SHINGLE_WORDS = 5
_SEED = 20210814
_ALL_PAIRS_UP_TO = 40  # members of a band's bucket; larger ones are compared along their order and with their first
_PRIORITY = {Rejection.DUPLICATE_URL.value: 0, Rejection.DUPLICATE_BODY.value: 1, Rejection.NEAR_DUPLICATE.value: 2}

# (ordinal of the byline date, doc_id, shard, row): sorts by age, and names one record also where doc_ids repeat.
Key = tuple[int, str, int, int]
Edge = tuple[Key, Key, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """What stands for an article in the search for duplicates; ``bands`` are digests of the signature's bands."""

    ordinal: int
    doc_id: str
    row: int
    body_digest: str
    bands: tuple[int, ...]


def shingles(text: str) -> list[str]:
    """Word 5-grams of case-folded text; the whole text where it is shorter."""
    words = re.findall(r"\w+", text.casefold())
    if len(words) <= _SHINGLE_WORDS:
        return [" ".join(words)]
    return [" ".join(words[start : start + _SHINGLE_WORDS]) for start in range(len(words) - _SHINGLE_WORDS + 1)]


def minhash(text: str, permutations: int) -> npt.NDArray[np.uint32]:
    """MinHash signature of the text's word 5-grams, uint32 ``[permutations]``."""
    from rensa import RMinHash

    sketch = RMinHash(num_perm=permutations, seed=_SEED)
    sketch.update(shingles(text))
    return np.array(sketch.digest(), dtype=np.uint32)


def band_digests(signature: npt.NDArray[np.uint32], bands: int) -> tuple[int, ...]:
    """One 63-bit digest for each band of a signature."""
    rows = signature.reshape(bands, -1)
    return tuple(int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "big") >> 1 for row in rows)


def body_digest(text: str) -> str:
    """Digest of the letters and digits of a text, whatever its case, spaces and punctuation."""
    return hashlib.blake2b("".join(re.findall(r"\w+", text.casefold())).encode(), digest_size=8).hexdigest()


def sign(article: Article, row: int, options: CleanOptions) -> tuple[Signature, npt.NDArray[np.uint32]]:
    """The record that stands for an article, and its signature."""
    signature = minhash(article.body, options.permutations)
    ordinal = article.byline_date.toordinal() if article.byline_date else 2**31
    near = options.near_duplicate_threshold <= 1
    bands = band_digests(signature, options.bands) if near else ()
    return Signature(ordinal, article.doc_id, row, body_digest(article.body), bands), signature


@dataclasses.dataclass
class FindDuplicates(beam.PTransform):
    """(shard, count) places → (shard, (row, reason, cluster id)) of every member of a cluster; reason "" for the one to keep.

    Attributes:
      workspace: the job's temporary folder with ``_signatures``.
      threshold: estimated Jaccard similarity that makes near duplicates.
    """

    workspace: str
    threshold: float

    def __post_init__(self) -> None:
        super().__init__(label="FindDuplicates")

    def expand(self, places: beam.PCollection) -> beam.PCollection:
        buckets = places | beam.FlatMap(_bucketed, self.workspace) | beam.GroupByKey()
        edges = buckets | beam.FlatMap(_edges, self.workspace, self.threshold)
        # Edges are few and small: duplicates only. One worker unites them.
        return (
            edges
            | beam.Map(lambda edge: (0, edge))
            | "GroupEdges" >> beam.GroupByKey()
            | beam.FlatMap(lambda grouped: components(grouped[1]))
        )


def _bucketed(place: tuple[int, int], workspace: str) -> Iterator[tuple[tuple[str, Any], tuple[Key, int]]]:
    index, count = place
    for one in read_records(f"{workspace}/_signatures/part-{index:05d}-of-{count:05d}.parquet", Signature):
        member = ((one.ordinal, one.doc_id, index, one.row), count)
        yield (Rejection.DUPLICATE_URL.value, one.doc_id), member
        yield (Rejection.DUPLICATE_BODY.value, one.body_digest), member
        for number, digest in enumerate(one.bands):
            yield (Rejection.NEAR_DUPLICATE.value, (number, digest)), member


def _edges(grouped: tuple[tuple[str, Any], Iterable[tuple[Key, int]]], workspace: str, threshold: float) -> Iterator[Edge]:
    (reason, _), found = grouped
    members = sorted(found)
    if len(members) < 2:
        return
    if reason != Rejection.NEAR_DUPLICATE.value:
        for (key, _), (other, _) in zip(itertools.repeat(members[0]), members[1:], strict=False):
            yield key, other, reason
        return
    pairs = itertools.combinations(members, 2) if len(members) <= _ALL_PAIRS_UP_TO else _sparse_pairs(members)
    for (key, count), (other, _) in pairs:
        if _similarity(workspace, count, key, other) >= threshold:
            yield key, other, reason


def _sparse_pairs(members: list[Any]) -> Iterator[tuple[Any, Any]]:
    for place, member in enumerate(members[1:], 1):
        yield members[0], member
        if place > 1:
            yield members[place - 1], member


def _similarity(workspace: str, count: int, key: Key, other: Key) -> float:
    """Share of equal components of two signatures: the estimate of their Jaccard similarity."""
    one, two = (_signatures(workspace, shard, count)[row] for _, _, shard, row in (key, other))
    return float(np.mean(one == two))


@lru_cache(maxsize=256)
def _signatures(workspace: str, shard: int, count: int) -> npt.NDArray[np.uint32]:
    path = f"{workspace}/_minhash/part-{shard:05d}-of-{count:05d}.npy"
    if "://" in path:
        with files.open_read(path) as source:
            return np.asarray(np.load(source))
    return np.asarray(np.load(path, mmap_mode="r"))


def components(edges: Iterable[Edge]) -> Iterator[tuple[int, tuple[int, str, str]]]:
    """Connected components of the edges: (shard, (row, reason, cluster id)) of every member.

    The earliest member is kept (reason "") and its doc_id names the cluster; the others carry the strongest reason
    among their edges: same URL, same body, near duplicate.
    """
    parent: dict[Key, Key] = {}
    reasons: dict[Key, str] = {}

    def find(key: Key) -> Key:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for one, two, reason in sorted(edges):
        for key in (one, two):
            reasons[key] = min(reasons.get(key, reason), reason, key=_PRIORITY.__getitem__)
        low, high = sorted((find(one), find(two)))
        parent[high] = low
    for key in sorted(parent):
        root = find(key)
        yield key[2], (key[3], "" if key == root else reasons[key], root[1])
