"""Alias and embedding tables that users bring: what is read, and errors that name values that are wrong."""

import numpy as np
import pytest
from newsembed.beam_pipelines.entities import tables
from newsembed.beam_pipelines.entities.tables import Alias, read_aliases, read_embeddings, write_embeddings
from newsembed.errors import InputError

VALUES = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def written(tmp_path, values=VALUES, keys="a\t1\nb\t2\n"):
    np.save(tmp_path / "t.npy", values)
    (tmp_path / "t.tsv").write_text(keys)
    return str(tmp_path / "t.npy")


@pytest.mark.parametrize(
    ("values", "keys", "message"),
    [
        (VALUES + [0, np.nan], "a\nb\n", r"t\.npy: got values of type float64 that are not all finite"),
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


def test_a_table_of_embeddings_is_read_as_written(tmp_path):
    table = tables.EmbeddingTable(("a b", "ü"), VALUES, (0.123456789, 3e9))
    write_embeddings(str(tmp_path / "t"), table, ("Name A", "Name Ü"))
    assert (tmp_path / "t.tsv").read_text(encoding="utf-8") == "a b\t0.12345679\tName A\nü\t3e+09\tName Ü\n"
    found = read_embeddings(str(tmp_path / "t.npy"))
    assert (found.keys, found.counts) == (table.keys, (0.12345679, 3e9))
    np.testing.assert_array_equal(found.values, VALUES)
    assert table.rows() == {"a b": 0, "ü": 1}
    assert tables.read_keys(str(tmp_path / "t.tsv")) == [["a b", "0.12345679", "Name A"], ["ü", "3e+09", "Name Ü"]]
    write_embeddings(str(tmp_path / "t"), table)
    assert (tmp_path / "t.tsv").read_text(encoding="utf-8") == "a b\t0.12345679\nü\t3e+09\n"


def test_counts_are_read_only_where_every_key_has_one(tmp_path):
    assert read_embeddings(written(tmp_path, keys="a\t1\nb\n")).counts == ()
    assert read_embeddings(written(tmp_path, keys="a\t0\n\nb\t2\n")).counts == (0.0, 2.0)
    assert read_embeddings(written(tmp_path, VALUES.astype(np.int64))).values.dtype == np.float32


@pytest.mark.parametrize("header", ["", "2 3\n"])
def test_word2vec_text_with_and_without_a_header(tmp_path, header):
    (tmp_path / "t.txt").write_text(f"{header}a 1 2 3 \nb 4 5 6\n")
    found = read_embeddings(str(tmp_path / "t.txt"))
    assert (found.keys, found.counts) == (("a", "b"), ())
    assert found.values.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        ("2 2\n", "has no rows"),
        ("a 1 2\nb x 1\n", r"t\.txt:2: cannot be read: could not convert"),
        ("a 1 2\nb 1 2 3\n", r"t\.txt:2: got 3 dimensions, expected 2 as in the first row"),
        ("a 1 2\nb nan 1\n", "not all finite"),
        ("a 1 2\na 2 1\n", "'a' 2 times"),
    ],
)
def test_broken_word2vec_text_is_named_by_its_line(tmp_path, text, message):
    (tmp_path / "t.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read_embeddings(str(tmp_path / "t.txt"))


def test_aliases_come_back_and_columns_may_be_left_out(tmp_path):
    path = str(tmp_path / "aliases.tsv")
    aliases = [Alias("Roe", "Q1", 0.25, "Jane Roe", ""), Alias("Roe", "Q2", 1.0, "Richard Roe", "de,en")]
    tables.write_aliases(path, aliases)
    assert read_aliases(path) == aliases
    (tmp_path / "aliases.tsv").write_text("Rome\tQ220\t0.5\n Roma \t Q220 \t0.5\t\t it,es \tmore\n")
    assert read_aliases(path) == [Alias("Rome", "Q220", 0.5, "Q220"), Alias("Roma", "Q220", 0.5, " Q220 ", "it,es")]


@pytest.mark.parametrize(
    "line", ["Rome\tQ220", " \tQ2\t1", "Rome\t \t1", *(f"R\tQ\t{x}" for x in ("0", "1.01", "nan"))]
)
def test_a_broken_alias_is_named_by_its_line(tmp_path, line):
    (tmp_path / "aliases.tsv").write_text(f"Rome\tQ220\t1\n\n{line}\n")
    with pytest.raises(InputError, match="line 3: got the alias") as caught:
        read_aliases(str(tmp_path / "aliases.tsv"))
    assert "prior in (0, 1]" in caught.value.remedy


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_end_lines_as_on_linux_or_windows_and_may_begin_with_a_byte_order_mark(tmp_path, end):
    def text(*lines):
        return "".join(f"{line}{end}" for line in lines).encode()

    np.save(tmp_path / "t.npy", VALUES)
    for last in (None, -len(end)):  # the last line may lack its end
        (tmp_path / "t.tsv").write_bytes(text("a", "b")[:last])
        assert read_embeddings(str(tmp_path / "t.npy")).keys == ("a", "b")
        (tmp_path / "aliases.tsv").write_bytes(b"\xef\xbb\xbf" + text("Roma\tQ220\t1\tRome")[:last])
        assert read_aliases(str(tmp_path / "aliases.tsv")) == [Alias("Roma", "Q220", 1.0, "Rome", "")]
    (tmp_path / "t.tsv").write_bytes(b"Z\xfcrich\nb\n")
    with pytest.raises(InputError, match=r"t\.tsv: cannot be read: 'utf-8'"):
        read_embeddings(str(tmp_path / "t.npy"))
