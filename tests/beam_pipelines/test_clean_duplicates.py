"""clean: signatures, sketches, pairs and clusters of duplicates against plain references, and their thresholds."""

import datetime
import hashlib
import itertools
import random
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.clean import CleanOptions, duplicates
from newsembed.beam_pipelines.clean.duplicates import KEPT, SKETCH_SIZE, bottom_sketch, find_clusters, similarity
from newsembed.formats.records import Article, make_doc_id


def text(seed, sentences):
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(30)]
    return "\n".join(" ".join(draw.choices(words, k=12)) + "." for _ in range(sentences))


def article(number, body, day=None):
    url = f"http://p.example/{number}"
    return Article(make_doc_id(url), url, "p.example", "Title", body, byline_date=day)


def test_shingles_are_runs_of_five_words():
    assert duplicates.shingles("One, two THREE four five six") == ["one two three four five", "two three four five six"]
    assert duplicates.shingles("one two three four five") == ["one two three four five"]
    assert duplicates.shingles("one two") == ["one two"]
    assert duplicates.shingles("明天下雨，水位上") == ["明 天 下 雨 水", "天 下 雨 水 位", "下 雨 水 位 上"]


def test_a_copy_with_another_clause_is_a_near_duplicate_in_scripts_without_spaces():
    clauses = "星期五早上石桥附近的河水上涨 救援队用船从被淹的房屋中救出四十人 市长说堤坝将在春天之前加高".split()
    numbered = [f"{clause}第{number}次" for number, clause in enumerate(clauses * 4)]
    texts = ("，".join(numbered), "，".join(numbered[:5] + numbered[6:]))
    one, two = (duplicates.bottom_sketch(duplicates.shingles(text)) for text in texts)
    assert similarity(one, two) > 0.8


def test_a_similarity_equal_to_the_threshold_makes_near_duplicates(tmp_path):
    # 10 words have 6 shingles. The texts share all but the last: 5 of 7 shingles.
    words = " ".join(f"w{number}" for number in range(9))
    articles = [article(0, f"{words} last"), article(1, f"{words} end")]
    tiny = CleanOptions(permutations=16, bands=16)  # any common minimum makes a candidate pair
    entries, sketches = zip(*(duplicates.sign(one, 0, row, tiny) for row, one in enumerate(articles)), strict=True)
    duplicates.write_sketches(f"{tmp_path}/0.", sketches)
    assert similarity(*sketches) == 5 / 7
    assert len(duplicates.find_edges(np.concatenate(entries), [f"{tmp_path}/0."], 5 / 7)) == 1
    assert len(duplicates.find_edges(np.concatenate(entries), [f"{tmp_path}/0."], 5 / 7 + 1e-9)) == 0


def test_the_similarity_of_large_sets_counts_the_smallest_values_of_the_union():
    # The even and the multiples of three below 6 n: of each six values 4 are in the union and one is common.
    union = np.arange(3 * SKETCH_SIZE, dtype=np.uint32)
    one, two = union[union % 2 == 0][:SKETCH_SIZE], union[union % 3 == 0][:SKETCH_SIZE]
    smallest = [value for value in range(3 * SKETCH_SIZE) if value % 2 == 0 or value % 3 == 0][:SKETCH_SIZE]
    expected = sum(value % 6 == 0 for value in smallest) / SKETCH_SIZE
    assert smallest[-1] % 6 != 0
    assert similarity(one, two) == expected
    # A common value that is the largest of the smallest counts too.
    shifted = np.append(one[1:], np.uint32(4 * SKETCH_SIZE))
    assert similarity(one, one) == 1.0
    assert similarity(one, shifted) == (SKETCH_SIZE - 1) / SKETCH_SIZE


def test_the_strongest_reason_counts_on_both_sides_of_an_edge():
    edges = np.zeros(2, duplicates.EDGE)
    edges["one"], edges["two"] = [(1, 1, 0, 1), (2, 2, 0, 2)], [(2, 2, 0, 2), (3, 3, 0, 3)]  # 1 - 2 - 3
    edges["reason"] = [2, 0]
    assert find_clusters([edges])["reason"].tolist() == [KEPT, 0, 0]
    edges["reason"] = [0, 2]
    assert find_clusters([edges])["reason"].tolist() == [KEPT, 0, 2]


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


