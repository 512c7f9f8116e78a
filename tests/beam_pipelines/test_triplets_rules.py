"""triplets: the rules, the evergreen filter, labels, neighbors and events, by plain references and without a job."""

import collections
import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.triplets import evergreen, rules
from newsembed.beam_pipelines.triplets.evergreen import FEATURES, LabelRow, default_model, fit_model, read_label_rows
from newsembed.beam_pipelines.triplets.rules import CANDIDATE, TripletsOptions, known_pairs, rank_within
from newsembed.beam_pipelines.triplets.table import (
    crowded_out,
    events_of,
    links_of,
    read_stories,
    stories_of,
    write_stories,
)
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Neighbor
from newsembed.tests.document_table import make_table
from scipy.special import expit

NAN = math.nan


MODEL = evergreen.EvergreenModel((0.5, -1.0, 2.0, 0.25, -0.5, 3.0, -2.0, 1.0), -0.75, "by hand")


def test_scores_are_those_of_the_logistic_function():
    features = np.random.default_rng(0).normal(size=(20, len(FEATURES)))
    np.testing.assert_allclose(MODEL.scores(features), expit(features @ MODEL.weights - 0.75), rtol=1e-12)
    high, low = (MODEL._replace(bias=bias).scores(features) for bias in (1e6, -1e6))
    assert (high > 1 - 1e-15).all()
    assert ((low >= 0) & (low < 1e-15)).all()


def test_a_model_is_read_as_written():
    value = MODEL.to_json()
    shuffled = {**value, "weights": dict(reversed(value["weights"].items()))}
    assert evergreen.EvergreenModel.from_json(shuffled) == MODEL
    assert "newsroom" in default_model().provenance


