"""Slices of input files, and the shards of articles that are made of them."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.sources import Slice, groups_of, row_slices
from newsembed.formats import parquet
from newsembed.formats.records import Article, Post

ONE = ["--direct_num_workers=1"]


def pieces(*records):
    return [Slice(f"{place}.warc.gz", "warc", 0, -1, records=count) for place, count in enumerate(records)]


@pytest.mark.parametrize(
    ("records", "groups"),
    [
        ([3], [[0]]),
        ([1] * 8, [[place] for place in range(8)]),  # few already
        ([1] * 9, [[*range(9)]]),
        ([250] * 9, [[0, 1], [2, 3], [4, 5], [6, 7], [8]]),  # at least 500 to a shard
        ([100] * 80, [[*range(start, start + 10)] for start in range(0, 80, 10)]),  # eight shards
        ([200] * 200, [[*range(start, start + 20)] for start in range(0, 200, 20)]),  # at most 4,000 to a shard
        ([9_000, *[1] * 8], [[0], [*range(1, 9)]]),  # a slice is never cut
        ([1, None, 1, 1, None, 1, 1, 1, 1], [[0], [1], [2, 3], [4], [5, 6, 7, 8]]),  # files of a list
    ],
)
def test_consecutive_slices_are_a_shard(records, groups):
    assert [list(group) for group in groups_of(pieces(*records))] == groups


@given(st.lists(st.none() | st.integers(0, 5_000), min_size=1, max_size=60))
def test_each_slice_is_in_one_shard_and_none_is_too_large(records):
    groups = groups_of(pieces(*records))
    assert list(itertools.chain(*groups)) == list(range(len(records)))
    together = [sum(records[place] or 0 for place in group) for group in groups]
    assert all(total <= 4_000 or len(group) == 1 for group, total in zip(groups, together, strict=True))


def lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_slices_count_their_rows(tmp_path):
    path = lines(tmp_path / "a.jsonl", [{"n": n} for n in range(4_003)])
    found = [(piece.start, piece.count, piece.records) for piece in row_slices((path,), "articles")]
    assert found == [(0, 4_000, 4_000), (4_000, 4_000, 3)]


def test_many_small_files_make_few_shards_with_the_records_of_one_file(tmp_path):
    articles = [
        {"url": f"http://x.example/{n}", "title": f"T {n}", "body": f"b {n}", "feeds": [f"top/{n % 3}"]}
        for n in range(40)
    ]
    posts = [{"text": f"A post {n}", "url": f"http://x.example/{n}"} for n in range(50)]
    many = [lines(tmp_path / f"{n:02d}.jsonl", [row]) for n, row in enumerate(articles)]
    inputs = {
        "many": {"articles": many, "posts": [lines(tmp_path / "p.jsonl", posts)]},
        "one": {"articles": [lines(tmp_path / "all.jsonl", articles)], "posts": [str(tmp_path / "p.jsonl")]},
    }
    found = {}
    for name, given_files in inputs.items():
        output = str(tmp_path / name)
        counts = jobs.execute(JOB, given_files, output, beam_args=ONE).manifest["counts"]
        assert (counts["in"], counts["out"], counts["rejected"]) == (90, 80, {"no_article": 10})
        streams = [
            list(parquet.read_stream(f"{output}/{s}", kind)) for s, kind in (("articles", Article), ("posts", Post))
        ]
        found[name] = (parquet.shard_paths(f"{output}/articles"), streams)
    assert found["many"][1] == found["one"][1]
    assert [len(paths) for paths, _ in found.values()] == [1, 2]  # of 41 slices and of two
    assert all(article.hubs for article in found["many"][1][0])
