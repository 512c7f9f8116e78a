"""The categories job: what is drawn, from every source of categories, and what is counted."""

import collections
import datetime
import hashlib

import numpy as np
import pytest
from newsembed.beam_pipelines.categories import JOB, CategoriesOptions, Drawn, Member, draw, read_table, write_table
from newsembed.beam_pipelines.triplets.table import STORIES, write_stories
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Rejection, TopicLabels, Triplet, make_doc_id
from newsembed.tests.example_inputs import dead_letters, manifest_of, split, write_stream

DAY = datetime.date(2019, 3, 1)
TOPICS = ("floods", "elections", "football")


def article(number, language="en", keywords=(), day=0, publisher=None, hubs=()):
    date = None if day is None else DAY + datetime.timedelta(days=day)
    publisher = f"p{number % 4}" if publisher is None else publisher
    site = make_doc_id(f"{language}{number}"), f"http://{publisher}/{number}", publisher
    lists = {"keywords": tuple(keywords), "hubs": tuple(hubs)}
    return Article(*site, f"title {number}", f"body {number} " * 5, byline_date=date, language=language, **lists)


def corpus():
    """24 English and 12 German articles of three topics, and three without a category that others share."""
    english = [article(number, keywords=[TOPICS[number % 3], "News"], day=number % 5) for number in range(24)]
    german = [article(number, "de", [TOPICS[number % 3].upper()], number % 5) for number in range(12)]
    alone = [article(90, keywords=["unique"]), article(91), article(92, keywords=["news"])]
    return [*english, *german, *alone]


def run(tmp_path, rows, name="out", shards=1, **options):
    given = {key: options.pop(key) for key in ("topics", "triplets") if key in options}
    inputs = {"articles": write_stream(tmp_path / f"clean-{name}", "articles", split(rows, shards), Article)}
    inputs |= {key: [path] for key, path in given.items()}
    output = str(tmp_path / name)
    manifest = manifest_of(JOB, inputs, output, CategoriesOptions(**options))
    return manifest, list(parquet.read_stream(f"{output}/triplets", Triplet))


def words_of(row):
    return {word.casefold() for word in row.keywords} - {"news"}


def test_positives_share_a_category_negatives_share_none_and_all_have_one_language(tmp_path):
    rows = corpus()
    manifest, triplets = run(tmp_path, rows, triplets_per_anchor=3)
    by_id = {row.doc_id: row for row in rows}
    for triplet in triplets:
        anchor, positive, negative = (by_id[one] for one in (triplet.anchor, triplet.positive, triplet.negative))
        assert triplet.anchor != triplet.positive
        assert words_of(anchor) & words_of(positive)
        assert not words_of(anchor) & words_of(negative)
        assert anchor.language == positive.language == negative.language == triplet.language
        assert triplet.positive_day_gap == (positive.byline_date - anchor.byline_date).days
        assert triplet.negative_day_gap == (negative.byline_date - anchor.byline_date).days
        assert np.isnan([*triplet.positive_similarity, *triplet.negative_similarity, triplet.evergreen_score]).all()
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"]) == (39, 36, {"no_category": 3})
    details = [letter.detail for letter in dead_letters(tmp_path / "out", "draw")]
    assert sum("it has no keywords; another --category: keywords, hub" in detail for detail in details) == 1
    assert manifest["categories"] == 6  # three topics in two languages; "news" is in 25 of 26 English articles
    tallies = {"categories": 6, "categories that are too rare": 1, "categories that are too wide": 1}
    assert manifest["phases"]["table"]["tallies"] == tallies
    assert manifest["phases"]["draw"]["tallies"]["triplets"] == len(triplets) > 80
    per_anchor = collections.Counter(triplet.anchor for triplet in triplets)
    assert max(per_anchor.values()) == 3
    assert len(set(triplets)) == len(triplets)


def test_the_same_triplets_whatever_the_shards_and_others_with_another_seed(tmp_path):
    rows = corpus()
    _, one = run(tmp_path, rows, "one")
    _, three = run(tmp_path, rows, "three", shards=3)
    _, other = run(tmp_path, rows, "other", seed=1)

    def keys(triplets):
        return sorted((triplet.anchor, triplet.positive, triplet.negative) for triplet in triplets)

    assert keys(one) == keys(three)
    assert keys(one) != keys(other)

    def digest(folder):
        return hashlib.sha256(next((tmp_path / folder / "triplets").glob("*.parquet")).read_bytes()).hexdigest()

    run(tmp_path, rows, "again")
    assert digest("one") == digest("again")


def test_days_and_publishers_limit_what_is_drawn(tmp_path):
    rows = [*corpus(), article(70, keywords=["floods"], day=None)]
    by_id = {row.doc_id: row for row in rows}
    options = {"max_negative_days": 0, "cross_publisher": True}
    manifest, triplets = run(tmp_path, rows, **options)
    assert triplets
    for triplet in triplets:
        assert triplet.negative_day_gap == 0
        assert by_id[triplet.anchor].publisher != by_id[triplet.positive].publisher
    rejected = manifest["counts"]["rejected"]
    assert rejected["no_negative"] >= 1  # the article without a day is near to none
    assert make_doc_id("en70") not in {triplet.anchor for triplet in triplets}
    assert manifest["counts"]["in"] == 40 == manifest["counts"]["out"] + sum(rejected.values())


