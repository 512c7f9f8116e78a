"""topics: titles, verdicts, negatives only where the publisher could have said yes, sampling."""

import datetime

import pytest
from newsembed.beam_pipelines import jobs, parquet
from newsembed.beam_pipelines.records import Article, Hub, TopicLabels, make_doc_id
from newsembed.beam_pipelines.topics import JOB, TopicsOptions, keep_shares, labels_of
from newsembed.beam_pipelines.topics.choose import Verdict, choose, normalize_title
from newsembed.tasks.errors import InputError

ONE = ["--direct_num_workers=1"]


@pytest.mark.parametrize(
    ("title", "publisher", "expected"),
    [
        ("Politics News - Harbour Times", "harbourtimes.example", "politics"),
        ("top/sports/us", "example.com", "sports"),
        ("Noticias de energía", "vozdelmuelle.example", "energía"),
        ("Vida práctica - La Voz del Muelle", "vozdelmuelle.example", "vida práctica"),
        ("Harbour Times", "harbourtimes.example", ""),
        ("Football RSS", "x.example", "football"),
        ("News", "x.example", "news"),
        ("", "x.example", ""),
    ],
)
def test_hub_titles_are_normalised(title, publisher, expected):
    assert normalize_title(title, publisher) == expected


def hub(number, publisher, title, members):
    return Hub(f"{number:016x}", f"http://{publisher}/{number}", publisher, title, "feed", tuple(members))


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
]


def test_every_candidate_has_a_verdict():
    candidates, titles = choose(HUBS, set(ids(*range(20))), {"ann lee"}, 2, 4, 1)
    verdicts = {one.title: one.verdict for one in candidates}
    assert verdicts == {
        "sports": Verdict.KEPT,
        "politics": Verdict.OVER_LIMIT,
        "archive 2021/07": Verdict.DATE,
        "ann lee": Verdict.AUTHOR,
        "home": Verdict.FURNITURE,
        "chess": Verdict.FEW_PUBLISHERS,
    }
    assert titles[HUBS[1].hub_id] == "sports"


def test_negatives_need_a_hub_of_the_same_publisher():
    offered = {"a": frozenset({0, 1, 2}), "b": frozenset({0})}
    assert labels_of(["h0"], "a", {"h0": 0}, offered) == ({0}, {1, 2})
    assert labels_of(["h0"], "b", {"h0": 0}, offered) == ({0}, set())
    assert labels_of([], "a", {"h0": 0}, offered) == (set(), set())


def test_positives_are_sampled_to_the_ratio():
    assert keep_shares({0: (100, 40), 1: (10, 400), 2: (0, 5)}, 0.25) == {0: 0.1, 1: 1.0, 2: 1.0}


def run(tmp_path, options, hubs=HUBS):
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
            hubs=hubs_of[n],
        )
        for n in range(20)
    ]
    parquet.write_shard(str(tmp_path / "clean/articles/part-00000-of-00001.parquet"), articles, Article)
    if hubs:
        parquet.write_shard(str(tmp_path / "extract/hubs/part-00000-of-00001.parquet"), hubs, Hub)
    for folder in ("clean", "extract"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "manifest.json").write_text('{"digest": "x"}')
    inputs = {"articles": [str(tmp_path / "clean")], "hubs": [str(tmp_path / "extract")]}
    manifest = jobs.execute(JOB, inputs, str(tmp_path / "out"), options, ONE).manifest
    return manifest, list(parquet.read_stream(str(tmp_path / "out/labels"), TopicLabels))


def test_labels_and_counters(tmp_path):
    manifest, labels = run(tmp_path, TopicsOptions(min_documents=4, positive_ratio=100.0))
    assert manifest["topics"] == 2
    assert (manifest["counts"]["in"], manifest["counts"]["out"], manifest["counts"]["rejected"]) == (20, 18, {"no_topic": 2})
    assert all(sorted(one.labels) == [0, 1] for one in labels)
    text = (tmp_path / "out/topics.tsv").read_text()
    assert "0\tsports\t12\t2\tkept" in text
    assert "\tann lee\t3\t2\tauthor_page" in text


def test_down_sampling_leaves_the_asked_ratio(tmp_path):
    manifest, labels = run(tmp_path, TopicsOptions(min_documents=4, positive_ratio=0.25))
    tallies = manifest["counts"]["tallies"]
    assert tallies["positive labels"] + tallies["positive labels down-sampled"] == 18
    assert tallies["positive labels"] < 18
    assert sum(sum(one.labels) for one in labels) == tallies["positive labels"]


def test_a_corpus_without_hubs_has_no_labels_and_no_crash(tmp_path):
    manifest, labels = run(tmp_path, TopicsOptions(), hubs=[])
    assert labels == []
    assert manifest["counts"]["rejected"] == {"no_topic": 20}
    with pytest.raises(InputError, match="--max_topics"):
        TopicsOptions(max_topics=0)
