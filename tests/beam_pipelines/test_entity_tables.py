"""Alias and embedding tables that users bring: what is read, and errors that name values that are wrong."""

import numpy as np
import pytest
from newsembed.beam_pipelines.entities.tables import Alias, read_aliases, read_embeddings, write_aliases
from newsembed.errors import InputError

VALUES = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def written(tmp_path, values=VALUES, keys="a\t1\nb\t2\n"):
    np.save(tmp_path / "t.npy", values)
    (tmp_path / "t.tsv").write_text(keys)
    return str(tmp_path / "t.npy")


def test_a_table_is_read_with_its_counts(tmp_path):
    table = read_embeddings(written(tmp_path))
    assert (table.keys, table.counts) == (("a", "b"), (1.0, 2.0))
    np.testing.assert_array_equal(table.values, VALUES)
    assert read_embeddings(written(tmp_path, VALUES.astype(np.int64), "a\nb\n")).values.dtype == np.float32


@pytest.mark.parametrize(
    ("values", "keys", "message"),
    [
        (
            np.array([[1.0, np.nan], [3.0, 4.0]]),
            "a\nb\n",
            r"t\.npy: got values of type float64 that are not all finite",
        ),
        (np.array([[1.0, np.inf], [3.0, 4.0]]), "a\nb\n", "not all finite"),
        (np.array([["1", "2"], ["3", "4"]]), "a\nb\n", "got values of type <U1"),
        (VALUES, "a\t1\nb\tmany\n", r"t\.tsv:2: got the count 'many', expected a number of at least 0"),
        (VALUES, "a\t-1\nb\t1\n", r"t\.tsv:1: got the count '-1'"),
        (VALUES, "a\tnan\nb\t1\n", "got the count 'nan'"),
        (VALUES, "a\t1\nb\tinf\n", "got the count 'inf'"),
        (VALUES, "a\t1\na\t1\n", r"t\.tsv: key: got 'a' 2 times"),
        (VALUES[:1], "a\nb\n", "got an array of shape"),
        (VALUES[0], "a\nb\n", r"got an array of shape \(2,\) and 2 keys in .*, expected \[keys, dimensions\]"),
    ],
)
def test_damaged_tables_are_named(tmp_path, values, keys, message):
    with pytest.raises(InputError, match=message):
        read_embeddings(written(tmp_path, values, keys))


@pytest.mark.parametrize(
    ("text", "message"), [("a 1 2\nb nan 1\n", "not all finite"), ("a 1 2\na 2 1\n", "'a' 2 times")]
)
def test_word2vec_text_is_checked_as_well(tmp_path, text, message):
    (tmp_path / "t.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read_embeddings(str(tmp_path / "t.txt"))


def test_aliases_come_back_and_columns_may_be_left_out(tmp_path):
    path = str(tmp_path / "aliases.tsv")
    aliases = [
        Alias("Roe", "Q1", 0.25, "Jane Roe", ""),
        Alias("Roe", "Q2", 1.0, "Richard Roe", "de,en"),
    ]
    write_aliases(path, aliases)
    assert read_aliases(path) == aliases
    (tmp_path / "aliases.tsv").write_text("Rome\tQ220\t0.5\nRom\tQ220\t0.5\tRome\n")
    assert read_aliases(path) == [Alias("Rome", "Q220", 0.5, "Q220", ""), Alias("Rom", "Q220", 0.5, "Rome", "")]