def test_hubs_labels_and_stories_are_categories(tmp_path):
    rows = [article(number, hubs=[f"hub{number % 3}"]) for number in range(12)]
    number_of = {row.doc_id: number for number, row in enumerate(rows)}

    def check(triplets):
        assert len(triplets) == 12
        for one in triplets:
            anchor, positive, negative = (number_of[name] % 3 for name in (one.anchor, one.positive, one.negative))
            assert anchor == positive != negative

    check(run(tmp_path, rows, "hub", category="hub")[1])
    # Each document is negative for the next topic: only positive labels are categories.
    labels = [TopicLabels(row.doc_id, (n % 3, (n + 1) % 3), (1, 0)) for n, row in enumerate(rows)]
    (topics,) = write_stream(tmp_path / "topics", "labels", [labels], TopicLabels)
    check(run(tmp_path, rows, "of topics", category="topics", topics=topics)[1])
    mined = tmp_path / "triplets"
    ids = np.array([int(row.doc_id, 16) for row in rows], np.uint64)
    order = np.argsort(ids)
    stories = np.array([7 + number % 3 for number in range(12)], np.uint64)
    (mined / "documents").mkdir(parents=True)
    write_stories(f"{mined}/{STORIES}", ids[order], stories[order])
    files.write_json(f"{mined}/manifest.json", {"digest": "stories"})
    check(run(tmp_path, rows, "event", category="event", triplets=str(mined))[1])


def test_an_input_that_the_category_needs_is_asked_for(tmp_path):
    with pytest.raises(InputError, match="reads what `newsembed topics` wrote"):
        run(tmp_path, corpus(), category="topics")


def table_of(folder, *groups, least=2, share=1.0):
    """The table of documents given as (day, letters of categories), and the numbers of groups."""
    rows = [
        Member(f"{number:016x}", f"p{number % 2}", "en", day, tuple(names))
        for number, (day, names) in enumerate(groups)
    ]
    for shard in range(2):
        parquet.write_shard(f"{folder}/members/part-{shard:05d}-of-00002.parquet", rows[shard::2], Member)
    path = f"{folder}/{least} {share} {len(rows)}.npz"
    sizes = write_table(path, f"{folder}/members", least, share)
    return read_table(path), sizes


def test_every_allowed_document_is_drawn_alike(tmp_path):
    table, _ = table_of(tmp_path, (0, "a"), (0, "a"), (1, "a"), (2, "ab"), (0, "b"), (3, "b"), (9, "b"))
    drawn = [draw(table, 0, number, CategoriesOptions()) for number in range(3000)]
    positives = collections.Counter(one.positive for one in drawn)
    negatives = collections.Counter(one.negative for one in drawn)
    assert set(positives) == {1, 2, 3}
    assert set(negatives) == {4, 5, 6}
    for count in (*positives.values(), *negatives.values()):
        assert abs(count - 1000) < 4 * np.sqrt(3000 * 2 / 9)
    assert draw(table, 0, 7, CategoriesOptions()) == drawn[7]


def test_a_single_allowed_document_among_many_is_found(tmp_path):
    table, _ = table_of(tmp_path, *[(0, "a")] * 3000, (0, "b"), (0, "b"))
    assert {draw(table, 0, number, CategoriesOptions()).negative for number in range(20)} == {3000, 3001}
    assert draw(table, 3000, 0, CategoriesOptions()).positive == 3001
    assert isinstance(draw(table, 3000, 0, CategoriesOptions(cross_publisher=True)), Drawn)
    table, _ = table_of(tmp_path, *[(0, "a")] * 4, (5, "b"), (5, "b"))
    assert draw(table, 0, 0, CategoriesOptions(max_negative_days=4)) is Rejection.NO_NEGATIVE
    assert isinstance(draw(table, 0, 0, CategoriesOptions(max_negative_days=5)), Drawn)


@pytest.mark.parametrize(
    ("least", "share", "sizes"),
    [
        (2, 0.5, (3, 1, 0)),  # kept, rare, wide: "a" has half of the six that have a category
        (2, 0.49, (2, 1, 1)),
        (3, 1.0, (1, 3, 0)),
        (4, 0.1, (0, 4, 0)),
        (1, 0.3, (1, 0, 3)),
    ],
)
def test_rare_and_wide_groups_are_left_out_by_the_documents_that_have_categories(tmp_path, least, share, sizes):
    rows = [*[(0, "a")] * 3, *[(0, "bc")] * 2, (0, "d"), *[(0, "")] * 20]
    table, found = table_of(tmp_path, *rows, least=least, share=share)
    assert found == sizes
    if share == 0.49:
        assert len(table.ids) == 2
        assert [table.groups(row).tolist() for row in range(2)] == [[0, 1], [0, 1]]
        assert table.row(f"{0:016x}") == -1
