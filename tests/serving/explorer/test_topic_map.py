"""The map of events: near events are similar, topics are groups of them, labels are words of their titles."""

import numpy as np
import pytest
from newsembed.formats.archive import IndexedDocument
from newsembed.formats.articles import ArticleText
from newsembed.serving.explorer import topic_map
from newsembed.serving.explorer.topic_map import _labels, draw
from tables import index_of

NAMES = ["flood", "trial", "derby"]
COUNT = 8
REST = 300  # other articles of the index, so that no topic has a twentieth of all titles


def drawn():
    generator = np.random.default_rng(0)
    rows = np.repeat(np.eye(3, 16, dtype=np.float32), COUNT, axis=0) + generator.normal(0, 0.05, (3 * COUNT, 16))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    titles = [[f"the {NAMES[place // COUNT]} of town", f"the {NAMES[place // COUNT]}"] for place in range(3 * COUNT)]
    documents = [IndexedDocument(f"{n}", "", "", title) for n, two in enumerate(titles) for title in two]
    documents += [IndexedDocument(f"r{n}", "", "", f"the {chr(97 + n % 26)}ther") for n in range(REST)]
    others = generator.normal(size=(REST, 16)).astype(np.float32)
    index = index_of(np.concatenate([np.repeat(rows, 2, axis=0), others]), documents)
    return draw(list(rows), titles, index, [""] * len(titles))


def test_similar_events_are_near_each_other_and_share_a_topic():
    one, again = drawn(), drawn()
    np.testing.assert_array_equal(one.places, again.places)  # the page does not jump
    assert one.places.min() >= 0
    assert one.places.max() <= 1
    truth = np.repeat(range(3), COUNT)
    distances = np.linalg.norm(one.places[:, None] - one.places[None], axis=-1) + 9 * np.eye(3 * COUNT)
    assert (truth[distances.argmin(1)] == truth).mean() >= 0.9
    for topic in range(len(one.labels)):
        assert set(truth[one.topics == topic].tolist()) <= {0, 1, 2}
    assert len({(group, topic) for group, topic in zip(truth.tolist(), one.topics.tolist(), strict=True)}) == 3


def test_a_label_begins_with_a_word_that_other_topics_lack():
    found = drawn()
    truth = np.repeat(NAMES, COUNT)
    for topic, label in enumerate(found.labels):
        assert label.split(" · ")[0] in set(truth[found.topics == topic].tolist())


def test_words_that_all_titles_have_are_in_no_label():
    assert all("the" not in label.split(" · ") for label in drawn().labels)


def test_words_that_are_mostly_written_small_are_no_names():
    texts = ["We met Ann, And Ann left and sang.", "They saw Ann, And all and some left."] * 2
    texts += ["It was Bob, and Bob sang.", "We heard Bob and all left."] * 2
    assert topic_map._named(texts, np.array([0, 0, 0, 0, 1, 1, 1, 1])) == ["Ann", "Bob"]


def test_few_events_and_titles_without_words_are_drawn_too():
    index = index_of(np.eye(3, dtype=np.float32), [IndexedDocument(str(n), "", "", "7") for n in range(3)])
    for count in range(4):
        found = draw(list(index.embeddings[:count]), [["7"]] * count, index, [""] * count)
        assert found.places.shape == (count, 2)
        assert len(found.topics) == count
        assert set(found.labels) == ({""} if count else set())


def test_labels_are_the_words_of_the_largest_share_of_the_divergence():
    # Shares of the titles of topic 0 (4 of 8), and of all titles.
    everywhere = ["alpha beta", "alpha beta", "alpha gamma", "delta", "beta", "omega beta", "omega it x1", "gamma"]
    titles = [everywhere[:1], everywhere[1:3], everywhere[3:4], everywhere[4:]]
    documents = [IndexedDocument(str(number), "", "", title) for number, title in enumerate(everywhere)]
    index = index_of(np.ones((8, 2), np.float32), documents)
    weights = {
        "alpha": 3 / 4 * np.log((3 / 4) / (3 / 8)), "beta": 2 / 4 * np.log((2 / 4) / (4 / 8)),
        "gamma": 1 / 4 * np.log((1 / 4) / (2 / 8)), "delta": 1 / 4 * np.log((1 / 4) / (1 / 8)),
    }  # fmt: skip
    assert weights["alpha"] > weights["delta"] > 0 == weights["beta"] == weights["gamma"]
    assert _labels(titles, np.array([0, 0, 0, 1]), index) == ("alpha · delta", "omega")


