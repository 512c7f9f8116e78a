"""The map of events: near events are similar, topics are groups of them, labels are words of their titles."""

import numpy as np
from newsembed.formats.index import IndexedDocument
from newsembed.serving.explorer.topic_map import draw
from newsembed.serving.index import DocumentIndex

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
    index = DocumentIndex(np.concatenate([np.repeat(rows, 2, axis=0), others]), documents)
    return draw(list(rows), titles, index)


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


def test_few_events_and_titles_without_words_are_drawn_too():
    index = DocumentIndex(np.eye(3, dtype=np.float32), [IndexedDocument(str(n), "", "", "7") for n in range(3)])
    for count in range(4):
        found = draw(list(index.embeddings[:count]), [["7"]] * count, index)
        assert (found.places.shape, len(found.topics), set(found.labels)) == (
            (count, 2),
            count,
            {""} if count else set(),
        )
