"""Exact and near duplicates: MinHash signatures, LSH bands, verified pairs, connected components.

Only digests travel between shards. The signatures lie in one ``.npy`` file a shard and are looked up, memory-mapped, to verify the
candidates that the bands propose.
"""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .. import files
from ..arrays import Array
from ..records import Article, Rejection
from .options import CleanOptions

_SHINGLE_WORDS = 5
_SEED = 20210814
_ALL_PAIRS_UP_TO = 40  # members of a band's bucket; larger ones are compared along their order and with their first
_PAIRS_AT_ONCE = 50_000  # candidates verified at a time, 45 MB of signatures
_UNDATED = 2**31 - 1

# Strongest reason first: a member of a cluster carries the strongest of its edges.
REASONS: Final = (Rejection.DUPLICATE_URL, Rejection.DUPLICATE_BODY, Rejection.NEAR_DUPLICATE)
_URL, _BODY, _NEAR = range(len(REASONS))
KEPT: Final = len(REASONS)  # stands where a reason would, for the member to keep

# Who a record is: sorted by age, and told apart also where doc_ids repeat.
_MEMBER: Final = [("ordinal", "<i4"), ("doc_id", "<u8"), ("shard", "<u4"), ("row", "<u4")]
_KEY: Final = [name for name, _ in _MEMBER]
MEMBER: Final = np.dtype(_MEMBER)
ENTRY: Final = np.dtype([("reason", "u1"), ("band", "<u2"), ("digest", "<u8"), *_MEMBER])
EDGE: Final = np.dtype([("one", MEMBER), ("two", MEMBER), ("reason", "u1")])
DECISION: Final = np.dtype([("shard", "<u4"), ("row", "<u4"), ("reason", "u1"), ("cluster", "<u8")])


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


def band_digests(signature: npt.NDArray[np.uint32], bands: int) -> list[int]:
    """One 64-bit digest for each band of a signature."""
    return [_digest(row.tobytes()) for row in signature.reshape(bands, -1)]


def body_digest(text: str) -> int:
    """64-bit digest of the letters and digits of a text, whatever its case, spaces and punctuation."""
    return _digest("".join(re.findall(r"\w+", text.casefold())).encode())


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def sign(article: Article, shard: int, row: int, options: CleanOptions) -> tuple[Array, npt.NDArray[np.uint32]]:
    """What stands for an article in the search for duplicates.

    Args:
      article: a clean article.
      shard: number of its shard.
      row: its number within the shard.
      options: threshold, permutations and bands.

    Returns:
      Its entries of dtype :data:`ENTRY`, one for each bucket that it falls into, and its signature, uint32 ``[permutations]``.
    """
    signature = minhash(article.body, options.permutations)
    bands = band_digests(signature, options.bands) if options.near_duplicate_threshold <= 1 else []
    entries = np.zeros(2 + len(bands), ENTRY)
    entries["reason"] = [_URL, _BODY, *[_NEAR] * len(bands)]
    entries["band"][2:] = range(len(bands))
    entries["digest"] = [int(article.doc_id, 16), body_digest(article.body), *bands]
    entries["ordinal"] = article.byline_date.toordinal() if article.byline_date else _UNDATED
    entries["doc_id"], entries["shard"], entries["row"] = int(article.doc_id, 16), shard, row
    return entries, signature


def find_edges(entries: Array, signatures: Sequence[str], threshold: float) -> Array:
    """Pairs of duplicates among the members of the same bucket.

    Args:
      entries: dtype :data:`ENTRY`, all entries of the buckets they fall into, in any order.
      signatures: of each shard, the npy file of its signatures.
      threshold: estimated Jaccard similarity that makes near duplicates.

    Returns:
      dtype :data:`EDGE`, without repeats.
    """
    entries = entries[np.lexsort([entries[name] for name in (*reversed(_KEY), "digest", "band", "reason")])]
    changes = np.zeros(len(entries), bool)
    for name in ("reason", "band", "digest"):
        changes[1:] |= entries[name][1:] != entries[name][:-1]
    starts = np.concatenate(([0], np.flatnonzero(changes)))
    ends = np.append(starts[1:], len(entries))
    pairs = [
        pair
        for start, end in zip(starts[ends - starts > 1].tolist(), ends[ends - starts > 1].tolist(), strict=True)
        for pair in _pairs(start, end, every=entries["reason"][start] == _NEAR)
    ]
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    edges = np.zeros(len(pairs), EDGE)
    for name in _KEY:
        edges["one"][name], edges["two"][name] = entries[name][left], entries[name][right]
    edges["reason"] = entries["reason"][left]
    edges = np.unique(edges)
    near = edges["reason"] == _NEAR
    alike = np.ones(len(edges), bool)
    alike[near] = _similarities(edges["one"][near], edges["two"][near], signatures) >= threshold
    return edges[alike]


def _pairs(start: int, end: int, *, every: bool) -> Iterator[tuple[int, int]]:
    """Pairs of a bucket: each with the first where they are equal anyway, else all, or of a large bucket enough to connect it."""
    if every and end - start <= _ALL_PAIRS_UP_TO:
        yield from itertools.combinations(range(start, end), 2)
        return
    for member in range(start + 1, end):
        yield start, member
        if every and member > start + 1:
            yield member - 1, member


def _similarities(one: Array, two: Array, signatures: Sequence[str]) -> npt.NDArray[np.float64]:
    """Share of equal components of two signatures, the estimate of their Jaccard similarity: ``[P]``."""
    parts = [slice(start, start + _PAIRS_AT_ONCE) for start in range(0, max(1, len(one)), _PAIRS_AT_ONCE)]
    return np.concatenate([np.mean(_rows(one[part], signatures) == _rows(two[part], signatures), axis=1) for part in parts])


def _rows(members: Array, signatures: Sequence[str]) -> npt.NDArray[np.uint32]:
    shards = np.unique(members["shard"])
    found = np.zeros((len(members), _signatures(signatures[0]).shape[1]), np.uint32)
    for shard in shards.tolist():
        here = members["shard"] == shard
        found[here] = _signatures(signatures[shard])[members["row"][here]]
    return found


@lru_cache(maxsize=256)
def _signatures(path: str) -> npt.NDArray[np.uint32]:
    if "://" in path:
        with files.open_read(path) as source:
            return np.asarray(np.load(source))
    return np.asarray(np.load(path, mmap_mode="r"))


def find_clusters(edges: Iterable[Array]) -> Array:
    """Connected components of the edges.

    The earliest member of each is kept and its doc_id names the cluster; the others carry the strongest reason among their edges: same URL,
    same body, near duplicate.

    Returns:
      dtype :data:`DECISION`, one for each member of a cluster; ``reason`` is a position in :data:`REASONS`, or :data:`KEPT`.
    """
    every = np.concatenate([np.zeros(0, EDGE), *edges])
    # Sorted by age, so that the lowest number of a component is its earliest member.
    members, numbers = np.unique(np.concatenate([every["one"], every["two"]]), return_inverse=True)
    one, two = numbers.reshape(2, -1)
    count, labels = connected_components(
        coo_array((np.ones(len(every), bool), (one, two)), shape=(len(members), len(members))), directed=False
    )
    first = np.full(count, len(members))
    np.minimum.at(first, labels, np.arange(len(members)))
    decisions = np.zeros(len(members), DECISION)
    decisions["shard"], decisions["row"] = members["shard"], members["row"]
    decisions["reason"] = KEPT
    for side in (one, two):
        np.minimum.at(decisions["reason"], side, every["reason"])
    decisions["reason"][first] = KEPT
    decisions["cluster"] = members["doc_id"][first[labels]]
    return decisions
