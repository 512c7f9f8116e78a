"""Benchmark files: rows of tables, digests of files and folders, and what an unreadable file says."""

import csv
import gzip
import hashlib

import pytest
from newsembed.errors import InputError
from newsembed.evaluation.files import digest, read_raw, read_rows, read_text
from refusals import refuses


def rows(path, delimiter="\t", *, quoted=False):
    return [
        (where.removeprefix(f"{path}:"), fields)
        for where, fields in read_rows(str(path), "r", delimiter=delimiter, quoted=quoted)
    ]


def test_rows_have_the_number_of_their_last_line_and_blank_ones_are_left_out(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(b'a\t"b\r\n\r\n \t \nc\t\xc3\xa9\0\n\td')
    assert rows(path) == [("1", ["a", '"b']), ("4", ["c", "é"]), ("5", ["", "d"])]
    quoted = tmp_path / "t.csv"
    quoted.write_text('\ufeffx,"y\nz, ""w"""\n1,2\n', encoding="utf-8")
    assert rows(quoted, ",", quoted=True) == [("2", ["x", 'y\nz, "w"']), ("3", ["1", "2"])]


def test_fields_may_be_longer_than_the_default_of_the_library(tmp_path):
    path, before = tmp_path / "t.tsv", csv.field_size_limit(1000)
    try:
        path.write_text(f"a\t{'x' * 300_000}\n")
        assert len(rows(path)[0][1][1]) == 300_000
        assert csv.field_size_limit() == 2**31 - 1  # the largest that fits a C long of 32 bits
    finally:
        csv.field_size_limit(before)


def test_compressed_files_are_read_and_truncated_ones_say_what_is_wrong(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress("é".encode() * 100))
    assert read_raw(str(path), "r") == "é".encode() * 100
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError) as raised:
        read_text(str(path), "get it")
    assert (raised.value.path, raised.value.remedy) == (str(path), "get it")
    assert raised.value.problem == "cannot be read: Compressed file ended before the end-of-stream marker was reached"
    refuses("cannot be read: No such file or directory", read_text, str(tmp_path / "absent"), "get it")


def test_text_of_another_encoding_is_refused_with_the_encoding_that_is_needed(tmp_path):
    (tmp_path / "t").write_bytes(b"caf\xe9")
    raised = refuses("not utf-8-sig: ", read_text, str(tmp_path / "t"), "get it")
    assert raised.remedy == "get it, in utf-8-sig"
    assert read_text(str(tmp_path / "t"), "r", "latin-1") == "café"


def test_the_digest_of_a_folder_is_over_the_names_and_contents_of_its_files(tmp_path):
    def sha256(content):
        return hashlib.sha256(content).hexdigest()

    for name in ("z/1", "z/2", "b/9", "c", "b/a/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode() * 2)
    assert digest(str(tmp_path / "c")) == sha256(b"cc")
    ordered = ("c", "b/9", "b/a/x", "z/1", "z/2")  # the files of a folder before those of the folders in it
    expected = sha256(b"".join(name.encode() + b"\0" + sha256(name.encode() * 2).encode() for name in ordered))
    assert digest(str(tmp_path)) == expected
    (tmp_path / "c").rename(tmp_path / "d")
    assert digest(str(tmp_path)) != expected
