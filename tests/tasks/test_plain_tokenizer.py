"""Our tokenizer without TensorFlow has the ids of TF-Text: for assigned characters, any order of marks, real text."""

import json
import pickle
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
import unicodedata2
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.formats.vocabulary import SPECIAL_TOKENS, UNK_ID
from newsembed.tasks import plain_tokenizer
from newsembed.tasks.plain_tokenizer import PlainTokenizer, fold, words
from newsembed.tasks.vocabulary import MAX_BYTES_PER_WORD

TABLES = json.loads(Path(plain_tokenizer.__file__).with_name("folding.json").read_text(encoding="utf-8"))
# Of private and unassigned characters, which are all alike, a few.
CHOSEN = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
CHOSEN = [one for one in CHOSEN if unicodedata2.category(one) not in ("Co", "Cn") or ord(one) % 101 == 0]
LETTERS = "abcdeghilnorstuéñ한국ก็中ア"
PIECES = [*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS), "the", "##ing", "!", ".", "中国"]


def tf_folded(texts):
    return [found.decode() for found in tensorflow_text.case_fold_utf8([text.encode() for text in texts]).numpy()]


def tf_ids(pieces, texts):
    tokenizer = tensorflow_text.FastBertTokenizer(
        list(pieces), max_bytes_per_word=MAX_BYTES_PER_WORD, token_out_type=tf.int32
    )
    return tokenizer.tokenize(tensorflow_text.case_fold_utf8([text.encode() for text in texts])).to_list()


def test_characters_are_folded_and_split_as_by_tf_text():
    assert TABLES["unicode"] == unicodedata2.unidata_version
    assert list(map(fold, CHOSEN)) == tf_folded(CHOSEN)
    around = [f"a{character}a" for character in CHOSEN]
    texts = [" ".join(around[start : start + 32]) for start in range(0, len(around), 32)]  # a text costs time, too
    assert [row.tolist() for row in PlainTokenizer(PIECES, 400).encode(texts)] == tf_ids(PIECES, texts)


LATER = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) == "Cn"]
LATER = [character for character in LATER if unicodedata2.normalize("NFD", character) != character]
LATER += [one for character in LATER for one in unicodedata2.normalize("NFD", character)]
MARKS = [character for character in CHOSEN if unicodedata2.combining(character)]
JAMO = [chr(code) for code in range(0x1100, 0x1200)]
FOLDED = [chr(code) for first, last, _ in TABLES["folded"] for code in {first, last}]


@pytest.mark.parametrize("alphabet", [[*"aeoAEO", *MARKS, *LATER], LATER, [*FOLDED, *MARKS, *JAMO, *"Aa ."]])
def test_marks_in_any_order_fold_as_by_tf_text(alphabet):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(alphabet, rng.integers(1, 12))) for _ in range(5_000)]
    assert list(map(fold, texts)) == tf_folded(texts)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_any_text_has_the_ids_of_tf_text(texts):
    assert [row.tolist() for row in PlainTokenizer(PIECES, MAX_BYTES_PER_WORD).encode(texts)] == tf_ids(PIECES, texts)


ALPHABET = [*LETTERS, *FOLDED, *MARKS, *JAMO, *"Aßﬁ²İ .!\u00ad中国"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.sampled_from(ALPHABET), max_size=12), max_size=6))
def test_the_characters_of_a_piece_fold_to_it(texts):
    tokenizer = PlainTokenizer(PIECES, MAX_BYTES_PER_WORD)
    for text, (ids, places) in zip(texts, tokenizer.encode_with_places(texts), strict=True):
        np.testing.assert_array_equal(ids, tokenizer.encode([text])[0])
        assert places.shape == (len(ids), 2)
        assert (places[:, 0] < places[:, 1]).all()
        assert (np.diff(places, axis=0) >= 0).all()
        for token, (first, last) in zip(ids, places, strict=True):
            assert token == UNK_ID or PIECES[token].removeprefix("##") in fold(text[first:last]), (text, first, last)


def test_places_of_letters_that_fold_to_two_or_none():
    pieces = [*SPECIAL_TOKENS, "ma", "##s", "##se", "##f", "f", "##i", "a", "##b", "é", "##t"]
    tokenizer = PlainTokenizer(pieces, MAX_BYTES_PER_WORD)
    ((ids, places),) = tokenizer.encode_with_places(["  MAße ﬁ a\u00adb e\u0301t xy"])
    assert [pieces[token] for token in ids] == ["ma", "##s", "##se", "f", "##i", "a", "##b", "é", "##t", "[UNK]"]
    expected = [(2, 4), (4, 5), (4, 6), (7, 8), (7, 8), (9, 11), (11, 12), (13, 15), (15, 16), (17, 19)]
    assert list(map(tuple, places.tolist())) == expected
    ((ids, places),) = tokenizer.encode_with_places([" "])
    assert (ids.shape, places.shape) == ((0,), (0, 2))


def test_words_of_too_many_bytes_are_unknown():
    texts = ["a" * 400, "a" * 401, "中" * 500, "é" * 200, "é" * 201, "ก" * 134, "[UNK] [CLS]"]
    found = PlainTokenizer(PIECES, MAX_BYTES_PER_WORD).encode(texts)
    assert [row.tolist() for row in found] == tf_ids(PIECES, texts)
    assert [row.tolist() == [UNK_ID] for row in found] == [False, True, False, False, True, True, False]


def test_known_words_are_forgotten_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr(plain_tokenizer, "_MOST_KEPT", 3)
    tokenizer = PlainTokenizer(PIECES, MAX_BYTES_PER_WORD)
    texts = ["the in on at the", "the on the"]
    assert [row.tolist() for row in tokenizer.encode(texts)] == tf_ids(PIECES, texts)
    assert len(tokenizer._chunks) <= 3
    assert len(tokenizer._words) <= 3
    assert [row.tolist() for row in pickle.loads(pickle.dumps(tokenizer)).encode(texts)] == tf_ids(PIECES, texts)


def test_white_space_ends_what_is_looked_up_as_a_whole():
    assert all(words(f"a{character}b") == ["a", "b"] for character in CHOSEN if character.isspace())
    texts = ["e\u0301 \u0301e\u00a0\u0323e", "\u3000\u0308a\u2028\u0308", "\U0001f600a中\U00020000 b"]
    assert [row.tolist() for row in PlainTokenizer(PIECES, 400).encode(texts)] == tf_ids(PIECES, texts)


def test_a_punctuation_mark_is_a_word():
    assert words("U.S. «Größe»\u200b中国") == ["u", ".", "s", ".", "«", "grösse", "»", "中", "国"]
