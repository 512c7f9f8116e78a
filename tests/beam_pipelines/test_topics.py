"""topics: titles, verdicts, a reviewed topics.tsv, negatives only from publishers with the topic, sampling and skew."""

import csv
import datetime
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.beam_pipelines.topics import JOB, TopicsOptions, labels_of
from newsembed.beam_pipelines.topics.choose import (
    Decision,
    Evidence,
    Verdict,
    choose,
    gather,
    group_titles,
    hub_title,
    link_titles,
    obey,
    rank_topics,
)
from newsembed.beam_pipelines.topics.review import read_review, write_review
from newsembed.beam_pipelines.topics.sampling import draw
from newsembed.beam_pipelines.topics.skew import LabelCount, skew_rows
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Hub, TopicLabels, make_doc_id

ONE = ["--direct_num_workers=1"]


def hub(number, publisher, title, members, url=""):
    return Hub(f"{number:016x}", url or f"http://{publisher}/{number}", publisher, title, "feed", tuple(members))


def ids(*numbers):
    return tuple(make_doc_id(str(number)) for number in numbers)


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


def decide(hubs, authored=None, entities=None, **limits):
    titles = {one.hub_id: hub_title(one) for one in hubs}
    limits = {"min_publishers": 2, "min_documents": 4, "max_topics": 600} | limits
    documents = listed(hubs, ids(*range(20)))
    authored = authored or {}
    counts = {title: (len(found), len(found & {*authored.get(title, ())})) for title, found in documents.items()}
    evidence = gather(hubs, titles, counts)
    groups = group_titles(evidence, entities or {})
    return choose(evidence, groups, sizes_of(groups, documents), **limits)[0]


def listed(hubs, present):
    """The articles that the hubs of each title list."""
    found = {}
    for one in hubs:
        found.setdefault(hub_title(one), set()).update({*one.doc_ids} & {*present})
    return found


def sizes_of(groups, documents):
    """The number of articles of each group."""
    members = {group: [title for title in groups if groups[title] == group] for group in groups.values()}
    return {group: len(set().union(*(documents[title] for title in titles))) for group, titles in members.items()}


def verdicts(hubs, authored=None, **limits):
    return {title: decision.verdict for title, decision in decide(hubs, authored, **limits).items()}


def test_every_title_has_a_verdict():
    assert verdicts(HUBS, {"ann lee": ids(0, 10)}, max_topics=1) == {
        "sports": Verdict.KEPT,
        "politics": Verdict.OVER_LIMIT,
        "archive 2021/07": Verdict.DATE,
        "ann lee": Verdict.AUTHOR,
        "home": Verdict.FURNITURE,
        "chess": Verdict.FEW_PUBLISHERS,
        "": Verdict.EMPTY,
    }
    assert verdicts(HUBS, min_documents=7)["politics"] is Verdict.FEW_DOCUMENTS


@pytest.mark.parametrize(
    ("title", "verdict"),
    [
        ("2021", Verdict.DATE),
        ("March 2021", Verdict.DATE),
        ("Archivo del 3 de julio de 2021", Verdict.DATE),
        ("Montag, 12.07.", Verdict.DATE),
        ("Архив за июль 2021", Verdict.DATE),
        ("Регионы", Verdict.FURNITURE),
        ("Популярное видео", Verdict.FURNITURE),
        ("Election 2024", Verdict.KEPT),
        ("Covid-19", Verdict.KEPT),
        ("News", Verdict.FURNITURE),
        ("Latest News", Verdict.FURNITURE),
        ("Breaking News & Top Stories", Verdict.FURNITURE),
        ("Home Front", Verdict.FURNITURE),
        ("US news", Verdict.KEPT),
        ("Articles by Bo Chen", Verdict.AUTHOR),
        ("Bo Chen, Author at The Post", Verdict.AUTHOR),
        ("***", Verdict.EMPTY),
    ],
)
def test_dates_site_furniture_and_bylines_are_recognised_by_their_words(title, verdict):
    assert set(verdicts([hub(1, "a.example", title, ids(*range(9))), hub(2, "b.example", title, ())]).values()) == {
        verdict
    }


