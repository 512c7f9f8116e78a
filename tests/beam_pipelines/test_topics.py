"""topics: the job, a reviewed topics.tsv, negatives only from publishers with the topic, and the sampling of labels."""

import collections
import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import topics
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.beam_pipelines.topics import LeastDraws, TopicsOptions, labels_of, wanted_labels
from newsembed.beam_pipelines.topics.choose import read_review
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Hub, TopicLabels, make_doc_id
from newsembed.tests.example_inputs import manifest_of, split, write_stream


def hub(number, publisher, title, members, url=""):
    return Hub(f"{number:016x}", url or f"http://{publisher}/{number}", publisher, title, "feed", tuple(members))


def ids(*numbers):
    return tuple(make_doc_id(str(number)) for number in numbers)


def hubs_of(number, hubs):
    return tuple(one.hub_id for one in hubs if ids(number)[0] in one.doc_ids)


HUBS = [
    hub(1, "a.example", "Sports", ids(*range(6))),
    hub(2, "b.example", "Sports News", ids(*range(10, 16))),
    hub(3, "a.example", "Politics", ids(6, 7, 8)),
    hub(4, "b.example", "Politics", ids(16, 17, 18)),
    hub(5, "a.example", "Archive 2021/07", ids(0, 6)),
    hub(6, "b.example", "Archive 2021/07", ids(10, 16)),
    hub(7, "a.example", "Ann Lee", ids(0, 1)),
    hub(8, "b.example", "Ann Lee", ids(10)),
    hub(9, "a.example", "Home", ids(0)),
    hub(10, "a.example", "Chess", ids(1)),
    hub(11, "a.example", "", ids(2)),
]


def run(tmp_path, hubs=HUBS, *, output="out", shards=1, topics_file=None, entities=None, alias_file=None, **options):
    """Runs the job on twenty articles of Ann Lee, half of each publisher."""
    articles = [
        Article(*ids(n), f"http://x/{n}", f"{'ab'[n // 10]}.example", "t", "b", ("Ann Lee",), hubs=hubs_of(n, hubs))
        for n in range(20)
    ]
    given = {"topics_file": topics_file, "entities": entities, "alias_file": alias_file}
    inputs = {name: [str(path)] for name, path in given.items() if path}
    inputs["articles"] = write_stream(tmp_path / f"clean{shards}", "articles", split(articles, shards), Article)
    (tmp_path / "extract").mkdir(exist_ok=True)
    inputs["hubs"] = write_stream(tmp_path / "extract", "hubs", [hubs], Hub)
    options = TopicsOptions(**{"min_documents": 4} | options)
    manifest = manifest_of(topics.JOB, inputs, tmp_path / output, options)
    assert manifest["counts"]["in"] == manifest["counts"]["out"] + sum(manifest["counts"]["rejected"].values())
    return manifest, list(parquet.read_stream(str(tmp_path / output / "labels"), TopicLabels))


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source, dialect="excel-tab"))


def edit(source, target, **changes):
    """Copies a topics.tsv with the cells of some titles changed."""
    rows = rows_of(source)
    for row in rows:
        row.update(changes.get(row["title"].replace(" ", "_"), {}))
    with target.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.DictWriter(sink, list(rows[0]), dialect="excel-tab")
        writer.writeheader()
        writer.writerows(rows)
    return target


def kept(path):
    return [(row["topic_id"], row["topic"], row["title"]) for row in rows_of(path) if row["verdict"] == "kept"]


def test_negatives_need_a_hub_of_the_same_publisher():
    offered = {"a": frozenset({0, 1, 2}), "b": frozenset({0})}
    assert labels_of(["h0"], "a", {"h0": 0}, offered) == ({0}, {1, 2})
    assert labels_of(["h0"], "b", {"h0": 0}, offered) == ({0}, set())
    assert labels_of([], "a", {"h0": 0}, offered) == (set(), set())


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["sports", "chess", "ann lee", ""]), st.sets(st.integers(0, 9))), max_size=6),
    st.dictionaries(st.integers(0, 9), st.lists(st.sampled_from(["Ann  LEE", "Chess", "Bo"]), max_size=2), max_size=8),
)
def test_articles_are_counted_by_title_and_group_as_sets_are(tmp_path_factory, listings, authors):
    folder = str(tmp_path_factory.mktemp("topics"))
    hubs = [hub(n, "a.example", title, ids(*members)) for n, (title, members) in enumerate(listings)]
    parquet.write_shard(f"{folder}/hubs.parquet", hubs, Hub)
    groups = {"sports": "title:sports", "chess": "entity:Q1", "ann lee": "entity:Q1"}
    files.write_json(f"{folder}/_groups.json", groups)
    for half in range(2):
        articles = [
            Article(*ids(n), "u", "a.example", "t", "b", tuple(names), hubs=hubs_of(n, hubs))
            for n, names in authors.items()
            if n % 2 == half
        ]
        parquet.write_shard(f"{folder}/articles.parquet", articles, Article)
        for count in (topics._count_titles, topics._count_groups):
            with Shard(Phase(folder, count.__name__, 2), half) as shard:
                count(shard, f"{folder}/articles.parquet", (f"{folder}/hubs.parquet",))
    listed, sizes = collections.defaultdict(set), collections.defaultdict(set)
    for title, members in listings:
        listed[title] |= members & set(authors)
    named = {n: {" ".join(name.casefold().split()) for name in names} for n, names in authors.items()}
    signed = {title: sum(title in named[n] for n in found) for title, found in listed.items()}
    expected = {title: (len(found), signed[title]) for title, found in listed.items() if found}
    assert topics.read_counts(f"{folder}/_title_counts/00") == expected
    for title in expected.keys() & groups.keys():
        sizes[groups[title]] |= listed[title]
    assert topics.read_counts(f"{folder}/_group_sizes/00") == {group: (len(found),) for group, found in sizes.items()}


