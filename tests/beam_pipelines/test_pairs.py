"""Pairs of texts: each kind by hand, what is counted, held-out articles, and equal bytes with any number of workers."""

import collections
import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.pairs import JOB, PairsOptions, Refusal, Text, deal, halves_pairs, words_of
from newsembed.beam_pipelines.texts import ArticleText
from newsembed.errors import InputError
from newsembed.formats.manifest import read_manifest
from newsembed.formats.records import Article, Post, Rejection, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.tasks.sentences import split_text
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.tests import example_inputs
from newsembed.tests.example_inputs import manifest_of, tfrecords, write_stream

WORDS = [f"w{number}" for number in range(60)]
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *WORDS, ".", "?"])


def article(number, **changes):
    own = WORDS[number : number + 8]
    fields = {"title": " ".join(own[:4]), "body": " ".join(own), "language": "en", **changes}
    return Article(make_doc_id(f"a{number}"), f"http://x.example/{number}", "x.example", **fields)


@pytest.fixture
def inputs(tmp_path):
    anchors = ("w1 w2 w3", "W1  w2 w3", "w9 w8", "w30 w31 w32 w33")
    articles = [article(number, anchor_texts=anchors if number == 3 else ()) for number in range(20)]
    articles[5] = article(5, title="")
    articles[6] = article(6, byline_date=datetime.date(2020, 1, 2), language="de")
    articles[8] = article(8, body="w1 w2 w9 . W3 w4 w8 . W5 w6 w7 .")
    posts = [("a1", "w40 w41 w42"), ("a1", "w43 w44 w45"), ("a2", "w1"), ("a2", "w50 w51 w52"), ("gone", "w1 w2 w3 w4")]
    rows = [Post(make_doc_id(name), "http://x.example", text) for name, text in posts]
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [articles[:9], articles[9:], []], Article),
        "vocabulary": example_inputs.write_vocabulary(tmp_path, VOCABULARY),
        "posts": write_stream(tmp_path / "extract", "posts", [rows[:3], rows[3:]], Post),
    }


def run_job(inputs, output, workers=1, **options):
    options = PairsOptions(**{"max_length": 32, **options})
    return manifest_of(JOB, inputs, output, options, workers=workers)


def read_back(output):
    """Each record as (doc_id, words of the anchor, words of the positive, features)."""
    found = []
    for row in example_inputs.read_examples(output, "pairs"):
        (doc_id,), (other,) = (example_inputs.doc_ids_of(row, side) for side in ("anchor", "positive"))
        assert doc_id == other
        tokens = (row["anchor_tokens"], row["positive_tokens"])
        found.append((doc_id, *(" ".join(VOCABULARY.pieces[token] for token in one) for one in tokens), row))
    return found


def test_a_title_is_the_positive_of_its_own_body(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="titles")
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["failed"]) == (20, 19, {})
    assert counts["rejected"] == {"no_other_text": 1}
    assert manifest["examples"] == {"pairs/en": 18, "pairs/de": 1}
    pairs = {doc_id: (anchor, positive, row["day"]) for doc_id, anchor, positive, row in read_back(tmp_path / "out")}
    own = WORDS[6:14]
    assert pairs[make_doc_id("a6")] == (
        f"[CLS] {' '.join(own)} [SEP]",
        f"[CLS] {' '.join(own[:4])} [SEP]",
        (datetime.date(2020, 1, 2) - datetime.date(1970, 1, 1)).days,
    )
    assert pairs[make_doc_id("a7")][2] == 0


def test_link_texts_are_pairs_with_the_whole_article_and_repeats_are_rejected(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="anchors")
    # 19 articles without link texts; of four link texts one is a repeat and one has two tokens.
    assert manifest["counts"]["rejected"] == {"no_other_text": 19, "duplicate_pair": 1, "too_few_tokens": 1}
    assert (manifest["counts"]["in"], manifest["counts"]["out"]) == (23, 2)
    whole = f"[CLS] {' '.join(WORDS[3:7])} [SEP] {' '.join(WORDS[3:11])} [SEP]"
    found = {(anchor, positive) for _, anchor, positive, _ in read_back(tmp_path / "out")}
    assert found == {(whole, "[CLS] w1 w2 w3 [SEP]"), (whole, "[CLS] w30 w31 w32 w33 [SEP]")}