def test_author_pages_are_recognised_by_their_articles_or_urls():
    page = [
        hub(1, "a.example", "Bo Chen", ids(1, 2, 3, 4), "http://a.example/author/bo-chen"),
        hub(2, "b.example", "Bo Chen", ()),
    ]
    assert verdicts(page) == {"bo chen": Verdict.KEPT}  # half of the pages only
    assert verdicts(page[:1], min_publishers=1) == {"bo chen": Verdict.AUTHOR}
    assert verdicts(page, {"bo chen": ids(1, 2)}) == {"bo chen": Verdict.AUTHOR}
    assert verdicts(page, {"bo chen": ids(1, 9)}) == {
        "bo chen": Verdict.KEPT
    }  # a desk that signs an article here and there


def test_a_front_page_is_named_after_its_site():
    front = hub(1, "a.example", "Six dead in crash", ids(*range(9)), "https://www.a.example/")
    assert hub_title(front) == "a.example"
    assert verdicts([front], min_publishers=1) == {"a.example": Verdict.SITE_NAME}


def test_titles_that_name_one_entity_are_one_topic():
    aliases = [
        Alias("Donald Trump", "Q1", 1.0, "Donald Trump"),
        Alias("TRUMP", "Q1", 0.9, ""),
        Alias("Trump", "Q2", 0.1, ""),
        Alias("Paris", "Q3", 0.4, ""),
        Alias("Rome", "Q4", 0.5, ""),
    ]
    entities = link_titles(["donald trump", "trump", "trump tower", "paris", "rome"], aliases)
    assert entities == {"donald trump": "Q1", "trump": "Q1", "rome": "Q4"}
    page = [
        hub(21, "a.example", "Donald Trump", ids(0, 1)),
        hub(22, "b.example", "Trump", ids(10, 11, 12)),
        hub(23, "b.example", "Trump Tower", ids(10)),
    ]
    assert set(verdicts(page).values()) == {Verdict.FEW_PUBLISHERS}
    found = decide(page, entities=entities)
    assert found["donald trump"] == found["trump"] == Decision("trump", Verdict.KEPT)
    assert found["trump tower"] == Decision("trump tower", Verdict.FEW_PUBLISHERS)
    # A verdict is the title's own: an author of that name takes nothing from the topic but the page.
    assert decide(page, {"donald trump": ids(0, 1)}, entities)["trump"].verdict is Verdict.FEW_PUBLISHERS
    over = decide([*page, *HUBS[:2]], entities=entities, max_topics=1)
    assert over["trump"].verdict is over["donald trump"].verdict is Verdict.OVER_LIMIT


def test_negatives_need_a_hub_of_the_same_publisher():
    offered = {"a": frozenset({0, 1, 2}), "b": frozenset({0})}
    assert labels_of(["h0"], "a", {"h0": 0}, offered) == ({0}, {1, 2})
    assert labels_of(["h0"], "b", {"h0": 0}, offered) == ({0}, set())
    assert labels_of([], "a", {"h0": 0}, offered) == (set(), set())


def test_skew_is_by_topic_and_language():
    before = [LabelCount(0, "en", "a", 4, 1), LabelCount(0, "en", "b", 2, 0), LabelCount(0, "de", "c", 0, 3)]
    after = [LabelCount(0, "en", "a", 1, 1), LabelCount(0, "de", "c", 0, 3)]
    assert list(skew_rows({0: "sports", 1: "chess"}, before, after))[1:] == [
        (0, "sports", "all", 2, 6, 4, 1, 4, "0.2500", "few_positives few_negatives"),
        (0, "sports", "de", 0, 0, 3, 0, 3, "0.0000", ""),
        (0, "sports", "en", 2, 6, 1, 1, 1, "1.0000", ""),
        (1, "chess", "all", 0, 0, 0, 0, 0, "", "no_positives no_negatives"),
    ]