def test_labels_counters_and_tables(tmp_path):
    manifest, labels = run(tmp_path, positive_ratio=0)
    assert manifest["topics"] == 2
    assert (manifest["counts"]["out"], manifest["counts"]["rejected"]) == (18, {"no_topic": 2})
    assert all(sorted(one.labels) == [0, 1] for one in labels)
    text = (tmp_path / "out/topics.tsv").read_text()
    assert "0\tsports\tsports\t2\t2\t12\tkept\n1\tpolitics\tpolitics\t2\t2\t6\tkept\n" in text
    assert "\n\tann lee\tann lee\t2\t2\t3\tauthor_page\n" in text
    assert "\n\t\t\t1\t1\t1\tempty_title\n" in text
    dropped = {"author_page": 2, "date_archive": 2, "empty_title": 1, "few_publishers": 1, "site_furniture": 1}
    assert manifest["phases"]["choose"]["tallies"] == {
        **{f"titles/{verdict}": 1 for verdict in dropped},
        **{f"hubs/{verdict}": hubs for verdict, hubs in dropped.items()},
        "titles/kept": 2,
        "hubs/kept": 4,
        "topics": 2,
    }


@pytest.mark.parametrize(("ratio", "sampled"), [(0.5, [(3, 6), (6, 12)]), (1.0, [(6, 6), (6, 6)])])
def test_down_sampling_leaves_the_asked_ratio_of_every_topic(tmp_path, ratio, sampled):
    manifest, labels = run(tmp_path, positive_ratio=ratio, shards=3)
    tallies = manifest["counts"]["tallies"]
    found = collections.Counter(pair for one in labels for pair in zip(one.topic_ids, one.labels, strict=True))
    assert [(found[topic, 1], found[topic, 0]) for topic in range(2)] == sampled
    for side, name in ((0, "positive labels"), (1, "negative labels")):
        assert tallies[name] == sum(counts[side] for counts in sampled)
        assert tallies[name] + tallies[f"{name} down-sampled"] == 18


def test_a_corpus_without_hubs_has_no_labels_and_no_crash(tmp_path):
    manifest, labels = run(tmp_path, hubs=[])
    assert labels == []
    assert manifest["counts"]["rejected"] == {"no_topic": 20}
    assert manifest["topics"] == 0
    with pytest.raises(InputError, match="clean1/hubs: no part"):  # not the folder of `extract`
        manifest_of(topics.JOB, dict.fromkeys(("articles", "hubs"), [str(tmp_path / "clean1")]), tmp_path / "other")


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_ratio_is_a_number_of_at_least_0(value):
    with pytest.raises(InputError, match="--positive_ratio"):
        TopicsOptions(positive_ratio=value)


def test_a_review_gives_the_same_labels_under_any_sharding_and_is_obeyed(tmp_path):
    _, labels = run(tmp_path, positive_ratio=0.7)
    for path in ("out/topics.tsv", "out"):
        with pytest.raises(InputError, match="got the result of a job, or a file in it"):
            run(tmp_path, topics_file=tmp_path / path, output="again")
    review = edit(tmp_path / "out/topics.tsv", tmp_path / "reviewed.tsv")
    _, sharded = run(tmp_path, positive_ratio=0.7, topics_file=review, output="sharded", shards=3)
    assert sorted(sharded, key=lambda one: one.doc_id) == sorted(labels, key=lambda one: one.doc_id)
    changes = {"sports": {"verdict": "dropped"}, "chess": {"verdict": "Kept", "topic": "Board games"}}
    edit(review, review, **changes)
    manifest, labels = run(tmp_path, positive_ratio=0, topics_file=review, output="edited")
    assert kept(tmp_path / "edited/topics.tsv") == [("0", "politics", "politics"), ("1", "Board games", "chess")]
    assert manifest["topics"] == 2
    found = {one.doc_id: dict(zip(one.topic_ids, one.labels, strict=True)) for one in labels}
    assert found[ids(1)[0]] == {0: 0, 1: 1}  # the only article of the chess hub, whose publisher has a politics hub too
    assert set(found) == set(ids(1, 6, 7, 8, 16, 17, 18))
    # The file's bytes are part of the digest: another edit is another run. Titles with one topic are one topic.
    one = {"topic": "Public life", "verdict": "kept"}
    edit(review, review, politics=one, sports=one, chess=one)
    manifest, labels = run(tmp_path, topics_file=review, output="edited")
    assert labels == []  # every listed article is positive, so there are no negatives
    assert manifest["counts"]["rejected"] == {"down_sampled": 18, "no_topic": 2}
    assert {row[:2] for row in kept(tmp_path / "edited/topics.tsv")} == {("0", "Public life")}


