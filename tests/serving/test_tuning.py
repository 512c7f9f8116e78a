"""Which articles a ranking takes for reports of the same event, and which queries it learns from, without an index."""

import datetime
import random
import types

import numpy as np
import pyarrow as pa
import pytest
from newsembed.formats.archive import vector_column
from newsembed.serving import tuning
from newsembed.serving.tuning import learn_ranking, queries_of

DAY = datetime.date(2020, 5, 10)


class Index:
    """Twelve articles; by words the nearest are 0, 1, 2 …, by vectors 0, 11, 10 …"""

    def __init__(self, days):
        self.dates = [None if day is None else DAY + datetime.timedelta(day) for day in days]
        self.numbers, self.archive, self.dimensions, self.asked, self.sampled = np.arange(12), self, 1, [], []

    def __len__(self):
        return len(self.dates)

    def take(self, numbers, columns):
        self.sampled.append(numbers)
        titles = ["" if number == 4 else f"title {number}" for number in numbers]
        columns = {"title": titles, "body": [f"body {number}" for number in numbers]}
        vectors = vector_column(np.array(numbers, np.float32)[:, None])
        return pa.table({**columns, "byline_date": [self.dates[number] for number in numbers], "vector": vectors})

    def look_up(self, texts):
        assert len(list(texts)) == len(self.sampled[-1])

    def read(self, text):
        self.asked.append(len(text))
        return [types.SimpleNamespace(frequency=1 + number % 2, rarity=number) for number in range(90)]

    def matching(self, words, count):
        self.asked.append((count, [word.rarity for word in words]))
        return np.arange(count), np.zeros(count)

    def nearest(self, vector, count):
        self.asked.append((count, int(np.squeeze(vector))))
        return np.array([0, *(12 - place for place in range(1, count))]), np.zeros(count)


def alike(index, number, text):
    return tuning._alike(index, number, text, index.dates[number], number)


def test_reports_of_an_event_are_near_by_words_or_vectors_and_within_three_days():
    days = [0, 3, 4, -3, -4, None, 0, 0, 1, 2, 3, 3]
    index = Index(days)
    # By words 1 to 5, by vectors 11 to 7; those more than three days away and without a date are left out.
    assert alike(index, 0, "x" * 3000) == {1, 3, 7, 8, 9, 10, 11}
    frequent = [number for number in range(89, -1, -1) if number % 2]
    assert index.asked == [2000, (6, frequent[:30]), (6, 0)]
    index = Index(days)
    # The same from the day of another article, 0, 2, 3, 4 and 5 by words, and 0 and 11 to 8 by vectors.
    assert alike(index, 1, "x") == {0, 2, 8, 9, 10, 11}
    assert index.asked[-1] == (6, 1)


def test_without_a_date_an_article_is_near_by_both():
    index = Index([None] * 12)
    assert alike(index, 0, "x") == set()
    index.nearest = lambda vector, count: (np.array([0, 4, 3, 2, 1]), None)
    # By words 1, 2, 3; by vectors 4, 3, 2.
    assert alike(index, 0, "x") == {2, 3}


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


def test_a_sample_of_two_hundred_articles_is_always_the_same(monkeypatch):
    assert tuning.ARTICLES == 200
    monkeypatch.setattr(tuning, "ARTICLES", 5)
    index = Index([0] * 12)
    monkeypatch.setattr(tuning, "_alike", lambda *_: set())
    assert learn_ranking(index, None) is None
    assert index.sampled == [random.Random(0).sample(range(12), 5)]


def test_other_reports_count_twice_without_the_source_and_the_article_itself_once_with_it(monkeypatch):
    index, learned = Index([0] * 12), []

    def evidence(index, words, vector, without=None):
        return types.SimpleNamespace(numbers=np.array([n for n in range(12) if n != without]), without=without)

    encoder = types.SimpleNamespace(encode_queries=lambda texts: np.zeros((len(texts), 1)))
    monkeypatch.setattr(tuning, "evidence", evidence)
    monkeypatch.setattr(tuning, "learn", lambda found, nothing: learned.extend(found))
    learn_ranking(index, encoder)
    right = [({*each.numbers[is_right].tolist()}, each.without) for each, is_right in learned]
    for number in range(12):
        itself = right.count(({number}, None))
        others = right.count(({*alike(index, number, "x")} - {number}, number))
        assert (itself, others) == ((0, 0) if number == 4 else (3, 6))  # 4 has no title


def test_queries_have_whole_words_of_scripts_with_marks():
    title, *parts = queries_of("सुनामी से नगर डूबा", "हज़ारों लोग बेघर हुए।", random.Random(0))
    assert {*" ".join(parts).split()} <= {*"सुनामी से नगर डूबा हज़ारों लोग बेघर हुए".split()}