def run(tmp_path, options, hubs=HUBS, *, topics_file=None, alias_file=None, entities=None, output="out", shards=1):
    hubs_of = {number: tuple(one.hub_id for one in hubs if ids(number)[0] in one.doc_ids) for number in range(20)}
    articles = [
        Article(
            ids(n)[0],
            f"http://x/{n}",
            "a.example" if n < 10 else "b.example",
            "t",
            "b",
            ("Ann Lee",),
            datetime.date(2021, 1, 1),
            language="en" if n < 10 else "",
            hubs=hubs_of[n],
        )
        for n in range(20)
    ]
    for shard in range(shards):
        path = tmp_path / f"clean{shards}/articles/part-{shard:05d}-of-{shards:05d}.parquet"
        parquet.write_shard(str(path), articles[shard::shards], Article)
    if hubs:
        parquet.write_shard(str(tmp_path / "extract/hubs/part-00000-of-00001.parquet"), hubs, Hub)
    for folder in (f"clean{shards}", "extract"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "manifest.json").write_text('{"digest": "x"}')
    inputs = {"articles": [str(tmp_path / f"clean{shards}")], "hubs": [str(tmp_path / "extract")]}
    if topics_file:
        inputs["topics_file"] = [str(topics_file)]
    if alias_file:
        inputs["alias_file"] = [str(alias_file)]
    if entities:
        inputs["entities"] = [str(entities)]
    manifest = jobs.execute(JOB, inputs, str(tmp_path / output), options, ONE).manifest
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


def test_labels_counters_and_tables(tmp_path):
    manifest, labels = run(tmp_path, TopicsOptions(min_documents=4, positive_ratio=0))
    assert manifest["topics"] == 2
    assert (manifest["counts"]["in"], manifest["counts"]["out"], manifest["counts"]["rejected"]) == (
        20,
        18,
        {"no_topic": 2},
    )
    assert all(sorted(one.labels) == [0, 1] for one in labels)
    text = (tmp_path / "out/topics.tsv").read_text()
    assert "0\tsports\tsports\t2\t2\t12\tkept\n1\tpolitics\tpolitics\t2\t2\t6\tkept\n" in text
    assert "\n\tann lee\tann lee\t2\t2\t3\tauthor_page\n" in text
    assert "\n\t\t\t1\t1\t1\tempty_title\n" in text
    assert manifest["phases"]["choose"]["tallies"] == {
        **{
            f"titles/{verdict}": 1
            for verdict in ("author_page", "date_archive", "empty_title", "few_publishers", "site_furniture")
        },
        **{f"hubs/{verdict}": 1 for verdict in ("empty_title", "few_publishers", "site_furniture")},
        "hubs/author_page": 2,
        "hubs/date_archive": 2,
        "titles/kept": 2,
        "hubs/kept": 4,
        "titles/of an entity": 2,
        "titles/of a section, place or language": 2,
    }
    assert (tmp_path / "out/skew.tsv").read_text().splitlines()[1:4] == [
        "0\tsports\tall\t2\t12\t6\t12\t6\t2.0000\tfew_negatives",
        "0\tsports\ten\t1\t6\t3\t6\t3\t2.0000\t",
        "0\tsports\tund\t1\t6\t3\t6\t3\t2.0000\t",
    ]


