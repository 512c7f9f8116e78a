"""Halves of articles: nothing is lost or on both sides, order, fair draws, and what the job writes and rejects."""

import collections

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.pairs import JOB, PairsOptions
from newsembed.beam_pipelines.pairs.halves import deal, halves_pairs, join_units, words_of
from newsembed.beam_pipelines.pairs.interface import Refusal, Text
from newsembed.beam_pipelines.texts import ArticleText
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Rejection, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.tasks.sentences import split_text
from scipy.stats import binomtest

SENTENCES = ["One aa.", "Two bb!", "Three cc?", "Four dd.", "Five ee."]
BODY = "One aa. Two bb!\nThree cc? Four dd. Five ee."


def article(body, name="a", title="A title"):
    return ArticleText(make_doc_id(name), title, body, "en", ())


def halves(body, name="a", **options):
    return list(halves_pairs(article(body, name), (), PairsOptions(of="halves", **options)))


def sides(body, name="a", **options):
    return [(pair.anchor.body, pair.positive.body) for pair in halves(body, name, **options)]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab .!?\n。新聞", max_size=80), st.integers(0, 3), st.sampled_from(["sentence", "word"]))
def test_the_sides_together_are_the_text_and_each_keeps_its_order(body, seed, unit):
    sentences = split_text(body)
    units = [text for _, text in (sentences if unit == "sentence" else words_of(sentences))]
    found = halves(body, seed=seed, unit=unit)
    if len(sentences) < 2:
        assert found == [Refusal(Rejection.TOO_FEW_SENTENCES, f"{len(sentences)} sentences")]
        return
    ((left, right),) = [(pair.anchor.body, pair.positive.body) for pair in found]
    assert left
    assert right
    dealt = deal(len(units), seed, make_doc_id("a"), 0)
    for side, text in ((True, left), (False, right)):
        own = [one for one, mine in zip(units, dealt, strict=True) if mine != side]
        assert "".join(text.split()) == "".join("".join(own).split())
    assert collections.Counter("".join((left + right).split())) == collections.Counter("".join(body.split()))


def test_no_sentence_is_on_both_sides_and_a_line_break_stays():
    ((left, right),) = sides(BODY)
    parts = [[text for _, text in split_text(side)] for side in (left, right)]
    assert sorted(parts[0] + parts[1]) == sorted(SENTENCES)
    assert parts == [[one for one in SENTENCES if one in part] for part in parts]
    units = split_text(BODY)
    assert join_units(units, [True, False, True, True, False]) == "One aa.\nThree cc? Four dd."
    assert join_units(units, [False, True, False, False, True]) == "Two bb!\nFive ee."


def test_a_word_is_what_stands_between_spaces_and_a_chinese_character():
    assert [word for _, word in words_of([("", "新聞 BBC說 it's."), ("\n", "Ja")])] == [
        "新",
        "聞",
        "BBC",
        "說",
        "it's.",
        "Ja",
    ]
    assert words_of([("", "a b"), ("\n", "c")]) == [("", "a"), (" ", "b"), ("\n", "c")]


def test_a_unit_is_on_the_first_side_as_often_as_on_the_second():
    dealt = [deal(12, seed, make_doc_id(f"a{number}"), 0) for seed in range(2) for number in range(300)]
    for unit in (0, 5, 11):
        assert binomtest(sum(one[unit] for one in dealt), len(dealt)).pvalue > 1e-3
    assert binomtest(sum(map(sum, dealt)), 12 * len(dealt)).pvalue > 1e-3
    # Neighbours are dealt independently.
    assert binomtest(sum(one[3] == one[4] for one in dealt), len(dealt)).pvalue > 1e-3


def test_a_draw_with_an_empty_side_is_repeated():
    dealt = {deal(2, 0, make_doc_id(f"a{number}"), 0) for number in range(50)}
    assert dealt == {(True, False), (False, True)}


def test_the_draw_follows_from_seed_article_and_number_alone():
    assert sides(BODY) == sides(BODY)
    assert len({sides(BODY, f"a{number}")[0] for number in range(20)}) > 5
    assert len({sides(BODY, seed=seed)[0] for seed in range(20)}) > 5
    assert halves(BODY, draws=3)[0] == halves(BODY)[0]


def test_draws_that_give_the_same_two_texts_are_refused():
    found = halves("One aa. Two bb!", draws=4)
    assert sum(isinstance(one, Refusal) for one in found) == 3
    assert {one.reason for one in found if isinstance(one, Refusal)} == {Rejection.DUPLICATE_PAIR}
    texts = [
        frozenset((pair.anchor, pair.positive)) for pair in halves(BODY, draws=90) if not isinstance(pair, Refusal)
    ]
    assert len(texts) == len(set(texts)) == 2**4 - 1  # every way to deal five sentences to two texts


def test_titles_are_dropped_or_on_both_sides_and_the_control_has_the_same_text_twice():
    (both,) = halves(BODY, title="both")
    assert (both.anchor.title, both.positive.title) == ("A title", "A title")
    (dropped,) = halves(BODY)
    assert (dropped.anchor.title, dropped.positive.title) == ("", "")
    (same,) = halves(BODY, unit="none")
    assert same.anchor == same.positive == Text("", BODY)
    assert halves("One aa.", unit="none") == halves("One aa.", unit="word") == halves("One aa.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws"),
        ({"unit": "letter"}, "sentence, word or none"),
        ({"unit": "none", "draws": 2}, "1 with --unit=none"),
        ({"title": "one"}, "drop or both"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        PairsOptions(of="halves", **options)


@pytest.mark.parametrize("option", [{"draws": 2}, {"unit": "word"}, {"title": "both"}])
@pytest.mark.parametrize("of", ["titles", "anchors", "posts"])
def test_an_option_of_halves_is_refused_for_other_pairs(of, option):
    with pytest.raises(InputError, match=f"--{next(iter(option))}: .*--of={of}: it is for --of=halves"):
        PairsOptions(of=of, **option)


def test_the_job_counts_every_draw_and_writes_the_same_bytes_in_other_shards(tmp_path):
    pieces = [*SPECIAL_TOKENS, *(f"w{number}" for number in range(30)), "."]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    bodies = [f"w{n} w{n + 1} w9 . W{n + 2} w{n + 3} w8 . W{n + 4} w{n + 5} w7 ." for n in range(10)] + ["w1 w2 w3 w4"]
    rows = [
        Article(make_doc_id(f"a{n}"), f"http://x/{n}", "x", title="w1", body=body, language="en")
        for n, body in enumerate(bodies)
    ]
    parquet.write_shard(f"{tmp_path}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    files.write_json(f"{tmp_path}/clean/manifest.json", {"digest": "clean"})
    inputs = {"articles": [f"{tmp_path}/clean"], "vocabulary": [f"{tmp_path}/vocab.txt"], "posts": ()}

    def run(output, **options):
        options = PairsOptions(of="halves", max_length=16, **options)
        return jobs.execute(JOB, inputs, f"{tmp_path}/{output}", options, ["--direct_num_workers=1"]).manifest

    counts = run("two", draws=2)["counts"]
    assert counts["in"] == 21
    assert counts["out"] + sum(counts["rejected"].values()) == 21
    assert counts["rejected"]["too_few_sentences"] == 1
    run("again", draws=2)
    records = [sorted((tmp_path / name).rglob("*.tfrecord"))[0].read_bytes() for name in ("two", "again")]
    assert records[0] == records[1]
    assert run("same", unit="none")["counts"]["rejected"] == {"too_few_sentences": 1}
