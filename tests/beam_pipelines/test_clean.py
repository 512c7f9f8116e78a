"""clean: the job, its counters, duplicates against exact similarity."""

import dataclasses
import datetime
import random

from newsembed.beam_pipelines.clean import JOB, CleanOptions
from newsembed.formats import parquet
from newsembed.formats.records import Article, Cluster, make_doc_id
from newsembed.tests.example_inputs import manifest_of, split, write_stream

WORDS = (
    "the council voted on late plans for a bridge over river and town while people watched with great interest as "
    "rain fell again"
).split()


def text(seed, sentences=12):
    draw = random.Random(seed)

    def word(_):
        return draw.choice(WORDS) + (str(draw.randrange(999)) if draw.random() < 0.2 else "")

    return "\n".join(" ".join(map(word, range(12))).capitalize() + "." for _ in range(sentences))


def article(number, **changes):
    url = f"http://p{number % 3}.example/{number}"
    day, authors = datetime.date(2020, 1, 1 + number % 28), ("Ann Lee",)
    texts = f"p{number % 3}.example", f"Title {number}", text(number)
    return dataclasses.replace(Article(make_doc_id(url), url, *texts, authors, day, date_source="meta"), **changes)


OUTPUTS = {"articles": Article, "clusters": Cluster}


def run(tmp_path, articles, options=None, name="out", shards=2, workers=1, **inputs):
    inputs["articles"] = write_stream(tmp_path / f"in-{name}", "articles", split(articles, shards), Article)
    out = str(tmp_path / name)
    manifest = manifest_of(JOB, inputs, out, options or CleanOptions(), workers)
    streams = (list(parquet.read_stream(f"{out}/{name}", kind)) for name, kind in OUTPUTS.items())
    return manifest["counts"], *streams


def test_the_whole_counter_dict(tmp_path):
    articles = [article(n) for n in range(8)]
    articles += [
        article(1),
        article(20, body=articles[2].body.upper() + " "),
        article(21, body=text(3, 12)[:-40] + " An ending of its own stands here."),
        article(22, authors=()),
    ]
    counts, kept, clusters = run(tmp_path, articles, CleanOptions(require_author=True))
    assert counts["rejected"] == {"no_author": 1, "duplicate_url": 1, "duplicate_body": 1, "near_duplicate": 1}
    assert (counts["in"], counts["out"]) == (12, 8)
    assert {one.doc_id for one in kept} == {article(n).doc_id for n in range(8)}
    assert all(one.language == "en" for one in kept)
    kept_ids = [cluster.cluster_id for cluster in clusters if cluster.kept]
    assert sorted(kept_ids) == sorted({cluster.cluster_id for cluster in clusters})
    assert len(clusters) == 6


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
    _, parallel, _ = run(tmp_path, articles, name="parallel", shards=3, workers=2)
    assert sorted(one, key=lambda a: a.doc_id) == sorted(three, key=lambda a: a.doc_id)
    assert three == parallel
    assert len(one) == 30


def test_bad_words_are_an_input_whose_content_counts(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("bridge\n")
    counts, _, _ = run(tmp_path, [article(1)], bad_words=[str(words)])
    assert counts["rejected"] == {"bad_words": 1}
    words.write_text("aqueduct\n")
    counts, kept, _ = run(tmp_path, [article(1)], bad_words=[str(words)])
    assert counts["rejected"] == {}
    assert len(kept) == 1
