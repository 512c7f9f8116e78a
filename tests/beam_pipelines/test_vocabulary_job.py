"""The vocabulary job: smoothing, repeatable learning, manifest, bad input."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.vocabulary import JOB, VocabularyOptions, copies_of, smoothed_rates
from newsembed.beam_pipelines.vocabulary_learning import WordCount, choose_alphabet, learn_pieces
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS, UNK_ID
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.tests.example_inputs import manifest_of, write_stream

ENGLISH = "the senate votes on the budget of the city while police report {} arrests near the river bank"
GREEK = "η βουλή ψηφίζει τον προϋπολογισμό της πόλης και η αστυνομία αναφέρει {} συλλήψεις"


def articles(count, language="en", text=ENGLISH):
    return [
        Article(make_doc_id(f"{language}{i}"), "u", "p", f"Title {i}", text.format(i) * 3, language=language)
        for i in range(count)
    ]


def run_job(tmp_path, shards, name="out", **options):
    inputs = {"articles": write_stream(tmp_path / f"clean-{name}", "articles", shards, Article)}
    return manifest_of(JOB, inputs, tmp_path / name, VocabularyOptions(**options))


def test_rates_are_the_papers():
    documents = {"en": 1000, "el": 100, "sw": 1, "none": 0}
    rates = smoothed_rates(documents, 0.7)
    assert set(rates) == {"en", "el", "sw"}
    for language, rate in rates.items():
        assert rate * documents[language] == pytest.approx(1000 * (documents[language] / 1000) ** 0.7)
    capped = smoothed_rates(documents, 0.7, max_documents=500)
    assert sum(capped[language] * documents[language] for language in capped) == pytest.approx(500)
    assert capped["el"] / capped["en"] == pytest.approx(rates["el"] / rates["en"])
    assert smoothed_rates({}, 0.7) == {}


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 5))
def test_copies_round_by_the_fraction(rate):
    copies = [copies_of(make_doc_id(str(number)), rate) for number in range(2_000)]
    assert set(copies) <= {math.floor(rate), math.floor(rate) + 1}
    assert sum(copies) / 2_000 == pytest.approx(rate, abs=0.06)


def test_learning_finds_frequent_words_and_repeats():
    words = list(itertools.starmap(WordCount, {"low": 50, "lower": 20, "newest": 60, "x\U0010fffe": 1, "!": 5}.items()))
    learned = learn_pieces(lambda: words, 200, 2)
    assert learned.pieces[:5] == SPECIAL_TOKENS
    assert {"newest", "low", "!"} <= set(learned.pieces)
    assert (learned.words, learned.words_outside) == (135, 1)
    assert len(set(learned.pieces)) == len(learned.pieces)
    assert learned == learn_pieces(lambda: words, 200, 2)


def test_alphabet_keeps_latin_letters_and_the_most_frequent():
    counts = {(False, "π"): 9, (True, "π"): 3, (False, "中"): 4, (True, "a"): 1, (False, "ж"): 1}
    assert (False, "z") in choose_alphabet(counts, 2, 100)
    wide = choose_alphabet(counts, 2, 100)
    assert {(False, "π"), (True, "π"), (False, "中")} <= set(wide)
    assert (False, "ж") not in wide
    narrow = choose_alphabet(counts, 2, 72 + 2)
    assert set(wide) - set(narrow) == {(True, "π")}
    assert (False, "ж") in choose_alphabet(counts, 1, 100)
    assert (True, "π") in choose_alphabet(counts, 3, 100)  # seen exactly as often as asked
    assert choose_alphabet(counts, 2, 100)[:4] == [(False, "π"), (False, "中"), (True, "π"), (True, "a")]


def test_job_learns_every_language_whatever_the_shards(tmp_path):
    corpus = articles(60) + articles(8, "el", GREEK)
    manifest = run_job(tmp_path, [corpus[:30], corpus[30:], []], "three", size=400)
    again = run_job(tmp_path, [corpus], "one", size=400)
    vocabulary = Vocabulary.load(str(tmp_path / "three/vocab.txt"))
    assert (tmp_path / "three/vocab.txt").read_bytes() == (tmp_path / "one/vocab.txt").read_bytes()
    assert manifest["counts"]["in"] == manifest["counts"]["out"] == 68
    assert manifest["vocabulary"] == again["vocabulary"]
    assert manifest["vocabulary"]["sha256"] == vocabulary.digest
    assert manifest["vocabulary"]["languages"]["el"]["copies_each"] == pytest.approx((8 / 60) ** -0.3, abs=1e-4)
    ids = vocabulary.encode_texts([ENGLISH.format(7), GREEK.format(7)])
    assert all(UNK_ID not in row for row in ids)
    assert not list((tmp_path / "three").glob("_*"))


def test_sampling_is_named_and_counted(tmp_path):
    corpus = articles(80)
    manifest = run_job(tmp_path, [corpus[:40], corpus[40:]], size=200, max_documents=40)
    counts = manifest["counts"]
    assert counts["in"] == 80 == counts["out"] + counts["rejected"]["not_sampled"]
    assert 20 <= counts["out"] <= 60
    letters = list(parquet.read_batches(str(tmp_path / "out/dead_letters/sample/part-00000-of-00002.parquet")))
    assert "en is taken 0.5" in letters[0].column("detail")[0].as_py()


def test_an_empty_corpus_is_refused(tmp_path):
    with pytest.raises(InputError, match="no articles"):
        run_job(tmp_path, [[]])
    assert not (tmp_path / "out/manifest.json").exists()
