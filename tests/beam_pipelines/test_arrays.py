"""Array files that are written in parts or mapped."""

import numpy as np
import pyarrow as pa
import pytest
from newsembed.beam_pipelines.arrays import (
    cosine_histogram,
    doc_id_of,
    doc_ids_of,
    doc_numbers_of,
    map_array,
    read_array,
    write_array,
    write_parts,
)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_parts_make_the_file_that_the_whole_array_makes(tmp_path, rows):
    values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    write_array(f"{tmp_path}/whole.npy", values)
    write_parts(f"{tmp_path}/parts.npy", values.shape, values.dtype, [values[:2], values[2:2], values[2:]])
    assert (tmp_path / "parts.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    np.testing.assert_array_equal(read_array(f"{tmp_path}/parts.npy"), values)
    np.testing.assert_array_equal(map_array(f"{tmp_path}/parts.npy"), values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.npy", "whole.npy"]


def test_document_ids_are_numbers_of_sixteen_hex_digits():
    ids = ["0123456789abcdef", "0" * 16, "f" * 16, "00000000000000a7"]
    numbers = np.array([0x0123456789ABCDEF, 0, 2**64 - 1, 0xA7], np.uint64)
    np.testing.assert_array_equal(doc_numbers_of(pa.array(ids)), numbers)
    assert doc_numbers_of(pa.array(ids)).dtype == np.uint64
    assert doc_ids_of(numbers).to_pylist() == [doc_id_of(number) for number in numbers.tolist()] == ids
    assert doc_ids_of(numbers[::-1]).to_pylist() == ids[::-1]
    assert doc_numbers_of(pa.array([], pa.string())).tolist() == doc_ids_of(numbers[:0]).to_pylist() == []


def test_cosines_are_counted_in_bins_from_minus_one_to_one():
    cosines = np.array([-1.0, -0.9995, -0.999, 0.0, 0.0009, 0.0012, 0.9995, 1.0, 1.5, -1.5, np.nan], np.float64)
    counts = cosine_histogram(cosines)
    assert (len(counts), counts.sum(), counts.dtype) == (2000, 10, np.int64)
    assert {bin_: int(counts[bin_]) for bin_ in np.flatnonzero(counts).tolist()} == {
        0: 3,
        1: 1,
        1000: 2,
        1001: 1,
        1999: 3,
    }