@pytest.mark.parametrize(
    ("titles", "label"),
    [
        (["नगर में सुनामी आई", "सुनामी से क्षति", "कल वर्षा होगी"], "सुनामी"),  # vowel signs are parts of words
        (["印度尼西亚发生地震", "印度尼西亚的灾民", "明天下雨"], "印度尼西亚"),  # not a part of it
        (["ハリケーンが近づく", "大きなハリケーン", "明日は雨"], "ハリケーン"),
        (["부산 지하철이 멈춰", "부산 항구", "내일 비"], "부산"),
        (["นายกรัฐมนตรีลาออกจากตำแหน่งในวันนี้แล้ว สึนามิ", "เตือน สึนามิ", "ฝนตก"], "สึนามิ"),  # noqa: RUF001
    ],
)
def test_labels_of_scripts_with_marks_or_without_spaces(titles, label):
    titles += titles[2:] * 2  # words of more than half of the titles are common
    index = index_of(np.ones((5, 2), np.float32), [IndexedDocument(str(n), "", "", t) for n, t in enumerate(titles)])
    assert _labels([titles[:2], titles[2:]], np.array([0, 1]), index)[0].split(" · ")[0] == label


def test_words_of_more_than_ten_of_few_titles_and_of_a_twentieth_of_many_are_common():
    for others, common in ((100, 10), (400, 20)):
        titles = ["storm rain"] * common + ["rain"]
        documents = [
            IndexedDocument(str(n), "", "", title)
            for n, title in enumerate([*titles, *["calm"] * (others - len(titles))])
        ]
        index = index_of(np.ones((others, 2), np.float32), documents)
        assert _labels([titles], np.zeros(1, np.int64), index) == ("storm",)


def test_words_of_more_than_half_of_the_texts_are_common_also_in_few_titles():
    titles = ["trump and storm", "flood and rain", "calm"]
    bodies = ["Wind and rain.", "Rain and water.", "Sun and calm."]
    articles = [
        ArticleText(str(n), "", "", title, body) for n, (title, body) in enumerate(zip(titles, bodies, strict=True))
    ]
    index = index_of(np.ones((3, 2), np.float32), articles)
    assert _labels([titles[:1], titles[1:]], np.array([0, 1]), index)[0] == "storm · trump"  # all three have "and"


def test_the_number_of_topics_grows_with_the_events_up_to_a_limit(monkeypatch):
    assert topic_map._MOST_TOPICS == 14
    monkeypatch.setattr(topic_map, "_MOST_TOPICS", 3)
    generator = np.random.default_rng(0)
    for count, expected in ((4, 2), (35, 2), (36, 3), (48, 3)):
        rows = generator.normal(size=(count, 8)).astype(np.float32)
        index = index_of(rows, [IndexedDocument(str(n), "", "", "a title") for n in range(count)])
        found = draw(list(rows), [["a title"]] * count, index, [""] * count)
        assert len(set(found.topics.tolist())) == len(found.labels) == expected
        assert (found.places.min(0).tolist(), found.places.max(0).tolist()) == ([0, 0], [1, 1])
    three = draw(list(rows[:3]), [["a title"]] * 3, index, [""] * 3)
    np.testing.assert_allclose(three.places, [[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]], atol=1e-6)
    assert three.topics.tolist() == [0, 1, 2]


def test_common_words_of_a_language_are_in_no_label_even_if_the_language_is_rare():
    german = ["die Flut"] * 12 + ["die Wahl"] * 8
    rows = [(title, "de-AT") for title in german] + [("calm days", "en")] * 980
    documents = [IndexedDocument(str(n), "", "", title, None, tag) for n, (title, tag) in enumerate(rows)]
    index = index_of(np.ones((1000, 2), np.float32), documents)
    assert _labels([german[12:], ["calm days"]], np.array([0, 1]), index) == ("wahl", "")
    mixed = [IndexedDocument(one.doc_id, "", "", one.title) for one in documents]  # languages are not known
    index = index_of(index.embeddings, mixed)
    assert _labels([german[12:], ["calm days"]], np.array([0, 1]), index) == ("wahl · die", "")
