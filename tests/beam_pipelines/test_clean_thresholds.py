"""clean: the boundaries of the rules, by values worked by hand."""

import dataclasses
import datetime
import types

import pytest
from newsembed.beam_pipelines.clean import CleanOptions, broken_rule, languages, with_latest_date
from newsembed.beam_pipelines.clean.counting import count_sentences, count_words, ends_sentence
from newsembed.beam_pipelines.clean.lines import clean_lines, rejection_of_lines
from newsembed.beam_pipelines.clean.rules import bad_word, cleaned, read_bad_words, rejection_of
from newsembed.formats.records import Article, Rejection

PROSE = "The council voted on a bridge over the river while many people watched in the rain. "  # 16 words
UTC = datetime.UTC


def article(**changes):
    base = Article(
        "0" * 16,
        "http://p.example/1",
        "p.example",
        "Title",
        PROSE * 3,
        ("Ann Lee",),
        datetime.date(2020, 5, 5),
        language="en",
    )
    return dataclasses.replace(base, **changes)


def options(**changes):
    return CleanOptions(**{"min_words": 0, "min_sentences": 0, "max_repeated_span_share": 1, **changes})


def reason(found, **changes):
    broken = rejection_of(found, options(**changes))
    return broken[0] if broken else None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("カタカナ", 2),  # 4 characters, 2 per word
        ("東京で", 1),  # 2 / 1.7 + 1 / 2 = 1.68, rounded down
        ("東京 - Olympics", 2),  # a dash is not a word: 2 / 1.7 = 1.18 and one word
    ],
)
def test_words_of_mixed_scripts(said, words):
    assert count_words(said) == words


def test_sentences_are_counted_up_to_a_limit():
    assert count_sentences("One. Two. Three. Four.", 2) == 2
    assert count_sentences("One. Two. Three. Four.") == 4


def test_quotes_may_follow_the_mark_of_a_sentence():
    assert count_sentences("He said “it is over.” Then he left (for good.) So did she.") == 3
    assert ends_sentence("He said “it is over.”")
    assert ends_sentence("He left (for good)")
    assert not ends_sentence("He left for good")


def test_a_thai_line_of_eight_words_is_a_sentence():
    assert ends_sentence("ก" * 32)  # 32 characters, 4 per word
    assert not ends_sentence("ก" * 31)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"min_words": 48}, None),
        ({"min_words": 49}, Rejection.TOO_FEW_WORDS),
        ({"min_sentences": 3}, None),
        ({"min_sentences": 4}, Rejection.TOO_FEW_SENTENCES),
    ],
)
def test_an_article_with_exactly_the_minimum_passes(changes, expected):
    assert reason(article(), **changes) == expected


def test_an_article_with_exactly_the_maximum_of_repeats_passes():
    twice = article(body="a b c.\na b c.")  # 6 of 13 characters are repeated
    assert reason(twice, max_repeated_share=6 / 13) is None
    assert reason(twice, max_repeated_share=6 / 13 - 1e-9) is Rejection.REPEATED_TEXT
    spans = article(body="A. B. C. D. E. A. B. C.")  # 3 of 8 sentences of one letter
    assert reason(spans, max_repeated_span_share=3 / 8) is None
    assert reason(spans, max_repeated_span_share=3 / 8 - 1e-9) is Rejection.REPEATED_SPANS


def test_half_of_the_letters_in_the_script_are_enough():
    half = article(title="Москва Moscow", body="Москва Moscow", language="ru")
    assert reason(half, min_script_share=0.5) is None
    assert reason(half, min_script_share=0.51) is Rejection.WRONG_SCRIPT


