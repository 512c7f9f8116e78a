"""triplets: the date rule, merged spaces, limits, the evergreen filter, the same result under any sharding."""

import collections
import dataclasses
import datetime
import hashlib
import json
import math
from functools import partial
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines import triplets as triplets_job
from newsembed.beam_pipelines.arrays import doc_id_of
from newsembed.beam_pipelines.shards import Phase, Shard, shard_of
from newsembed.beam_pipelines.triplets import JOB
from newsembed.beam_pipelines.triplets.candidates import CANDIDATE, SPACES, known_pairs, read_candidates
from newsembed.beam_pipelines.triplets.dates import (
    FEATURES as NGRAMS,
)
from newsembed.beam_pipelines.triplets.dates import (
    count_by_month,
    date_stats,
    distributions,
    fit,
    log_ratios,
    ngram_counts,
    with_read_words,
)
from newsembed.beam_pipelines.triplets.dates import fit_model as fit_dates
from newsembed.beam_pipelines.triplets.events import crowded_out, events_of
from newsembed.beam_pipelines.triplets.evergreen import (
    FEATURES,
    EvergreenModel,
    default_model,
    fit_model,
    read_labels,
)
from newsembed.beam_pipelines.triplets.learned import LearnedSpace
from newsembed.beam_pipelines.triplets.mine import (
    REASONS,
    TripletsOptions,
    by_evidence,
    evidence,
    mine,
    same_event_pairs,
)
from newsembed.beam_pipelines.triplets.table import DocumentTable
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Neighbor, Triplet, make_doc_id
from sklearn.utils import murmurhash3_32

ONE = ["--direct_num_workers=1"]
DAY = datetime.date(2021, 6, 1)


def doc(name):
    return make_doc_id(f"http://{name}.example/")


def article(name, publisher, days=0, language="en"):
    date = DAY + datetime.timedelta(days=days)
    words = f"In {date:%B} of {date.year} something happened that is called {name}. "
    return Article(doc(name), f"http://{name}.example/", publisher, name, words * 10, ("A B",), date, language=language)


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
    for index in range(shards):
        place = f"part-{index:05d}-of-{shards:05d}.parquet"
        parquet.write_shard(str(tmp_path / name / "clean/articles" / place), ARTICLES[index::shards], Article)
        own = sorted((one for one in neighbors if shard_of(one.query, shards) == index), key=lambda one: one.query)
        parquet.write_shard(str(tmp_path / name / "near/neighbors" / place), own, Neighbor)
    for folder in ("clean", "near"):
        (tmp_path / name / folder / "manifest.json").write_text('{"digest": "x"}')
    out = str(tmp_path / name / "out")
    given = {"articles": [str(tmp_path / name / "clean")], "neighbors": [str(tmp_path / name / "near")], **inputs}
    counts = jobs.execute(JOB, given, out, options or TripletsOptions(max_evergreen_score=1.0), ONE).manifest["counts"]
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


def test_several_negatives_and_no_cross_publisher_rule(tmp_path):
    counts, triplets = run(
        tmp_path, options=TripletsOptions(negatives_per_positive=2, cross_publisher=False, max_evergreen_score=1.0)
    )
    assert counts["tallies"]["positive pairs"] == len({(one.anchor, one.positive) for one in triplets}) > counts["out"]
    assert counts["tallies"]["triplets"] == len(triplets)
    assert {(one.positive, one.negative) for one in triplets if one.anchor == doc("a")} >= {
        (doc("b"), doc("d")),
        (doc("b"), doc("e")),
    }
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
    for bad in ("a\tb\tmaybe", f"{doc('a')}\t{doc('b')}", f"a\t{doc('b')}\t1", f"{doc('a')}\tb\t1"):
        labels.write_text(f"{bad}\n")
        with pytest.raises(InputError, match=r"labels\.tsv:1: --labels: got"):
            read_labels(str(labels))
    with pytest.raises(InputError, match="all equal"):
        fit_model(np.zeros((2, len(FEATURES))), [1, 1], "x")
    # Before the work: the articles are not there.
    inputs = {"articles": [str(tmp_path)], "neighbors": [str(tmp_path)], "labels": [str(labels)]}
    for text, problem in (("# none yet\n", "no labels"), (f"{doc('a')}\t{doc('b')}\t1\n", "1 labels, all equal")):
        labels.write_text(text)
        with pytest.raises(InputError, match=rf"labels\.tsv: --labels: {problem}"):
            triplets_job.run(SimpleNamespace(options=TripletsOptions(), inputs=inputs))


