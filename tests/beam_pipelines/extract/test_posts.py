"""Posts: their words, and the join with articles by canonical URL."""

import json

import pytest
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.rows import clean_post
from newsembed.formats import parquet
from newsembed.formats.records import Post, make_doc_id
from newsembed.tests.example_inputs import dead_letters, manifest_of

POSTS = """
Storm hits coast https://t.co/x1 http://a.example/b?c -> Storm hits coast
RT @ap: Storm hits coast -> Storm hits coast
Says @noaa: watch #NewOrleans and #climate_change! -> Says : watch New Orleans and climate change !
#USElection2016 #COVID19 #rain -> US Election 2016 COVID 19 rain
write to ann@mail.example now -> write to ann@mail.example now
#Überschwemmung in Köln -> Überschwemmung in Köln
see pic.twitter.com/abc www.x.example/y -> see
@one @two https://t.co/z ->
ART is long -> ART is long
#BigStorm, not #rain,wind -> Big Storm, not rain,wind
"""


@pytest.mark.parametrize("case", POSTS.strip().split("\n"))
def test_urls_and_mentions_go_and_hashtags_become_words(case):
    text, words = case.split(" ->")
    assert clean_post(text) == words.strip()


def rows(path, *values):
    path.write_text("".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values))
    return [str(path)]


@pytest.fixture
def sources(tmp_path):
    articles = [{"url": f"https://www.x.example/{n}?utm_source=a", "title": f"T {n}", "body": "b " * 9} for n in (1, 2)]
    posts = [
        {"text": "Look at this #BigStorm", "url": "http://x.example/1"},
        {"text": "And this", "url": "https://x.example/2/#top"},
        {"text": "Elsewhere", "url": "https://x.example/3"},
        {"text": "@a http://b.example", "url": "https://x.example/1"},
        {"text": "no link"},
        {"url": "https://x.example/1"},
        "{broken",
    ]
    return {"articles": rows(tmp_path / "a.jsonl", *articles), "posts": rows(tmp_path / "p.jsonl", *posts)}


def test_posts_are_joined_by_canonical_url_and_every_other_is_counted(sources, tmp_path):
    output = tmp_path / "out"
    counts = manifest_of(JOB, sources, output)["counts"]
    assert (counts["in"], counts["out"]) == (9, 4)
    assert counts["rejected"] == {"no_content": 1, "no_article": 1}
    assert counts["failed"] == {"missing_field": 2, "broken_record": 1}
    found = parquet.read_stream(f"{output}/posts", Post)
    one, two = "http://x.example/1", "http://x.example/2"
    assert sorted(found, key=lambda post: post.url) == [
        Post(make_doc_id(one), one, "Look at this Big Storm"),
        Post(make_doc_id(two), two, "And this"),
    ]
    (letter,) = dead_letters(output, "join")
    assert (letter.key, letter.reason, letter.sample) == ("http://x.example/3", "no_article", "Elsewhere")
