"""The rule of positives that dates calibrate: tails, rarities, the bar, and the job that uses them."""

import datetime
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines import neighbors as neighbors_job
from newsembed.beam_pipelines import triplets as triplets_job
from newsembed.beam_pipelines.arrays import COSINE_BINS
from newsembed.beam_pipelines.neighbors import NeighborsOptions
from newsembed.beam_pipelines.triplets import rarity
from newsembed.beam_pipelines.triplets.mine import PositiveRule, TripletsOptions
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Space, Triplet, Vector, make_doc_id

ONE = ["--direct_num_workers=1"]
DAY = datetime.date(2020, 1, 1)
NAN = math.nan


def share_reached(known, similarity):
    """By definition: the share of pairs in the same bin of 0.001 or above."""
    edge = math.floor((similarity + 1) / 2 * COSINE_BINS)
    return sum(math.floor((one + 1) / 2 * COSINE_BINS) >= edge for one in known) / len(known)


def test_the_rarity_of_a_pair_is_the_log_share_of_far_pairs_that_are_as_similar():
    draw = np.random.default_rng(0)
    far = draw.uniform(-0.9, 0.3, (5_000, 3)).astype(np.float32)
    far[draw.random(5_000) < 0.4, 1] = NAN
    far[50:, 2] = NAN  # too few to say anything
    tails = rarity.tails_of(far)
    assert tails.shape == (3, COSINE_BINS)
    pairs = np.array([(0.1, NAN, NAN), (0.1, 0.2, 0.2), (NAN, -0.5, 0.9), (NAN, NAN, NAN)], np.float32)
    known = [[float(one) for one in column if not math.isnan(one)] for column in far.T[:2]]
    expected = [
        -sum(math.log(share_reached(known[space], pair[space])) for space in range(2) if not math.isnan(pair[space]))
        for pair in pairs.tolist()
    ]
    found = rarity.rarities(pairs, np.full_like(pairs, NAN), tails)
    np.testing.assert_allclose(found, expected, atol=0.01)  # half a pair is added to each count


def test_beyond_the_far_pairs_the_tail_is_exponential():
    draw = np.random.default_rng(1)
    scale = 0.02
    far = np.minimum(draw.exponential(scale, (200_000, 1)), 0.99).astype(np.float32)
    tails = rarity.tails_of(far)
    pairs = np.array([[0.1], [0.3], [0.5]], np.float32)
    values = rarity.rarities(pairs, np.full_like(pairs, NAN), tails)
    np.testing.assert_allclose(values, np.array([0.1, 0.3, 0.5]) / scale, rtol=0.12)
    assert np.all(np.diff(tails[0]) >= 0)
    assert np.all(tails >= 0)


def test_a_similarity_that_many_far_pairs_reach_counts_little():
    far = np.full((1_000, 1), -0.2, np.float32)
    far[:100] = 1.0  # as entity vectors of one frequent name
    found = rarity.rarities(np.array([[1.0]], np.float32), np.array([[NAN]], np.float32), rarity.tails_of(far))
    assert found[0] == pytest.approx(math.log(10), abs=0.01)


def test_what_a_subject_of_many_weeks_adds_to_a_rarity_is_halved():
    scale = 0.05
    far = np.minimum(np.random.default_rng(2).exponential(scale, (200_000, 1)), 0.99).astype(np.float32)
    tails = rarity.tails_of(far)
    average = scale * (math.log(300) + 1)  # the mean of the most similar 1 / 300 of an exponential tail

    def found(contrast):
        return rarity.rarities(np.array([[0.6]], np.float32), np.array([[contrast]], np.float32), tails)[0]

    assert found(NAN) == pytest.approx(0.6 / scale, rel=0.05)
    assert found(average) == pytest.approx(found(NAN), abs=0.2)
    assert found(average + 0.1) == pytest.approx(found(NAN) - 0.5 * 0.1 / scale, abs=0.3)
    assert found(average - 0.1) == pytest.approx(found(NAN) + 0.5 * 0.1 / scale, abs=0.3)
    least = rarity.rarities(np.array([[0.0]], np.float32), np.array([[0.9]], np.float32), tails)
    assert least[0] == 0, "none is below 0"


