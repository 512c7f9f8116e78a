"""What an event's articles say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.serving.explorer.telling import SUMMARY, additions, names, shared_names, summary


@given(st.text(max_size=2_000))
def test_a_summary_is_short_and_of_the_text(text):
    found = summary(text)
    assert len(found) <= SUMMARY + 2
    assert " ".join(text.split()).startswith(found.removesuffix(" \u2026"))


def test_a_summary_ends_with_a_sentence_if_one_fits():
    first, second = "The river rose on Friday.", "X" * SUMMARY
    assert summary(f"{first}\n{second}") == f"{first} {second}"[: SUMMARY - 1] + " \u2026"
    half = " ".join([first] * 5)
    assert summary(f"{half}\n{second}") == half
    assert summary("word " * 100) == ("word " * 100)[: 5 * ((SUMMARY - 1) // 5) - 1] + " \u2026"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When Angela Merkel met Kim Jong Un in Berlin, nobody spoke.", ["Angela Merkel", "Kim Jong Un", "Berlin"]),
        ("The University of Chicago said. The team of Chicago left.", ["University of Chicago", "Chicago"]),
        ("They met Trump\u2019s lawyer.", ["Trump"]),
        ("It said George H.W. Bush met Theresa May on Friday, in May. Plan B", ["George H.W. Bush", "Theresa May"]),
        ("Nobody came. Everybody left.", []),
        ("We asked Mr Smith, Frau Merkel and Ms, no, Drew Barrymore.", ["Smith", "Merkel", "Drew Barrymore"]),
        ("\u6d2a\u6c34\u304c \u5e02\u3092 \u8972\u3063\u305f", []),
        (
            "\u041e\u043d \u0431\u044b\u043b \u0432 \u041c\u043e\u0441\u043a\u0432\u0435.",
            ["\u041c\u043e\u0441\u043a\u0432\u0435"],
        ),
    ],
)
def test_names_are_capitalised_words_inside_of_sentences(text, expected):
    assert [name for name in names(text) if name != "The"] == expected


def test_the_names_of_an_event_are_those_of_several_reports_that_are_not_common():
    bodies = ["On Friday, Ann Lee met Bob.", "On Friday, Ann Lee spoke.", "On Friday, Lee left with Carl."]
    assert shared_names(bodies, lambda name: name == "Friday") == ["Ann Lee"]
    assert shared_names(["We saw Bob, and Bob left."], lambda _: False) == ["Bob"]


def test_a_report_adds_what_no_earlier_one_of_its_language_says():
    one = "The river rose on Friday morning near the old stone bridge."
    same = "On Friday morning the river near the old bridge of stone rose."
    new = "Rescue teams carried forty people from flooded houses with boats."
    assert additions([one, f"{same} {new}", new], ["en"] * 3) == [[], [new], []]
    assert additions([one, new], ["en", "de"]) == [[], []]
    chinese = ["星期五早上石桥附近的河水上涨。", "救援队用船从被淹的房屋中救出四十人。"]
    assert additions([chinese[0], "".join(chinese)], ["zh"] * 2) == [[], chinese[1:]]
    assert additions([one, "Short. Very short one."], ["en", "en"]) == [[], []]
