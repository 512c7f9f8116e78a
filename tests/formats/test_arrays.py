"""Named arrays in npz files: round trips, and nothing but numbers and texts."""

import pickle
import zipfile

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.arrays import read_arrays, read_npy, write_arrays


def test_arrays_are_the_same_after_they_were_written(tmp_path):
    arrays = {
        "numbers": np.arange(6.0).reshape(2, 3),
        "one": np.array(7, np.int64),
        "none": np.zeros((0, 3), np.float32),
        "texts": np.array(["a", "längér", ""], np.str_),
    }
    write_arrays(str(tmp_path / "a.npz"), arrays)
    read = read_arrays(str(tmp_path / "a.npz"))
    assert list(read) == list(arrays)
    for name, values in arrays.items():
        assert read[name].dtype == values.dtype
        np.testing.assert_array_equal(read[name], values)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_objects_are_neither_written_nor_read(tmp_path):
    class Harm:
        def __reduce__(self):
            return open, (str(tmp_path / "harmed"), "w")

    with pytest.raises(ValueError, match="Python objects as 'x'"):
        write_arrays(str(tmp_path / "a.npz"), {"x": np.array([Harm()], object)})
    np.savez(tmp_path / "b.npz", x=np.array([Harm()], object))
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("x.npy", pickle.dumps(Harm()))
    (tmp_path / "d.npz").write_bytes(pickle.dumps(Harm()))
    for name in "bcd":
        with pytest.raises(InputError, match=rf"{name}\.npz: not an npz file of numbers"):
            read_arrays(str(tmp_path / f"{name}.npz"))
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_a_damaged_file_is_named(tmp_path, cut):
    write_arrays(str(tmp_path / "a.npz"), {"x": np.arange(100)})
    raw = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(raw[:cut])
    with pytest.raises(InputError, match="not an npz file"):
        read_arrays(str(tmp_path / "a.npz"))
    middle = len(raw) // 2
    (tmp_path / "a.npz").write_bytes(raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :])
    with pytest.raises(InputError, match="not an npz file"):
        read_arrays(str(tmp_path / "a.npz"))
    with pytest.raises(InputError, match="no such file"):
        read_arrays(str(tmp_path / "none.npz"))


def test_a_damaged_npy_file_is_read_or_refused_whatever_byte_is_damaged(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12, dtype=np.float32).reshape(3, 4))
    raw, refused, named = path.read_bytes(), 0, True
    for place in range(128):  # the header
        for bit in range(8):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :])
            try:
                read_npy(str(path), str(path))
            except InputError as error:
                refused += 1
                named = error.path == str(path) and named
    assert refused > 500
    assert named
    with pytest.raises(FileNotFoundError):
        read_npy(str(tmp_path / "none.npy"), "none")