@given(st.lists(st.floats(0, 200), max_size=30))
def test_rarities_are_counted_in_bins(values):
    counts = rarity.rarity_histogram(np.array(values))
    assert counts.sum() == len(values)
    assert counts[rarity.BINS - 1] == sum(value >= 99.95 for value in values)
    for value in values:
        assert counts[min(int(value / 0.05), rarity.BINS - 1)] > 0


def counted(**at):
    counts = np.zeros(rarity.BINS, np.int64)
    for name, count in at.items():
        counts[round(float(name.removeprefix("r").replace("_", ".")) / 0.05)] = count
    return counts


def test_the_bar_is_the_least_rarity_with_the_precision():
    near, far = counted(r0=900, r5=60, r8=240), counted(r0=9_000, r5=800, r8=200)
    # Of 1,000 possible pairs, 20 are expected at 8 or above by their subject, and 100 at 5 or above.
    found = rarity.calibrate(near, far, 1_000, 0.9)
    assert (found.bar, found.pairs) == (5.05, 240)
    assert found.precision == pytest.approx(1 - 20 / 240)
    assert found.curve[100] == pytest.approx(1 - 100 / 300)
    lower = rarity.calibrate(near, far, 1_000, 0.6)
    assert (lower.bar, lower.pairs) == (0.05, 300)
    assert lower.precision == pytest.approx(1 - 100 / 300)


def test_where_nothing_has_the_precision_the_bar_is_near_the_best():
    near, far = counted(r0=900, r5=60, r8=240), counted(r0=9_000, r5=800, r8=200)
    found = rarity.calibrate(near, far, 1_000, 0.99)
    assert (found.bar, found.pairs) == (5.05, 240)


def test_beyond_the_last_hundred_far_pairs_the_share_falls_exponentially():
    near = counted(r0=900, r8=100, r20=100)
    far = counted(r0=8_900, r8=1_000, r10=100)
    found = rarity.calibrate(near, far, 1_000, 0.5)
    start, scale = 200, 1.0  # all of the last hundred are in one bin, and no scale is below a bin
    assert found.curve[400] == pytest.approx(1 - 1_000 * 0.01 * math.exp(-(400 - start) / scale) / 100)
    assert math.isnan(found.curve[401])


@pytest.mark.parametrize(
    ("near", "far", "reason"),
    [
        (counted(r8=500), counted(r0=999), "only 999 pairs of articles are 8 to 28 days apart"),
        (counted(r0=100, r8=40), counted(r0=1_000), "hardly more similar"),  # too few near pairs to estimate
        (counted(r8=100), counted(r0=500, r8=500), "hardly more similar"),
    ],
)
def test_what_cannot_be_calibrated_is_said(near, far, reason):
    assert reason in rarity.calibrate(near, far, 1_000, 0.9)


