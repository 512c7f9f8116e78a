"""Finds exact and near duplicates: MinHash signatures, LSH bands, verified pairs, connected components.

Only digests pass between shards. The bands of the signatures (Broder 1997; Indyk and Motwani 1998) propose candidate
pairs. Each pair is then verified on the sketches of its texts, which are stored in one file per shard. The similarity
is exact for texts of up to :data:`SKETCH_SIZE` word 5-grams, which covers nearly all news articles, and has a standard
deviation of 1.3 points for longer texts.
"""

import hashlib
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...formats import files
from ...formats.records import Article, Rejection
from ...tasks.sentences import words_of
from ..arrays import Array, lowest_connected, read_array, slices, write_array
from .rules import CleanOptions

Sketch = npt.NDArray[np.uint32]

_SHINGLE_WORDS = 5
_SEED = 20210814
# Buckets of up to this many members compare all pairs; larger ones compare neighbors, and each member with the first.
_ALL_PAIRS_UP_TO = 40
_PAIRS_AT_ONCE = 2_000  # candidate pairs verified at a time, 16 MB of sketches
SKETCH_SIZE: Final = 1_024
_UNDATED = 2**31 - 1

# Strongest reason first: a member of a cluster carries the strongest of its edges.
REASONS: Final = (Rejection.DUPLICATE_URL, Rejection.DUPLICATE_BODY, Rejection.NEAR_DUPLICATE)
_URL, _BODY, _NEAR = range(len(REASONS))
KEPT: Final = len(REASONS)  # in place of a reason, for the member that is kept

# Identifies a record: sorts by age, and is unique even if doc_ids repeat.
_MEMBER: Final = [("ordinal", "<i4"), ("doc_id", "<u8"), ("shard", "<u4"), ("row", "<u4")]
_KEY: Final = [name for name, _ in _MEMBER]
MEMBER: Final = np.dtype(_MEMBER)
ENTRY: Final = np.dtype([("reason", "u1"), ("band", "<u2"), ("digest", "<u8"), *_MEMBER])
EDGE: Final = np.dtype([("one", MEMBER), ("two", MEMBER), ("reason", "u1")])
# How the names of a shard's sketches end: start of each row's values, and the concatenated values.
_BOUNDS, _VALUES = "bounds.npy", "u4"
DECISION: Final = np.dtype([("shard", "<u4"), ("row", "<u4"), ("reason", "u1"), ("cluster", "<u8")])


def shingles(text: str) -> list[str]:
    """Returns the 5-grams of the words of the case-folded text; the whole text if it has at most 5 words."""
    words = words_of(text.casefold())
    if len(words) <= _SHINGLE_WORDS:
        return [" ".join(words)]
    return list(map(" ".join, zip(*(words[start:] for start in range(_SHINGLE_WORDS)), strict=False)))


def minhash(spans: Sequence[str], permutations: int) -> Sketch:
    """Returns the MinHash signature of a set of shingles, uint32 ``[permutations]``."""
    from rensa import RMinHash

    signature = RMinHash(num_perm=permutations, seed=_SEED)
    signature.update(spans)
    return np.array(signature.digest(), dtype=np.uint32)


def bottom_sketch(spans: Sequence[str]) -> Sketch:
    """Returns the :data:`SKETCH_SIZE` smallest hashes of the shingles, or all if there are fewer.

    Returns:
      uint32 ``[<= SKETCH_SIZE]``, sorted, unique.
    """
    # The finaliser of MurmurHash3 mixes the bits: the smallest values of a CRC are not a uniform sample.
    mixed = np.fromiter(map(zlib.crc32, map(str.encode, spans)), np.uint32, len(spans))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    return np.unique(mixed)[:SKETCH_SIZE]


def similarity(one: Sketch, two: Sketch) -> float:
    """Returns the Jaccard similarity of the sets behind two sketches.

    If both sketches are complete, the result is exact except for collisions of the 32-bit hashes. Otherwise it is the
    share of common values among the smallest values of the union (Broder 1997, theorem 1).

    Args:
      one: a sketch, see :func:`bottom_sketch`.
      two: another sketch.
    """
    merged = np.sort(np.concatenate([one, two]), kind="stable")
    common = merged[1:][merged[1:] == merged[:-1]]
    size = len(merged) - len(common)
    if max(len(one), len(two)) < SKETCH_SIZE or size <= SKETCH_SIZE:
        return len(common) / max(1, size)
    smallest = np.unique(merged)[:SKETCH_SIZE]
    return float(np.count_nonzero(common <= smallest[-1])) / SKETCH_SIZE


