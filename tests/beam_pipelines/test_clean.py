"""clean: each rule, the counters, duplicates against exact similarity."""

import dataclasses
import datetime
import random

import numpy as np
import pytest
from newsembed.beam_pipelines import jobs, parquet
from newsembed.beam_pipelines.clean import JOB, CleanOptions
from newsembed.beam_pipelines.clean.duplicates import EDGE, KEPT, REASONS, find_clusters, find_edges, minhash, shingles, sign
from newsembed.beam_pipelines.clean.rules import clean_lines, cleaned, count_words, rejection_of
from newsembed.beam_pipelines.records import Article, Cluster, Rejection, make_doc_id
from newsembed.tasks.errors import InputError

ONE = ["--direct_num_workers=1"]
WORDS = [
    "the",
    "council",
    "voted",
    "on",
    "late",
    "plans",
    "for",
    "a",
    "bridge",
    "over",
    "river",
    "and",
    "town",
    "while",
    "people",
    "watched",
    "with",
    "great",
    "interest",
    "as",
    "rain",
    "fell",
    "again",
]


def text(seed, sentences=12):
    draw = random.Random(seed)
    return "\n".join(
        " ".join(draw.choice(WORDS) + (str(draw.randrange(999)) if draw.random() < 0.2 else "") for _ in range(12)).capitalize() + "."
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


def run(tmp_path, articles, options=None, name="out", shards=2, args=ONE):
    source = tmp_path / f"in-{name}"
    for index in range(shards):
        parquet.write_shard(str(source / f"articles/part-{index:05d}-of-{shards:05d}.parquet"), articles[index::shards], Article)
    (source / "manifest.json").write_text('{"digest": "x"}')
    out = str(tmp_path / name)
    counts = jobs.execute(JOB, {"articles": [str(source)]}, out, options or CleanOptions(), args).manifest["counts"]
    return counts, list(parquet.read_stream(f"{out}/articles", Article)), list(parquet.read_stream(f"{out}/clusters", Cluster))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"title": ""}, Rejection.NO_TITLE),
        ({"authors": ()}, Rejection.NO_AUTHOR),
        ({"byline_date": None}, Rejection.NO_BYLINE_DATE),
        ({"byline_date": datetime.date(1900, 1, 1)}, Rejection.IMPLAUSIBLE_DATE),
        (
            {"byline_date": datetime.date(2021, 1, 3), "fetched_at": datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)},
            Rejection.IMPLAUSIBLE_DATE,
        ),
        ({"byline_date": datetime.date(2021, 1, 2), "fetched_at": datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)}, None),
        ({"body": "Too short. Really. It is."}, Rejection.TOO_FEW_WORDS),
        ({"body": "menu item\n" * 50}, Rejection.NO_TERMINAL_PUNCTUATION),
        ({"body": "word " * 150 + "."}, Rejection.TOO_FEW_SENTENCES),
        ({"body": text(1) + "\nLorem ipsum dolor sit amet."}, Rejection.PLACEHOLDER_TEXT),
        ({"body": (text(1, 6) + "\n") * 3}, Rejection.REPEATED_TEXT),
        ({"title": "404 Not Found"}, Rejection.COOKIE_OR_ERROR_PAGE),
    ],
)
def test_each_rule_turns_down_what_it_names(changes, reason):
    options = CleanOptions()
    broken = rejection_of(cleaned(article(1, **changes), options), options)
    assert (broken[0] if broken else None) == reason


def test_rules_are_options():
    loose = CleanOptions(min_words=2, require_author=False, require_byline_date=False, min_sentences=0, require_terminal_punctuation=False)
    assert rejection_of(cleaned(article(1, authors=(), byline_date=None, body="Two words"), loose), loose) is None
    strict = CleanOptions(refuse_curly_braces=True)
    assert rejection_of(cleaned(article(1, body=text(1) + "\nA {brace}."), strict), strict)[0] is Rejection.CURLY_BRACE
    with pytest.raises(InputError, match="--bands"):
        CleanOptions(bands=13)


def test_words_and_lines():
    assert count_words("two words") == 2
    assert count_words("新聞記事") == 2
    assert (
        clean_lines("A sentence.\nmenu\nWe use cookies to improve. Read our privacy policy.\n Second one! ", CleanOptions())
        == "A sentence.\nSecond one!"
    )


SPANISH = (
    "El alcalde de la ciudad presento ayer el plan para ampliar el puerto. Los vecinos del barrio piden que se respete el parque. "
    "La obra costara doce millones y empezara en otono, segun el ayuntamiento. "
)


