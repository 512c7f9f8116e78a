"""How near documents are to others some weeks apart."""

import math

import numpy as np
import pytest
from newsembed.beam_pipelines.entities.cooccurrence import unit_rows
from newsembed.beam_pipelines.lookup import Lookup, write_part
from newsembed.beam_pipelines.neighbors import contrast
from newsembed.beam_pipelines.neighbors.rows import Rows
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.formats.records import Space

NAN = math.nan


def rows_of(days, draw, width=6):
    ids = np.sort(draw.choice(2**40, len(days), replace=False)).astype(np.uint64)
    vectors = {space: unit_rows(draw.normal(size=(len(days), width)).astype(np.float32)) for space in Space}
    vectors[Space.LEARNED] = np.zeros((len(days), 0), np.float32)
    vectors[Space.IMAGE][::3] = 0
    return Rows(ids, np.array(days, np.int32), vectors)


def by_hand(rows, number, space, share=1 / 300):
    """The mean of the highest cosines among documents with a vector, 8 to 28 days before or after."""
    own = rows.vectors[space][number]
    gaps = np.abs(rows.days - rows.days[number])
    others = [row for row in range(len(rows)) if 8 <= gaps[row] <= 28 and rows.vectors[space][row].any()]
    if not own.any() or len(others) < 300:
        return NAN
    cosines = sorted((float(own @ rows.vectors[space][row]) for row in others), reverse=True)
    return float(np.mean(cosines[: math.ceil(share * len(others))]))


@pytest.mark.parametrize("parts", [1, 3])
def test_a_contrast_is_the_mean_cosine_with_the_nearest_share_some_weeks_apart(parts):
    draw = np.random.default_rng(1)
    rows = rows_of(draw.integers(100, 160, 2_400), draw)
    found = np.concatenate([part for one in range(parts) for part in contrast.contrasts(rows, 110, 159, one, parts)])
    found = np.sort(found, order="id")
    asked = np.flatnonzero((rows.days >= 110) & (rows.days <= 159))
    np.testing.assert_array_equal(found["id"], rows.ids[asked])
    for place in range(0, len(asked), 40):
        expected = [by_hand(rows, asked[place], space) if space != Space.LEARNED else NAN for space in Space]
        np.testing.assert_allclose(found["contrast"][place], expected, atol=1e-4)


def test_with_few_documents_some_weeks_apart_nothing_is_known():
    draw = np.random.default_rng(2)
    for others, known in ((299, False), (300, True)):
        rows = rows_of([0] + [8 + number % 21 for number in range(others)], draw)
        rows.vectors[Space.TEXT][:] = np.eye(6, dtype=np.float32)[0]
        (found,) = [part for part in contrast.contrasts(rows, 0, 0, 0, 1) if len(part)]
        assert (found["contrast"][0, list(Space).index(Space.TEXT)] == 1) == known


def test_a_day_is_compared_with_a_sample_of_the_weeks(monkeypatch):
    rows = rows_of([0] * 4 + [10] * 900, np.random.default_rng(3))
    monkeypatch.setattr(contrast, "_MOST_DOCUMENTS", 600)
    few = rows.take(np.sort(np.append(np.flatnonzero(rows.days == 0), np.flatnonzero(rows.days == 10)[:600])))
    (found,), (expected,) = (list(contrast.contrasts(one, 0, 0, 0, 1)) for one in (rows, few))
    np.testing.assert_array_equal(found["contrast"], expected["contrast"])
    assert not np.isnan(found["contrast"][:, 2]).any()


def test_the_contrast_of_a_pair_is_the_mean_of_those_that_are_known():
    left, right = (np.array([values], np.float32) for values in ([0.2, NAN, 0.3, NAN], [0.4, 0.5, NAN, NAN]))
    np.testing.assert_allclose(contrast.of_pairs(left, right), [[0.3, 0.5, 0.3, NAN]], atol=1e-7)


def test_contrasts_are_looked_up_by_id(tmp_path):
    known = np.zeros(2, contrast.CONTRAST)
    known["id"], known["contrast"] = [3, 9 << 32], [[0.1] * 4, [0.2] * 4]
    for number in range(2):
        with Shard(Phase(str(tmp_path), "contrasts", 2), number) as shard:
            write_part(shard, contrast.CONTRASTS, known[number : number + 1])
    found = contrast.contrasts_of(Lookup(f"{tmp_path}/contrasts"), np.array([9 << 32, 2, 3, 9], np.uint64))
    np.testing.assert_allclose(found[:, 0], [0.2, NAN, 0.1, NAN], atol=1e-7)
    assert np.isnan(contrast.contrasts_of(Lookup(f"{tmp_path}/nothing"), np.array([9], np.uint64))).all()
