"""The vocabulary file: what is written comes back with its digest, and a broken file is refused by its line."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.vocabulary import (
    CLS_ID,
    MASK_ID,
    PAD_ID,
    SEP_ID,
    SPECIAL_TOKENS,
    UNK_ID,
    VocabularyFile,
    continues_word,
    read_vocabulary,
    vocabulary_bytes,
)

BEFORE = Path(__file__).parents[1] / "golden"
PIECE = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=6).filter(
    lambda piece: piece.split() == [piece] and piece not in SPECIAL_TOKENS
)


@settings(max_examples=50, deadline=None)
@given(st.lists(PIECE, max_size=20, unique=True))
def test_what_is_written_comes_back(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    pieces = (*SPECIAL_TOKENS, *pieces)
    path.write_bytes(vocabulary_bytes(pieces))
    found = read_vocabulary(str(path))
    assert (found.path, found.pieces, found.size) == (str(path), pieces, len(pieces))
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_bytes_are_one_piece_a_line():
    assert vocabulary_bytes(["[PAD]", "für", "##ing"]) == "[PAD]\nfür\n##ing\n".encode()


def test_the_special_tokens_have_their_places():
    assert [SPECIAL_TOKENS[index] for index in (PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID)] == [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]


def test_a_piece_that_begins_with_the_mark_continues_a_word():
    pieces = VocabularyFile("v", b"[PAD]\nflood\n##ed\n##\n#s\n", 5).pieces
    assert [continues_word(piece) for piece in pieces] == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[1:], r"line 1: got '\[UNK\]', expected '\[PAD\]'"),
        (lambda lines: lines[:4], r"line 5: got the end of the file, expected '\[MASK\]'"),
        (lambda lines: [*lines, "two words"], "line 7: got 'two words', expected one piece"),
        (lambda lines: [*lines, "", "x"], "line 7: got '', expected one piece"),
        (lambda lines: [*lines, "flood"], "line 7: 'flood' is also on line 6"),
    ],
)
def test_a_broken_line_is_named(tmp_path, change, message):
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocabulary_bytes(change([*SPECIAL_TOKENS, "flood"])))
    with pytest.raises(InputError, match=f"{path}: {message}") as raised:
        read_vocabulary(str(path))
    assert raised.value.remedy


def test_a_file_that_is_not_there_or_not_utf_8_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none.txt: cannot be read: No such file"):
        read_vocabulary(str(tmp_path / "none.txt"))
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocabulary_bytes(SPECIAL_TOKENS) + b"\xff\n")
    with pytest.raises(InputError, match=r"vocab.txt: line 6: not valid UTF-8"):
        read_vocabulary(str(path))


def test_a_vocabulary_written_before_the_refactoring_is_read():
    found = read_vocabulary(str(BEFORE / "model_before" / "vocab.txt"))
    assert found.pieces[: len(SPECIAL_TOKENS)] == SPECIAL_TOKENS
    assert found.size == len(found.pieces) == found.content.count(b"\n")