@pytest.mark.parametrize(("ratio", "sampled"), [(0.5, [(3, 6), (6, 12)]), (1.0, [(6, 6), (6, 6)])])
def test_down_sampling_leaves_the_asked_ratio_of_every_topic(tmp_path, ratio, sampled):
    manifest, labels = run(tmp_path, TopicsOptions(min_documents=4, positive_ratio=ratio), shards=3)
    tallies = manifest["counts"]["tallies"]
    totals = [row for row in rows_of(tmp_path / "out/skew.tsv") if row["language"] == "all"]
    assert [(int(row["positives"]), int(row["negatives"])) for row in totals] == [(12, 6), (6, 12)]
    assert [(int(row["sampled_positives"]), int(row["sampled_negatives"])) for row in totals] == sampled
    assert [float(row["ratio"]) for row in totals] == [ratio, ratio]
    found = [label for one in labels for label in one.labels]
    assert found.count(1) == tallies["positive labels"] == sum(positives for positives, _ in sampled)
    assert found.count(0) == tallies["negative labels"] == sum(negatives for _, negatives in sampled)
    assert tallies["positive labels"] + tallies["positive labels down-sampled"] == 18
    assert tallies["negative labels"] + tallies["negative labels down-sampled"] == 18


def test_a_corpus_without_hubs_has_no_labels_and_no_crash(tmp_path):
    manifest, labels = run(tmp_path, TopicsOptions(), hubs=[])
    assert labels == []
    assert manifest["counts"]["rejected"] == {"no_topic": 20}
    assert manifest["topics"] == 0
    for value in (-0.1, float("nan")):
        with pytest.raises(InputError, match="--positive_ratio"):
            TopicsOptions(positive_ratio=value)


