"""clean: the job, its counters, duplicates against exact similarity."""

import dataclasses
import datetime
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.clean import JOB, CleanOptions
from newsembed.beam_pipelines.clean.duplicates import (
    EDGE,
    KEPT,
    REASONS,
    SKETCH_BOUNDS,
    SKETCH_SIZE,
    SKETCH_VALUES,
    bottom_sketch,
    find_clusters,
    find_edges,
    minhash,
    shingles,
    sign,
    similarity,
)
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Cluster, Rejection, make_doc_id

ONE = ["--direct_num_workers=1"]
WORDS = (
    "the council voted on late plans for a bridge over river and town while people watched with great interest as "
    "rain fell again"
).split()


def text(seed, sentences=12):
    draw = random.Random(seed)
    return "\n".join(
        " ".join(
            draw.choice(WORDS) + (str(draw.randrange(999)) if draw.random() < 0.2 else "") for _ in range(12)
        ).capitalize()
        + "."
        for _ in range(sentences)
    )


def article(number, **changes):
    url = f"http://p{number % 3}.example/{number}"
    base = Article(
        make_doc_id(url),
        url,
        f"p{number % 3}.example",
        f"Title {number}",
        text(number),
        ("Ann Lee",),
        datetime.date(2020, 1, 1 + number % 28),
        date_source="meta",
    )
    return dataclasses.replace(base, **changes)


def run(tmp_path, articles, options=None, name="out", shards=2, args=ONE, **inputs):
    source = tmp_path / f"in-{name}"
    for index in range(shards):
        parquet.write_shard(
            str(source / f"articles/part-{index:05d}-of-{shards:05d}.parquet"), articles[index::shards], Article
        )
    (source / "manifest.json").write_text('{"digest": "x"}')
    out = str(tmp_path / name)
    counts = jobs.execute(JOB, {"articles": [str(source)], **inputs}, out, options or CleanOptions(), args).manifest[
        "counts"
    ]
    return (
        counts,
        list(parquet.read_stream(f"{out}/articles", Article)),
        list(parquet.read_stream(f"{out}/clusters", Cluster)),
    )


def test_a_text_without_a_language_is_rejected(tmp_path):
    letters = random.Random(0)
    noise = " ".join("".join(letters.choices("bcdfghjklmnpqrstvwxz", k=6)) + "." for _ in range(150))
    counts, kept, _ = run(tmp_path, [article(1), article(2, title="zq", body=noise)], CleanOptions())
    assert counts["rejected"] == {"unknown_language": 1}
    assert len(kept) == 1


def test_the_whole_counter_dict(tmp_path):
    articles = [article(n) for n in range(8)]
    articles += [
        article(1),
        article(20, body=articles[2].body.upper() + " "),
        article(21, body=text(3, 12)[:-40] + " An ending of its own stands here."),
        article(22, authors=()),
    ]
    counts, kept, clusters = run(tmp_path, articles)
    assert counts["rejected"] == {"no_author": 1, "duplicate_url": 1, "duplicate_body": 1, "near_duplicate": 1}
    assert (counts["in"], counts["out"]) == (12, 8)
    assert {one.doc_id for one in kept} == {article(n).doc_id for n in range(8)}
    assert all(one.language == "en" for one in kept)
    assert sorted(cluster.cluster_id for cluster in clusters if cluster.kept) == sorted(
        {cluster.cluster_id for cluster in clusters}
    )
    assert len(clusters) == 6


def test_the_earliest_of_a_cluster_is_kept(tmp_path):
    dated = [article(n, body=text(7), byline_date=datetime.date(2020, 3, 10 - n)) for n in range(4)]
    _, kept, _ = run(tmp_path, dated)
    assert [one.byline_date for one in kept] == [datetime.date(2020, 3, 7)]


def test_of_a_page_with_one_date_the_text_that_came_last_is_kept(tmp_path):
    day = datetime.date(2020, 3, 3)
    first = article(1, body=text(7), byline_date=day)
    corrected = dataclasses.replace(first, body=text(8))
    redated = dataclasses.replace(first, body=text(9), byline_date=day + datetime.timedelta(1))
    copy = article(2, body=text(7), byline_date=day + datetime.timedelta(1))
    counts, kept, _ = run(tmp_path, [first, corrected, redated, copy], shards=1)
    assert [one.body for one in kept] == [corrected.body]
    assert counts["rejected"] == {"duplicate_url": 2, "duplicate_body": 1}


