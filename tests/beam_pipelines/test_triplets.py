"""triplets: the date rule, merged spaces, caps, the evergreen filter, the same result under any sharding."""

import datetime
import math

import numpy as np
import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.arrays import doc_id_of
from newsembed.beam_pipelines.shards import shard_of
from newsembed.beam_pipelines.triplets import JOB
from newsembed.beam_pipelines.triplets.candidates import CANDIDATE, read_candidates
from newsembed.beam_pipelines.triplets.dates import FOLDS, count_by_month, date_stats, distributions, log_ratios
from newsembed.beam_pipelines.triplets.dates import fit_model as fit_dates
from newsembed.beam_pipelines.triplets.events import crowded_out, events_of
from newsembed.beam_pipelines.triplets.evergreen import (
    FEATURES,
    EvergreenModel,
    default_model,
    fit_model,
    pair_features,
    read_labels,
)
from newsembed.beam_pipelines.triplets.mine import REASONS, TripletsOptions, evidence, mine
from newsembed.beam_pipelines.triplets.table import DocumentTable
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Neighbor, Triplet, make_doc_id

ONE = ["--direct_num_workers=1"]
DAY = datetime.date(2021, 6, 1)


def doc(name):
    return make_doc_id(f"http://{name}.example/")


def article(name, publisher, days=0):
    date = DAY + datetime.timedelta(days=days)
    words = f"In {date:%B} of {date.year} something happened that is called {name}. "
    return Article(doc(name), f"http://{name}.example/", publisher, name, words * 10, ("A B",), date, language="en")


def neighbor(query, other, space="entity", similarity=0.9, gap=0):
    return Neighbor(doc(query), doc(other), space, similarity, gap)


