"""The declared tasks: lengths of their rows, what is cut and padded, which ids are refused."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.tfrecords.example import decode_example, encode_example
from newsembed.tasks import MLM, TLM, TOPICS, TRIPLETS
from newsembed.tasks.registry import RowMaker

PACKED = {"tokens": 4}
LABELLED = {"tokens": 4, "topic_ids": 3}
TEXTS = {"anchor_tokens": 3, "positive_tokens": 4, "negative_tokens": 4}
BOUNDS = {"pieces": 20, "topics": 5}


def arrays(values):
    return {name: np.array(value, np.int32) for name, value in values.items()}


def row_of(task, lengths, values):
    row = RowMaker(task, lengths, BOUNDS)(arrays(values), "part-3")
    assert {array.dtype for array in row.values()} == {np.dtype(np.int32)}
    assert {name: array.shape for name, array in row.items()} == task.shapes(lengths)
    return {name: array.tolist() for name, array in row.items()}


def triplet(**changes):
    values = {
        "anchor_tokens": [2, 10, 11, 3],
        "positive_tokens": [2, 12, 3],
        "negative_tokens": [2, 10, 3, 2, 11, 12, 13, 14, 3, 2, 15, 16, 3],
        "augmentation": 3,
        "translated": 1,
        "anchor_doc_id": [1, 2],
        "positive_doc_id": [3, 4],
        "negative_doc_id": [7, 8, 9, 10, 11, 12],
        "anchor_event": [-1, 20, 900],
        "positive_event": [-1, 20, 901],
        "negative_event": [0, 0, 500, -7, 21, 501, 0, 0, 0],
    }
    return values | changes


@pytest.mark.parametrize("task", [MLM, TLM])
def test_a_packed_row_is_cut_at_its_end_and_padded_with_zeros(task):
    long = {name: [5, 6, 7, 8, 9] for name in ("tokens", "segment_ids", "positions", "word_ids")}
    assert row_of(task, PACKED, long) == dict.fromkeys(long, [5, 6, 7, 8])
    short = {name: [5, 6] for name in long}
    assert row_of(task, PACKED, short) == dict.fromkeys(long, [5, 6, 0, 0])


def test_what_runs_along_the_tokens_may_have_a_length_of_its_own():
    assert MLM.shapes({"tokens": 4, "positions": 2}) == {
        "tokens": (4,),
        "segment_ids": (4,),
        "positions": (2,),
        "word_ids": (4,),
    }


def test_a_document_that_is_cut_keeps_its_closing_token_and_empty_labels_carry_no_loss():
    values = {"tokens": [2, 7, 8, 9, 3], "topic_ids": [4], "topic_labels": [1], "doc_id": [-1, 5]}
    assert row_of(TOPICS, LABELLED, values) == {
        "tokens": [2, 7, 8, 3],
        "topic_ids": [4, 0, 0],
        "topic_labels": [1, -1, -1],
        "doc_id": [-1, 5],
    }


def test_topics_that_are_too_many_are_cut():
    values = {"tokens": [2, 3], "topic_ids": [0, 1, 2, 3], "topic_labels": [1, 0, 1, 0], "doc_id": [0, 0]}
    row = row_of(TOPICS, LABELLED, values)
    assert (row["tokens"], row["topic_ids"], row["topic_labels"]) == ([2, 3, 0, 0], [0, 1, 2], [1, 0, 1])


THREE = {
    "tokens": [2, 7, 8, 9, 3, 2, 10, 3],
    "topic_ids": [4, 1, 3, 0, 0, 0],
    "topic_labels": [1, 0, 1, -1, -1, -1],
    "doc_id": [1, 2, 3, 4, 0, 0],
}


def test_each_document_of_a_row_is_cut_and_padded_on_its_own():
    assert row_of(TOPICS, LABELLED | {"documents": 3}, THREE) == {
        "tokens": [[2, 7, 8, 3], [2, 10, 3, 0], [0, 0, 0, 0]],
        "topic_ids": [[4, 1, 0], [3, 0, 0], [0, 0, 0]],
        "topic_labels": [[1, 0, -1], [1, -1, -1], [-1, -1, -1]],
        "doc_id": [1, 2, 3, 4, 0, 0],
    }
    assert TOPICS.texts_per_row(LABELLED | {"documents": 3}) == 3
    assert (TOPICS.texts_per_row(LABELLED), TRIPLETS.texts_per_row(TEXTS | {"negatives": 2})) == (1, 1)


@pytest.mark.parametrize(
    ("documents", "changes", "message"),
    [
        (1, {}, "documents: got 3 documents in a record, expected those of 1"),
        (2, {}, "documents: got 3 documents in a record, expected those of 2"),
        (3, {"topic_ids": [4, 1, 3, 0]}, "documents: got 4 values in a record, expected those of 3"),
        (3, {"tokens": [2, 3] * 4}, "documents: got 4 texts in a record, expected those of 3"),
        (0, {}, "documents: got 0, expected 1 or more"),
    ],
)
def test_another_number_of_documents_is_refused(documents, changes, message):
    with pytest.raises(InputError, match=message):
        row_of(TOPICS, LABELLED | {"documents": documents}, THREE | changes)


def test_a_record_tells_its_sizes():
    record = arrays(THREE)
    assert {name: of_record(record) for name, of_record in TOPICS.sizes.items()} == {
        "documents": [3],
        "topic_ids": [2, 1, 0],
    }
    damaged = arrays(THREE | {"doc_id": [], "topic_labels": [1, 0]})
    assert [of_record(damaged) for of_record in TOPICS.sizes.values()] == [[1], [2]]
    assert TOPICS.sizes["topic_ids"](arrays(THREE | {"topic_labels": [1] * 4})) == [4]


def test_one_negative_of_a_triplet_is_the_first():
    assert row_of(TRIPLETS, TEXTS, triplet()) == {
        "anchor_tokens": [2, 10, 3],
        "positive_tokens": [2, 12, 3, 0],
        "negative_tokens": [2, 10, 3, 0],
        "augmentation": 3,
        "translated": 1,
        "anchor_doc_id": [1, 2],
        "positive_doc_id": [3, 4],
        "negative_doc_id": [7, 8],
        "anchor_event": [-1, 20, 900],
        "positive_event": [-1, 20, 901],
        "negative_event": [0, 0, 500],
    }


def test_each_of_several_negatives_is_a_row_of_its_own():
    row = row_of(TRIPLETS, TEXTS | {"negatives": 2}, triplet())
    assert row["negative_tokens"] == [[2, 10, 3, 0], [2, 11, 12, 3]]
    assert row["negative_doc_id"] == [7, 8, 9, 10]
    assert row["negative_event"] == [0, 0, 500, -7, 21, 501]


def test_negatives_that_a_record_lacks_are_padding():
    row = row_of(TRIPLETS, TEXTS | {"negatives": 4}, triplet())
    assert row["negative_tokens"] == [[2, 10, 3, 0], [2, 11, 12, 3], [2, 15, 16, 3], [0] * 4]
    assert row["negative_doc_id"] == [7, 8, 9, 10, 11, 12, 0, 0]
    assert row["negative_event"] == [0, 0, 500, -7, 21, 501, 0, 0, 0, 0, 0, 0]


def test_a_record_of_an_older_version_has_no_events_and_unknown_days():
    older = {name: values for name, values in triplet().items() if not name.endswith("_event")}
    record = encode_example(older | {"language": "en"}, TRIPLETS.features)
    row = RowMaker(TRIPLETS, TEXTS, BOUNDS)(decode_example(record, TRIPLETS.row_features, "part-3"), "part-3")
    assert row["anchor_doc_id"].tolist() == [1, 2]
    for role in ("anchor", "positive", "negative"):
        assert (row[f"{role}_event"].tolist(), row[f"{role}_event"].dtype) == ([0, 0, 0], np.dtype(np.int32))


def test_half_an_event_is_refused():
    with pytest.raises(InputError, match="negative_event: got 4 values, expected 3 for each negative"):
        row_of(TRIPLETS, TEXTS, triplet(negative_event=[1, 2, 3, 4]))


def test_half_a_document_id_is_refused():
    with pytest.raises(InputError, match="negative_doc_id: got 3 values, expected 2 for each negative"):
        row_of(TRIPLETS, TEXTS, triplet(negative_doc_id=[1, 2, 3]))


@pytest.mark.parametrize("number", [0, -1, True, "2", 1.5])
def test_a_number_of_negatives_that_is_none_is_refused(number):
    with pytest.raises(InputError, match="TASK_FEATURE_LENGTHS: negatives: got"):
        TRIPLETS.shapes(TEXTS | {"negatives": number})


@pytest.mark.parametrize("lengths", [{}, {"tokens": 0, "topic_ids": 3}, {"tokens": 8, "topic_ids": "9"}])
def test_a_missing_length_is_named(lengths):
    with pytest.raises(
        InputError, match=r"TASK_FEATURE_LENGTHS: t\w+: got .* for the task topics, expected a positive"
    ):
        TOPICS.shapes(lengths)


@pytest.mark.parametrize(
    ("task", "lengths", "expected"),
    [
        (MLM, PACKED, {"tokens": 4}),
        (TOPICS, LABELLED, {"tokens": 4}),
        (TRIPLETS, TEXTS, TEXTS),
        (TRIPLETS, TEXTS | {"negatives": 3}, TEXTS),
    ],
)
def test_lengths_of_the_texts_of_a_task(task, lengths, expected):
    assert list(task.text_lengths(lengths).items()) == list(expected.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchor_tokens": [2, 20, 3]}, "part-3: anchor_tokens: got ids from 2 to 20, expected 0 to 19"),
        ({"negative_tokens": [2, -1, 3]}, "part-3: negative_tokens: got ids from -1 to 3, expected 0 to 19"),
    ],
)
def test_ids_of_another_vocabulary_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        row_of(TRIPLETS, TEXTS, triplet(**changes))


def test_ids_are_checked_before_the_row_is_cut():
    values = {"tokens": [2, 3], "topic_ids": [1, 1, 1, 5], "topic_labels": [0] * 4, "doc_id": [0, 0]}
    with pytest.raises(InputError, match="topic_ids: got ids from 1 to 5, expected 0 to 4"):
        row_of(TOPICS, LABELLED, values)


def test_integers_that_are_no_ids_have_no_bounds():
    assert row_of(TOPICS, LABELLED, {"tokens": [], "topic_ids": [], "topic_labels": [], "doc_id": [99, -99]})[
        "doc_id"
    ] == [99, -99]


def test_texts_are_the_features_that_hold_word_pieces():
    assert [task.text_features for task in (MLM, TOPICS, TRIPLETS)] == [
        ("tokens",),
        ("tokens",),
        ("anchor_tokens", "positive_tokens", "negative_tokens"),
    ]