def test_the_features_of_a_pair_are_the_dates_of_both_and_the_similarities():
    numbers = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]], np.float32)
    table = make_table([3, 5, 9], numbers)
    pairs = np.array([(9, 3, 400, (0.9, NAN, 0.5)), (3, 5, -400, (NAN, 0.8, NAN))], CANDIDATE)
    found = evergreen.pair_features(table, pairs)
    assert found.dtype == np.float64
    expected = [[0.7, 0.1, 0.8, 0.2, 0.3, 0.9, 0, 0.5], [0.1, 0.4, 0.2, 0.5, 0.6, 0, 0.8, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_fitted_model_tells_the_labels_apart_and_says_where_it_is_from():
    features = np.zeros((20, len(FEATURES)))
    features[:10, 5] = 1
    model = fit_model(features, [1] * 10 + [0] * 10, "20 labels")
    assert model.weights[5] > 1
    assert model.provenance == "20 labels"
    scores = model.scores(features)
    assert scores[:10].min() > 0.7
    assert scores[10:].max() < 0.3
    for labels in ([1, 1], [0, 0]):
        with pytest.raises(InputError, match="--labels: 2 labels, all equal"):
            fit_model(features[:2], labels, "x")
    # Features that tell nothing give the share of false negatives, or 1/2 where both labels weigh equally.
    balanced = fit_model(np.zeros((40, len(FEATURES))), [1] * 4 + [0] * 36, "x")
    np.testing.assert_allclose(balanced.scores(np.zeros((1, len(FEATURES)))), [0.5], atol=1e-3)


ONE, TWO = "0123456789abcdef", "fedcba9876543210"


def test_labels_are_read_with_their_notes_and_the_last_of_a_pair_counts(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text(f"\ufeff# a comment\n\n{ONE}\t {TWO} \t1\tann\t2024 \r\n{TWO}\t{ONE}\t0\n{ONE}\t{TWO}\t0\n")
    rows = [LabelRow(ONE, TWO, 1, ("ann", "2024")), LabelRow(TWO, ONE, 0), LabelRow(ONE, TWO, 0)]
    assert read_label_rows(str(path)) == rows
    assert evergreen.read_labels(str(path)) == {(ONE, TWO): 0, (TWO, ONE): 0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{ONE}\t{TWO}", "got .*, expected anchor, other and 0 or 1"),
        (f"{ONE}\t{TWO}\t2", "got .*, expected anchor, other and 0 or 1"),
        (f"{ONE[1:]}\t{TWO}\t1", f"got '{ONE[1:]}', expected a document id of 16 hexadecimal digits"),
        (f"{ONE}\t{TWO.upper()}\t1", f"got '{TWO.upper()}', expected a document id"),
    ],
)
def test_a_broken_label_is_named_by_its_line(tmp_path, line, message):
    path = tmp_path / "labels.tsv"
    path.write_text(f"# comment\n{ONE}\t{TWO}\t1\n\n{line}\n")
    with pytest.raises(InputError, match=rf"labels\.tsv:4: --labels: {message}"):
        read_label_rows(str(path))


def drawn_rows(seed, count=60):
    draw = np.random.default_rng(seed)
    rows = np.zeros(count, CANDIDATE)
    rows["anchor"], rows["other"] = draw.integers(1, 5, (2, count))
    rows["gap"] = rows["other"].astype(int) - rows["anchor"].astype(int)
    rows["similarity"] = draw.random((count, 3))
    rows["similarity"][draw.random((count, 3)) < 0.5] = NAN
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_a_pair_has_its_highest_similarity_in_each_space(seed):
    rows = drawn_rows(seed)
    expected = collections.defaultdict(lambda: [NAN] * 3)
    for anchor, other, gap, similarities in rows.tolist():
        expected[anchor, other, gap] = np.fmax(expected[anchor, other, gap], similarities)
    merged = rules.merge_spaces(rows)
    assert [tuple(row)[:3] for row in merged.tolist()] == sorted(expected)
    np.testing.assert_array_equal(merged["similarity"], np.float32([expected[key] for key in sorted(expected)]))
    some = ~np.isnan(merged["similarity"]).all(axis=1)
    np.testing.assert_array_equal(rules.strength(merged[some]), np.nanmax(merged["similarity"][some], axis=1))


def test_neighbors_are_read_in_parts_without_gaps(tmp_path, monkeypatch):
    spaces = ("entity", "image", "text")
    rows = [Neighbor(f"{n % 3 + 1:016x}", f"{n + 9:016x}", spaces[n % 3], n / 16, (-1) ** n * n) for n in range(11)]
    parquet.write_shard(str(tmp_path / "part.parquet"), rows, Neighbor)
    monkeypatch.setattr(rules, "_ROWS_AT_ONCE", 4)
    found = rules.read_candidates(str(tmp_path / "part.parquet"))
    expected = sorted((n % 3 + 1, n + 9, (-1) ** n * n, n % 3, n / 16) for n in range(11))
    assert [tuple(row)[:3] for row in found.tolist()] == [row[:3] for row in expected]
    for row, (*_, space, similarity) in zip(found["similarity"], expected, strict=True):
        assert row[space] == similarity
        assert np.isnan(np.delete(row, space)).all()
    parquet.write_shard(str(tmp_path / "empty.parquet"), [], Neighbor)
    found = rules.read_candidates(str(tmp_path / "empty.parquet"))
    assert (found.dtype, len(found)) == (CANDIDATE, 0)


def test_known_pairs_are_those_wanted_whose_documents_are_both_in_the_table(tmp_path):
    numbers = [(1, 3), (3, 1), (1, 4), (4, 1), (5, 3), (3, 5)]
    rows = [Neighbor(f"{one:016x}", f"{two:016x}", "text", 0.5, 0) for one, two in sorted(numbers)]
    for part in range(2):
        parquet.write_shard(str(tmp_path / f"{part}.parquet"), rows[part::2], Neighbor)
    table = make_table([1, 3, 5])  # not 4
    wanted = {(1, 3), (3, 1), (1, 4), (4, 1), (5, 3), (1, 5)}  # not (3, 5), and no neighbor (1, 5)
    found = known_pairs([str(tmp_path / f"{part}.parquet") for part in range(2)], wanted, table)
    assert sorted(found[["anchor", "other"]].tolist()) == [(1, 3), (3, 1), (5, 3)]
    assert len(known_pairs([], wanted, table)) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_the_rank_within_keys_is_the_number_of_earlier_rows_with_them(rows):
    first, second = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    assert rank_within(first, second).tolist() == [rows[:place].count(row) for place, row in enumerate(rows)]
    alone = first.tolist()
    assert rank_within(first).tolist() == [alone[:place].count(one) for place, one in enumerate(alone)]


def test_the_paper_s_rule_and_its_bounds():
    options = TripletsOptions()
    assert (options.max_positive_days, options.min_negative_days) == (1, 365)
    assert TripletsOptions(min_negative_days=2)
    for days in ({"min_negative_days": 1}, {"max_positive_days": 365}):
        with pytest.raises(InputError, match="--min_negative_days: got .*, expected more than --max_positive_days"):
            TripletsOptions(**days)


def test_evidence_by_hand():
    options = TripletsOptions(min_entity=0.75, min_image=0.875, min_text=0.875)
    cases = {  # similarities: the evidence
        (0.875, NAN, NAN): 0.125,
        (0.75, NAN, NAN): 0,  # on the threshold
        (0.5, NAN, NAN): NAN,  # near it alone
        (0.5, NAN, 0.75): -0.125,  # near two thresholds
        (0.5, 0.625, NAN): -0.25,  # on the margin of both
        (0.5, 0.5, NAN): NAN,
    }
    np.testing.assert_allclose(rules.evidence(np.array(list(cases)), options), list(cases.values()), atol=1e-12)


def plain_positives(anchor, candidates, publishers, options):
    near = []
    for other, gap, similarities in candidates:
        margins = np.subtract(similarities, (options.min_entity, options.min_image, options.min_text))
        margins = [*sorted(margins[~np.isnan(margins)], reverse=True), -math.inf, -math.inf]
        enough = margins[0] >= 0 or margins[1] >= -rules.JOINT_MARGIN
        if abs(gap) <= 1 and enough and not (options.cross_publisher and publishers[other] == publishers[anchor]):
            near.append((-margins[0], other))
    positives = []
    for _, other in sorted(near):
        if sum(publishers[chosen] == publishers[other] for chosen in positives) < options.max_positives_per_publisher:
            positives.append(other)
    return positives[: options.max_positives]


def plain_mine(anchor, candidates, publishers, scores, options):
    """The rules for one anchor at a time: outcome, (positive, negative) pairs, and the number of dropped negatives."""
    if not candidates:
        return "no_neighbor", [], 0
    positives = plain_positives(anchor, candidates, publishers, options)
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


@pytest.mark.parametrize("seed", range(12))
def test_mining_equals_the_rules_applied_one_by_one(seed):
    draw = np.random.default_rng(seed)
    ids = np.unique(draw.integers(1, 2**63, 30).astype(np.uint64))
    publishers, stats = draw.integers(0, 4, len(ids)), draw.random((len(ids), 3), np.float32)
    table = make_table(ids, stats, publishers)
    pairs = np.unique(draw.choice(ids, (400, 2)), axis=0)
    candidates = np.zeros(len(pairs), CANDIDATE)
    candidates["anchor"], candidates["other"] = pairs.T
    candidates["gap"] = draw.choice([-400, -1, 0, 1, 30, 365], len(pairs))
    candidates["similarity"] = draw.random((len(pairs), 3)).astype(np.float32)
    candidates["similarity"][draw.random((len(pairs), 3)) < 0.3] = math.nan
    candidates["similarity"][np.isnan(candidates["similarity"]).all(1)] = 0.5
    of_pairs = default_model().scores(evergreen.pair_features(table, candidates)).tolist()
    scores = dict(zip(candidates[["anchor", "other"]].tolist(), of_pairs, strict=True))
    options = TripletsOptions(
        negatives_per_positive=1 + seed % 3,
        max_positives=1 + seed % 4,
        max_positives_per_publisher=1,
        cross_publisher=seed % 2 == 0,
        max_evergreen_score=float(np.median(list(scores.values()))) + 1e-4,
    )
    triplets, outcomes = rules.mine(ids, candidates, table, default_model(), options)
    publishers = dict(zip(ids.tolist(), publishers.tolist(), strict=True))
    reasons = collections.Counter()
    for anchor, outcome in zip(ids.tolist(), outcomes, strict=True):
        own = candidates[candidates["anchor"] == anchor]
        listed = [(other, gap, similarity) for _, other, gap, similarity in own.tolist()]
        reason, expected, dropped = plain_mine(anchor, listed, publishers, scores, options)
        assert (*rules.REASONS, "mined")[outcome["reason"]] == reason
        assert (outcome["neighbors"], outcome["evergreen"]) == (len(listed), dropped)
        found = triplets[triplets["anchor"] == anchor]
        assert [tuple(one) for one in found[["positive", "negative"]].tolist()] == expected
        for one in found:
            assert one["score"] == pytest.approx(scores[anchor, int(one["negative"])], rel=1e-5)
        reasons[reason] += 1
    assert reasons["mined"] > 5


def test_stories_link_all_that_is_near_in_time_and_similar_whoever_published_it():
    rows = [
        (1, 2, 1, (0.9, np.nan, np.nan)),
        (1, 3, -1, (np.nan, np.nan, 0.9)),
        (1, 4, 2, (0.9, np.nan, 0.9)),  # another day
        (1, 5, 0, (0.4, np.nan, np.nan)),  # not similar
        (1, 6, 0, (0.55, np.nan, 0.7)),  # similar in two spaces
    ]
    assert rules.same_event_pairs(np.array(rows, CANDIDATE), TripletsOptions()).tolist() == [[1, 2], [1, 3], [1, 6]]


IDS = st.integers(1, 2**64 - 1)


@given(
    st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)), max_size=20),
    st.lists(IDS, min_size=15, max_size=15, unique=True),
)
def test_a_story_is_what_pairs_connect_and_has_its_smallest_id(links, ids):
    pairs = np.array([(ids[one - 1], ids[other - 1]) for one, other in links], np.uint64).reshape(-1, 2)
    documents, stories = stories_of(pairs)
    expected = {one: one for pair in pairs.tolist() for one in pair}
    for _ in expected:  # as many rounds as the longest chain needs
        for one, other in pairs.tolist():
            expected[one] = expected[other] = min(expected[one], expected[other])
    assert dict(zip(documents.tolist(), stories.tolist(), strict=True)) == expected
    assert documents.tolist() == sorted(expected)


