"""The vocabulary: file checks, the layout of documents, one tokenizer for arrays and graphs."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS, UNK_ID
from newsembed.tasks import registry
from newsembed.tasks.vocabulary import Vocabulary, normalize_for_learning

PIECES = ("the", "pol", "##ice", "é", "ca", "##fé", "한국", "##어", "中", "[", "]", "cls", "!", "ก", "##ก", "q", "##q")
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *PIECES])
ID = {piece: index for index, piece in enumerate(VOCABULARY.pieces)}
TEXT = st.text(st.sampled_from("the police!café 中ก한국어[CLS]\u0301\u200b\u00ad\n\t\x00zQ"), max_size=30)


def test_text_is_casefolded_composed_and_cut_into_longest_pieces():
    ids = VOCABULARY.encode_texts(
        ["The POLICE!", "", "Cafe\u0301 中中", "\u1112\u1161\u11ab\u1100\u116e\u11a8\uc5b4", "pol\u00adice", "xyz"]
    )
    expected = [
        ["the", "pol", "##ice", "!"],
        [],
        ["ca", "##fé", "中", "中"],
        ["한국", "##어"],
        ["pol", "##ice"],
        ["[UNK]"],
    ]
    assert [row.tolist() for row in ids] == [[ID[piece] for piece in row] for row in expected]
    assert all(row.dtype == np.int32 for row in ids)


def test_special_tokens_cannot_be_injected():
    (row,) = VOCABULARY.encode_documents(["[CLS]"], [""], 10)
    assert row.tolist() == [CLS_ID, ID["["], ID["cls"], ID["]"], SEP_ID]


def test_words_of_up_to_400_bytes_are_no_unknowns():
    (long, too_long) = VOCABULARY.encode_texts(["ก" * 133, "ก" * 134])
    assert UNK_ID not in long
    assert long.size == 133
    assert too_long.tolist() == [UNK_ID]


@pytest.mark.parametrize(
    ("title", "body", "length", "expected"),
    [
        ("the", "!", 9, [CLS_ID, ID["the"], SEP_ID, ID["!"], SEP_ID]),
        ("", "!", 9, [CLS_ID, ID["!"], SEP_ID]),
        ("the", "", 9, [CLS_ID, ID["the"], SEP_ID]),
        ("", " \n", 9, [CLS_ID, SEP_ID]),
        ("the", "! ! !", 5, [CLS_ID, ID["the"], SEP_ID, ID["!"], SEP_ID]),
        ("the the the", "", 3, [CLS_ID, ID["the"], SEP_ID]),
        ("the", "!", 2, [CLS_ID, SEP_ID]),
    ],
)
def test_layout_of_documents(title, body, length, expected):
    assert VOCABULARY.encode_documents([title], [body], length)[0].tolist() == expected


def graph(max_length):
    signature = [tf.TensorSpec([None], tf.string)] * 2
    return tf.function(
        lambda titles, bodies: VOCABULARY.tf_encode_documents(titles, bodies, max_length), input_signature=signature
    )


GRAPHS = {length: graph(length) for length in (2, 3, 5, 12, 512)}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=6), st.sampled_from(sorted(GRAPHS)))
def test_graph_equals_arrays_and_cutting_equals_the_rule_for_rows(documents, length):
    titles, bodies = [title for title, _ in documents], [body for _, body in documents]
    arrays = VOCABULARY.encode_documents(titles, bodies, length)
    ragged = GRAPHS[length](tf.constant(titles, tf.string), tf.constant(bodies, tf.string))
    assert ragged.dtype == tf.int32
    assert ragged.to_list() == [row.tolist() for row in arrays]
    for whole, row in zip(VOCABULARY.encode_documents(titles, bodies, 10_000), arrays, strict=True):
        assert row.tolist() == whole.tolist() or row.tolist() == registry.TEXT.fit(whole, (length,)).tolist()


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXT, max_size=5))
def test_word_ids_number_the_words_that_learning_sees(texts):
    ids, word_ids = VOCABULARY.encode_with_words(texts)
    words = [text.split(" ") if text else [] for text in normalize_for_learning(texts)]
    assert [int(row.max(initial=0)) for row in word_ids] == [len(row) for row in words]
    for row, numbers, spelled in zip(ids, word_ids, words, strict=True):
        for number, word in enumerate(spelled, start=1):
            piece_ids = row[numbers == number]
            assert UNK_ID in piece_ids or VOCABULARY.decode(piece_ids) == word


def test_decode_joins_words_and_hides_special_tokens():
    (row,) = VOCABULARY.encode_documents(["Café xyz"], ["the police!"], 20)
    assert VOCABULARY.decode(row) == "café [UNK] the police !"
    with pytest.raises(IndexError, match="expected 0 to"):
        VOCABULARY.decode([VOCABULARY.size])


def test_half_a_surrogate_pair_does_no_harm():
    assert VOCABULARY.encode_texts(["the \ud800"])[0].tolist() == [ID["the"], UNK_ID]
