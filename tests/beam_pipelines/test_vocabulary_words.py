"""Vocabularies of whole words: which words are kept, in which order, and what the tokenizer makes of them."""

import collections
import importlib.util

import numpy as np
import pytest
from newsembed.beam_pipelines.vocabulary import JOB, VocabularyOptions
from newsembed.beam_pipelines.vocabulary_learning import WordCounter, WordUse, choose_words, is_stop_word, merge_uses
from newsembed.formats.records import Article, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS, UNK_ID
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.tests.example_inputs import manifest_of, split, write_stream


def use(word, documents, language="en", tagged=0, wanted=0):
    return WordUse(word, language, documents, tagged, wanted)


def chosen(*words, size=10):
    reasons = collections.Counter()
    texts = [WordUse("", *row, 0, 0) for row in (("de", 100), ("en", 100), ("sw", 3))]
    return choose_words([texts, *words], size, 2, 0.25, lambda reason: reasons.update([reason])), reasons


def test_the_words_in_the_most_texts_come_first_and_ties_by_code_point():
    words = [[use("vote", 9)], [use("flood", 9)], [use("mayor", 11), use("mayor", 3, "de")], [use("cup", 4)]]
    assert chosen(*words, size=3)[0] == ["mayor", "flood", "vote"]


def test_each_rule_leaves_out_its_words():
    words, reasons = chosen(
        [use("the", 9)],
        [use("die", 5), use("die", 9, "de")],  # a stop word of one of its languages
        [use("2019", 9)],
        [use("x", 9)],
        [use("火", 9)],  # a letter that is a word
        [use("once", 1)],
        [use("police", 26)],
        [use("yesterday", 25)],
        [use("habari", 3, "sw")],  # a share of three texts means nothing
    )
    assert words == ["yesterday", "火", "habari"]
    assert reasons == {
        "stop words": 2,
        "words without a letter, or of one": 2,
        "words that are too rare": 1,
        "words that too many texts have": 1,
    }


def test_tags_decide_where_there_are_some():
    words, reasons = chosen(
        [use("house", 60, tagged=10, wanted=5)],  # half; and no limit on the share of texts
        [use("rebuilds", 9, tagged=10, wanted=4)],
        [use("ville", 9, "fr")],  # a language without a tagger
    )
    assert words == ["house", "ville"]
    assert reasons == {"words of other parts of speech": 1}


def test_uses_of_all_shards_are_added_up_by_word_and_language():
    shards = [
        [use("a", 1, tagged=3, wanted=2), use("b", 2, "de"), use("b", 4, "en")],
        [use("a", 5, tagged=1), use("b", 1, "de")],
        [],
    ]
    assert list(merge_uses(shards)) == [[use("a", 6, tagged=4, wanted=2)], [use("b", 3, "de"), use("b", 4, "en")]]


@pytest.mark.parametrize(
    ("word", "language", "expected"),
    [("the", "en", True), ("fire", "en", False), ("über", "de", True), ("the", "de", False), ("the", "xx", False)],
)
def test_stop_words_are_those_of_the_language(word, language, expected):
    assert is_stop_word(word, language) is expected


@pytest.mark.skipif(importlib.util.find_spec("HanTa") is None, reason="HanTa is not installed")
def test_the_tagger_reads_the_text_as_published():
    counter = WordCounter(["NOUN", "PROPN"])
    text = "The mayor of London rebuilds old houses."
    counter.add(text, text.casefold().replace(".", " ."), "en", 2)
    counter.add("Meya wa mji", "meya wa mji", "sw", 1)
    found = {one.word: one for one in counter.uses()}
    assert found["london"] == use("london", 2, tagged=2, wanted=2)
    assert found["houses"] == use("houses", 2, tagged=2, wanted=2)
    assert found["rebuilds"] == use("rebuilds", 2, tagged=2, wanted=0)
    assert found["meya"] == use("meya", 1, "sw")


def articles():
    rng = np.random.default_rng(0)
    words = [f"{first}{second}{third}" for first in "kmp" for second in "aeiou" for third in ("lor", "nem", "rat")]
    return [
        Article(make_doc_id(str(number)), "u", "p", f"The {words[number % 45]}", " ".join(rng.choice(words, 6)) + ".",
                language="en")
        for number in range(90)
    ]  # fmt: skip


def run(tmp_path, rows, name, shards, **options):
    inputs = {"articles": write_stream(tmp_path / f"clean-{name}", "articles", split(rows, shards), Article)}
    options = VocabularyOptions(**{"size": 100, "words": True} | options)
    return manifest_of(JOB, inputs, tmp_path / name, options)


def test_the_job_writes_whole_words_whatever_the_shards(tmp_path):
    rows = articles()
    manifest = run(tmp_path, rows, "two", 2)
    run(tmp_path, rows, "one", 1)
    assert (tmp_path / "two/vocab.txt").read_bytes() == (tmp_path / "one/vocab.txt").read_bytes()
    vocabulary = Vocabulary.load(str(tmp_path / "two/vocab.txt"))
    counts = collections.Counter(word for row in rows for word in {*row.body[:-1].split(), row.title.split()[1]})
    expected = sorted((word for word in counts if counts[word] <= 22), key=lambda word: (-counts[word], word))
    assert vocabulary.file().pieces == (*SPECIAL_TOKENS, *expected)
    assert manifest["counts"]["in"] == manifest["counts"]["out"] == 90
    assert manifest["vocabulary"]["pieces"] == len(expected) + 5
    first = expected[0]
    (ids,) = vocabulary.encode_texts([f"the {first} {first}s, unheard"])
    assert ids.tolist() == [UNK_ID, 5, UNK_ID, UNK_ID, UNK_ID]
