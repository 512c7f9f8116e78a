"""How records become rows of fixed shape, for texts, topics and negatives."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.tasks.rows import TEXT, CutOrPad, Lengths
from newsembed.tasks.topics import DocumentIds, DocumentTexts, OfDocuments, documents_of, labels_of_documents
from newsembed.tasks.triplets import NegativeIds, NegativeTexts

CLS, SEP = 2, 3


def ids(*values):
    return np.array(values, np.int32)


def lengths(**values):
    return Lengths("toy", values)


def fitted(rule, values, shape):
    found = rule.fit(values, shape)
    assert found.dtype == np.int32
    assert found.shape == shape
    return found.tolist()


@pytest.mark.parametrize(
    ("rule", "length", "expected"),
    [
        (CutOrPad(), 3, [2, 7, 8]),
        (CutOrPad(), 4, [2, 7, 8, 3]),
        (CutOrPad(padding=-1), 6, [2, 7, 8, 3, -1, -1]),
        (TEXT, 3, [2, 7, 3]),
        (TEXT, 4, [2, 7, 8, 3]),
        (TEXT, 5, [2, 7, 8, 3, 0]),
        (TEXT, 1, [3]),
    ],
)
def test_values_are_cut_or_padded(rule, length, expected):
    given = ids(CLS, 7, 8, SEP)
    assert fitted(rule, given, (length,)) == expected
    assert given.tolist() == [CLS, 7, 8, SEP]


def test_a_length_may_be_that_of_another_feature():
    assert CutOrPad().shape("a", lengths(a=5)) == (5,)
    assert CutOrPad(like="b").shape("a", lengths(b=4)) == (4,)
    assert CutOrPad(like="b").shape("a", lengths(a=5, b=4)) == (5,)
    for values in ({}, {"a": 0}, {"a": -1}, {"a": 2.0}, {"a": True}, {"b": 3}):
        with pytest.raises(InputError, match="for the task toy, expected a positive number of values") as raised:
            CutOrPad().shape("a", lengths(**values))
        assert (raised.value.path, raised.value.field) == ("TASK_FEATURE_LENGTHS", "a")
    assert lengths().number("negatives") == 1
    assert lengths(negatives=3).number("negatives") == 3
    with pytest.raises(InputError, match="negatives: got 0, expected 1 or more"):
        lengths(negatives=0).number("negatives")


def test_several_documents_have_rows_of_their_own():
    one, three = lengths(tokens=3, topic_ids=2), lengths(tokens=3, topic_ids=2, documents=3)
    texts, labels, numbers = DocumentTexts(), OfDocuments(CutOrPad(like="topic_ids", padding=-1)), DocumentIds()
    assert (texts.shape("tokens", one), texts.shape("tokens", three)) == ((3,), (3, 3))
    assert (labels.shape("topic_labels", one), labels.shape("topic_labels", three)) == ((2,), (3, 2))
    assert (numbers.shape("doc_id", one), numbers.shape("doc_id", three)) == ((2,), (6,))
    two = ids(CLS, 7, 8, SEP, CLS, SEP)
    assert fitted(texts, two, (2, 3)) == [[CLS, 7, SEP], [CLS, SEP, 0]]
    assert fitted(texts, two, (4, 3)) == [[CLS, 7, SEP], [CLS, SEP, 0], [0, 0, 0], [0, 0, 0]]
    assert fitted(texts, two[:4], (3,)) == [CLS, 7, SEP]
    with pytest.raises(InputError, match="documents: got 2 texts in a record, expected those of 1"):
        texts.fit(two, (1, 3))
    assert fitted(labels, ids(1, 0, 1, 0, 0, 1), (2, 2)) == [[1, 0], [0, 0]]
    assert fitted(labels, ids(1, 0), (2, 3)) == [[1, -1, -1], [0, -1, -1]]
    assert fitted(labels, ids(1, 0, 1), (2,)) == [1, 0]
    with pytest.raises(InputError, match="documents: got 3 values in a record, expected those of 2"):
        labels.fit(ids(1, 0, 1), (2, 2))
    assert fitted(numbers, ids(1, 2, 0, 0), (4,)) == [1, 2, 0, 0]
    with pytest.raises(InputError, match="documents: got 2 documents in a record, expected those of 3"):
        numbers.fit(ids(1, 2, 0, 0), (6,))


def test_documents_and_their_labels_are_counted():
    record = {"doc_id": ids(1, 2, 3, 4, 0, 0), "topic_labels": ids(1, 0, -1, 0, -1, -1, -1, -1, -1)}
    assert documents_of(record) == [3]
    assert labels_of_documents(record) == [2, 1, 0]
    assert documents_of({"doc_id": ids()}) == [1]
    assert labels_of_documents({"doc_id": ids(1, 2), "topic_labels": ids(1, 0, -1)}) == [2]
    assert labels_of_documents({"doc_id": ids(1, 2, 3, 4), "topic_labels": ids(1, 0, -1)}) == [3]


def test_several_negatives_have_rows_of_their_own():
    one, two = lengths(negative_tokens=3), lengths(negative_tokens=3, negatives=2)
    texts = NegativeTexts()
    assert (texts.shape("negative_tokens", one), texts.shape("negative_tokens", two)) == ((3,), (2, 3))
    given = ids(CLS, 7, 8, SEP, CLS, 9, SEP, CLS, SEP)
    assert fitted(texts, given, (3,)) == [CLS, 7, SEP]
    assert fitted(texts, given, (2, 3)) == [[CLS, 7, SEP], [CLS, 9, SEP]]
    assert fitted(texts, given[:4], (3, 5)) == [[CLS, 7, 8, SEP, 0], [0] * 5, [0] * 5]
    assert NegativeIds().shape("negative_doc_id", two) == (4,)
    assert NegativeIds(3).shape("negative_event", two) == (6,)
    assert fitted(NegativeIds(), ids(1, 2, 3, 4), (2,)) == [1, 2]
    assert fitted(NegativeIds(3), ids(1, 2, 3), (6,)) == [1, 2, 3, 0, 0, 0]
    with pytest.raises(InputError, match="negative_doc_id: got 3 values, expected 2 for each negative"):
        NegativeIds().fit(ids(1, 2, 3), (4,))
    with pytest.raises(InputError, match="negative_event: got 4 values, expected 3 for each negative"):
        NegativeIds(3).fit(ids(1, 2, 3, 4), (6,))
