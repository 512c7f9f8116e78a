"""clean: signatures, sketches and pairs of duplicates against plain references."""

import datetime
import hashlib
import itertools
import random
import zlib

import numpy as np
import pytest
from newsembed.beam_pipelines.clean import CleanOptions, duplicates
from newsembed.beam_pipelines.clean.duplicates import (
    EDGE,
    ENTRY,
    SKETCH_BOUNDS,
    SKETCH_VALUES,
    body_digest,
    bottom_sketch,
    find_clusters,
    find_edges,
    minhash,
    sign,
    similarity,
)
from newsembed.formats.records import Article


def murmur_finaliser(value):
    """fmix32 of MurmurHash3, with unbounded integers."""
    value ^= value >> 16
    value = value * 0x85EBCA6B % 2**32
    value ^= value >> 13
    value = value * 0xC2B2AE35 % 2**32
    return value ^ value >> 16


def test_a_sketch_has_the_1024_smallest_mixed_checksums():
    spans = [f"span {number} of the téxt" for number in range(1_100)]
    expected = sorted({murmur_finaliser(zlib.crc32(span.encode())) for span in spans})
    assert bottom_sketch(spans).tolist() == expected[:1_024]
    assert bottom_sketch([*spans[:3], *spans[:2]]).tolist() == sorted(
        {murmur_finaliser(zlib.crc32(span.encode())) for span in spans[:3]}
    )


def test_signatures_are_those_of_the_seed_that_all_versions_have():
    from rensa import RMinHash

    reference = RMinHash(num_perm=24, seed=20210814)
    reference.update(["one two", "two three"])
    found = minhash(["one two", "two three"], 24)
    assert found.tolist() == reference.digest()
    assert found.dtype == np.uint32


def test_a_digest_of_a_body_has_64_bits():
    expected = int.from_bytes(hashlib.blake2b("onetwoétrois".encode(), digest_size=8).digest(), "big")
    assert body_digest("One, two — É trois!") == expected


def test_complete_sketches_are_compared_exactly_even_if_their_union_is_large():
    one, two = np.arange(0, 800, dtype=np.uint32), np.arange(500, 1_300, dtype=np.uint32)
    assert similarity(one, two) == 300 / 1_300
    assert similarity(one[:1], one[:1]) == 1.0
    assert similarity(one[:0], one[:0]) == 0.0


def test_the_entries_of_an_article():
    day, url = datetime.date(2024, 2, 29), "http://p.example/1"
    article = Article("00000000deadbeef", url, "p.example", "Title", "one two three", byline_date=day)
    options = CleanOptions(permutations=6, bands=3)
    entries, sketch = sign(article, 3, 7, options)
    bands = [
        int.from_bytes(hashlib.blake2b(rows.tobytes(), digest_size=8).digest(), "big")
        for rows in minhash(["one two three"], 6).reshape(3, 2)
    ]
    assert entries["reason"].tolist() == [0, 1, 2, 2, 2]
    assert entries["band"].tolist() == [0, 0, 0, 1, 2]
    assert entries["digest"].tolist() == [0xDEADBEEF, body_digest("one two three"), *bands]
    for name, expected in (("ordinal", day.toordinal()), ("doc_id", 0xDEADBEEF), ("shard", 3), ("row", 7)):
        assert set(entries[name].tolist()) == {expected}
    assert sketch.tolist() == bottom_sketch(["one two three"]).tolist()


def write_sketches(folder, shards):
    """The paths of the sketches of shards, each a list of lists of values."""
    for number, shard in enumerate(shards):
        np.save(f"{folder}/{number}.{SKETCH_BOUNDS}", np.cumsum([0, *map(len, shard)]))
        np.array([value for sketch in shard for value in sketch], np.uint32).tofile(
            f"{folder}/{number}.{SKETCH_VALUES}"
        )
    return [f"{folder}/{number}." for number in range(len(shards))]


def test_sketches_are_read_by_shard_and_row(tmp_path):
    shards = [[[1], [2, 3], [], [4, 5, 6]], [[7, 8], [9], [10]]]
    places = [(0, 1), (0, 3), (1, 0), (1, 2)]
    found = duplicates._read_sketches(places, write_sketches(tmp_path, shards))
    assert {place: values.tolist() for place, values in found.items()} == {
        (0, 1): [2, 3],
        (0, 3): [4, 5, 6],
        (1, 0): [7, 8],
        (1, 2): [10],
    }


def expected_edges(entries, sketches, threshold):
    """Edges by the definition: a bucket is a reason, a band and a digest; the first of a bucket is the oldest."""
    buckets = {}
    for reason, band, digest, *member in entries.tolist():
        buckets.setdefault((reason, band, digest), []).append(tuple(member))
    found = set()
    for (reason, _, _), members in buckets.items():
        members.sort()
        pairs = itertools.combinations(members, 2) if reason == 2 else ((members[0], other) for other in members[1:])
        for one, two in pairs:
            left, right = (set(sketches[shard][row]) for _, _, shard, row in (one, two))
            if reason != 2 or len(left & right) / len(left | right) >= threshold:
                found.add((one, two, reason))
    return sorted(found)


@pytest.mark.parametrize("seed", range(4))
def test_edges_join_members_of_one_bucket_only(tmp_path, seed):
    # Digests are few, so that they repeat in other bands and for other reasons.
    draw = random.Random(seed)
    sketches = [[sorted(draw.sample(range(6), draw.randint(1, 5))) for _ in range(6)] for _ in range(2)]
    rows = [
        (
            reason,
            draw.randrange(2) if reason == 2 else 0,
            draw.randrange(4),
            draw.randrange(3),
            shard * 6 + row,
            shard,
            row,
        )
        for shard in range(2)
        for row in range(6)
        for reason in (0, 1, 2, 2)
    ]
    entries = np.array(list(dict.fromkeys(rows)), ENTRY)
    # One age for each member.
    ages = draw.choices(range(3), k=12)
    entries["ordinal"] = [ages[doc_id] for doc_id in entries["doc_id"].tolist()]
    entries = np.unique(entries)
    draw_order = np.random.default_rng(seed).permutation(len(entries))
    found = find_edges(entries[draw_order], write_sketches(tmp_path, sketches), 0.5)
    assert found.dtype == EDGE
    assert found.tolist() == expected_edges(entries, sketches, 0.5)


def test_no_edges_make_no_clusters(tmp_path):
    none = find_edges(np.zeros(0, ENTRY), [], 0.8)
    assert len(none) == 0
    assert len(find_clusters([none])) == len(find_clusters([])) == 0


def test_a_cluster_has_the_name_of_its_earliest_member():
    def member(number):
        return 9 - number, 100 + number, number % 2, number  # the higher the number, the earlier

    edges = np.zeros(3, EDGE)
    for place, (one, two) in enumerate([(0, 1), (1, 2), (5, 6)]):
        edges[place] = (member(one), member(two), 1)
    found = find_clusters([edges[:1], edges[1:]])
    assert {row: (shard, reason, cluster) for shard, row, reason, cluster in found.tolist()} == {
        0: (0, 1, 102),
        1: (1, 1, 102),
        2: (0, 3, 102),
        5: (1, 1, 106),
        6: (0, 3, 106),
    }
