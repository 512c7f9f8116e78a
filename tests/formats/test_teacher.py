"""The file of a teacher: a round trip, and arrays that are not a teacher's."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.arrays import Teacher, read_arrays, read_teacher, write_arrays, write_teacher


def some_teacher(count=4, neighbors=2, size=3, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(count, size))
    others = [rng.permutation(np.delete(np.arange(count), row))[:neighbors] for row in range(count)]
    shares = rng.random((count, neighbors)) + 0.1
    shares /= shares.sum(axis=1, keepdims=True) + rng.random((count, 1))  # the rest is of other documents
    return Teacher(
        rng.integers(-(2**31), 2**31, (count, 2)).astype(np.int32),
        (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32),
        rng.integers(0, 20_000, count).astype(np.int32),
        rng.integers(0, 3, count).astype(np.int32),
        rng.integers(0, 9_000, count).astype(np.int32),
        np.array(others, np.int32),
        shares.astype(np.float32),
    )


@given(st.integers(2, 9), st.integers(1, 8), st.integers(1, 5), st.integers(0, 99))
def test_a_teacher_is_the_same_after_it_was_written(tmp_path_factory, count, neighbors, size, seed):
    path = str(tmp_path_factory.mktemp("teacher") / "teacher.npz")
    teacher = some_teacher(count, min(neighbors, count - 1), size, seed)
    write_teacher(path, teacher)
    found = read_teacher(path)
    for field in dataclasses.fields(Teacher):
        written, read = getattr(teacher, field.name), getattr(found, field.name)
        assert read.dtype == written.dtype
        np.testing.assert_array_equal(read, written)


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        (
            dataclasses.replace(some_teacher(), days=np.zeros(4, np.int64)),
            r"days: got int64 \[4\], expected int32 \[4\]",
        ),
        (dataclasses.replace(some_teacher(), keys=np.ones((3, 3), np.float32)), r"keys: got float32 \[3, 3\]"),
        (dataclasses.replace(some_teacher(), doc_ids=np.ones((4, 2))), r"doc_ids: got float64 \[4, 2\]"),
        (dataclasses.replace(some_teacher(), probabilities=np.ones((4, 1), np.float32)), r"probabilities: got float32"),
        (Teacher(*(getattr(some_teacher(), f.name)[:0] for f in dataclasses.fields(Teacher))), "not empty"),
    ],
)
def test_arrays_that_are_no_teacher_are_refused_by_name(tmp_path, teacher, message):
    path = str(tmp_path / "teacher.npz")
    write_teacher(path, teacher)
    with pytest.raises(InputError, match=message):
        read_teacher(path)


def test_a_missing_array_is_refused(tmp_path):
    path = str(tmp_path / "teacher.npz")
    write_teacher(path, some_teacher())
    arrays = read_arrays(path)
    write_arrays(path, {name: values for name, values in arrays.items() if name != "keys"})
    with pytest.raises(InputError, match=r"teacher\.npz: keys: the array is missing"):
        read_teacher(path)