def test_an_unedited_review_gives_the_same_bytes_under_any_sharding(tmp_path):
    options = TopicsOptions(min_documents=4, positive_ratio=0.7)
    _, labels = run(tmp_path, options)
    review = tmp_path / "reviewed.tsv"
    review.write_bytes((tmp_path / "out/topics.tsv").read_bytes())
    run(tmp_path, options, topics_file=review, output="again")
    _, sharded = run(tmp_path, options, topics_file=review, output="sharded", shards=3)
    for name in ("labels/part-00000-of-00001.parquet", "topics.tsv", "skew.tsv"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    for name in ("topics.tsv", "skew.tsv"):
        assert (tmp_path / "sharded" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert sorted(sharded, key=lambda one: one.doc_id) == sorted(labels, key=lambda one: one.doc_id)


def test_an_edited_review_is_obeyed(tmp_path):
    options = TopicsOptions(min_documents=4, positive_ratio=0)
    run(tmp_path, options)
    review = edit(
        tmp_path / "out/topics.tsv",
        tmp_path / "reviewed.tsv",
        sports={"verdict": "dropped"},
        chess={"verdict": "Kept", "topic": "Board games"},
    )
    manifest, labels = run(tmp_path, options, topics_file=review, output="edited")
    kept = [
        (row["topic_id"], row["topic"], row["title"])
        for row in rows_of(tmp_path / "edited/topics.tsv")
        if row["verdict"] == "kept"
    ]
    assert kept == [("0", "politics", "politics"), ("1", "Board games", "chess")]
    assert manifest["topics"] == 2
    found = {one.doc_id: dict(zip(one.topic_ids, one.labels, strict=True)) for one in labels}
    assert found[ids(1)[0]] == {0: 0, 1: 1}  # the only article of the chess hub, whose publisher has a politics hub too
    assert set(found) == set(ids(1, 6, 7, 8, 16, 17, 18))
    # The file's bytes are part of the digest: another edit is another run.
    edit(review, review, politics={"verdict": "dropped"})
    assert run(tmp_path, options, topics_file=review, output="edited")[0]["topics"] == 1


def test_titles_with_one_topic_are_one_topic(tmp_path):
    options = TopicsOptions(min_documents=4, positive_ratio=0.25)
    run(tmp_path, options)
    one = {"topic": "Public life", "verdict": "kept"}
    review = edit(tmp_path / "out/topics.tsv", tmp_path / "reviewed.tsv", politics=one, sports=one, chess=one)
    manifest, labels = run(tmp_path, options, topics_file=review, output="merged")
    assert manifest["topics"] == 1
    assert {
        (label.topic_ids, label.labels) for label in labels
    } == set()  # every listed article is positive, so there are no negatives
    assert manifest["counts"]["rejected"] == {"down_sampled": 18, "no_topic": 2}
    assert manifest["phases"]["skew"]["tallies"]["topics without negatives"] == 1
    assert rows_of(tmp_path / "merged/skew.tsv")[0]["positives"] == "18"
    assert [row["title"] for row in rows_of(tmp_path / "merged/topics.tsv") if row["topic"] == "Public life"] == [
        "sports",
        "politics",
        "chess",
    ]


def test_hubs_of_one_entity_share_a_topic_in_labels_and_review(tmp_path):
    table = tmp_path / "aliases.tsv"
    table.write_text("Sport\tQ1\t1\tSport\nSports\tQ1\t1\tSport\n")
    hubs = [
        hub(1, "a.example", "Sport", ids(*range(6))),
        hub(2, "b.example", "Sports", ids(*range(10, 16))),
        *HUBS[2:4],
    ]
    _, named = run(tmp_path, TopicsOptions(min_documents=4), hubs, output="named")
    options = TopicsOptions(min_documents=4, link_names=False)
    _, apart = run(tmp_path, options, hubs, output="apart")
    manifest, united = run(tmp_path, options, hubs, alias_file=table, output="united")
    assert apart == []  # one topic, and so no negatives
    assert {topic for labels in united for topic in labels.topic_ids} == {0, 1}
    assert manifest["phases"]["choose"]["tallies"]["titles/of an entity"] == 2
    rows = rows_of(tmp_path / "united/topics.tsv")
    assert [(row["topic_id"], row["topic"], row["title"]) for row in rows] == [
        ("0", "sport", "sport"),
        ("0", "sport", "sports"),
        ("1", "politics", "politics"),
    ]
    (tmp_path / "entities").mkdir()
    (tmp_path / "entities/aliases.tsv").write_bytes(table.read_bytes())
    (tmp_path / "entities/manifest.json").write_text('{"digest": "e"}')
    _, linked = run(tmp_path, options, hubs, entities=tmp_path / "entities", output="linked")
    assert linked == united  # the folder of the entities job does the same as a table of the user
    assert named == united  # and so do the names of sections
    table.write_text("Sport\tQ1\ttwice\n")
    with pytest.raises(InputError, match=r"aliases.tsv.*line 1.*prior"):
        run(tmp_path, options, hubs, alias_file=table, output="broken")


def test_a_review_is_applied_to_another_corpus():
    review = {
        "sports": Decision("sports", Verdict.KEPT),
        "old": Decision("old", Verdict.KEPT),
        "dull": Decision("dull", Verdict.DROPPED),
    }
    assert obey(review, {"sports": Evidence(), "new": Evidence()}) == {
        "sports": Decision("sports", Verdict.KEPT),
        "new": Decision("new", Verdict.NOT_LISTED),
        "old": Decision("old", Verdict.NO_HUB),
        "dull": Decision("dull", Verdict.DROPPED),
    }


def test_the_sample_of_a_topic_does_not_depend_on_other_topics(tmp_path):
    options = TopicsOptions(min_documents=4, positive_ratio=0.1)
    run(tmp_path, options)
    kept = {"verdict": "kept"}
    alone = edit(tmp_path / "out/topics.tsv", tmp_path / "alone.tsv", ann_lee=kept)
    more = edit(alone, tmp_path / "more.tsv", **{"archive_2021/07": kept})
    for review, number in ((alone, 2), (more, 3)):  # 3 positives and 15 negatives: 1.5 positives, so 2, stay
        _, labels = run(tmp_path, options, topics_file=review, output=review.stem)
        found = {one.doc_id for one in labels if (number, 1) in zip(one.topic_ids, one.labels, strict=True)}
        assert found == set(sorted(ids(0, 1, 10), key=lambda doc_id: draw(doc_id, "ann lee"))[:2])


HEADER = "topic\ttitle\tverdict\n"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", ":1: topic", "expected topic, title, verdict"),
        ("topic\tverdict\nsports\tkept\n", ":1: title", "expected topic, title, verdict"),
        (f"{HEADER}sports\tsports\n", ":2: verdict", "got 2 cells, expected 3"),
        (f"{HEADER}\nsports\tsports\tkept\tx\n", ":3: verdict", "got 4 cells, expected 3"),
        (f"{HEADER}sports\tsports\tyes\n", ":2: verdict", "got 'yes', expected one of kept, "),
        (f"{HEADER}a\tsports\tkept\nb\tsports\tdropped\n", ":3: title", "got 'sports' again"),
        (f"{HEADER} \tsports\tkept\n", ":2: topic", "no topic"),
        (f"{HEADER}a\ta\tkept\na\tb\tkept\nc\tc\tkept\nd\td\tkept\n", ":5: verdict", "more than 2 kept topics"),
        (f'{HEADER}a\t"sports\tkept\n', ": --topics_file", "not a table"),
        (b"\xff\xfea\x00", ": --topics_file", "not a table"),
    ],
)
def test_broken_reviews_name_their_line(tmp_path, text, where, message):
    path = tmp_path / "topics.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_review(str(path), max_topics=2)
    assert str(caught.value).startswith(f"{path}{where}: ")
    assert message in caught.value.problem
    assert caught.value.remedy


