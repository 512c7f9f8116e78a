"""triplets: the evergreen filter, labels, merged neighbors and options, by plain references and without a job."""

import collections
import dataclasses
import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.triplets import candidates as candidates_module
from newsembed.beam_pipelines.triplets.candidates import (
    CANDIDATE,
    known_pairs,
    merge_spaces,
    rank_within,
    read_candidates,
    strength,
)
from newsembed.beam_pipelines.triplets.evergreen import (
    FEATURES,
    EvergreenModel,
    LabelRow,
    fit_model,
    pair_features,
    read_label_rows,
    read_labels,
)
from newsembed.beam_pipelines.triplets.mine import PositiveRule, TripletsOptions, order_key
from newsembed.beam_pipelines.triplets.table import DocumentTable
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Neighbor, Triplet

NAN = math.nan
MODEL = EvergreenModel((0.5, -1.0, 2.0, 0.25, -0.5, 3.0, -2.0, 1.0), -0.75, "by hand")


def test_scores_are_those_of_the_logistic_function():
    features = np.random.default_rng(0).normal(size=(20, len(FEATURES)))
    expected = [
        1 / (1 + math.exp(0.75 - sum(w * x for w, x in zip(MODEL.weights, row, strict=True)))) for row in features
    ]
    np.testing.assert_allclose(MODEL.scores(features), expected, rtol=1e-12)
    certain = dataclasses.replace(MODEL, bias=1e6).scores(features), dataclasses.replace(MODEL, bias=-1e6)
    assert (certain[0] > 1 - 1e-15).all()
    assert (certain[1].scores(features) >= 0).all()
    assert (certain[1].scores(features) < 1e-15).all()


def test_a_model_is_read_as_written():
    value = MODEL.to_json()
    assert value == {
        "weights": dict(zip(FEATURES, MODEL.weights, strict=True)),
        "bias": -0.75,
        "provenance": "by hand",
    }
    shuffled = {**value, "weights": dict(reversed(value["weights"].items()))}
    assert EvergreenModel.from_json(shuffled, "e.json") == MODEL
    for weights in ({}, value["weights"] | {"more": 1.0}):
        with pytest.raises(InputError, match=r"e\.json: weights: got weights of .* expected \['entity_similarity'"):
            EvergreenModel.from_json({**value, "weights": weights}, "e.json")


