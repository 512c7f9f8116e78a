"""Several negatives of a record: split, cut and filled one by one."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.tasks.features import TaskName
from newsembed.tasks.padding import fit_row, row_lengths

LENGTHS = {"anchor_tokens": 4, "positive_tokens": 4, "negative_tokens": 4}
THREE = np.array([2, 10, 3, 2, 11, 12, 13, 14, 3, 2, 15, 16, 3], np.int32)


def fit(name, values, length, negatives):
    return fit_row(TaskName.TRIPLETS, name, np.array(values, np.int32), length, negatives).tolist()


def test_each_negative_is_a_row_of_its_own():
    assert fit("negative_tokens", THREE, 4, 2) == [[2, 10, 3, 0], [2, 11, 12, 3]]
    assert fit("negative_tokens", THREE, 4, 4) == [[2, 10, 3, 0], [2, 11, 12, 3], [2, 15, 16, 3], [0] * 4]
    assert fit("negative_doc_id", [7, 8, 9, 10], 6, 3) == [7, 8, 9, 10, 0, 0]
    assert fit("negative_doc_id", [7, 8, 9, 10], 2, 1) == [7, 8]


def test_one_negative_is_read_as_ever():
    assert fit("negative_tokens", THREE, 4, 1) == [2, 10, 3, 0]
    assert row_lengths(TaskName.TRIPLETS, LENGTHS) == LENGTHS | {"negative_doc_id": 2}


def test_their_number_is_a_length_like_the_others():
    assert row_lengths(TaskName.TRIPLETS, LENGTHS | {"negatives": 3}) == LENGTHS | {
        "negative_doc_id": 6,
        "negatives": 3,
    }
    assert "negatives" not in row_lengths(TaskName.TOPICS, {"tokens": 8, "topic_ids": 2, "negatives": 3})
    with pytest.raises(InputError, match="TASK_FEATURE_LENGTHS: negatives: got 0"):
        row_lengths(TaskName.TRIPLETS, LENGTHS | {"negatives": 0})


def test_half_an_id_is_refused():
    with pytest.raises(InputError, match="negative_doc_id: got 3 values, expected 2 for each negative"):
        fit("negative_doc_id", [1, 2, 3], 4, 2)
