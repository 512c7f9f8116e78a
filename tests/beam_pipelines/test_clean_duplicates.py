"""clean: thresholds of the search for duplicates and of the alarms, by values worked by hand."""

import datetime
import math

import numpy as np
import pytest
from newsembed.beam_pipelines.clean import CleanOptions, duplicates
from newsembed.beam_pipelines.clean.duplicates import (
    EDGE,
    KEPT,
    SKETCH_BOUNDS,
    SKETCH_SIZE,
    SKETCH_VALUES,
    band_digests,
    body_digest,
    find_clusters,
    find_edges,
    shingles,
    sign,
    similarity,
)
from newsembed.beam_pipelines.clean.yields import PublisherYield, find_alarms
from newsembed.formats.records import Article, make_doc_id

WORDS = "one two three four five six"


def article(number, body, day=None):
    url = f"http://p.example/{number}"
    return Article(make_doc_id(url), url, "p.example", "Title", body, byline_date=day)


def edges_between(tmp_path, articles, threshold=0.8):
    """The edges of articles in one shard, as (row, row, reason)."""
    entries, sketches = zip(*(sign(one, 0, row, CleanOptions()) for row, one in enumerate(articles)), strict=True)
    np.save(f"{tmp_path}/0.{SKETCH_BOUNDS}", np.cumsum([0, *map(len, sketches)]))
    np.concatenate(sketches).tofile(f"{tmp_path}/0.{SKETCH_VALUES}")
    found = find_edges(np.concatenate(entries), [f"{tmp_path}/0."], threshold)
    return [(one[-1], two[-1], reason) for one, two, reason in found.tolist()]


def test_shingles_are_runs_of_five_words():
    assert shingles("One, two THREE four five six") == ["one two three four five", "two three four five six"]
    assert shingles("one two three four five") == ["one two three four five"]
    assert shingles("one two") == ["one two"]


def test_a_similarity_equal_to_the_threshold_makes_near_duplicates(tmp_path):
    # 10 words have 6 shingles. The texts share all but the last: 5 of 7 shingles.
    words = " ".join(f"w{number}" for number in range(9))
    articles = [article(0, f"{words} last"), article(1, f"{words} end")]
    tiny = CleanOptions(permutations=16, bands=16)  # any common minimum makes a candidate pair
    entries, sketches = zip(*(sign(one, 0, row, tiny) for row, one in enumerate(articles)), strict=True)
    np.save(f"{tmp_path}/0.{SKETCH_BOUNDS}", np.cumsum([0, *map(len, sketches)]))
    np.concatenate(sketches).tofile(f"{tmp_path}/0.{SKETCH_VALUES}")
    assert similarity(*sketches) == 5 / 7
    assert len(find_edges(np.concatenate(entries), [f"{tmp_path}/0."], 5 / 7)) == 1
    assert len(find_edges(np.concatenate(entries), [f"{tmp_path}/0."], 5 / 7 + 1e-9)) == 0


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


def test_bands_are_consecutive_parts_of_a_signature():
    signature = np.arange(12, dtype=np.uint32)
    changed = signature.copy()
    changed[5] = 99  # with 4 bands of 3 values, the second band
    same = [one == two for one, two in zip(band_digests(signature, 4), band_digests(changed, 4), strict=True)]
    assert same == [True, False, True, True]


def test_equal_bodies_differ_in_case_spaces_and_punctuation_only():
    assert body_digest("One, two: THREE.") == body_digest("one two\nthree")
    assert body_digest("One two three") != body_digest("One two tree")


def test_duplicates_are_named_by_url_or_body(tmp_path):
    assert edges_between(tmp_path, [article(1, "First text."), article(1, "Second, other text.")]) == [(0, 1, 0)]
    assert {reason for *_, reason in edges_between(tmp_path, [article(1, WORDS), article(2, WORDS)])} == {1, 2}


def test_identical_texts_are_near_duplicates_at_a_threshold_of_one_and_not_sought_above():
    assert len(sign(article(1, WORDS), 0, 0, CleanOptions(near_duplicate_threshold=1.0))[0]) == 2 + 16
    entries, sketch = sign(article(1, WORDS), 0, 0, CleanOptions(near_duplicate_threshold=1.1))
    assert (len(entries), len(sketch)) == (2, 0)


