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
    Family,
    TokenizerFiles,
    VocabularyFile,
    continues_word,
    read_vocabulary,
    vocabulary_bytes,
    vocabulary_digest,
    vocabulary_names,
)

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


def test_a_piece_that_begins_with_the_mark_continues_a_word():
    ids = (PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID)
    assert [SPECIAL_TOKENS[index] for index in ids] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert vocabulary_bytes(["[PAD]", "für", "##ing"]) == "[PAD]\nfür\n##ing\n".encode()
    pieces = VocabularyFile("v", b"[PAD]\nflood\n##ed\n##\n#s\n", 5).pieces
    assert [continues_word(piece) for piece in pieces] == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[1:], r"line 1: got '\[UNK\]', expected '\[PAD\]'"),
        (lambda lines: lines[:4], r"line 5: got the end of the file, expected '\[MASK\]'"),
        (lambda lines: [*lines, "two words"], "line 7: got 'two words', expected one piece"),
        (lambda lines: ["a " * 999, *lines], f"line 1: got '{'a ' * 20}', expected"),
        (lambda lines: [*lines, "a " * 999], f"line 7: got '{'a ' * 20}', expected"),
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


def write(tmp_path, pieces):
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocabulary_bytes([*SPECIAL_TOKENS, *pieces]))
    return str(path)


@pytest.mark.parametrize(("others", "most"), [(60, 20), (400, 20), (1_000, 50)])
@pytest.mark.parametrize("foreign", ["Flood{}", "\u2581flood{}", "\u0120flood{}"])
def test_up_to_twenty_pieces_or_five_percent_may_be_such_as_our_tokenizer_never_makes(tmp_path, others, most, foreign):
    def pieces(count):
        return [foreign.format(number) if number < count else f"own{number}" for number in range(others)]

    assert read_vocabulary(write(tmp_path, pieces(most))).size == 5 + others
    with pytest.raises(InputError, match=f"{most + 1} of {others} pieces have upper case, .* another tokenizer"):
        read_vocabulary(write(tmp_path, pieces(most + 1)))


def test_the_mark_of_a_word_alone_may_be_a_piece_of_ours(tmp_path):
    foreign = [f"Flood{number}" for number in range(20)]  # as many as may be
    assert read_vocabulary(write(tmp_path, ["\u2581", *foreign])).size == 26


def test_an_imported_tokenizer_is_read_with_its_vocabulary(tmp_path):
    path = write(tmp_path, ["\u2581Flood", "ing", "X"] + [f"P{number}" for number in range(40)])
    content = Path(path).read_bytes()
    assert vocabulary_names(path) == {"vocab.txt": path}
    tokenizer = TokenizerFiles(b'{"model": {}}', Family.METASPACE, (0, 1, 2, 3, 4), 48)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer.content)
    (tmp_path / "tokenizer_ids.json").write_bytes(tokenizer.description(content))
    found = read_vocabulary(path)
    assert (found.tokenizer, found.size) == (tokenizer, 48)
    assert found.sha256 == vocabulary_digest(path) == hashlib.sha256(tokenizer.description(content)).hexdigest()
    assert list(found.files) == ["vocab.txt", "tokenizer.json", "tokenizer_ids.json"]
    assert found.files == {name: Path(one).read_bytes() for name, one in vocabulary_names(path).items()}
    assert found.continuations[5:8] == (False, True, True)
    write(tmp_path, ["\u2581Flood"])
    for read in (read_vocabulary, vocabulary_digest):
        with pytest.raises(InputError, match="vocabulary_sha256: the SHA-256 of vocab.txt is"):
            read(path)
    shorter = TokenizerFiles(tokenizer.content, Family.METASPACE, (0, 1, 2, 3, 4), 7)
    (tmp_path / "tokenizer_ids.json").write_bytes(shorter.description(Path(path).read_bytes()))
    with pytest.raises(InputError, match=r"got 6 pieces, tokenizer_ids\.json names 7"):
        read_vocabulary(path)


def test_our_own_vocabulary_is_one_file(tmp_path):
    found = read_vocabulary(write(tmp_path, ["flood", "##ing"]))
    assert found.tokenizer is None
    assert found.files == {"vocab.txt": found.content}
    assert found.continuations == (False,) * 6 + (True,)
    assert vocabulary_digest(found.path) == found.sha256 == hashlib.sha256(found.content).hexdigest()