@given(st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)).filter(lambda pair: pair[0] != pair[1]), max_size=30))
def test_links_of_parts_make_the_stories_of_all_pairs(found):
    pairs = np.array(found, np.uint64).reshape(-1, 2)
    parts = [links_of(pairs[number::3]) for number in range(3)]
    for one, other in zip(stories_of(np.concatenate(parts)), stories_of(pairs), strict=True):
        np.testing.assert_array_equal(one, other)
    documents, stories = stories_of(pairs[::3])
    assert len(parts[0]) == len(documents) - len(set(stories.tolist()))


def test_a_document_without_a_story_has_none(tmp_path):
    path = str(tmp_path / "documents" / "stories.npz")
    pairs = np.array([[5, 2**63], [2**63, 7], [11, 12]], np.uint64)
    write_stories(path, *stories_of(pairs))
    found = read_stories(path)
    assert [found.of(doc_id) for doc_id in (5, 7, 2**63, 11, 12, 1, 6, 2**64 - 1)] == [5, 5, 5, 11, 11, 0, 0, 0]
    assert read_stories(str(tmp_path / "none")).of(5) == 0


def test_a_crowded_event_keeps_so_many_anchors():
    hub, others, separate = 1, list(range(10, 30)), [(100, 101), (102, 101)]
    pairs = np.array([(hub, other) for other in others] + [(other, hub) for other in others] + separate, np.uint64)
    documents, leaders = events_of(pairs)
    expected = dict.fromkeys([hub, *others], hub) | dict.fromkeys([100, 101, 102], 101)
    assert dict(zip(documents.tolist(), leaders.tolist(), strict=True)) == expected
    anchors = np.unique(pairs[:, 0])
    dropped = crowded_out(anchors, pairs, 5)
    assert len(dropped) == 21 - 5
    assert set(dropped.tolist()) <= {hub, *others}
    first = sorted([hub, *others], key=lambda one: hashlib.blake2b(f"{one:016x}".encode(), digest_size=8).digest())
    assert dropped.tolist() == sorted(first[5:])
    assert len(crowded_out(anchors, pairs, 21)) == 0
    assert len(crowded_out(anchors[:0], pairs[:0], 5)) == 0