def test_hubs_of_one_entity_share_a_topic(tmp_path):
    sport = hub(1, "a.example", "Sport", ids(*range(6))), hub(2, "b.example", "Sports", ids(*range(10, 16)))
    hubs = [*sport, *HUBS[2:4]]
    folder = tmp_path / "entities"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"digest": "e"}')
    table = folder / "aliases.tsv"
    table.write_text("Sport\tQ1\t1\tSport\nSports\tQ1\t1\tSport\n")
    _, named = run(tmp_path, hubs, output="named")  # by the names of sections
    names = [("0", "sport", "sport"), ("0", "sport", "sports"), ("1", "politics", "politics")]
    assert kept(tmp_path / "named/topics.tsv") == names
    assert run(tmp_path, hubs, link_names=False, output="apart")[1] == []  # one topic, and so no negatives
    _, linked = run(tmp_path, hubs, link_names=False, entities=folder, output="linked")
    assert linked == named
    table.write_text("Sport\tQ1\ttwice\n")
    with pytest.raises(InputError, match=r"aliases.tsv.*line 1.*prior"):
        run(tmp_path, hubs, alias_file=table, output="broken")


def test_the_sample_of_a_topic_does_not_depend_on_other_topics(tmp_path):
    run(tmp_path)
    alone = edit(tmp_path / "out/topics.tsv", tmp_path / "alone.tsv", ann_lee={"verdict": "kept"})
    more = edit(alone, tmp_path / "more.tsv", **{"archive_2021/07": {"verdict": "kept"}})
    for review, number in ((alone, 2), (more, 3)):  # 3 positives and 15 negatives: 1.5 positives, so 2, stay
        _, labels = run(tmp_path, topics_file=review, positive_ratio=0.1, output=review.stem)
        found = {one.doc_id for one in labels if (number, 1) in zip(one.topic_ids, one.labels, strict=True)}
        assert found == set(sorted(ids(0, 1, 10), key=lambda doc_id: topics.draw(doc_id, "ann lee"))[:2])


HEADER = "topic\ttitle\tverdict\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "topic: got the columns None, expected topic, title, verdict"),
        ("topic\tverdict\nsports\tkept\n", "title: got the columns"),
        (f"{HEADER}\nsports\tsports\tyes\n", "line 3: got the verdict 'yes', expected one of kept, "),
        (f"{HEADER}a\tsports\tkept\nb\tsports\tkept\n", "line 3: got the title 'sports'"),
        (f"{HEADER} \tsports\tkept\n", "line 2: got the title 'sports' without a topic"),
        (f"{HEADER}a\ta\tkept\na\tb\tkept\nc\tc\tkept\nd\td\tkept\n", "got 3 topics, expected at most 2"),
        ("\xff", "cannot be read: 'utf-8'"),
    ],
)
def test_broken_reviews_name_their_line(tmp_path, text, message):
    path = tmp_path / "topics.tsv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError) as caught:
        read_review(str(path), max_topics=2)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("positives", "negatives", "stay"),
    [
        (100, 40, (10, 40)),  # too many positives
        (10, 400, (10, 40)),  # too many negatives
        (10, 40, (10, 40)),
        (9, 2, (1, 2)),  # half a positive is rounded to one
        (9, 1, (1, 1)),  # one stays, although a quarter is rounded to none
        (0, 5, (0, 0)),
        (5, 0, (0, 0)),
    ],
)
def test_the_side_in_excess_is_down_sampled(positives, negatives, stay):
    assert wanted_labels(positives, negatives, 0.25) == stay
    assert wanted_labels(positives, negatives, 0) == (positives, negatives)


@given(st.lists(st.integers(0, topics.DRAWS - 1), min_size=1, max_size=60, unique=True), st.integers(1, 80))
def test_as_many_labels_as_wanted_are_below_the_bound_whatever_the_shards(draws, others):
    parts = [LeastDraws(7, 1, len(part), tuple(sorted(part))) for part in (draws[::2], draws[1::2])]
    bounds = topics.keep_bounds([*parts, LeastDraws(7, 0, others, tuple(range(others)))], 0.25)
    wanted = wanted_labels(len(draws), others, 0.25)
    assert sum(number < bounds[7][0] for number in draws) == wanted[0]
    assert sum(number < bounds[7][1] for number in range(others)) == wanted[1]
