"""What a word is, BM25 over the words of an index against a plain reference, and where words are in an article."""

import collections
import datetime
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.formats import archive
from newsembed.formats.articles import ArticleText
from newsembed.serving.analysis import clean, stemmer_of, terms, words_of
from newsembed.serving.extracts import LENGTH, extract
from newsembed.serving.filters import DateRange, Filters
from newsembed.serving.index import MAX_WORDS, DocumentIndex
from tables import index_of

VOCABULARY = ["storm", "coast", "wind", "rain", "vote", "budget", "goal", "match", "river", "bridge"]
DAY = datetime.date(2024, 1, 1)


def article(number, title, body, language="en", publisher="a.example", day=DAY):
    return ArticleText(f"d{number}", f"https://a.example/{number}", publisher, title, body, language, day)


def built(articles):
    return index_of(np.ones((len(articles), 2), np.float32), articles)


def numbers(found):
    return found[0].tolist()


def sampled(count=60, seed=0):
    generator = random.Random(seed)
    return [
        article(
            number,
            " ".join(generator.choices(VOCABULARY, k=generator.randint(1, 6))),
            " ".join(generator.choices(VOCABULARY[: 4 + number % 7], k=generator.randint(0, 30))),
            day=DAY + datetime.timedelta(number),
            publisher=f"p{number % 3}.example",
        )
        for number in range(count)
    ]


def bm25(texts, query):
    """Okapi BM25 of each text for a list of words, k1 = 1.2 and b = 0.75."""
    split = [text.split() for text in texts]
    average = sum(map(len, split)) / len(split)
    scores = []
    for words in split:
        counts, score = collections.Counter(words), 0.0
        for word in query:
            having = sum(word in other for other in split)
            rarity = math.log(1 + (len(split) - having + 0.5) / (having + 0.5))
            norm = counts[word] + 1.2 * (0.25 + 0.75 * len(words) / average)
            score += rarity * 2.2 * counts[word] / norm
        scores.append(score)
    return scores


@pytest.mark.parametrize("query", ["storm", "goal river", "wind rain coast bridge"])
def test_scores_are_bm25_of_the_title_twice_and_the_body(query):
    articles = sampled()
    words = built(articles)
    found, given = words.matching(words.read(query), 100)
    scores = bm25([f"{one.title} {one.title} {one.body}" for one in articles], query.split())
    expected = {number: score for number, score in enumerate(scores) if score > 0}
    assert found.tolist() == sorted(expected, key=lambda n: (-round(expected[n], 5), n))
    assert given.tolist() == pytest.approx([expected[n] for n in found.tolist()], rel=1e-5)
    assert numbers(words.matching(words.read(query), 3)) == found.tolist()[:3]


def test_the_rarity_and_the_frequency_of_a_word():
    words = built([article(0, "storm", "storm"), article(1, "storms", ""), article(2, "", "Wind")])
    storm, wind, unknown = words.read("storm winds zzz")
    assert (storm.terms, storm.frequency, storm.text) == (("storm",), 2, "storm")
    assert (wind.terms, wind.frequency, wind.text) == (("wind",), 1, "winds")
    assert (unknown.frequency, unknown.terms) == (0, ("zzz",))
    assert wind.rarity == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert numbers(words.matching([unknown], 5)) == []
    assert numbers(words.matching([storm], 0)) == []


def test_words_that_are_read_at_once_are_not_looked_up(monkeypatch):
    index = built(sampled())
    expected = index.read("storm budget mountain")
    for most, looked_up in ((1_000, 0), (3, 2)):
        monkeypatch.setattr(archive, "_TERMS_KNOWN", most)
        other = DocumentIndex(archive.Archive(index.archive.uri))
        other.archive.read_terms()
        asked = []
        monkeypatch.setattr(archive, "any_of", lambda _, part, asked=asked: asked.extend(part) or "false")
        other.read("storm budget")
        assert len(asked) == looked_up
        monkeypatch.undo()
        if not looked_up:
            assert other.read("storm budget mountain") == expected