def test_sharding_and_workers_change_nothing(tmp_path):
    articles = [article(n % 30, doc_id=make_doc_id(str(n)), body=text(n % 30)) for n in range(60)]
    _, one, _ = run(tmp_path, articles, name="one", shards=1)
    _, three, _ = run(tmp_path, articles, name="three", shards=3)
    _, parallel, _ = run(tmp_path, articles, name="parallel", shards=3, args=["--direct_num_workers=2"])
    assert sorted(one, key=lambda a: a.doc_id) == sorted(three, key=lambda a: a.doc_id)
    assert three == parallel
    assert len(one) == 30


def test_signatures_estimate_exact_jaccard():
    errors = []
    for number in range(30):
        first = text(number, 30)
        lines = first.splitlines()
        second = "\n".join(lines[: 30 - number] + text(number + 100, number + 1).splitlines())
        a, b = set(shingles(first)), set(shingles(second))
        errors.append(
            np.mean(minhash(shingles(first), 112) == minhash(shingles(second), 112)) - len(a & b) / len(a | b)
        )
    assert abs(np.mean(errors)) < 0.03
    assert np.max(np.abs(errors)) < 0.2


def test_sketches_of_reports_are_exact_and_of_books_near():
    for length, shift, error in [(60, 5, 0), (60, 40, 0), (300, 30, 0.04), (300, 150, 0.04)]:
        lines = text(5, length + shift).splitlines()
        one, two = (shingles("\n".join(part)) for part in (lines[:length], lines[shift:]))
        exact = len(set(one) & set(two)) / len(set(one) | set(two))
        first, second = bottom_sketch(one), bottom_sketch(two)
        assert (len(set(one)) > SKETCH_SIZE) == (len(first) == SKETCH_SIZE) == (length == 300)
        assert similarity(first, second) == similarity(second, first) == pytest.approx(exact, abs=error + 1e-9)
        assert similarity(first, first) == 1
    assert similarity(bottom_sketch([]), bottom_sketch(["a"])) == 0


@settings(max_examples=50, deadline=None)
@given(st.sets(st.text(max_size=3), max_size=30), st.sets(st.text(max_size=3), max_size=30))
def test_small_sets_have_their_exact_similarity(one, two):
    sketches = [bottom_sketch([repr(item) for item in part]) for part in (one, two)]
    assert similarity(*sketches) == pytest.approx(len(one & two) / max(1, len(one | two)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from(REASONS)), max_size=30))
