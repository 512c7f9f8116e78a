"""label: which part of an article is shown, word for word."""

import datetime

import pytest
from newsembed.formats import parquet
from newsembed.formats.records import Article
from newsembed.studies.label.texts import Text, common_words, read_texts, segments, shared_words

DAY = datetime.date(2024, 1, 2)


def shown(tmp_path, body, **fields):
    articles = [
        Article("a" * 16, "u", "p", "t", body, byline_date=DAY, **fields),
        Article("b" * 16, "v", "p", "t", "other"),
    ]
    parquet.write_shard(str(tmp_path / "part-00000-of-00001.parquet"), articles, Article)
    found = read_texts(str(tmp_path), {"a" * 16, "c" * 16})
    assert list(found) == ["a" * 16]
    return found["a" * 16]


@pytest.mark.parametrize(
    ("body", "paragraphs", "cut"),
    [
        ("a" * 1_600, ("a" * 1_600,), False),
        ("a" * 1_601, ("a" * 1_600,), True),  # no space to cut at
        ("word " * 319 + "12345", ("word " * 319 + "12345",), False),
        ("word " * 320 + "x", (("word " * 320).strip(),), True),
        ("word " * 319 + "123456", (("word " * 319).strip(),), True),  # the word at the end is left out
        (" one \n\n two\x1b[31m", ("one", "two [31m"), False),
    ],
)
def test_the_first_1600_characters_of_a_body_are_shown_in_whole_words(tmp_path, body, paragraphs, cut):
    found = shown(tmp_path, body)
    assert (found.paragraphs, found.cut) == (paragraphs, cut)


def test_other_parts_of_an_article_are_shown_as_they_are(tmp_path):
    found = shown(tmp_path, "b", language="en", image_url="i")
    assert found == Text("u", "p", "t", ("b",), False, "2024-01-02", "en", "i")


def test_words_have_three_letters_and_no_case():
    assert Text("", "", "An ÉTÉ", ("up to one: été_2",), False, "", "en").words == {"été", "one", "été_2"}


@pytest.mark.parametrize(("articles", "with_word", "is_common"), [(20, 6, True), (20, 5, False), (19, 19, False)])
def test_words_of_more_than_a_quarter_of_many_articles_are_common(articles, with_word, is_common):
    texts = [Text("", "", "storm" if number < with_word else "calm", (), False, "", "en") for number in range(articles)]
    assert ("storm" in common_words(texts)["en"]) == is_common


def test_shared_words_are_common_in_neither_language():
    left = Text("", "", "storm hits coast town", (), False, "", "en")
    right = Text("", "", "storm coast town harbour", (), False, "", "de")
    assert shared_words(left, right, {"en": {"storm"}, "de": {"town"}}) == {"coast"}
    assert shared_words(left, right, {}) == {"storm", "coast", "town"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The storm, STORM hits", [("The ", False), ("storm", True), (", ", False), ("STORM", True), (" hits", False)]),
        ("storm", [("storm", True)]),
        ("storms", [("storms", False)]),
        ("", []),
    ],
)
def test_shared_words_are_marked_in_a_text(text, expected):
    assert segments(text, {"storm"}) == expected
