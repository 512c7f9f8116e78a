"""Array files that are written in parts or mapped."""

import numpy as np
import pytest
from newsembed.beam_pipelines.arrays import map_array, new_mapped, read_array, write_array, write_parts


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_parts_make_the_file_that_the_whole_array_makes(tmp_path, rows):
    values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    write_array(f"{tmp_path}/whole.npy", values)
    write_parts(f"{tmp_path}/parts.npy", values.shape, values.dtype, [values[:2], values[2:2], values[2:]])
    assert (tmp_path / "parts.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    np.testing.assert_array_equal(read_array(f"{tmp_path}/parts.npy"), values)
    np.testing.assert_array_equal(map_array(f"{tmp_path}/parts.npy"), values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.npy", "whole.npy"]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4,), (2, 3)])
def test_a_new_mapped_array_has_zeros_and_keeps_what_is_written(tmp_path, shape):
    values = new_mapped(f"{tmp_path}/new", shape, np.int32)
    assert (values.shape, values.dtype) == (shape, np.int32)
    assert not values.any()
    values[1:2] = 5
    np.testing.assert_array_equal(values[1:2], np.full_like(values[1:2], 5))