def test_options_of_the_thresholds_are_refused():
    with pytest.raises(InputError, match="--min_text: is only for --rule=thresholds"):
        TripletsOptions(rule=PositiveRule.RARITY, min_text=0.8)
    with pytest.raises(InputError, match="--positive_precision: got 1, expected a number between 0 and 1"):
        TripletsOptions(positive_precision=1)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Vectors of 60 days: an event of two publishers each, and articles of all publishers about one frequent name."""
    folder = tmp_path_factory.mktemp("archive")
    draw = np.random.default_rng(4)
    articles, vectors = [], {Space.ENTITY: [], Space.TEXT: []}
    events = {}
    for day in range(-500, -470):
        add(articles, vectors, f"old {day}", "p1", day, draw.normal(size=16), None)
    for day in range(60):
        event = draw.normal(size=16)
        subject = np.eye(4)[0]  # one frequent name, in the entity vectors of half of all articles
        for number, publisher in enumerate(("p1", "p2")):
            name = f"event {day} {number}"
            add(articles, vectors, name, publisher, day, event + 0.2 * draw.normal(size=16), draw.normal(size=4))
            events[make_doc_id(name)] = day
        for number, publisher in enumerate(("p3", "p4")):
            add(articles, vectors, f"other {day} {number}", publisher, day, draw.normal(size=16), subject)
    for shard in range(2):
        path = folder / f"clean/articles/part-{shard:05d}-of-00002.parquet"
        parquet.write_shard(str(path), articles[shard::2], Article)
    (folder / "clean/manifest.json").write_text('{"digest": "x"}')
    write_vectors(folder / "vectors", vectors, 2)
    find_neighbors(folder / "vectors", folder / "near")
    return folder, events, vectors


def write_vectors(folder, vectors, shards):
    for shard in range(shards):
        place = f"part-{shard:05d}-of-{shards:05d}.parquet"
        for space, rows in (vectors | {Space.IMAGE: []}).items():
            parquet.write_shard(str(folder / space.value / place), rows[shard::shards], Vector)
    (folder / "manifest.json").write_text(f'{{"digest": "{shards}"}}')


def find_neighbors(vectors, output):
    options = NeighborsOptions(positives=5, negatives=5, rarity=True)
    jobs.execute(neighbors_job.JOB, {"vectors": [str(vectors)]}, str(output), options, ONE)
    (path,) = (output / "far_pairs").glob("*.npy")
    parts = [np.load(path) for path in sorted((output / "contrasts").glob("*.npy"))]
    return np.load(path), np.sort(np.concatenate(parts), order="id")


def add(articles, vectors, name, publisher, day, text, entity):
    doc_id, date = make_doc_id(name), DAY + datetime.timedelta(days=day)
    words = f"Words of {name}. " * 20
    articles.append(Article(doc_id, name, publisher, name, words, ("A B",), date, language="en"))
    for space, values in ((Space.TEXT, text), (Space.ENTITY, entity)):
        if values is not None:
            vectors[space].append(Vector(doc_id, space.value, date, publisher, "en", tuple(map(float, values))))


def run(archive, tmp_path, **options):
    folder, events, _ = archive
    inputs = {"articles": [str(folder / "clean")], "neighbors": [str(folder / "near")]}
    options = TripletsOptions(max_evergreen_score=1.0, **options)
    counts = jobs.execute(triplets_job.JOB, inputs, str(tmp_path / "out"), options, ONE).manifest["counts"]
    triplets = list(parquet.read_stream(f"{tmp_path}/out/triplets", Triplet))
    right = [events.get(one.anchor) == events.get(one.positive) is not None for one in triplets]
    return counts, triplets, right


def test_a_frequent_name_is_a_positive_by_thresholds_and_not_by_rarity(archive, tmp_path):
    counts, triplets, right = run(archive, tmp_path / "thresholds")
    assert 0.1 < np.mean(right) < 0.5  # most pairs share the frequent name only
    counts, triplets, right = run(archive, tmp_path / "rarity", rule=PositiveRule.RARITY, positive_precision=0.9)
    assert len(triplets) > 100
    assert np.mean(right) > 0.9
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
    written = json.loads((tmp_path / "rarity/out/positives.json").read_text())
    assert written["rule"] == "rarity"
    assert written["precision"] >= 0.9
    assert written["pairs"] >= len({(one.anchor, one.positive) for one in triplets})
    assert not (tmp_path / "rarity/out/learned.json").exists()


def test_the_bar_and_the_positives_follow_the_contrasts(archive, tmp_path, monkeypatch):
    """With them the rarity of every near pair and of every pair some weeks apart is another one."""
    folder, events, vectors = archive
    monkeypatch.setattr("newsembed.beam_pipelines.neighbors.contrast._LEAST_DOCUMENTS", 50)
    (tmp_path / "clean").symlink_to(folder / "clean")
    far, contrasts = find_neighbors(folder / "vectors", tmp_path / "near")
    assert not np.isnan(contrasts["contrast"][:, 2]).all()
    known = dict(zip(contrasts["id"].tolist(), contrasts["contrast"][:, 2].tolist(), strict=True))
    means = {round((known[one] + known[other]) / 2, 4) for one in known for other in known}
    assert {round(float(one), 4) for one in far[:50, 5] if not math.isnan(one)} <= means
    found = {}
    for name, moved in (("without", (folder, events, vectors)), ("with", (tmp_path, events, vectors))):
        _, triplets, right = run(moved, tmp_path / name, rule=PositiveRule.RARITY, positive_precision=0.9)
        found[name] = json.loads((tmp_path / name / "out/positives.json").read_text())["bar"]
        assert np.mean(right) > 0.85
        assert len(triplets) > 100
    assert found["with"] != found["without"]


def test_a_small_archive_has_thresholds_and_says_so(archive, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(rarity, "_LEAST_FAR", 10**6)
    counts, triplets, _ = run(archive, tmp_path / "small", rule=PositiveRule.RARITY)
    written = json.loads((tmp_path / "small/out/positives.json").read_text())
    assert written["rule"] == "thresholds"
    assert "pairs of articles are 8 to 28 days apart" in written["reason"]
    assert "positives are chosen by thresholds, not by rarity: only" in caplog.text
    _, expected, _ = run(archive, tmp_path / "thresholds")
    assert [(one.anchor, one.positive, one.negative) for one in triplets] == [
        (one.anchor, one.positive, one.negative) for one in expected
    ]


def far_pairs_by_hand(vectors, chosen):
    """The cosines of chosen documents of two publishers, 8 to 28 days apart, in the order of days and ids."""
    spaces = [{row.doc_id: row for row in vectors[space]} for space in (Space.ENTITY, Space.TEXT)]
    documents = sorted(
        (row.byline_date, row.doc_id, row.publisher) for row in spaces[1].values() if row.doc_id in chosen
    )
    found = []
    for date, one, publisher in documents:
        for later, other, others in documents:
            if 8 <= (later - date).days <= 28:
                pair = [NAN, NAN, NAN]
                for column, space in ((0, spaces[0]), (2, spaces[1])):
                    if publisher != others and one in space and other in space:
                        left, right = (np.array(space[name].values) for name in (one, other))
                        pair[column] = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
                found.append(pair)
    return np.array(found)


@pytest.mark.parametrize("most", [20_000, 100])
def test_far_pairs_are_those_of_a_sample_that_does_not_depend_on_the_shards(archive, tmp_path, monkeypatch, most):
    _, _, vectors = archive
    seen = []
    monkeypatch.setattr("newsembed.beam_pipelines.neighbors.background._MOST_DOCUMENTS", most)
    ids = [row.doc_id for row in vectors[Space.TEXT]]
    chosen = {one for one in ids if int(one, 16) < 2**64 * most / len(ids)}
    expected = far_pairs_by_hand(vectors, chosen)
    assert len(expected) > 10
    assert (len(chosen) == len(ids)) == (most > len(ids))
    for shards in (1, 3):
        write_vectors(tmp_path / f"vectors{shards}", vectors, shards)
        found, contrasts = find_neighbors(tmp_path / f"vectors{shards}", tmp_path / f"near{shards}")
        np.testing.assert_allclose(found[:, :3], expected, atol=1e-5)
        assert found.shape[1] == 6
        assert contrasts["id"].tolist() == sorted(int(one, 16) for one in ids)
        seen.append(contrasts["contrast"])
    np.testing.assert_array_equal(*seen)


@pytest.mark.parametrize("there", [(), ("far_pairs",), ("contrasts",)])
def test_neighbors_without_what_the_rule_needs_are_named(archive, tmp_path, there):
    folder, _, _ = archive
    (tmp_path / "near").mkdir()
    for stream in ("neighbors", *there):
        (tmp_path / "near" / stream).symlink_to(folder / "near" / stream)
    (tmp_path / "near/manifest.json").write_text('{"digest": "x"}')
    inputs = {"articles": [str(folder / "clean")], "neighbors": [str(tmp_path / "near")]}
    options = TripletsOptions(rule=PositiveRule.RARITY)
    with pytest.raises(InputError, match="lacks what --rule=rarity needs") as raised:
        jobs.execute(triplets_job.JOB, inputs, str(tmp_path / "out"), options, ONE)
    assert "newsembed neighbors --rarity" in raised.value.remedy


def test_only_with_rarity_are_articles_some_weeks_apart_compared(archive, tmp_path):
    folder, _, _ = archive
    options = NeighborsOptions(positives=5, negatives=5)
    outcome = jobs.execute(
        neighbors_job.JOB, {"vectors": [str(folder / "vectors")]}, str(tmp_path / "out"), options, ONE
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["neighbors"]
    assert set(outcome.manifest["phases"]) == {"partition", "search", "merge"}
    for path in sorted((folder / "near/neighbors").glob("*.parquet")):
        assert (tmp_path / "out/neighbors" / path.name).read_bytes() == path.read_bytes()
