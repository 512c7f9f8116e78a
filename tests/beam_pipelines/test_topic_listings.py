"""What the hubs of each title list, counted in parts: as by sets of all articles, whatever the shards."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.beam_pipelines.topics import listings
from newsembed.formats.parquet import write_shard
from newsembed.formats.records import Article, Hub, make_doc_id
from newsembed.tests import phases

TITLES = ("sports", "chess", "ann lee", "")
GROUPS = {"sports": (False, "sports"), "chess": (True, "Q1"), "ann lee": (True, "Q1")}


def count(folder, hubs, articles, parts):
    """Runs the phases; returns the counts by title and the sizes of the groups."""
    sources = [(listings.HUBS, "hubs", hubs, Hub), ("articles", "articles", articles, Article)]
    sent, counted, sized = Phase(folder, "sent", 4), Phase(folder, "counted", parts), Phase(folder, "sized", parts)
    for number in range(4):
        kind, stream, records, record_type = sources[number // 2]
        path = f"{folder}/{stream}-{number}.parquet"
        write_shard(path, records[number % 2 :: 2], record_type)
        with Shard(sent, number) as shard:
            listings.send_listings(shard, (kind, path), parts)
    phases.map_rows(counted, listings.count_listings, [(sent, listings.LISTINGS)])
    listings.write_groups(folder, GROUPS)
    for number in range(parts):
        with Shard(sized, number) as shard:
            listings.count_groups(shard, number)
    return listings.title_counts(folder, set(TITLES)), listings.group_sizes(folder)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TITLES), st.lists(st.integers(0, 9), max_size=5)), max_size=6),
    st.dictionaries(st.integers(0, 9), st.lists(st.sampled_from(["Ann  LEE", "Chess", "Bo"]), max_size=2), max_size=8),
    st.integers(1, 3),
)
def test_counts_are_those_of_sets(tmp_path_factory, hubs, authors, parts):
    folder = str(tmp_path_factory.mktemp("topics"))
    doc_ids = [make_doc_id(str(number)) for number in range(10)]
    pages = [
        Hub(
            f"{number:016x}",
            f"https://a.example/{number}",
            "a.example",
            title,
            "feed",
            tuple(doc_ids[one] for one in members),
        )
        for number, (title, members) in enumerate(hubs)
    ]
    articles = [
        Article(doc_ids[number], "u", "a.example", "t", "b", authors=tuple(names)) for number, names in authors.items()
    ]
    counts, sizes = count(folder, pages, articles, parts)
    listed = {
        title: {one for other, members in hubs if other == title for one in members if one in authors}
        for title in TITLES
    }
    signed = {
        title: {one for one in found if title in {" ".join(name.casefold().split()) for name in authors[one]}}
        for title, found in listed.items()
    }
    assert counts == {title: (len(listed[title]), len(signed[title])) for title in TITLES}
    assert sizes == {
        (False, "sports"): len(listed["sports"]),
        (True, "Q1"): len(listed["chess"] | listed["ann lee"]),
    }


def test_many_listings_are_sent_in_several_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(listings, "_ROWS_TOGETHER", 50)
    doc_ids = [make_doc_id(str(number)) for number in range(300)]
    pages = [
        Hub(f"{one:016x}", f"https://a.example/{one}", "a.example", "Chess", "feed", tuple(doc_ids))
        for one in range(70)
    ]
    articles = [Article(one, "u", "a.example", "t", "b") for one in doc_ids]
    counts, sizes = count(str(tmp_path), pages, articles, 3)
    assert counts["chess"] == (300, 0)
    assert sizes[True, "Q1"] == 300
    assert len(list(tmp_path.glob("_listings/part-00000-*.rows.npy"))) > 1
    assert max(len(np.load(path)) for path in tmp_path.glob("_listed/*.npy")) < 200