def test_a_search_with_filters_is_the_search_of_what_passes_them():
    articles = sampled()
    words = built(articles)
    query = words.read("storm wind")
    everything = numbers(words.matching(query, 100))
    dates = DateRange(DAY + datetime.timedelta(5), DAY + datetime.timedelta(40))

    def publisher(number):
        return articles[number].publisher

    for filters, passes in (
        (Filters(dates), lambda n: 5 <= n <= 40),
        (Filters(DateRange(since=DAY + datetime.timedelta(30))), lambda n: n >= 30),
        (Filters(publishers=("p1.example",)), lambda n: publisher(n) == "p1.example"),
        (Filters(publishers=("p0.example", "p2.example")), lambda n: publisher(n) != "p1.example"),
        (Filters(dates, ("en",), ("p1.example",)), lambda n: 5 <= n <= 40 and publisher(n) == "p1.example"),
        (Filters(languages=("de",)), lambda n: False),
    ):
        assert numbers(words.matching(query, 100, filters)) == [n for n in everything if passes(n)]
    among = everything[1::2]
    assert numbers(words.matching(query, 100, among=among)) == among
    assert numbers(words.matching(query, 100, among=[])) == []


def test_words_are_stems_of_the_language_of_the_article():
    german = article(0, "Überschwemmungen", "Die Häuser wurden evakuiert.", "de")
    words = built([german, article(1, "Floods", "Houses were evacuated.", "en-GB"), article(2, "Повені", "", "uk")])
    for query, number in (
        *(("überschwemmung", 0), ("uberschwemmung", 0), ("HAUS", 0)),
        *(("flooding", 1), ("house", 1), ("evacuate", 1), ("повені", 2)),
    ):
        assert numbers(words.matching(words.read(query), 5)) == [number], query
    assert (stemmer_of("de-AT"), stemmer_of("uk"), stemmer_of("")) == ("german", "", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京大学 in Tokyo", ["東京", "京大", "大学", "in", "tokyo"]),
        ("홍수가", ["홍수", "수가"]),
        ("ประเ", ["ปร", "ระ", "ะเ"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("Ａ１ e\u0301t\u00e9", ["a1", "ete"]),
        ("U.S.-led 3.5% 🌊", ["us", "led", "3", "5"]),
        ("日", ["日"]),
        ("x" * 300, []),
    ],
)
def test_the_words_of_a_text(text, expected):
    assert words_of(text, "").split() == expected
    assert [term.text for term in terms(clean(text), "")] == expected


@given(st.text(max_size=60))
def test_terms_are_where_they_say_and_the_same_as_in_the_index(text):
    text = clean(text)
    found = list(terms(text, "english"))
    assert [term.text for term in found] == words_of(text, "en").split()
    assert all(0 <= term.start < term.end <= len(text) for term in found)
    for term in found:
        assert list(terms(text[term.start : term.end], "english"))[0].text == term.text


SMALL = built(sampled(20))


@settings(deadline=None, max_examples=150)
@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(["storm", '"', "title:", "AND", "NOT", "-wind", "+", "(", "*", "\x00", "🌊", "洪水", "^2", "~"])
    ).map(" ".join)
)
def test_no_query_is_an_error_and_signs_are_no_operators(query):
    words = SMALL.read(query)
    assert all(word.text in clean(query) for word in words)
    found = numbers(SMALL.matching(words, 50))
    plain = SMALL.read(" ".join(word.text for word in words))
    assert numbers(SMALL.matching(plain, 50)) == found


def test_of_a_long_query_the_rarest_words_count():
    bodies = [" ".join(f"w{n}x" for n in range(number, 100)) for number in range(100)]
    words = built([article(number, "", body) for number, body in enumerate(bodies)])
    read = words.read(" ".join(f"w{n}x" for n in range(100)) + " unknown")
    assert len(read) == MAX_WORDS
    assert {word.text for word in read} == {f"w{n}x" for n in range(MAX_WORDS)}