def test_evidence_by_hand():
    options = TripletsOptions(min_entity=0.6, min_image=0.8, min_text=0.8, joint_margin=0.2)
    nan = math.nan
    pairs = np.array([(0.7, nan, nan), (0.5, nan, nan), (0.5, nan, 0.7), (0.5, nan, 0.5), (nan, nan, nan)])
    np.testing.assert_allclose(evidence(pairs, options), [0.1, nan, -0.1, nan, nan])
    exact = TripletsOptions(min_entity=0.5, min_image=0.5, min_text=0.5, joint_margin=0.25)
    pairs = np.array([(0.5, nan, nan), (0.25, 0.375, nan), (0.25, 0.125, nan)])
    np.testing.assert_allclose(evidence(pairs, exact), [0, -0.125, nan])  # on the threshold, on the margin, below it


def test_a_filter_threshold_of_1_keeps_every_negative():
    ids = np.array([1, 2, 3], np.uint64)
    codes = np.array([(0, 0), (1, 0), (2, 0)])
    table = DocumentTable({"ids": ids, "numbers": np.ones((3, 3)), "codes": codes, "languages": np.array(["en"])})
    candidates = np.zeros(2, CANDIDATE)
    candidates["anchor"], candidates["other"], candidates["gap"] = 1, [2, 3], [0, 400]
    candidates["similarity"] = 0.9
    certain = EvergreenModel((0.0,) * len(FEATURES), 100.0, "gives every pair the probability 1")
    options = TripletsOptions(max_evergreen_score=1.0)
    triplets, _ = mine(ids[:1], candidates, table, certain, options, partial(by_evidence, options=options))
    assert triplets[["positive", "negative"]].tolist() == [(2, 3)]


def test_triplets_are_written_in_an_order_drawn_by_digest(tmp_path):
    options = TripletsOptions(negatives_per_positive=2, cross_publisher=False, max_evergreen_score=1.0)
    run(tmp_path, shards=1, options=options)
    written = [
        one.anchor + one.positive + one.negative for one in parquet.read_stream(f"{tmp_path}/out/out/triplets", Triplet)
    ]
    assert len(written) > 3
    assert written == sorted(written, key=lambda key: hashlib.blake2b(key.encode(), digest_size=8).hexdigest())


def test_spaces_are_merged(tmp_path):
    found = [
        neighbor("a", "b", "text", 0.3, 1),
        neighbor("a", "b", "entity", 0.5, 1),
        neighbor("a", "b", "text", 0.4, 1),
    ]
    parquet.write_shard(str(tmp_path / "part.parquet"), found, Neighbor)
    (merged,) = read_candidates(str(tmp_path / "part.parquet"))
    np.testing.assert_allclose(merged["similarity"], [0.5, math.nan, 0.4, math.nan], rtol=1e-6)
    assert (doc_id_of(int(merged["anchor"])), doc_id_of(int(merged["other"])), merged["gap"]) == (doc("a"), doc("b"), 1)


def plain_score(anchor, other, similarities):
    """The evergreen probability of a pair by hand, from the shipped weights and (entropy, own mass, gap) of both."""
    path = resources.files("newsembed.beam_pipelines.triplets").joinpath("evergreen_defaults.json")
    model = json.loads(path.read_text(encoding="utf-8"))
    values = {
        "entropy_anchor": anchor[0],
        "entropy_other": other[0],
        "own_mass_anchor": anchor[1],
        "own_mass_other": other[1],
        "expected_gap_other": other[2],
    }
    for space, similarity in zip(("entity", "image", "text"), similarities[:3], strict=True):
        values[f"{space}_similarity"] = 0.0 if math.isnan(similarity) else similarity
    logit = model["bias"] + sum(weight * float(values[name]) for name, weight in model["weights"].items())
    return 1 / (1 + math.exp(-logit))