def test_a_review_within_a_result_is_refused(tmp_path):
    options = TopicsOptions(min_documents=4)
    run(tmp_path, options)
    for path in ("out/topics.tsv", "out"):
        with pytest.raises(InputError, match="got the result of a job, or a file in it"):
            run(tmp_path, options, topics_file=tmp_path / path, output="again")
    assert not (tmp_path / "again/manifest.json").exists()


def test_tables_saved_by_spreadsheets_are_read(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_bytes(
        '\ufeffverdict\ttitle\tnotes\ttopic\r\nKept\t"""big"" data"\tmine\tData\r\n'.encode()
        + b"\t\t\t\r\nDROPPED\tchess\t\tchess\r\n"
    )
    assert read_review(str(path), 1) == {
        '"big" data': Decision("Data", Verdict.KEPT),
        "chess": Decision("chess", Verdict.DROPPED),
    }


TITLES = st.one_of(
    st.sampled_from(
        ["Sports", "Sports News", "a.example", "Home", "", " ", "2021", '"quoted" news', "top/x/us", "# tag"]
    ),
    st.text(max_size=12),
    st.text("|:-/ \t\n\r\x85\u2028\"'.&\x00newsaİß", max_size=12),
)


@given(
    st.lists(st.tuples(TITLES, st.sampled_from(["a.example", "b.example", "Süd Post", ""])), max_size=12),
    st.dictionaries(st.sampled_from(["sports", "us", "# tag", "home"]), st.sampled_from(["sports", "Q1"])),
)
def test_every_hub_is_counted_once_and_every_table_is_read_back(found, entities):
    hubs = [hub(number, publisher, title, ids(number)) for number, (title, publisher) in enumerate(found)]
    titles = {one.hub_id: hub_title(one) for one in hubs}
    documents = listed(hubs, ids(*range(12)))
    evidence = gather(hubs, titles, {title: (len(found), 0) for title, found in documents.items()})
    groups = group_titles(evidence, entities)
    limits = {"min_publishers": 1, "min_documents": 1, "max_topics": 3}
    decisions, sizes = choose(evidence, groups, sizes_of(groups, documents), **limits)
    assert len(sizes) <= 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "topics.tsv")
        write_review(str(path), decisions, evidence, rank_topics(sizes))
        rows = rows_of(path)
        assert obey(read_review(str(path), 3), evidence) == decisions
    assert sum(int(row["hubs"]) for row in rows) == len(hubs)
    assert sorted(row["title"] for row in rows) == sorted(set(titles.values()))
    assert all((row["topic_id"] != "") == (row["verdict"] == "kept") for row in rows)