@pytest.mark.parametrize(("days", "expected"), [(7, None), (8, Rejection.DATES_DISAGREE)])
def test_a_date_may_differ_by_a_week(days, expected):
    published = datetime.date(2020, 5, 5)
    later = published + datetime.timedelta(days=days)
    earlier = published - datetime.timedelta(days=days)
    assert reason(article(url=f"http://p.example/{later:%Y/%m/%d}/story")) == expected
    assert reason(article(url=f"http://p.example/{earlier:%Y/%m/%d}/story")) == expected
    assert reason(article(modified_date=earlier)) == expected
    assert reason(article(modified_date=later)) is None


def test_only_the_start_of_a_text_makes_an_error_page():
    assert reason(article(body=f"Page not found. {PROSE}")) is Rejection.COOKIE_OR_ERROR_PAGE
    assert reason(article(body=PROSE * 6 + "The clerk typed: page not found.")) is None


def test_titles_are_one_line_without_needless_spaces():
    assert cleaned(article(title="  A \n title "), options())[0].title == "A title"


def test_bad_words_are_found_in_titles_too(tmp_path):
    (tmp_path / "words.txt").write_text("bridge\n")
    assert (
        bad_word(article(title="A bridge", body="Nothing."), read_bad_words([str(tmp_path / "words.txt")])) == "bridge"
    )


def test_a_line_with_exactly_the_minimum_of_words_stays():
    assert clean_lines("He came home.\nHe left.", options(min_words_per_line=3)) == (
        "He came home.",
        {"lines_with_too_few_words": 1},
    )
    line = "他来了她走了。"  # 6 characters: 3.5 words, rounded down
    assert clean_lines(line, options(min_words_per_line=3))[0] == line
    assert clean_lines(line, options(min_words_per_line=4))[0] == ""


def test_the_language_is_unknown_below_the_minimum_probability(monkeypatch):
    monkeypatch.setattr(languages, "probabilities", lambda _: {"es": 0.4, "gl": 0.1})
    assert languages.detect_language(article(), options(min_language_probability=0.4)) == "es"
    assert languages.detect_language(article(), options(min_language_probability=0.41)) == ""


def test_a_declared_language_needs_a_quarter_of_the_best_probability(monkeypatch):
    monkeypatch.setattr(languages, "probabilities", lambda _: {"es": 0.8, "gl": 0.2, "pt": 0.19})
    found = {name: languages.detect_language(article(language=name), options()) for name in ("gl", "pt")}
    assert found == {"gl": "gl", "pt": "es"}


def test_the_identifier_gives_five_candidates_and_reads_small_letters_of_a_text_in_capitals(monkeypatch):
    asked = []

    def predict(line, k):
        asked.append((line, k))
        return ["__label__en"], [0.9]

    monkeypatch.setattr(languages, "_identifier", lambda: types.SimpleNamespace(predict=predict))
    for title in ("ABC def", "ABCD", "ABc\nDe"):
        languages.detect_language(article(title=title, body=""), options())
    # 3 of 7 characters are capitals: a minority; 4 of 4; 3 of 6: not more than half.
    assert asked == [("ABC def", 5), ("abcd", 5), ("ABc De", 5)]


def test_the_latest_date_is_tomorrow_unless_given():
    today = datetime.datetime.now(UTC).date()
    found = with_latest_date(options()).latest_date
    assert found in {today + datetime.timedelta(days=1), today + datetime.timedelta(days=2)}  # near midnight
    given = options(latest_date=datetime.date(2020, 1, 1))
    assert with_latest_date(given) is given


def test_an_article_without_a_title_and_text_is_rejected_for_its_title():
    assert broken_rule(article(title="", body=""), clean_lines("menu", options())[1], options(), None) == (
        Rejection.NO_TITLE,
        "",
    )
    _, dropped = clean_lines("menu", options())
    assert broken_rule(article(body=""), dropped, options(), None) == (
        Rejection.NO_TERMINAL_PUNCTUATION,
        "1 of 1 lines",
    )
    assert rejection_of_lines(dropped) == (Rejection.NO_TERMINAL_PUNCTUATION, "1 of 1 lines")