@pytest.mark.parametrize(("declared", "language"), [("", "es"), ("es-MX", "es"), ("en", "es"), ("de", "es"), ("xx", "es")])
def test_a_declared_language_does_not_overrule_a_clear_text(declared, language):
    assert cleaned(article(1, title="Plan del puerto", body=SPANISH * 3, language=declared), CleanOptions()).language == language


def test_a_declared_language_decides_between_near_ones(monkeypatch):
    import resiliparse.parse.lang

    monkeypatch.setattr(resiliparse.parse.lang, "detect_fast", lambda *_, **__: [("gl", 256), ("es", 260), ("pt", 285)])
    found = {declared: cleaned(article(1, language=declared), CleanOptions()).language for declared in ("", "es-ES", "ES", "pt", "en")}
    assert found == {"": "gl", "es-ES": "es", "ES": "es", "pt": "gl", "en": "gl"}


def test_a_text_of_no_language_is_rejected(tmp_path):
    noise = " ".join(f"zq{n}x." for n in range(150))
    counts, kept, _ = run(tmp_path, [article(1), article(2, title="zq", body=noise)], CleanOptions(max_language_distance=600))
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
    assert sorted(cluster.cluster_id for cluster in clusters if cluster.kept) == sorted({cluster.cluster_id for cluster in clusters})
    assert len(clusters) == 6


def test_the_earliest_of_a_cluster_is_kept(tmp_path):
    dated = [article(n, body=text(7), byline_date=datetime.date(2020, 3, 10 - n)) for n in range(4)]
    _, kept, _ = run(tmp_path, dated)
    assert [one.byline_date for one in kept] == [datetime.date(2020, 3, 7)]


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
        errors.append(np.mean(minhash(first, 112) == minhash(second, 112)) - len(a & b) / len(a | b))
    assert abs(np.mean(errors)) < 0.03
    assert np.max(np.abs(errors)) < 0.2


def edges_of(*pairs):
    edges = np.zeros(len(pairs), EDGE)
    for edge, (one, two, reason) in zip(edges, pairs, strict=True):
        edge["one"], edge["two"], edge["reason"] = one, two, REASONS.index(reason)
    return edges


def test_clusters_follow_chains_across_shards():
    a, b, c, d = ((n, n + 10, n % 2, n) for n in range(4))  # ordinal, doc_id, shard, row
    near, url = Rejection.NEAR_DUPLICATE, Rejection.DUPLICATE_URL
    found = find_clusters([edges_of((b, c, near)), edges_of(), edges_of((a, b, near), (c, d, url))])
    assert [tuple(one) for one in found[["shard", "row", "cluster"]].tolist()] == [(0, 0, 10), (1, 1, 10), (0, 2, 10), (1, 3, 10)]
    assert found["reason"].tolist() == [KEPT, *(REASONS.index(reason) for reason in (near, url, url))]


def test_no_edges_are_no_clusters():
    assert len(find_clusters([edges_of()])) == 0


@pytest.mark.parametrize("copies", [2, 60])
def test_the_members_of_a_bucket_are_connected_whatever_its_size(tmp_path, copies):
    entries, sketches = zip(*(sign(article(1, doc_id=f"{n:016x}"), n % 2, n // 2, CleanOptions()) for n in range(copies)), strict=True)
    paths = []
    for shard in range(2):
        paths.append(str(tmp_path / f"{shard}.npy"))
        np.save(paths[-1], np.array(sketches[shard::2]))
    edges = find_edges(np.concatenate(entries), paths, 0.8)
    assert set(edges["reason"].tolist()) == {1, 2}
    for reason in (1, 2):
        assert np.unique(find_clusters([edges[edges["reason"] == reason]])["cluster"]).tolist() == [0]
    assert len(find_edges(np.concatenate(entries)[:0], paths, 0.8)) == 0


def test_bad_words_are_a_file(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("bridge\n")
    counts, _, _ = run(tmp_path, [article(1)], CleanOptions(bad_words=str(words)))
    assert counts["rejected"] == {"bad_words": 1}


def test_an_empty_corpus_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/manifest.json").write_text('{"digest": "x"}')
    with pytest.raises(InputError, match=r"no part-\*\.parquet shards"):
        jobs.execute(JOB, {"articles": [str(tmp_path / "empty")]}, str(tmp_path / "out"), beam_args=ONE)