def test_the_entries_of_an_article():
    day, url = datetime.date(2024, 2, 29), "http://p.example/1"
    article = Article("00000000deadbeef", url, "p.example", "Title", "one two three", byline_date=day)
    options = CleanOptions(permutations=6, bands=3)
    entries, sketch = duplicates.sign(article, 3, 7, options)
    bands = [
        int.from_bytes(hashlib.blake2b(rows.tobytes(), digest_size=8).digest(), "big")
        for rows in duplicates.minhash(["one two three"], 6).reshape(3, 2)
    ]
    assert entries["reason"].tolist() == [0, 1, 2, 2, 2]
    assert entries["band"].tolist() == [0, 0, 0, 1, 2]
    assert entries["digest"].tolist() == [0xDEADBEEF, duplicates.body_digest("one two three"), *bands]
    for name, expected in (("ordinal", day.toordinal()), ("doc_id", 0xDEADBEEF), ("shard", 3), ("row", 7)):
        assert set(entries[name].tolist()) == {expected}
    assert sketch.tolist() == bottom_sketch(["one two three"]).tolist()


def write_shards(folder, shards):
    """The paths of the sketches of shards, each a list of lists of values."""
    for number, shard in enumerate(shards):
        duplicates.write_sketches(f"{folder}/{number}.", [np.array(sketch, np.uint32) for sketch in shard])
    return duplicates.sketches_in(str(folder))


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
    ages = draw.choices(range(3), k=12)  # one for each member
    rows = {
        (reason, draw.randrange(2) if reason == 2 else 0, draw.randrange(4), ages[member], member, *divmod(member, 6))
        for member in range(12)
        for reason in (0, 1, 2, 2)
    }
    entries = np.array(sorted(rows), duplicates.ENTRY)
    draw_order = np.random.default_rng(seed).permutation(len(entries))
    found = duplicates.find_edges(entries[draw_order], write_shards(tmp_path, sketches), 0.5)
    assert found.dtype == duplicates.EDGE
    assert found.tolist() == expected_edges(entries, sketches, 0.5)


@settings(max_examples=50, deadline=None)
@given(st.sets(st.text(max_size=3), max_size=30), st.sets(st.text(max_size=3), max_size=30))
def test_small_sets_have_their_exact_similarity(one, two):
    sketches = [bottom_sketch([repr(item) for item in part]) for part in (one, two)]
    assert similarity(*sketches) == pytest.approx(len(one & two) / max(1, len(one | two)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from(duplicates.REASONS)), max_size=30))
def test_clusters_are_connected_components_with_the_earliest_kept(pairs):
    member = [(number // 3, number + 100, number % 3, number) for number in range(21)]  # ordinal, doc_id, shard, row
    found = find_clusters([edges_of(*((member[one], member[two], reason) for one, two, reason in pairs if one != two))])
    cluster = {row: number - 100 for row, number in found[["row", "cluster"]].tolist()}
    parent = list(range(21))
    for _ in parent:  # as many rounds as the longest chain needs
        for one, two, _reason in pairs:
            parent[one] = parent[two] = min(parent[one], parent[two])
    assert cluster == {number: parent[number] for one, two, _ in pairs for number in (one, two) if one != two}
    assert {row for row, reason in found[["row", "reason"]].tolist() if reason == KEPT} == set(cluster.values())


def edges_of(*pairs):
    edges = np.zeros(len(pairs), duplicates.EDGE)
    for edge, (one, two, reason) in zip(edges, pairs, strict=True):
        edge["one"], edge["two"], edge["reason"] = one, two, duplicates.REASONS.index(reason)
    return edges


def test_a_text_in_half_of_the_articles_is_compared_in_linear_time(monkeypatch):
    compared = []

    def count(one, _two, _sketches):
        compared[-1] += len(one)
        return np.ones(len(one))

    monkeypatch.setattr(duplicates, "_similarities", count)
    for size in (200, 400):
        compared.append(0)
        entries = [duplicates.sign(article(row, text(0, 5)), 0, row, CleanOptions())[0] for row in range(size)]
        decisions = find_clusters([duplicates.find_edges(np.concatenate(entries), ["0."], 0.8)])
        assert (decisions["reason"] == KEPT).sum() == 1
        assert len(decisions) == size
    # Of each member: a pair with the first and one with the one before it, which are the same in all bands.
    assert compared == [2 * size - 3 for size in (200, 400)]