def test_posts_meet_their_article_in_another_shard(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="posts")
    assert manifest["counts"]["rejected"] == {"no_article": 1, "too_few_tokens": 1}
    assert (manifest["counts"]["in"], manifest["counts"]["out"]) == (5, 3)
    texts = {(doc_id, positive) for doc_id, _, positive, _ in read_back(tmp_path / "out")}
    expected = ("a1", "w40 w41 w42"), ("a1", "w43 w44 w45"), ("a2", "w50 w51 w52")
    assert texts == {(make_doc_id(name), f"[CLS] {words} [SEP]") for name, words in expected}
    letters = {(letter.key, letter.reason) for letter in example_inputs.dead_letters(tmp_path / "out", "pairs")}
    assert letters == {(make_doc_id("gone"), "no_article"), (make_doc_id("a2"), "too_few_tokens")}
    with pytest.raises(InputError, match="needs posts"):
        run_job({**inputs, "posts": ()}, tmp_path / "none", of="posts")


@pytest.mark.parametrize("options", [{"of": "posts"}, {"of": "halves", "draws": 2}])
def test_the_same_bytes_with_any_number_of_workers(inputs, tmp_path, options):
    manifests = [run_job(inputs, tmp_path / f"{workers}", workers, **options) for workers in (1, 2)]
    assert tfrecords(tmp_path / "1") == tfrecords(tmp_path / "2") != {}
    counts = manifests[0]["counts"]
    assert counts == manifests[1]["counts"]
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values())


def test_articles_are_held_out_as_a_whole(inputs, tmp_path):
    options = {"of": "titles", "held_out_share": 0.4, "held_out_from": datetime.date(2020, 1, 1)}
    manifest = run_job(inputs, tmp_path / "out", **options)
    training, held_out = ({row[0] for row in read_back(tmp_path / part)} for part in ("out", "out/held_out"))
    assert not training & held_out
    assert len(training | held_out) == 19
    assert make_doc_id("a6") in held_out  # of the day
    assert 3 <= len(held_out) <= 13
    own = read_manifest(f"{tmp_path}/out/held_out")["examples"]
    assert own == manifest["held_out"]["examples"]
    assert sum(own.values()) == len(held_out)
    assert sum(manifest["examples"].values()) == len(training)
    other = run_job(inputs, tmp_path / "other", **options, seed=1)
    assert other["held_out"] != manifest["held_out"] or {row[0] for row in read_back(tmp_path / "other")} != training


def test_long_texts_keep_their_start_or_their_end(inputs, tmp_path):
    for keep in ("start", "end"):
        run_job(inputs, tmp_path / keep, of="titles", max_length=8, keep=keep)
    start, end = ({row[0]: row for row in read_back(tmp_path / keep)} for keep in ("start", "end"))
    one = make_doc_id("a10")
    assert start[one][1] == f"[CLS] {' '.join(WORDS[10:16])} [SEP]"
    assert end[one][1] == f"[CLS] {' '.join(WORDS[12:18])} [SEP]"
    assert start[one][2] == end[one][2]
    assert max(len(row[3]["anchor_tokens"]) for row in end.values()) == 8


def test_nothing_to_write_is_an_error(inputs, tmp_path):
    with pytest.raises(InputError, match="no pairs"):
        run_job(inputs, tmp_path / "out", of="titles", min_tokens=30)
    with pytest.raises(InputError, match="held out"):
        run_job(inputs, tmp_path / "late", of="titles", held_out_from=datetime.date(2030, 1, 1))


BODY = "One aa. Two bb!\nThree cc? Four dd. Five ee."


def halves(body, name="a", **options):
    article = ArticleText(make_doc_id(name), "A title", body, "en", ())
    return list(halves_pairs(article, (), PairsOptions(of="halves", **options)))


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


def test_a_word_is_what_stands_between_spaces_and_a_chinese_character():
    found = [word for _, word in words_of([("", "新聞 BBC說 it's."), ("\n", "Ja")])]
    assert found == ["新", "聞", "BBC", "說", "it's.", "Ja"]
    assert words_of([("", "a b"), ("\n", "c")]) == [("", "a"), (" ", "b"), ("\n", "c")]


def test_draws_that_give_the_same_two_texts_are_refused():
    found = halves("One aa. Two bb!", draws=4)
    assert sum(isinstance(one, Refusal) for one in found) == 3
    assert {one.reason for one in found if isinstance(one, Refusal)} == {Rejection.DUPLICATE_PAIR}
    pairs = [one for one in halves(BODY, draws=90) if not isinstance(one, Refusal)]
    texts = [frozenset((pair.anchor, pair.positive)) for pair in pairs]
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
        ({"of": "halves", "unit": "none", "draws": 2}, "--draws: got 2, expected 1 with --unit=none"),
        ({"of": "titles", "unit": "word"}, "--unit: .*--of=titles: it is for --of=halves"),
        ({"of": "posts", "draws": 2}, "--draws: .*--of=posts: it is for --of=halves"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        PairsOptions(**options)
