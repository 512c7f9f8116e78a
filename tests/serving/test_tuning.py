"""Which articles a ranking takes for reports of the same event, and which queries it learns from, without an index."""

import datetime
import random
import types

import numpy as np
import pytest
from newsembed.serving import tuning
from newsembed.serving.tuning import learn_ranking, queries_of

DAY = datetime.date(2020, 5, 10)


class Index:
    """Twelve articles; by words the nearest are 0, 1, 2 …, by vectors 0, 11, 10 …"""

    def __init__(self, days):
        self.documents = [
            types.SimpleNamespace(
                title="" if number == 4 else f"title {number}",
                byline_date=None if day is None else DAY + datetime.timedelta(day),
            )
            for number, day in enumerate(days)
        ]
        self.embeddings = np.arange(12)
        self.words, self.asked = self, []

    def __len__(self):
        return len(self.documents)

    def read(self, text):
        self.asked.append(len(text))
        return [types.SimpleNamespace(frequency=1 + number % 2, rarity=number) for number in range(90)]

    def search(self, words, count):
        self.asked.append((count, [word.rarity for word in words]))
        return types.SimpleNamespace(numbers=np.arange(count))

    def nearest(self, vector, count):
        self.asked.append((count, int(vector)))
        return [(0, 1.0), *((12 - place, 0.5) for place in range(1, count))]


def test_reports_of_an_event_are_near_by_words_or_vectors_and_within_three_days():
    days = [0, 3, 4, -3, -4, None, 0, 0, 1, 2, 3, 3]
    index = Index(days)
    # By words 1 to 5, by vectors 11 to 7; those more than three days away and without a date are left out.
    assert tuning._alike(index, 0, "x" * 3000) == {1, 3, 7, 8, 9, 10, 11}
    frequent = [number for number in range(89, -1, -1) if number % 2]
    assert index.asked == [2000, (6, frequent[:30]), (6, 0)]
    index = Index(days)
    # The same from the day of another article, 0, 2, 3, 4 and 5 by words, and 0 and 11 to 8 by vectors.
    assert tuning._alike(index, 1, "x") == {0, 2, 8, 9, 10, 11}
    assert index.asked[-1] == (6, 1)


def test_without_a_date_an_article_is_near_by_both():
    index = Index([None] * 12)
    assert tuning._alike(index, 0, "x") == set()
    index.nearest = lambda vector, count: [(0, 1.0), (4, 0.9), (3, 0.8), (2, 0.7), (1, 0.6)]
    # By words 1, 2, 3; by vectors 4, 3, 2.
    assert tuning._alike(index, 0, "x") == {2, 3}


@pytest.mark.parametrize("seed", range(8))
def test_words_of_a_query_keep_their_order_and_the_lead_has_two_sentences(seed):
    title, body = "Zulu alpha mike", " Bravo one. Yankee two! Charlie three."
    whole, three, some = queries_of(title, body, random.Random(seed))
    assert (whole, three) == (title, title)
    words = "Zulu alpha mike Bravo one Yankee two".split()
    places = [words.index(word) for word in some.split()]
    assert places == sorted(set(places))
    assert 3 <= len(places) <= 5
    assert list(queries_of("One", "", random.Random(seed))) == ["One"] * 3


def test_the_last_query_has_three_to_five_words():
    drawn = [list(queries_of("a b c", "d e f g h", random.Random(seed)))[2] for seed in range(30)]
    assert {len(query.split()) for query in drawn} == {3, 4, 5}


def test_a_sample_of_two_hundred_articles_is_always_the_same(monkeypatch):
    assert tuning.ARTICLES == 200
    monkeypatch.setattr(tuning, "ARTICLES", 5)
    index, seen = Index([0] * 12), []
    index.bodies = lambda numbers: seen.append(numbers) or dict.fromkeys(numbers, "")
    monkeypatch.setattr(tuning, "_alike", lambda *_: set())
    assert learn_ranking(index, None) is None
    assert seen == [random.Random(0).sample(range(12), 5)]


def test_a_ranking_learns_from_articles_with_titles_and_reports_of_the_same_event(monkeypatch):
    index = Index([0] * 12)
    index.bodies = lambda numbers: {number: f"body {number}" for number in numbers}
    likes = {number: {(number + 1) % 12} for number in range(12)} | {3: set()}
    monkeypatch.setattr(
        tuning,
        "_alike",
        lambda index, number, text: (
            likes[number] if text == f"{index.documents[number].title}\nbody {number}" else None
        ),
    )
    monkeypatch.setattr(tuning, "queries_of", lambda title, body, generator: iter([f"{title} {n}" for n in range(4)]))
    encoded, evidence, learned = [], [], []

    def encode(texts):
        encoded.extend(texts)
        return np.arange(len(texts))

    def found(index, words, vector, without=None):
        evidence.append((int(vector), without))
        return types.SimpleNamespace(numbers=np.array([2, 5, 6]) if without in (1, 4, 5, None) else np.array([0]))

    monkeypatch.setattr(tuning, "evidence", found)
    monkeypatch.setattr(tuning, "learn", lambda found, without: learned.append((found, without)) or "a ranking")
    encoder = types.SimpleNamespace(encode_queries=encode)
    assert learn_ranking(index, encoder) is None  # 40 queries, but those of 1, 5 and 11 alone find what is right
    assert (len(encoded), learned) == (60, [])
    asked = {text.rpartition(" ")[0] for text in encoded[:40]}
    assert asked == {f"title {number}" for number in range(12) if number not in (3, 4)}
    nonsense = [text.split(" ") for text in encoded[40:]]
    assert [len(words) for words in nonsense] == [1, 2, 3, 4] * 5
    assert all(len(word) == 8 and not set(word) & set("aeiouy") for words in nonsense for word in words)
    assert [vector for vector, _ in evidence] == list(range(60))
    assert [without for _, without in evidence[40:]] == [None] * 20
    monkeypatch.setattr(tuning, "_LEAST", 12)
    assert learn_ranking(index, encoder) == "a ranking"
    ((pairs, without),) = learned
    assert (len(pairs), len(without)) == (12, 20)
    assert sorted(right.tolist() for _, right in pairs) == sorted(
        [[True, False, False], [False, False, True], [True]] * 4
    )
    monkeypatch.setattr(tuning, "_LEAST", 41)
    assert learn_ranking(index, encoder) is None
    assert len(encoded) == 120, "too few queries: none is embedded"