def test_an_extract_shows_the_part_with_most_words():
    filler = "Nothing of note happened on the day. " * 30
    body = f"{filler}Storms broke the old bridge.\nThe river rose. {filler}"
    found = extract("The River", body, {"storm": 1.0, "bridg": 2.0, "river": 1.0}, "english")
    assert found.title == ((4, 9),)
    assert [found.body[start:end] for start, end in found.marks] == ["Storms", "bridge", "river"]
    assert found.body.startswith("… ")
    assert found.body.endswith(" …")
    assert "\n" not in found.body
    assert len(found.body) <= LENGTH + 4
    nothing = extract("Title", body, {"absent": 1.0}, "english")
    assert (nothing.title, nothing.marks) == ((), ())
    assert nothing.body.startswith("Nothing of note")
    assert extract("", "", {"a": 1.0}, "").to_dict() == {"title_marks": [], "extract": "", "extract_marks": []}


def test_pairs_of_characters_that_touch_are_one_mark():
    found = extract("東京大学の研究", "", {"東京": 1.0, "京大": 1.0, "研究": 1.0}, "")
    assert found.title == ((0, 3), (5, 7))


@given(st.text(max_size=400), st.sets(st.text("ab c", min_size=1, max_size=3)))
def test_marks_are_inside_their_texts(body, known):
    found = extract(body[:40], body, dict.fromkeys(known, 1.0), "")
    for text, places in ((body[:40], found.title), (found.body, found.marks)):
        assert all(0 <= start < end <= len(text) for start, end in places)
        assert all(one[1] < other[0] for one, other in zip(places, places[1:], strict=False))


@pytest.mark.parametrize(
    ("text", "query", "language"),
    [
        ("In\u00adspec\u00adtion", "inspections", "en"),
        ("In\u200bspec\u2060tion", "inspection", "en"),
        ("\u0130STANBUL BELED\u0130YES\u0130", "istanbul belediyesi", "tr"),
        ("I\u011eDIR", "\u0131\u011fd\u0131r", "tr"),
        ("\u0130stanbul", "ISTANBUL", "en"),
        ("BAKI", "bak\u0131", "az"),
        ("\uff2e\uff21\uff34\uff2f \uff12\uff10\uff12\uff14", "nato 2024", "ja"),
        ("\uff8a\uff9f\uff9d\u3068\uff83\uff9e\uff70\uff80", "\u30d1\u30f3\u3068\u30c7\u30fc\u30bf", "ja"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u064a\u062e\u0648\u0627\u0647\u0645", "fa"),
        ("\u06f2\u06f0\u06f2\u06f4", "2024", "fa"),
        ("\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd", "he"),
        ("\u043e\u0431\u02bc\u0454\u043a\u0442", "\u043e\u0431'\u0454\u043a\u0442", "uk"),
        ("The U.S. and the U.K.", "the us and the uk", "en"),
        ("U.S.-led talks, p. 7", "US led talks p 7", "en"),
        ("D.C.", "dc", ""),
        ("www.a.b.example", "www a b example", "en"),
    ],
)
def test_one_word_has_one_form_however_it_is_written(text, query, language):
    assert words_of(text, language) == words_of(query, language)
    whole = clean(text)
    found = terms(whole, stemmer_of(language))
    assert " ".join(term.text for term in found) == words_of(text, language)
    assert all(0 <= term.start < term.end <= len(whole) for term in found)


def test_places_are_those_of_the_text_as_it_is_written():
    text = "In\u00adspec\u00adtion of \uff8a\uff9f\uff9d by the U.S. Army"
    places = [(term.text, text[term.start : term.end]) for term in terms(text, "english")]
    written = {"inspect": "In\u00adspec\u00adtion", "of": "of", "\u30d1\u30f3": "\uff8a\uff9f\uff9d", "by": "by"}
    assert places == [*written.items(), ("the", "the"), ("us", "U.S"), ("armi", "Army")]


def test_places_of_some_words_are_those_of_all_words_without_the_others():
    text = "The U.S. coast, the Überfälle: 洪水が coast's edge"
    for stemmer in ("english", "german", ""):
        every = terms(text, stemmer)
        for among in ({"us", "coast"}, {"洪水"}, set()):
            assert terms(text, stemmer, among) == [term for term in every if term.text in among]