def body_digest(text: str) -> int:
    """Returns a 64-bit digest of the letters and digits of a text, independent of case, spaces and punctuation."""
    return _digest("".join(re.findall(r"\w+", text.casefold())).encode())


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def sign(article: Article, shard: int, row: int, options: CleanOptions) -> tuple[Array, Sketch]:
    """Returns the bucket entries and the sketch of an article.

    Args:
      article: a clean article.
      shard: number of its shard.
      row: its row within the shard.
      options: threshold, permutations and bands.

    Returns:
      Entries of dtype :data:`ENTRY`, one for each bucket of the article, and its sketch, see :func:`bottom_sketch`. The
      sketch is empty if near duplicates are not removed.
    """
    spans = shingles(article.body) if options.near_duplicate_threshold <= 1 else []
    rows = minhash(spans, options.permutations).reshape(options.bands, -1) if spans else ()
    bands = [_digest(band.tobytes()) for band in rows]
    entries = np.zeros(2 + len(bands), ENTRY)
    entries["reason"] = [_URL, _BODY, *[_NEAR] * len(bands)]
    entries["band"][2:] = range(len(bands))
    entries["digest"] = [int(article.doc_id, 16), body_digest(article.body), *bands]
    entries["ordinal"] = article.byline_date.toordinal() if article.byline_date else _UNDATED
    entries["doc_id"], entries["shard"], entries["row"] = int(article.doc_id, 16), shard, row
    return entries, bottom_sketch(spans)


def write_sketches(prefix: str, sketches: Sequence[Sketch]) -> None:
    """Writes the sketches of a shard, in the order of its rows, into files whose names begin with ``prefix``."""
    with files.open_write(f"{prefix}{_VALUES}") as sink:
        for sketch in sketches:
            sink.write(sketch.astype("<u4").tobytes())
    write_array(f"{prefix}{_BOUNDS}", np.cumsum([0, *map(len, sketches)], dtype=np.int64))


def sketches_in(folder: str) -> list[str]:
    """Returns the prefix of the sketches of each shard that :func:`write_sketches` wrote into a folder."""
    return [path.removesuffix(_BOUNDS) for path in files.list_files(f"*.{_BOUNDS}", folder)]


def find_edges(entries: Array, sketches: Sequence[str], threshold: float) -> Array:
    """Returns the pairs of duplicates among members of the same bucket.

    Args:
      entries: dtype :data:`ENTRY`, all entries of their buckets, in any order.
      sketches: the prefix of the sketches of each shard.
      threshold: minimum Jaccard similarity of near duplicates.

    Returns:
      Unique pairs of dtype :data:`EDGE`.
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
    alike[near] = _similarities(edges["one"][near], edges["two"][near], sketches) >= threshold
    return edges[alike]


def _pairs(start: int, end: int, *, every: bool) -> Iterator[tuple[int, int]]:
    """Yields the pairs of a bucket that are compared.

    Members that are equal by definition are paired with the first only. Otherwise all pairs are compared, or, in a
    large bucket, enough of them to connect it.
    """
    if every and end - start <= _ALL_PAIRS_UP_TO:
        yield from itertools.combinations(range(start, end), 2)
        return
    for member in range(start + 1, end):
        yield start, member
        if every and member > start + 1:
            yield member - 1, member


def _similarities(one: Array, two: Array, sketches: Sequence[str]) -> Array:
    """Returns the :func:`similarity` of pairs of members: ``[P]``."""
    found = np.zeros(len(one))
    for part in slices(len(one), _PAIRS_AT_ONCE):
        places = [members[["shard", "row"]].tolist() for members in (one[part], two[part])]
        read = _read_sketches(sorted({place for side in places for place in side}), sketches)
        found[part] = [similarity(read[left], read[right]) for left, right in zip(*places, strict=True)]
    return found


def _read_sketches(places: Sequence[tuple[int, int]], sketches: Sequence[str]) -> dict[tuple[int, int], Sketch]:
    """Returns the sketches of sorted (shard, row) pairs; not memory-mapped, as mapped pages would count as memory."""
    found = {}
    for shard, members in itertools.groupby(places, lambda place: place[0]):
        bounds = read_array(f"{sketches[shard]}{_BOUNDS}")
        with files.open_read(f"{sketches[shard]}{_VALUES}") as source:
            for place in members:
                start, end = bounds[place[1] : place[1] + 2].tolist()
                source.seek(4 * start)
                found[place] = np.frombuffer(source.read(4 * (end - start)), np.uint32)
    return found


def find_clusters(edges: Iterable[Array]) -> Array:
    """Returns a decision for each member of a connected component of the edges.

    The earliest member of a component is kept, and its doc_id names the cluster. Where the input has this URL with this
    date several times, the last of them is kept, which has the corrected text. Each other member gets the strongest
    reason among its edges: same URL, same body, near duplicate.

    Args:
      edges: arrays of dtype :data:`EDGE`.

    Returns:
      dtype :data:`DECISION`; ``reason`` is an index into :data:`REASONS`, or :data:`KEPT`.
    """
    every = np.concatenate([np.zeros(0, EDGE), *edges])
    # Members are sorted by age, so that the lowest number of a component is its earliest member.
    members, numbers = np.unique(np.concatenate([every["one"], every["two"]]), return_inverse=True)
    one, two = numbers.reshape(2, -1)
    first = lowest_connected(one, two, len(members))
    ages = members[["ordinal", "doc_id"]]
    last = np.append(np.flatnonzero(ages[1:] != ages[:-1]), len(members) - 1)  # of each URL with one date
    kept = last[np.searchsorted(last, first)]  # of each component, several times
    decisions = np.zeros(len(members), DECISION)
    decisions["shard"], decisions["row"] = members["shard"], members["row"]
    decisions["reason"] = KEPT
    for side in (one, two):
        np.minimum.at(decisions["reason"], side, every["reason"])
    decisions["reason"][kept] = KEPT
    decisions["cluster"] = members["doc_id"][first]
    return decisions