def test_clusters_are_connected_components_with_the_earliest_kept(pairs):
    member = [(number // 3, number + 100, number % 3, number) for number in range(21)]  # ordinal, doc_id, shard, row
    found = find_clusters([edges_of(*((member[one], member[two], reason) for one, two, reason in pairs if one != two))])
    cluster = {row: number - 100 for row, number in found[["row", "cluster"]].tolist()}
    parent = list(range(21))
    for _ in parent:  # as many rounds as the longest chain needs
        for one, two, _reason in pairs:
            parent[one] = parent[two] = min(parent[one], parent[two])
    assert cluster == {number: parent[number] for one, two, _ in pairs for number in (one, two) if one != two}
    assert {row for row, reason in found[["row", "reason"]].tolist() if reason == KEPT} == set(cluster.values())


def edges_of(*pairs):
    edges = np.zeros(len(pairs), EDGE)
    for edge, (one, two, reason) in zip(edges, pairs, strict=True):
        edge["one"], edge["two"], edge["reason"] = one, two, REASONS.index(reason)
    return edges


def test_clusters_follow_chains_across_shards():
    a, b, c, d = ((n, n + 10, n % 2, n) for n in range(4))  # ordinal, doc_id, shard, row
    near, url = Rejection.NEAR_DUPLICATE, Rejection.DUPLICATE_URL
    found = find_clusters([edges_of((b, c, near)), edges_of(), edges_of((a, b, near), (c, d, url))])
    assert [tuple(one) for one in found[["shard", "row", "cluster"]].tolist()] == [
        (0, 0, 10),
        (1, 1, 10),
        (0, 2, 10),
        (1, 3, 10),
    ]
    assert found["reason"].tolist() == [KEPT, *(REASONS.index(reason) for reason in (near, url, url))]


def test_no_edges_are_no_clusters():
    assert len(find_clusters([edges_of()])) == 0


@pytest.mark.parametrize("copies", [2, 60])
def test_the_members_of_a_bucket_are_connected_whatever_its_size(tmp_path, copies):
    entries, sketches = zip(
        *(sign(article(1, doc_id=f"{n:016x}"), n % 2, n // 2, CleanOptions()) for n in range(copies)), strict=True
    )
    paths = []
    for shard in range(2):
        paths.append(f"{tmp_path}/{shard}.")
        np.save(f"{paths[-1]}{SKETCH_BOUNDS}", np.cumsum([0, *map(len, sketches[shard::2])]))
        np.concatenate([np.zeros(0, np.uint32), *sketches[shard::2]]).tofile(f"{paths[-1]}{SKETCH_VALUES}")
    edges = find_edges(np.concatenate(entries), paths, 0.8)
    assert set(edges["reason"].tolist()) == {1, 2}
    for reason in (1, 2):
        assert np.unique(find_clusters([edges[edges["reason"] == reason]])["cluster"]).tolist() == [0]
    assert len(find_edges(np.concatenate(entries)[:0], paths, 0.8)) == 0


def test_bad_words_are_an_input_whose_content_counts(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("bridge\n")
    counts, _, _ = run(tmp_path, [article(1)], bad_words=[str(words)])
    assert counts["rejected"] == {"bad_words": 1}
    words.write_text("aqueduct\n")
    counts, kept, _ = run(tmp_path, [article(1)], bad_words=[str(words)])
    assert counts["rejected"] == {}
    assert len(kept) == 1


def test_lines_dropped_are_tallied_and_empty_bodies_named(tmp_path):
    body = text(1) + "\nmenu\nWe use cookies on this site."
    counts, kept, _ = run(tmp_path, [article(1, body=body), article(2, body="menu\nhome"), article(3, body="")])
    assert counts["tallies"] == {"cookie_lines": 1, "lines_without_terminal_punctuation": 3}
    assert counts["rejected"] == {"no_terminal_punctuation": 1, "too_few_words": 1}
    assert kept[0].body == text(1)


def test_a_given_article_of_the_future_is_rejected(tmp_path):
    future = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=9)
    counts, _, _ = run(tmp_path, [article(1), article(2, byline_date=future)])
    assert counts["rejected"] == {"date_in_future": 1}


def test_near_duplicates_can_be_kept(tmp_path):
    articles = [article(1), article(4, body=text(1) + "\nAn ending of its own stands here.")]
    assert run(tmp_path, articles)[0]["rejected"] == {"near_duplicate": 1}
    assert run(tmp_path, articles, CleanOptions(near_duplicate_threshold=1.1))[0]["rejected"] == {}


def test_yields_and_their_alarm(tmp_path):
    good = [article(n) for n in range(60)]
    run(tmp_path, good, name="before")
    before = str(tmp_path / "before")
    broken = [dataclasses.replace(one, authors=()) if one.publisher == "p1.example" else one for one in good]
    run(tmp_path, broken, name="after", history=[before])
    table = [line.split("\t") for line in (tmp_path / "after/yields.tsv").read_text().splitlines()]
    assert table[0] == ["publisher", "in", "kept", "duplicates", "yield", "reasons"]
    assert table[1:] == [
        [f"p{n}.example", "20", *(("20", "0", "1.0000", "") if n != 1 else ("0", "0", "0.0000", "no_author:20"))]
        for n in range(3)
    ]
    manifest = json.loads((tmp_path / "after/manifest.json").read_text())
    (alarm,) = manifest["yield_alarms"]
    assert (alarm["publisher"], alarm["kind"], alarm["before"], alarm["now"], alarm["reason"]) == (
        "p1.example",
        "dropped",
        1,
        0,
        "no_author",
    )
    assert json.loads((tmp_path / "before/manifest.json").read_text())["yield_alarms"] == []
    with pytest.raises(InputError, match=r"1 publisher dropped: p1\.example"):
        run(tmp_path, broken, CleanOptions(fail_on_yield_alarm=True), name="strict", history=[before])
    assert not (tmp_path / "strict/manifest.json").exists()


def test_an_empty_corpus_is_reported(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/manifest.json").write_text('{"digest": "x"}')
    with pytest.raises(InputError, match=r"no part-\*\.parquet shards"):
        jobs.execute(JOB, {"articles": [str(tmp_path / "empty")]}, str(tmp_path / "out"), beam_args=ONE)