def plain_positives(anchor, candidates, publishers, options, learned):
    near = []
    for other, gap, similarities in candidates:
        thresholds = (options.min_entity, options.min_image, options.min_text)
        margins = [
            value - least for value, least in zip(similarities[:3], thresholds, strict=True) if not math.isnan(value)
        ]
        if learned and not math.isnan(similarities[3]):
            if similarities[3] < learned.floor:
                continue
            above = (similarities[3] - learned.bar) / (learned.bar - learned.support)
            margins.append(above * options.joint_margin)
        margins = [*sorted(margins, reverse=True), -math.inf, -math.inf]
        enough = margins[0] >= 0 or margins[1] >= -options.joint_margin
        if abs(gap) <= 1 and enough and not (options.cross_publisher and publishers[other] == publishers[anchor]):
            near.append((-margins[0], other))
    positives = []
    for _, other in sorted(near):
        if sum(publishers[chosen] == publishers[other] for chosen in positives) < options.max_positives_per_publisher:
            positives.append(other)
    return positives[: options.max_positives]


def plain_mine(anchor, candidates, publishers, scores, options, learned):
    """The rules for one anchor at a time: outcome, (positive, negative) pairs, and the number of dropped negatives."""
    if not candidates:
        return "no_neighbor", [], 0
    positives = plain_positives(anchor, candidates, publishers, options, learned)
    if not positives:
        return "no_positive", [], 0
    far = sorted((-np.nanmax(similarities), other) for other, gap, similarities in candidates if abs(gap) >= 365)
    negatives, dropped = [], 0
    for _, other in far:
        if len(negatives) == len(positives) * options.negatives_per_positive:
            break
        if scores[anchor, other] <= options.max_evergreen_score:
            negatives.append(other)
        else:
            dropped += 1
    if not negatives:
        return "no_negative", [], dropped
    each = options.negatives_per_positive
    triplets = [(positives[n // each], negatives[n % len(negatives)]) for n in range(len(positives) * each)]
    return "mined", list(dict.fromkeys(triplets)), dropped


@pytest.mark.parametrize("seed", range(24))
def test_mining_equals_the_rules_applied_one_by_one(seed):
    draw = np.random.default_rng(seed)
    ids = np.unique(draw.integers(1, 2**63, 30).astype(np.uint64))
    codes = np.stack([draw.integers(0, 4, len(ids)), np.zeros(len(ids), int)], axis=1)
    stats = draw.random((len(ids), 3), np.float32)
    table = DocumentTable({"ids": ids, "numbers": stats, "codes": codes, "languages": np.array(["en"])})
    pairs = np.unique(draw.choice(ids, (400, 2)), axis=0)
    candidates = np.zeros(len(pairs), CANDIDATE)
    candidates["anchor"], candidates["other"] = pairs.T
    candidates["gap"] = draw.choice([-400, -1, 0, 1, 30, 365], len(pairs))
    learned = LearnedSpace(bar=0.8, support=0.5, floor=0.3) if seed % 3 == 0 else None
    candidates["similarity"] = draw.random((len(pairs), 4)).astype(np.float32)
    candidates["similarity"][draw.random((len(pairs), 4)) < 0.3] = math.nan
    if not learned:
        candidates["similarity"][:, 3] = math.nan
    candidates["similarity"][np.isnan(candidates["similarity"]).all(1)] = 0.5
    stats_of = dict(zip(ids.tolist(), stats.tolist(), strict=True))
    scores = {
        (anchor, other): plain_score(stats_of[anchor], stats_of[other], similarities)
        for anchor, other, _, similarities in candidates.tolist()
    }
    options = TripletsOptions(
        negatives_per_positive=1 + seed % 3,
        max_positives=1 + seed % 4,
        max_positives_per_publisher=1,
        cross_publisher=seed % 2 == 0,
        max_evergreen_score=float(np.median(list(scores.values()))) + 1e-4,
    )
    strengths = partial(by_evidence, options=options, learned=learned)
    triplets, outcomes = mine(ids, candidates, table, default_model(), options, strengths)
    publishers = dict(zip(ids.tolist(), codes[:, 0].tolist(), strict=True))
    reasons = collections.Counter()
    for anchor, outcome in zip(ids.tolist(), outcomes, strict=True):
        own = candidates[candidates["anchor"] == anchor]
        listed = [(other, gap, similarity) for _, other, gap, similarity in own.tolist()]
        reason, expected, dropped = plain_mine(anchor, listed, publishers, scores, options, learned)
        assert (*REASONS, "mined")[outcome["reason"]] == reason
        assert (outcome["neighbors"], outcome["evergreen"]) == (len(listed), dropped)
        found = triplets[triplets["anchor"] == anchor]
        assert [tuple(one) for one in found[["positive", "negative"]].tolist()] == expected
        for one in found:
            assert one["score"] == pytest.approx(scores[anchor, int(one["negative"])], rel=1e-5)
        reasons[reason] += 1
    assert reasons["mined"] > 5


def test_known_pairs_are_neighbors_of_documents_in_the_table(tmp_path):
    parquet.write_shard(
        str(tmp_path / "part.parquet"), [neighbor("a", "b"), neighbor("a", "c"), neighbor("d", "b")], Neighbor
    )
    number = {name: int(doc(name), 16) for name in "abcd"}
    table = DocumentTable(
        {
            "ids": np.array(sorted(number[name] for name in "abc"), np.uint64),
            "numbers": np.zeros((3, 3)),
            "codes": np.zeros((3, 2), int),
            "languages": np.array(["en"]),
        }
    )
    wanted = {(number["a"], number["b"]), (number["d"], number["b"]), (number["b"], number["c"])}
    found = known_pairs([str(tmp_path / "part.parquet")], wanted, table)
    assert found[["anchor", "other"]].tolist() == [
        (number["a"], number["b"])
    ]  # d is not in the table, b-c no neighbors
    unknown = np.array([number["d"]], np.uint64)
    assert table.places(unknown).tolist() == [-1]
    assert table.places(np.array([0, 2**64 - 1], np.uint64)).tolist() == [-1, -1]


@pytest.mark.parametrize("pair", ["ad", "da", "dd"])
def test_neighbors_that_are_not_in_the_table_are_ignored(pair):
    number = {name: int(doc(name), 16) for name in "abcd"}
    ids = np.array(sorted(number[name] for name in "abc"), np.uint64)
    codes = np.stack([np.arange(3), np.zeros(3, int)], axis=1)
    table = DocumentTable({"ids": ids, "numbers": np.ones((3, 3)), "codes": codes, "languages": np.array(["en"])})
    pairs = [(number[one], number[other], 0, [0.99] * len(SPACES)) for one, other in ("ab", pair)]
    candidates = np.array(pairs, CANDIDATE)
    strengths = partial(by_evidence, options=TripletsOptions())
    found = same_event_pairs(candidates, table, TripletsOptions(), strengths)
    assert found.tolist() == [[number["a"], number["b"]]]


def test_a_crowded_event_keeps_so_many_anchors():
    hub, others, separate = 1, list(range(10, 30)), [(100, 101), (102, 101)]
    pairs = np.array([(hub, other) for other in others] + [(other, hub) for other in others] + separate, np.uint64)
    documents, leaders = events_of(pairs)
    assert dict(zip(documents.tolist(), leaders.tolist(), strict=True)) == {
        hub: hub,
        **dict.fromkeys(others, hub),
        100: 101,
        101: 101,
        102: 101,
    }
    anchors = np.unique(pairs[:, 0])
    dropped = crowded_out(anchors, pairs, 5)
    assert len(dropped) == 21 - 5
    assert set(dropped.tolist()) <= {hub, *others}
    first = sorted([hub, *others], key=lambda one: hashlib.blake2b(f"{one:016x}".encode(), digest_size=8).digest())
    assert dropped.tolist() == sorted(first[5:])
    assert len(crowded_out(anchors, pairs, 21)) == 0
    assert len(crowded_out(anchors[:0], pairs[:0], 5)) == 0


def test_the_cap_on_an_event_is_counted(tmp_path):
    counts, _ = run(
        tmp_path, options=TripletsOptions(max_evergreen_score=1.0, cross_publisher=False, max_anchors_per_event=1)
    )
    assert counts["rejected"].get("crowded_event", 0) == 0
    near = [neighbor("b", "d", gap=399), *NEIGHBORS]
    counts, triplets = run(
        tmp_path, "crowd", neighbors=near, options=TripletsOptions(max_evergreen_score=1.0, max_anchors_per_event=1)
    )
    assert counts["rejected"]["crowded_event"] == 1
    assert len({one.anchor for one in triplets}) == 1


def test_neighbors_in_the_wrong_shard_are_named(tmp_path):
    run(tmp_path)
    folder = tmp_path / "out/near/neighbors"
    first, second = sorted(folder.iterdir())
    swap = folder / "swap"
    first.rename(swap)
    second.rename(first)
    swap.rename(second)
    given = {"articles": [str(tmp_path / "out/clean")], "neighbors": [str(tmp_path / "out/near")]}
    with pytest.raises(InputError, match=r"part-00000-of-00002\.parquet: holds .* belong in another shard"):
        jobs.execute(JOB, given, str(tmp_path / "again"), TripletsOptions(), ONE)


def fold_by_hand(one):
    return hashlib.blake2b(one.doc_id.encode(), digest_size=1).digest()[0] % 2


def month_by_hand(one):
    return one.byline_date.year * 12 + one.byline_date.month - 1


def fit_by_hand(counts, prior_months):
    """log p(n-gram | month) / p(n-gram) of each fold from the counts of the other fold, in float64."""
    models = np.zeros(counts.shape)
    for fold in range(2):
        seen = counts[1 - fold].astype(float)
        overall = (seen.sum(0) + 0.5) / (seen.sum() + 0.5 * seen.shape[1])
        by_month = seen.sum(1)
        weight = prior_months * max(1.0, by_month.sum() / max(1, (by_month > 0).sum()))
        for month in range(len(seen)):
            models[fold, month] = np.log((seen[month] + weight * overall) / (by_month[month] + weight) / overall)
            if not by_month[month]:
                models[fold, month] = -1e3
    return models


def test_ngrams_are_counted_by_fold_and_month():
    articles = [article(f"x{number}", "p", 31 * (number % 3)) for number in range(8)]
    first = min(map(month_by_hand, articles))
    counts = count_by_month(articles, first, 4)
    assert counts.shape == (2, 4, NGRAMS)
    grams = ngram_counts(articles).toarray()
    for fold in range(2):
        for month in range(4):
            rows = [
                n for n, one in enumerate(articles) if (fold_by_hand(one), month_by_hand(one) - first) == (fold, month)
            ]
            np.testing.assert_array_equal(counts[fold, month], grams[rows].sum(0))


def test_ngrams_are_single_words_and_pairs_of_the_first_three_hundred():
    def places(*grams):
        return sorted(abs(murmurhash3_32(gram, 0)) % NGRAMS for gram in grams)

    one = dataclasses.replace(article("x", "p", 0), title="Storm hits", body="the Coast")
    grams = ("storm", "hits", "the", "coast", "storm hits", "hits the", "the coast")
    counts = ngram_counts([one]).toarray()[0]
    assert np.repeat(np.arange(NGRAMS), counts.astype(int)).tolist() == places(*grams)
    long = dataclasses.replace(one, title="aa", body=" ".join(["bb"] * 299 + ["cc"]))
    counts = ngram_counts([long]).toarray()[0]
    assert np.repeat(np.arange(NGRAMS), counts.astype(int)).tolist() == places(
        "aa", "aa bb", *["bb"] * 299, *["bb bb"] * 298
    )


def test_the_byline_model_is_fitted_out_of_fold():
    draw = np.random.default_rng(0)
    counts = np.zeros((2, 5, NGRAMS), np.float32)
    counts[:, :4, :50] = draw.poisson(1.5, (2, 4, 50))  # the last month has no articles
    np.testing.assert_allclose(fit(counts, 4.0), fit_by_hand(counts, 4.0), rtol=1e-4, atol=1e-4)
    changed = counts.copy()
    changed[0] *= 7
    np.testing.assert_array_equal(fit(changed, 4.0)[0], fit(counts, 4.0)[0])  # fold 0 is scored by fold 1 alone
    assert not np.array_equal(fit(changed, 4.0)[1], fit(counts, 4.0)[1])


def test_where_the_other_fold_has_no_articles_every_month_is_impossible():
    counts = np.zeros((2, 3, NGRAMS), np.float32)
    counts[0, 1, 0] = 1
    models = fit(counts, 4.0)
    np.testing.assert_array_equal(models[0], np.full((3, NGRAMS), -1e3))
    np.testing.assert_allclose(models, fit_by_hand(counts, 4.0), rtol=1e-4, atol=1e-4)


def test_an_article_is_scored_by_the_model_of_its_fold():
    articles = [article(f"x{number}", "p") for number in range(12)]
    models = np.zeros((2, 3, NGRAMS), np.float32)
    models[0], models[1] = 2.0, 5.0
    expected = [[2.0 if fold_by_hand(one) == 0 else 5.0] * 3 for one in articles]
    assert len({row[0] for row in expected}) == 2
    np.testing.assert_allclose(log_ratios(articles, models), expected)  # a mean over n-grams, not a sum


def test_date_statistics_by_hand():
    one = article("x", "p", 62)
    models = np.zeros((2, 4, NGRAMS), np.float32)
    models[:] = np.log([1.0, 2.0, 4.0, 1.0])[None, :, None]  # p = 1/8, 2/8, 4/8, 1/8 with sharpness 1
    (stats,) = date_stats([one], models, 1.0, month_by_hand(one) - 3)  # the article's month is the last one
    probabilities = np.array([0.125, 0.25, 0.5, 0.125])
    assert stats.entropy == pytest.approx(-(probabilities * np.log(probabilities)).sum() / np.log(4), rel=1e-5)
    assert stats.own_mass == pytest.approx(0.5 + 0.125, rel=1e-5)
    assert stats.expected_gap == pytest.approx((3 - (0.25 + 2 * 0.5 + 3 * 0.125)) / 4, rel=1e-5)
    (earlier,) = date_stats([one], models, 1.0, month_by_hand(one) - 1)  # its month is the second one
    assert earlier.own_mass == pytest.approx(0.125 + 0.25 + 0.5, rel=1e-5)


def test_in_a_corpus_of_one_month_every_article_is_dated_exactly():
    one = article("x", "p")
    (stats,) = date_stats([one], np.zeros((2, 1, NGRAMS), np.float32), 8.0, month_by_hand(one))
    found = (stats.entropy, stats.own_mass, stats.expected_gap)
    assert found == pytest.approx((0.0, 1.0, 0.0), abs=1e-9)


def noisy_articles(count):
    """Articles in which few words depend on the month, so that no setting tells the months perfectly apart."""
    draw = np.random.default_rng(3)
    for number in range(count):
        one = article(f"x{number}", "p", 31 * (number % 6))
        words = [f"m{number % 6}" if draw.random() < 0.1 else f"w{draw.integers(20)}" for _ in range(40)]
        yield dataclasses.replace(one, title="title", body=" ".join(words))


def test_smoothing_and_sharpness_make_the_own_months_most_likely():
    articles = list(noisy_articles(90))
    first = min(map(month_by_hand, articles))
    counts = count_by_month(articles, first, 7)
    grams = ngram_counts(articles).toarray().astype(float)
    best = (-math.inf, 0.0, 0.0)
    for prior in (0.1, 1.0, 4.0, 16.0, 64.0):
        models = fit_by_hand(counts, prior)
        ratios = np.stack(
            [row @ models[fold_by_hand(one)].T / row.sum() for one, row in zip(articles, grams, strict=True)]
        )
        for sharpness in 2.0 ** np.arange(12):
            weights = np.exp(sharpness * (ratios - ratios.max(1, keepdims=True)))
            own = weights[np.arange(len(articles)), [month_by_hand(one) - first for one in articles]] / weights.sum(1)
            best = max(best, (float(np.log(own + 1e-9).mean()), prior, sharpness))
    found, sharpness = fit_dates(articles, counts, first)
    assert sharpness == best[2]
    np.testing.assert_allclose(found, fit_by_hand(counts, best[1]), rtol=1e-3, atol=1e-3)


def test_the_byline_model_is_fitted_on_the_counts_of_all_shards(tmp_path):
    articles = list(noisy_articles(60))
    first, paths = min(map(month_by_hand, articles)), []
    for index in range(2):
        paths.append(str(tmp_path / f"articles/part-{index:05d}-of-00002.parquet"))
        parquet.write_shard(paths[-1], articles[index::2], Article)
        with Shard(Phase(str(tmp_path), "count", 2), index) as shard:
            triplets_job._count(shard, paths[-1], first, 7)
    with Shard(Phase(str(tmp_path), "fit", 1), 0) as shard:
        triplets_job._fit(shard, paths, first, 3)
    models, _, splits = triplets_job._models(f"{tmp_path}/{triplets_job._MODEL}")
    counts = count_by_month(articles, first, 7)
    assert any(np.allclose(models, fit_by_hand(counts, prior), atol=1e-3) for prior in (0.1, 1.0, 4.0, 16.0, 64.0))
    assert splits.shape == (2, 2)
    assert (np.diff(splits) > 0).all()


def test_the_sample_has_only_the_words_that_are_read():
    long = dataclasses.replace(article("x", "p"), body="\n ".join(f"w{number} x" for number in range(1_000)))
    cut = with_read_words(long)
    assert len(cut.body.split()) == 300
    assert (ngram_counts([cut]) != ngram_counts([long])).nnz == 0
    assert with_read_words(cut) == cut


def test_the_byline_model_finds_months_and_timeless_texts():
    articles = [article(f"x{number}", "p", 31 * (number % 6)) for number in range(60)]
    first = min(map(month_by_hand, articles))
    counts = count_by_month(articles, first, 8)
    counts[:, 6] = 0
    models, sharpness = fit_dates(articles, counts, first)
    distribution = distributions(log_ratios(articles, models), sharpness)
    assert distribution[:, 6:].max() < 1e-6  # months without articles
    np.testing.assert_allclose(distribution.sum(1), 1, rtol=1e-5)
    assert np.mean(distribution.argmax(1) == [month_by_hand(one) - first for one in articles]) > 0.9
    words = "something happened that is called something " * 10
    timeless = Article(doc("t"), "u", "p", "something", words, byline_date=DAY)
    timeless_stats, dated_stats = date_stats([timeless, articles[0]], models, 16.0, first)
    assert timeless_stats.entropy > dated_stats.entropy


def test_the_evergreen_filter_weighs_both_labels_equally():
    features = np.zeros(
        (40, len(FEATURES))
    )  # tell nothing: the score is the share of false negatives, or 1/2 if balanced
    model = fit_model(features, [1] * 4 + [0] * 36, "x")
    np.testing.assert_allclose(model.scores(features[:1]), [0.5], atol=1e-3)


def test_default_weights_are_fitted_and_complete():
    model = default_model()
    assert isinstance(model, EvergreenModel)
    assert len(model.weights) == len(FEATURES)
    assert "newsroom" in model.provenance
    with pytest.raises(InputError, match="--min_negative_days"):
        TripletsOptions(min_negative_days=1)