ARTICLES = [
    article("a", "p1"),
    article("b", "p2", 1),
    article("c", "p1"),
    article("d", "p2", 400),
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
    _, triplets = run(
        tmp_path, options=TripletsOptions(negatives_per_positive=2, cross_publisher=False, max_evergreen_score=1.0)
    )
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
    labels.write_text(f"# anchor\tother\tlabel\n{doc('a')}\t{doc('d')}\t1\n{doc('a')}\t{doc('e')}\t0\n")
    run(tmp_path, labels=[str(labels)])
    assert "2 labels of labels.tsv" in (tmp_path / "out/out/evergreen.json").read_text()
    labels.write_text("a\tb\tmaybe\n")
    with pytest.raises(InputError, match=r"labels\.tsv:1: --labels: got"):
        read_labels(str(labels))
    with pytest.raises(InputError, match="all equal"):
        fit_model(np.zeros((2, len(FEATURES))), [1, 1], "x")


def test_evidence_by_hand():
    options = TripletsOptions(min_entity=0.6, min_image=0.8, min_text=0.8, joint_margin=0.2)
    nan = math.nan
    pairs = np.array([(0.7, nan, nan), (0.5, nan, nan), (0.5, nan, 0.7), (0.5, nan, 0.5), (nan, nan, nan)])
    np.testing.assert_allclose(evidence(pairs, options), [0.1, nan, -0.1, nan, nan])


def test_spaces_are_merged(tmp_path):
    found = [
        neighbor("a", "b", "text", 0.3, 1),
        neighbor("a", "b", "entity", 0.5, 1),
        neighbor("a", "b", "text", 0.4, 1),
    ]
    parquet.write_shard(str(tmp_path / "part.parquet"), found, Neighbor)
    (merged,) = read_candidates(str(tmp_path / "part.parquet"))
    np.testing.assert_allclose(merged["similarity"], [0.5, math.nan, 0.4], rtol=1e-6)
    assert (doc_id_of(int(merged["anchor"])), doc_id_of(int(merged["other"])), merged["gap"]) == (doc("a"), doc("b"), 1)


def plain_mine(anchor, candidates, publishers, scores, options):
    """The rules once more, one anchor at a time."""
    if not candidates:
        return "no_neighbor", []
    near = []
    for other, gap, similarities in candidates:
        margins = sorted(
            (
                value - bar
                for value, bar in zip(
                    similarities, (options.min_entity, options.min_image, options.min_text), strict=True
                )
            ),
            key=lambda value: -math.inf if math.isnan(value) else value,
            reverse=True,
        )
        enough = margins[0] >= 0 or margins[1] >= -options.joint_margin
        if abs(gap) <= 1 and enough and not (options.cross_publisher and publishers[other] == publishers[anchor]):
            near.append((-margins[0], other))
    positives = []
    for _, other in sorted(near):
        if sum(publishers[chosen] == publishers[other] for chosen in positives) < options.max_positives_per_publisher:
            positives.append(other)
    positives = positives[: options.max_positives]
    if not positives:
        return "no_positive", []
    far = sorted((-np.nanmax(similarities), other) for other, gap, similarities in candidates if abs(gap) >= 365)
    negatives = [other for _, other in far if scores[anchor, other] <= options.max_evergreen_score]
    negatives = negatives[: len(positives) * options.negatives_per_positive]
    if not negatives:
        return "no_negative", []
    each = options.negatives_per_positive
    triplets = [(positives[n // each], negatives[n % len(negatives)]) for n in range(len(positives) * each)]
    return "mined", list(dict.fromkeys(triplets))


@pytest.mark.parametrize("seed", range(8))
def test_mining_equals_the_rules_applied_one_by_one(seed):
    draw = np.random.default_rng(seed)
    ids = np.unique(draw.integers(1, 2**63, 30).astype(np.uint64))
    codes = np.stack([draw.integers(0, 4, len(ids)), np.zeros(len(ids), int)], axis=1)
    table = DocumentTable(
        {"ids": ids, "numbers": draw.random((len(ids), 3), np.float32), "codes": codes, "languages": np.array(["en"])}
    )
    pairs = np.unique(draw.choice(ids, (400, 2)), axis=0)
    candidates = np.zeros(len(pairs), CANDIDATE)
    candidates["anchor"], candidates["other"] = pairs.T
    candidates["gap"] = draw.choice([-400, -1, 0, 1, 30, 365], len(pairs))
    candidates["similarity"] = draw.random((len(pairs), 3)).astype(np.float32)
    candidates["similarity"][draw.random((len(pairs), 3)) < 0.3] = math.nan
    candidates["similarity"][np.isnan(candidates["similarity"]).all(1)] = 0.5
    options = TripletsOptions(
        negatives_per_positive=1 + seed % 3,
        max_positives_per_publisher=1,
        cross_publisher=seed % 2 == 0,
        max_evergreen_score=0.6,
    )
    model = default_model()
    triplets, outcomes = mine(ids, candidates, table, model, options)
    scores = dict(zip(map(tuple, pairs.tolist()), model.scores(pair_features(table, candidates)).tolist(), strict=True))
    publishers = dict(zip(ids.tolist(), codes[:, 0].tolist(), strict=True))
    for anchor, outcome in zip(ids.tolist(), outcomes, strict=True):
        own = candidates[candidates["anchor"] == anchor]
        listed = [(other, gap, similarity) for _, other, gap, similarity in own.tolist()]
        reason, expected = plain_mine(anchor, listed, publishers, scores, options)
        assert (*REASONS, "mined")[outcome["reason"]] == reason
        found = triplets[triplets["anchor"] == anchor][["positive", "negative"]].tolist()
        assert [tuple(one) for one in found] == expected


def test_a_crowded_event_keeps_so_many_anchors():
    hub, others, strangers = 1, list(range(10, 30)), [(100, 101), (102, 101)]
    pairs = np.array([(hub, other) for other in others] + [(other, hub) for other in others] + strangers, np.uint64)
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
    with pytest.raises(RuntimeError, match="belong in another shard"):  # Beam wraps what a shard raises
        jobs.execute(JOB, given, str(tmp_path / "again"), TripletsOptions(), ONE)


def test_the_byline_model_is_out_of_fold_and_finds_months():
    articles = [article(f"x{number}", "p", 31 * (number % 6)) for number in range(60)]
    first = min(one.byline_date.year * 12 + one.byline_date.month - 1 for one in articles)
    counts = count_by_month(articles, first, 8)
    counts[:, 6] = 0
    models, sharpness = fit_dates(articles, counts, first)
    assert models.shape[0] == FOLDS
    distribution = distributions(log_ratios(articles, models), sharpness)
    assert distribution[:, 6:].max() < 1e-6  # months of which nothing is known
    np.testing.assert_allclose(distribution.sum(1), 1, rtol=1e-5)
    own = [one.byline_date.year * 12 + one.byline_date.month - 1 - first for one in articles]
    assert np.mean(distribution.argmax(1) == own) > 0.9
    timeless = article("t", "p")
    (stats,) = date_stats(
        [
            Article(
                doc("t"),
                "u",
                "p",
                "something",
                "something happened that is called something " * 10,
                byline_date=timeless.byline_date,
            )
        ],
        models,
        16.0,
        first,
    )
    dated = next(iter(date_stats(articles[:1], models, 16.0, first)))
    assert stats.entropy > dated.entropy


def test_default_weights_are_fitted_and_complete():
    model = default_model()
    assert isinstance(model, EvergreenModel)
    assert len(model.weights) == len(FEATURES)
    assert "newsroom" in model.provenance
    with pytest.raises(InputError, match="--min_negative_days"):
        TripletsOptions(min_negative_days=1)
