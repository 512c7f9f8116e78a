"""Array files, and document ids as numbers."""

import numpy as np
import pyarrow as pa
from newsembed.beam_pipelines.arrays import doc_id_of, doc_ids_of, doc_numbers_of, map_array, read_array, write_array


def test_an_array_without_elements_is_mapped_too(tmp_path):
    for rows in (0, 7):
        values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        write_array(f"{tmp_path}/whole.npy", values)
        np.testing.assert_array_equal(read_array(f"{tmp_path}/whole.npy"), values)
        np.testing.assert_array_equal(map_array(f"{tmp_path}/whole.npy"), values)
        assert [path.name for path in tmp_path.iterdir()] == ["whole.npy"]


def test_document_ids_are_numbers_of_sixteen_hex_digits():
    ids = ["0123456789abcdef", "0" * 16, "f" * 16, "00000000000000a7"]
    numbers = np.array([0x0123456789ABCDEF, 0, 2**64 - 1, 0xA7], np.uint64)
    np.testing.assert_array_equal(doc_numbers_of(pa.array(ids)), numbers)
    assert doc_numbers_of(pa.array(ids)).dtype == np.uint64
    assert doc_ids_of(numbers).to_pylist() == [doc_id_of(number) for number in numbers.tolist()] == ids
    assert doc_ids_of(numbers[::-1]).to_pylist() == ids[::-1]
    assert doc_numbers_of(pa.array([], pa.string())).tolist() == doc_ids_of(numbers[:0]).to_pylist() == []
