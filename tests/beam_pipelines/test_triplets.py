"""The job `triplets`: the date rule, limits, labels, the same result under any sharding."""

import dataclasses
import hashlib
import math
from types import SimpleNamespace

import pytest
from newsembed.beam_pipelines import triplets as triplets_job
from newsembed.beam_pipelines.shards import shard_of
from newsembed.beam_pipelines.triplets import JOB
from newsembed.beam_pipelines.triplets.rules import TripletsOptions
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Neighbor, Triplet
from newsembed.tests.document_table import article, doc
from newsembed.tests.example_inputs import manifest_of, split, write_stream


def neighbor(query, other, space="entity", similarity=0.9, gap=0):
    return Neighbor(doc(query), doc(other), space, similarity, gap)


ARTICLES = [
    article("a", "p1"),
    article("b", "p2", 1),
    article("c", "p1"),
    article("d", "p2", 400, "de"),
    article("e", "p3", -500),
    article("f", "p3", 5),
    article("g", "p4"),
]


NEIGHBORS = [
    neighbor("a", "b", gap=1),
    neighbor("a", "b", "text", 0.7, 1),
    neighbor("a", "c"),  # the same publisher
    neighbor("a", "d", similarity=0.8, gap=400),
    neighbor("a", "e", similarity=0.7, gap=-500),
    neighbor("a", "f", gap=5),  # neither near nor far
    neighbor("b", "a", gap=-1),
    neighbor("f", "d", gap=395),
]


def run(tmp_path, name="out", shards=2, options=None, neighbors=NEIGHBORS, **inputs):
    near = sorted(neighbors, key=lambda one: one.query)
    near = [[one for one in near if shard_of(one.query, shards) == index] for index in range(shards)]
    out = str(tmp_path / name / "out")
    given = {
        "articles": write_stream(tmp_path / name / "clean", "articles", split(ARTICLES, shards), Article),
        "neighbors": write_stream(tmp_path / name / "near", "neighbors", near, Neighbor),
    } | inputs
    counts = manifest_of(JOB, given, out, options or TripletsOptions(max_evergreen_score=1.0))["counts"]
    return counts, sorted(parquet.read_stream(f"{out}/triplets", Triplet), key=lambda one: (one.anchor, one.positive))


def test_the_whole_counter_dict_and_the_rules(tmp_path):
    counts, triplets = run(tmp_path)
    assert (counts["in"], counts["out"]) == (7, 1)
    assert counts["rejected"] == {"no_neighbor": 4, "no_positive": 1, "no_negative": 1}
    (triplet,) = triplets
    assert (triplet.anchor, triplet.positive, triplet.negative) == (doc("a"), doc("b"), doc("d"))
    assert (triplet.positive_day_gap, triplet.negative_day_gap, triplet.language) == (1, 400, "en")
    assert triplet.positive_similarity[0] == pytest.approx(0.9)
    assert math.isnan(triplet.positive_similarity[1])
    assert triplet.positive_similarity[2] == pytest.approx(0.7)


def test_any_sharding_gives_the_same_triplets(tmp_path):
    _, one = run(tmp_path, "one", shards=1)
    _, three = run(tmp_path, "three", shards=3)
    assert str(one) == str(three)  # NaN is not equal to itself


SEVERAL = TripletsOptions(negatives_per_positive=2, cross_publisher=False, max_evergreen_score=1.0)


def test_several_negatives_and_no_cross_publisher_rule(tmp_path):
    counts, triplets = run(tmp_path, options=SEVERAL)
    assert counts["tallies"]["positive pairs"] == len({(one.anchor, one.positive) for one in triplets}) > counts["out"]
    assert counts["tallies"]["triplets"] == len(triplets)
    found = {(one.positive, one.negative) for one in triplets if one.anchor == doc("a")}
    assert found >= {(doc("b"), doc("d")), (doc("b"), doc("e"))}
    assert any(one.positive == doc("c") for one in triplets)


def test_a_filter_that_drops_everything_leaves_no_negative(tmp_path):
    counts, triplets = run(tmp_path, options=TripletsOptions(max_evergreen_score=0.0))
    assert triplets == []
    assert counts["rejected"]["no_negative"] == 2
    assert counts["tallies"]["negatives dropped as evergreen"] == 2


def test_labels_fit_the_filter_and_bad_ones_are_refused(tmp_path):
    labels = tmp_path / "labels.tsv"
    labels.write_text(f"# anchor\tother\tlabel\n \n{doc('a')}\t{doc('d')}\t1\n{doc('a')}\t{doc('e')}\t0\n")
    run(tmp_path, labels=[str(labels)])
    assert "2 labels of labels.tsv" in (tmp_path / "out/out/evergreen.json").read_text()
    # Before the work: the articles are not there.
    inputs = {"articles": [str(tmp_path)], "neighbors": [str(tmp_path)], "labels": [str(labels)]}
    for text, problem in (("# none yet\n", "no labels"), (f"{doc('a')}\t{doc('b')}\t1\n", "1 labels, all equal")):
        labels.write_text(text)
        with pytest.raises(InputError, match=rf"labels\.tsv: --labels: {problem}"):
            triplets_job.run(SimpleNamespace(options=TripletsOptions(), inputs=inputs))


def test_triplets_are_written_in_an_order_drawn_by_digest(tmp_path):
    run(tmp_path, shards=1, options=SEVERAL)
    triplets = parquet.read_stream(f"{tmp_path}/out/out/triplets", Triplet)
    written = [one.anchor + one.positive + one.negative for one in triplets]
    assert len(written) > 3
    assert written == sorted(written, key=lambda key: hashlib.blake2b(key.encode(), digest_size=8).hexdigest())


def test_the_cap_on_an_event_is_counted(tmp_path):
    one_each = TripletsOptions(max_evergreen_score=1.0, max_anchors_per_event=1)
    counts, _ = run(tmp_path, options=dataclasses.replace(one_each, cross_publisher=False))
    assert counts["rejected"].get("crowded_event", 0) == 0
    near = [neighbor("b", "d", gap=399), *NEIGHBORS]
    counts, triplets = run(tmp_path, "crowd", neighbors=near, options=one_each)
    assert counts["rejected"]["crowded_event"] == 1
    assert len({one.anchor for one in triplets}) == 1
