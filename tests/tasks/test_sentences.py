"""Splitting texts into sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.tasks.sentences import split_text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two! Three", [("", "One."), (" ", "Two!"), (" ", "Three")]),
        ("Er sagte: „Nein.“ Dann ging er.", [("", "Er sagte: „Nein.“ Dann ging er.")]),
        ('He said "no." Then left.', [("", 'He said "no."'), (" ", "Then left.")]),
        ("Am 3. Mai 1999. Danach", [("", "Am 3. Mai 1999."), (" ", "Danach")]),
        ("von J. Doe. Ende", [("", "von J. Doe."), (" ", "Ende")]),
        (
            "On Dec. 3 Sen. Warren met Dr. No. MMr. Next",
            [("", "On Dec. 3 Sen. Warren met Dr. No."), (" ", "MMr."), (" ", "Next")],
        ),
        ("u.a. mit Wasser, usw. und so", [("", "u.a. mit Wasser, usw. und so")]),
        ("一。二！三", [("", "一。"), (" ", "二！"), (" ", "三")]),
        ("It has one. iPhones sell.", [("", "It has one. iPhones sell.")]),  # the next letter alone is small
        ("Eins.\n\nZwei. Drei", [("", "Eins."), ("\n", "Zwei."), (" ", "Drei")]),
    ],
)
def test_sentences(text, sentences):
    assert split_text(text) == sentences


@given(st.text())
def test_splitting_loses_no_letter(text):
    joined = "".join(separator + sentence for separator, sentence in split_text(text))
    assert "".join(joined.split()) == "".join(text.split())