def test_pairs_of_a_large_bucket_are_neighbors_and_pairs_with_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(duplicates, "_ALL_PAIRS_UP_TO", 3)
    assert list(duplicates._pairs(0, 3, every=True)) == [(0, 1), (0, 2), (1, 2)]
    assert list(duplicates._pairs(0, 4, every=True)) == [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)]
    assert list(duplicates._pairs(5, 8, every=False)) == [(5, 6), (5, 7)]


def test_pairs_are_verified_in_parts_without_gaps(tmp_path, monkeypatch):
    articles = [article(number, f"{WORDS} seven eight nine ten") for number in range(6)]
    whole = edges_between(tmp_path, articles)
    assert sum(reason == 2 for *_, reason in whole) == math.comb(6, 2)
    monkeypatch.setattr(duplicates, "_PAIRS_AT_ONCE", 4)
    assert edges_between(tmp_path, articles) == whole


def test_a_dated_article_is_older_than_an_undated_one():
    def member(day, number):
        entries, _ = sign(article(number, WORDS, day), 0, number, CleanOptions())
        return tuple(entries[0][name] for name in ("ordinal", "doc_id", "shard", "row"))

    edges = np.zeros(1, EDGE)
    edges["one"], edges["two"] = member(None, 0), member(datetime.date(2020, 1, 1), 1)
    found = find_clusters([edges])
    assert {row: reason == KEPT for row, reason in found[["row", "reason"]].tolist()} == {0: False, 1: True}


def test_the_strongest_reason_counts_on_both_sides_of_an_edge():
    edges = np.zeros(2, EDGE)
    edges["one"], edges["two"] = [(1, 1, 0, 1), (2, 2, 0, 2)], [(2, 2, 0, 2), (3, 3, 0, 3)]  # 1 - 2 - 3
    edges["reason"] = [2, 0]
    assert find_clusters([edges])["reason"].tolist() == [KEPT, 0, 0]
    edges["reason"] = [0, 2]
    assert find_clusters([edges])["reason"].tolist() == [KEPT, 0, 2]


def publisher(name, kept, **rejected):
    return PublisherYield(name, kept + sum(rejected.values()), kept, rejected)


def alarms(now, before, drop=0.1, rate=0.01):
    return find_alarms(now, {one.publisher: one for one in before}, drop, rate)


def test_the_p_value_depends_on_the_number_of_articles_now():
    (alarm,) = alarms([publisher("a", 0, no_author=3)], [publisher("a", 7)], rate=0.05)
    # Of the ways to choose 3 of 10 articles, one alone takes the 3 that are rejected.
    assert alarm.p_value == pytest.approx(1 / math.comb(10, 3))


def test_a_drop_of_exactly_the_minimum_is_an_alarm():
    before, now = [publisher("a", 1_000)], [publisher("a", 500, no_author=500)]
    assert [alarm.kind for alarm in alarms(now, before, drop=0.5)] == ["dropped"]
    assert alarms(now, before, drop=0.5001) == []


def test_p_values_are_adjusted_for_the_number_of_publishers():
    # 5 of 40 articles are rejected, all of them among the 20 of this run: p = C(20, 5) / C(40, 5) = 0.024.
    p_value = math.comb(20, 5) / math.comb(40, 5)
    assert 0.02 < p_value < 0.05
    before = [publisher(f"p{number:03d}", 20) for number in range(100)]
    suspicious = publisher("p000", 15, no_author=5)
    (alarm,) = alarms([suspicious], before[:1], rate=0.05)
    assert alarm.p_value == pytest.approx(p_value)
    assert alarms([suspicious, *before[1:]], before, rate=0.05) == []


def test_publishers_of_twenty_articles_can_be_lost_and_the_largest_come_first():
    before = [publisher("small", 19), publisher("large", 30), publisher("medium", 20)]
    assert [alarm.publisher for alarm in alarms([], before)] == ["large", "medium"]


def test_the_reason_of_an_alarm_is_the_one_whose_share_grew_most():
    before = [publisher("a", 50, no_author=45, no_title=5)]
    now = [publisher("a", 5, no_author=50, no_title=45)]
    (alarm,) = alarms(now, before)
    assert alarm.reason == "no_title"


@pytest.mark.parametrize("start", [0, 35, 1000])
def test_a_small_bucket_is_compared_whole_wherever_it_begins(start):
    pairs = set(duplicates._pairs(start, start + 40, every=True))
    assert len(pairs) == 40 * 39 // 2
    assert len(set(duplicates._pairs(start, start + 41, every=True))) == 40 + 39
    assert set(duplicates._pairs(start, start + 3, every=False)) == {(start, start + 1), (start, start + 2)}