def test_the_features_of_a_pair_are_the_dates_of_both_and_the_similarities_without_the_learned_one():
    table = DocumentTable(
        {
            "ids": np.array([3, 5, 9], np.uint64),
            "numbers": np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]], np.float32),
            "codes": np.zeros((3, 2), np.int32),
            "languages": np.array(["en"]),
        }
    )
    pairs = np.array([(9, 3, 400, (0.9, NAN, 0.5, 0.7)), (3, 5, -400, (NAN, 0.8, NAN, NAN))], CANDIDATE)
    found = pair_features(table, pairs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(
        found, [[0.7, 0.1, 0.8, 0.2, 0.3, 0.9, 0, 0.5], [0.1, 0.4, 0.2, 0.5, 0.6, 0, 0.8, 0]], rtol=1e-6
    )


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


ONE, TWO = "0123456789abcdef", "fedcba9876543210"


def test_labels_are_read_with_their_notes_and_the_last_of_a_pair_counts(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text(f"# a comment\n\n{ONE}\t {TWO} \t1\tann\t2024 \r\n{TWO}\t{ONE}\t0\n{ONE}\t{TWO}\t0\n")
    assert read_label_rows(str(path)) == [
        LabelRow(ONE, TWO, 1, ("ann", "2024")),
        LabelRow(TWO, ONE, 0),
        LabelRow(ONE, TWO, 0),
    ]
    assert read_labels(str(path)) == {(ONE, TWO): 0, (TWO, ONE): 0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{ONE}\t{TWO}", "got .*, expected anchor, other and 0 or 1"),
        (f"{ONE}\t{TWO}\t2", "got .*, expected anchor, other and 0 or 1"),
        (f"{ONE}\t{TWO}\t", "got .*, expected anchor, other and 0 or 1"),
        (f"{ONE[1:]}\t{TWO}\t1", f"got '{ONE[1:]}', expected a document id of 16 hexadecimal digits"),
        (f"{ONE}\t{TWO.upper()}\t1", f"got '{TWO.upper()}', expected a document id"),
        (f"{ONE}\t{TWO}0\t1", f"got '{TWO}0', expected a document id"),
    ],
)
def test_a_broken_label_is_named_by_its_line(tmp_path, line, message):
    path = tmp_path / "labels.tsv"
    path.write_text(f"# comment\n{ONE}\t{TWO}\t1\n\n{line}\n")
    with pytest.raises(InputError, match=rf"labels\.tsv:4: --labels: {message}"):
        read_label_rows(str(path))


def test_a_byte_order_mark_before_the_labels_is_left_out(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text(f"\ufeff{ONE}\t{TWO}\t1\n", encoding="utf-8")
    assert read_labels(str(path)) == {(ONE, TWO): 1}


def test_labels_in_another_encoding_are_named(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_bytes(f"{ONE}\t{TWO}\t1\tna\xefve\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"labels\.tsv: --labels: not UTF-8"):
        read_label_rows(str(path))


def drawn_rows(seed, count=60):
    draw = np.random.default_rng(seed)
    rows = np.zeros(count, CANDIDATE)
    rows["anchor"], rows["other"] = draw.integers(1, 5, (2, count))
    rows["gap"] = rows["other"].astype(int) - rows["anchor"].astype(int)
    rows["similarity"] = draw.random((count, 4))
    rows["similarity"][draw.random((count, 4)) < 0.5] = NAN
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_a_pair_has_its_highest_similarity_in_each_space(seed):
    rows = drawn_rows(seed)
    expected = collections.defaultdict(lambda: [NAN] * 4)
    for anchor, other, gap, similarities in rows.tolist():
        known = expected[anchor, other, gap]
        expected[anchor, other, gap] = [
            two if math.isnan(one) else one if math.isnan(two) else max(one, two)
            for one, two in zip(known, similarities, strict=True)
        ]
    merged = merge_spaces(rows)
    assert [tuple(row)[:3] for row in merged.tolist()] == sorted(expected)
    np.testing.assert_array_equal(merged["similarity"], np.float32([expected[key] for key in sorted(expected)]))
    some = ~np.isnan(merged["similarity"]).all(axis=1)
    np.testing.assert_array_equal(strength(merged[some]), np.nanmax(merged["similarity"][some], axis=1))


def test_no_neighbors_are_no_candidates(tmp_path):
    parquet.write_shard(str(tmp_path / "part.parquet"), [], Neighbor)
    found = read_candidates(str(tmp_path / "part.parquet"))
    assert (found.dtype, len(found)) == (CANDIDATE, 0)
    assert len(rank_within(found["anchor"], found["other"])) == 0


def test_neighbors_are_read_in_parts_without_gaps(tmp_path, monkeypatch):
    spaces = ("entity", "image", "text", "learned")
    rows = [Neighbor(f"{n % 3 + 1:016x}", f"{n + 9:016x}", spaces[n % 4], n / 16, (-1) ** n * n) for n in range(11)]
    parquet.write_shard(str(tmp_path / "part.parquet"), rows, Neighbor)
    monkeypatch.setattr(candidates_module, "_ROWS_AT_ONCE", 4)
    found = read_candidates(str(tmp_path / "part.parquet"))
    expected = sorted((n % 3 + 1, n + 9, (-1) ** n * n, n % 4, n / 16) for n in range(11))
    assert [tuple(row)[:3] for row in found.tolist()] == [row[:3] for row in expected]
    for row, (*_, space, similarity) in zip(found["similarity"], expected, strict=True):
        assert row[space] == similarity
        assert np.isnan(np.delete(row, space)).all()


def test_known_pairs_are_those_wanted_whose_documents_are_both_in_the_table(tmp_path):
    numbers = [(1, 3), (3, 1), (1, 4), (4, 1), (5, 3), (3, 5)]
    rows = [Neighbor(f"{one:016x}", f"{two:016x}", "text", 0.5, 0) for one, two in sorted(numbers)]
    for part in range(2):
        parquet.write_shard(str(tmp_path / f"{part}.parquet"), rows[part::2], Neighbor)
    table = DocumentTable(
        {
            "ids": np.array([1, 3, 5], np.uint64),  # not 4
            "numbers": np.zeros((3, 3), np.float32),
            "codes": np.zeros((3, 2), np.int32),
            "languages": np.array(["en"]),
        }
    )
    wanted = {(1, 3), (3, 1), (1, 4), (4, 1), (5, 3), (1, 5)}  # not (3, 5), and no neighbor (1, 5)
    found = known_pairs([str(tmp_path / f"{part}.parquet") for part in range(2)], wanted, table)
    assert sorted(found[["anchor", "other"]].tolist()) == [(1, 3), (3, 1), (5, 3)]
    assert len(known_pairs([], wanted, table)) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_the_rank_within_keys_is_the_number_of_earlier_rows_with_them(rows):
    first, second = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    assert rank_within(first, second).tolist() == [rows[:place].count(row) for place, row in enumerate(rows)]
    assert rank_within(first).tolist() == [
        first[:place].tolist().count(one) for place, one in enumerate(first.tolist())
    ]


def test_triplets_are_shuffled_by_the_digest_of_their_ids():
    triplet = Triplet("a" * 16, "b" * 16, "c" * 16, (), (), 0, 400, 0.5, "en")
    text = "a" * 16 + "b" * 16 + "c" * 16
    assert order_key(triplet) == hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def test_the_defaults_are_the_paper_s_rule_and_our_limits():
    assert dataclasses.asdict(TripletsOptions()) == {
        "rule": "thresholds",
        "positive_precision": 0.95,
        "max_positive_days": 1,
        "min_negative_days": 365,
        "min_entity": 0.75,
        "min_image": 0.8,
        "min_text": 0.85,
        "min_learned": 0.0,
        "learned_precision": 0.95,
        "joint_margin": 0.25,
        "cross_publisher": True,
        "max_positives": 4,
        "max_positives_per_publisher": 2,
        "max_anchors_per_event": 50,
        "negatives_per_positive": 1,
        "max_evergreen_score": 0.5,
    }
    for field in dataclasses.fields(TripletsOptions):
        assert field.metadata["help"]


@pytest.mark.parametrize(
    "options",
    [
        {"min_learned": 1.0},
        {"min_learned": -1.0},
        {"min_negative_days": 2},
        {"max_positives": 1, "max_positives_per_publisher": 1, "max_anchors_per_event": 1},
        {"rule": PositiveRule.RARITY, "positive_precision": 0.5, "max_positives": 9},
        {"rule": PositiveRule.RARITY, "min_entity": 0.75},  # the default, though it is not used
    ],
)
def test_options_on_their_bounds_are_accepted(options):
    made = TripletsOptions(**options)
    assert {name: getattr(made, name) for name in options} == options


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"min_negative_days": 1}, "min_negative_days"),
        ({"max_positive_days": 365}, "min_negative_days"),
        ({"min_learned": 1.1}, "min_learned"),
        ({"min_learned": -1.1}, "min_learned"),
        ({"learned_precision": 0.0}, "learned_precision"),
        ({"positive_precision": 0.0}, "positive_precision"),
        ({"positive_precision": 1.0}, "positive_precision"),
        ({"max_positives": 0}, "max_positives"),
        ({"max_positives_per_publisher": 0}, "max_positives_per_publisher"),
        ({"max_anchors_per_event": 0}, "max_anchors_per_event"),
        ({"negatives_per_positive": 0}, "negatives_per_positive"),
        *[
            ({"rule": PositiveRule.RARITY, name: 0.5}, name)
            for name in ("min_entity", "min_image", "min_text", "min_learned", "learned_precision", "joint_margin")
        ],
    ],
)
def test_options_without_sense_are_named(options, field):
    with pytest.raises(InputError) as caught:
        TripletsOptions(**options)
    assert caught.value.field == f"--{field}"
