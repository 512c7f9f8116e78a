"""Files of word vectors: headers, trailing spaces, tokens with spaces, and lines that are broken."""

import gzip

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.arrays import WORD_VECTORS_REMEDY as REMEDY
from newsembed.formats.arrays import WordVectorFile


def file(tmp_path, text, name="v.txt"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "4 2\n"])
def test_only_wanted_words_are_read(tmp_path, name, header):
    vectors = WordVectorFile(file(tmp_path, f"{header}a 1 2\n. . 3 4\né 5 6 \nrare 7 8", name))
    assert vectors.dimensions == 2
    found = vectors.read(["é", "a", ".", "4", "absent"])
    assert {word: values.tolist() for word, values in found.items()} == {"a": [1, 2], "é": [5, 6]}
    assert {values.dtype for values in found.values()} == {np.dtype(np.float32)}


def test_a_header_is_no_word_and_a_vector_may_have_one_number(tmp_path):
    assert WordVectorFile(file(tmp_path, "3 2\n3 1 2\n")).read(["3"])["3"].tolist() == [1, 2]
    one = WordVectorFile(file(tmp_path, "a 1\n7 2\n"))
    assert one.dimensions == 1
    assert {word: values.tolist() for word, values in one.read(["a", "7"]).items()} == {"a": [1], "7": [2]}
    numbers = WordVectorFile(file(tmp_path, "12 3\nx 1 2 3\n"))
    assert (numbers.dimensions, list(numbers.read(["12", "x"]))) == (3, ["x"])


def test_a_broken_line_of_a_wanted_word_is_named(tmp_path):
    path = file(tmp_path, "a 1 2\nb 1\nc 1 x\nunread 1\n")
    vectors = WordVectorFile(path)
    assert list(vectors.read(["a"])) == ["a"]
    with pytest.raises(InputError, match="got 1 numbers, expected 2") as raised:
        vectors.read(["b"])
    assert raised.value.path == f"{path}:2"
    with pytest.raises(InputError, match="cannot be read: could not convert") as raised:
        vectors.read(["c"])
    assert raised.value.path == f"{path}:3"


@pytest.mark.parametrize("text", ["", "word\n", "a b\n", "2 3\n", "2 3\na 1 2\n", "2 0\na\n", "a 1 x\n"])
def test_a_file_that_does_not_begin_with_vectors_is_refused(tmp_path, text):
    path = file(tmp_path, text)
    with pytest.raises(InputError, match="the first lines contain no word vector") as raised:
        WordVectorFile(path)
    assert raised.value.path == path
    assert raised.value.remedy.startswith(REMEDY)


def test_a_missing_and_a_truncated_file_say_why(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        WordVectorFile(str(tmp_path / "absent"))
    path = tmp_path / "v.gz"
    path.write_bytes(gzip.compress(b"a 1 2\n" * 9)[:-12])
    with pytest.raises(InputError, match="cannot be read: Compressed file ended"):
        WordVectorFile(str(path)).read(["a"])
