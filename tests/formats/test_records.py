"""Document ids as one hexadecimal number and as two 32-bit integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.formats.records import doc_id_to_words, words_to_doc_id


@given(st.integers(0, 2**64 - 1))
def test_document_ids_survive_two_words(number):
    doc_id = f"{number:016x}"
    words = doc_id_to_words(doc_id)
    assert all(-(2**31) <= word < 2**31 for word in words)
    assert words_to_doc_id(words) == doc_id
    assert [word % 2**32 for word in words] == [number >> 32, number % 2**32]


def test_other_lengths_are_refused():
    for doc_id in ("", "0123", "0" * 17):
        with pytest.raises(ValueError, match="expected 16 hexadecimal digits"):
            doc_id_to_words(doc_id)
