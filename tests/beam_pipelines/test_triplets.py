"""triplets: the date rule, merged spaces, caps, the evergreen filter, the same result under any sharding."""

import datetime
import math

import numpy as np
import pytest
from newsembed.beam_pipelines import jobs, parquet
from newsembed.beam_pipelines.records import Article, Neighbor, Triplet, make_doc_id
from newsembed.beam_pipelines.triplets import JOB
from newsembed.beam_pipelines.triplets.dates import FOLDS, count_by_month, date_stats, distributions, fit, fit_sharpness, log_ratios
from newsembed.beam_pipelines.triplets.evergreen import FEATURES, EvergreenModel, default_model, fit_model, read_labels
from newsembed.beam_pipelines.triplets.mine import TripletsOptions, evidence, merge_spaces
from newsembed.tasks.errors import InputError

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
        parquet.write_shard(str(tmp_path / name / "near/neighbors" / place), neighbors[index::shards], Neighbor)
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
    _, triplets = run(tmp_path, options=TripletsOptions(negatives_per_positive=2, cross_publisher=False, max_evergreen_score=1.0))
    assert {(one.positive, one.negative) for one in triplets if one.anchor == doc("a")} >= {(doc("b"), doc("d")), (doc("b"), doc("e"))}
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
    assert evidence((0.7, nan, nan), options) == pytest.approx(0.1)
    assert evidence((0.5, nan, nan), options) is None
    assert evidence((0.5, nan, 0.7), options) == pytest.approx(-0.1)
    assert evidence((0.5, nan, 0.5), options) is None
    assert evidence((nan, nan, nan), options) is None


def test_spaces_are_merged():
    (merged,) = merge_spaces([neighbor("a", "b", "text", 0.3, 1), neighbor("a", "b", "entity", 0.5, 1), neighbor("a", "b", "text", 0.4, 1)])
    assert merged.similarities[0] == 0.5
    assert merged.similarities[2] == 0.4
    assert merged.strength == 0.5


def test_the_byline_model_is_out_of_fold_and_finds_months():
    articles = [article(f"x{number}", "p", 31 * (number % 6)) for number in range(60)]
    first = min(one.byline_date.year * 12 + one.byline_date.month - 1 for one in articles)
    models = fit(count_by_month(articles, first, 7))
    assert models.shape[0] == FOLDS
    distribution = distributions(log_ratios(articles, models), fit_sharpness(articles, models, first))
    np.testing.assert_allclose(distribution.sum(1), 1, rtol=1e-5)
    own = [one.byline_date.year * 12 + one.byline_date.month - 1 - first for one in articles]
    assert np.mean(distribution.argmax(1) == own) > 0.9
    timeless = article("t", "p")
    (stats,) = date_stats(
        [Article(doc("t"), "u", "p", "something", "something happened that is called something " * 10, byline_date=timeless.byline_date)],
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
