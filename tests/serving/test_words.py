"""What a word is, BM25 over the words of an index against a plain reference, and where words are in an article."""

import collections
import datetime
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.formats.articles import ArticleText
from newsembed.serving.analysis import clean, stemmer_of, terms, tokens
from newsembed.serving.dates import DateRange
from newsembed.serving.extracts import LENGTH, extract, marked
from newsembed.serving.filters import Filters
from newsembed.serving.words import MAX_WORDS, WordsBuilder

VOCABULARY = ["storm", "coast", "wind", "rain", "vote", "budget", "goal", "match", "river", "bridge"]
DAY = datetime.date(2024, 1, 1)


def article(number, title, body, language="en", publisher="a.example", day=DAY):
    return ArticleText(f"d{number}", f"https://a.example/{number}", publisher, title, body, language, day)


def built(articles):
    with WordsBuilder() as builder:
        builder.add(articles)
    return builder.built()


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
def test_scores_are_bm25_of_title_and_body(query):
    articles = sampled()
    words = built(articles)
    found = words.search(words.read(query), 100)
    scores = bm25([f"{one.title} {one.body}" for one in articles], query.split())
    expected = {number: score for number, score in enumerate(scores) if score > 0}
    assert found.numbers.tolist() == sorted(expected, key=lambda n: (-round(expected[n], 5), n))
    assert found.scores.tolist() == pytest.approx([expected[n] for n in found.numbers.tolist()], rel=1e-5)
    assert words.search(words.read(query), 3).numbers.tolist() == found.numbers.tolist()[:3]


def test_the_rarity_and_the_frequency_of_a_word():
    words = built([article(0, "storm", "storm"), article(1, "storms", ""), article(2, "", "Wind")])
    storm, wind, unknown = words.read("storm winds zzz")
    assert (storm.terms, storm.frequency, storm.text) == (("storm",), 2, "storm")
    assert (wind.terms, wind.frequency, wind.text) == (("wind",), 1, "winds")
    assert (unknown.frequency, unknown.terms) == (0, ("zzz",))
    assert wind.rarity == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert words.search([unknown], 5).numbers.tolist() == []
    assert words.search([storm], 0).numbers.tolist() == []


def test_a_search_with_filters_is_the_search_of_what_passes_them():
    articles = sampled()
    words = built(articles)
    query = words.read("storm wind")
    everything = words.search(query, 100).numbers.tolist()
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
        assert words.search(query, 100, filters).numbers.tolist() == [n for n in everything if passes(n)]
    among = everything[1::2]
    assert words.search(query, 100, among=among).numbers.tolist() == among
    assert words.search(query, 100, among=[]).numbers.tolist() == []


def test_documents_without_a_date_pass_no_range():
    words = built([article(0, "storm", "", day=None), article(1, "storm", "")])
    assert words.search(words.read("storm"), 5, Filters(DateRange(until=DAY))).numbers.tolist() == [1]
    before = Filters(DateRange(until=datetime.date(1960, 1, 1)))
    old = built([article(0, "storm", "", day=datetime.date(1950, 5, 1)), article(1, "storm", "")])
    assert old.search(old.read("storm"), 5, before).numbers.tolist() == [0]


def test_words_are_stems_of_the_language_of_the_article():
    german = article(0, "Überschwemmungen", "Die Häuser wurden evakuiert.", "de")
    words = built([german, article(1, "Floods", "Houses were evacuated.", "en-GB"), article(2, "Повені", "", "uk")])
    for query, number in (
        ("überschwemmung", 0),
        ("uberschwemmung", 0),
        ("HAUS", 0),
        ("flooding", 1),
        ("house", 1),
        ("evacuate", 1),
        ("повені", 2),
    ):
        assert words.search(words.read(query), 5).numbers.tolist() == [number], query
    assert (stemmer_of("de-AT"), stemmer_of("uk"), stemmer_of("")) == ("german", "", "")
    assert words.bodies([0, 2]) == {0: "Die Häuser wurden evakuiert.", 2: ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京大学 in Tokyo", ["東京", "京大", "大学", "in", "tokyo"]),
        ("홍수가", ["홍수", "수가"]),
        ("ประเ", ["ปร", "ระ", "ะเ"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("Ａ１ e\u0301t\u00e9", ["a1", "ete"]),
        ("U.S.-led 3.5% 🌊", ["u", "s", "led", "3", "5"]),
        ("日", ["日"]),
        ("x" * 300, []),
    ],
)
def test_the_words_of_a_text(text, expected):
    assert [token.text for token in tokens(clean(text), "").tokens] == expected
    assert [term.text for term in terms(clean(text), "")] == expected


@given(st.text(max_size=60))
def test_terms_are_where_they_say_and_the_same_as_in_the_index(text):
    text = clean(text)
    found = list(terms(text, "english"))
    assert [term.text for term in found] == [token.text for token in tokens(text, "en").tokens]
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
    found = SMALL.search(words, 50)
    plain = SMALL.read(" ".join(word.text for word in words))
    assert SMALL.search(plain, 50).numbers.tolist() == found.numbers.tolist()


def test_signs_of_query_languages_change_nothing():
    expected = SMALL.search(SMALL.read("storm wind"), 50).numbers.tolist()
    for query in (
        '"storm wind"',
        "+storm -wind",
        "title:storm wind",
        "storm^9 (wind)",
        "storm* ~wind",
        "storm\x00wind",
    ):
        words = [word for word in SMALL.read(query) if word.frequency]
        assert SMALL.search(words, 50).numbers.tolist() == expected, query


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
    assert marked(found.body, found.marks[:1], "[", "]").count("[Storms]") == 1
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
