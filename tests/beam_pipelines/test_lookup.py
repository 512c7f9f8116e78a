"""Rows are found by document id in parts, and only the parts in use are read."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import arrays, token_store
from newsembed.beam_pipelines.shards import Phase, Shard, shard_numbers
from newsembed.beam_pipelines.token_store import Lookup, write_part

ROW = np.dtype([("id", "<u8"), ("value", "<i8")])
IDS = st.integers(0, 2**64 - 1)


def write(folder, rows, parts):
    rows = np.array(rows, ROW)
    for number in range(parts):
        with Shard(Phase(str(folder), "write", parts), number) as shard:
            write_part(shard, "rows", rows[shard_numbers(rows["id"], parts) == number])
    return Lookup(f"{folder}/rows")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(IDS, st.integers(0, 99)), max_size=20), st.lists(IDS, max_size=4), st.integers(1, 4))
def test_rows_are_those_of_a_dictionary(tmp_path_factory, rows, others, parts):
    found = write(tmp_path_factory.mktemp("lookup"), rows, parts)
    expected = {}
    for key, value in rows:
        expected.setdefault(key, []).append(value)
    asked = [*expected, *others]
    for key in asked:
        assert [row["value"] for row in found.all_rows(key)] == expected.get(key, [])
        assert (found.row(key) is None) == (key not in expected)
        assert key not in expected or found.row(key).tolist() == (key, expected[key][0])
    first = {}
    for numbers, of_part in found.rows(np.array(asked, np.uint64)):
        first |= {asked[number]: row["value"] for number, row in zip(numbers.tolist(), of_part, strict=True)}
    assert first == {key: values[0] for key, values in expected.items()}


def test_a_part_is_mapped_once_and_only_if_a_document_is_in_it(tmp_path, monkeypatch):
    found = write(tmp_path, [(number << 32, number) for number in range(6)], 3)
    mapped = []
    real = token_store.map_file
    monkeypatch.setattr(token_store, "map_file", lambda path: mapped.append(path[-14:-13]) or real(path))
    for _ in range(2):
        assert found.row(4 << 32)["value"] == 4
    assert len(mapped) == 1


@pytest.mark.parametrize("scheme", ["", "store://"])
def test_a_mapped_file_of_a_store_is_a_local_copy(tmp_path, monkeypatch, scheme):
    values = np.arange(5)
    np.save(tmp_path / "a.npy", values)
    read = lambda path: io.BytesIO(Path(path.removeprefix(scheme)).read_bytes())  # noqa: E731
    monkeypatch.setattr(arrays.files, "open_read", read)
    found = arrays.map_file(f"{scheme}{tmp_path}/a.npy")
    np.testing.assert_array_equal(found, values)
    assert not found.flags.writeable
