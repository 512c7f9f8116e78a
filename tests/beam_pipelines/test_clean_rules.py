"""clean: worked examples for each rule and each switch, and properties of any text."""

import dataclasses
import datetime
import random
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.clean import CleanOptions, languages
from newsembed.beam_pipelines.clean.counting import count_sentences, count_words, ends_sentence
from newsembed.beam_pipelines.clean.languages import script_share
from newsembed.beam_pipelines.clean.lines import LINE_RULES, clean_lines, rejection_of_lines
from newsembed.beam_pipelines.clean.rules import (
    RULES,
    bad_word,
    cleaned,
    read_bad_words,
    rejection_of,
    repeated_share,
    repeated_span_share,
)
from newsembed.errors import InputError
from newsembed.formats.records import Article, Rejection

WORDS = (
    "the council voted on late plans for a bridge over river and town while people watched with great interest as "
    "rain fell"
).split()
OPTIONS = CleanOptions()
UTC = datetime.UTC


def text(seed, sentences=12):
    draw = random.Random(seed)
    return "\n".join(" ".join(draw.choice(WORDS) for _ in range(12)).capitalize() + "." for _ in range(sentences))


def article(**changes):
    base = Article(
        "0" * 16,
        "http://p.example/1",
        "p.example",
        "Title",
        text(1),
        ("Ann Lee",),
        datetime.date(2020, 5, 5),
        date_source="meta",
    )
    return dataclasses.replace(base, **changes)


def reason(options=OPTIONS, **changes):
    broken = rejection_of(cleaned(article(**changes), options)[0], options)
    return broken[0] if broken else None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"title": ""}, Rejection.NO_TITLE),
        ({"title": "404 Not Found"}, Rejection.COOKIE_OR_ERROR_PAGE),
        ({"body": "It is too short. Really it is. So they said."}, Rejection.TOO_FEW_WORDS),
        ({"body": "word " * 150 + "."}, Rejection.TOO_FEW_SENTENCES),
        ({"body": text(1) + "\nLorem ipsum dolor sit amet."}, Rejection.PLACEHOLDER_TEXT),
        ({"body": (text(1, 6) + "\n") * 3}, Rejection.REPEATED_TEXT),
        (
            {"body": text(1, 6).replace("\n", " ") + "\n" + "Then. " + text(1, 6).replace("\n", " ")},
            Rejection.REPEATED_SPANS,
        ),
        ({"authors": ()}, Rejection.NO_AUTHOR),
        ({"byline_date": None}, Rejection.NO_BYLINE_DATE),
        ({"byline_date": datetime.date(1989, 12, 31)}, Rejection.DATE_TOO_EARLY),
        ({"byline_date": datetime.date(1990, 1, 1)}, None),
        ({"fetched_at": datetime.datetime(2020, 5, 3, tzinfo=UTC)}, Rejection.DATE_IN_FUTURE),
        ({"fetched_at": datetime.datetime(2020, 5, 4, tzinfo=UTC)}, None),
        ({"url": "http://p.example/2020/04/27/story"}, Rejection.DATES_DISAGREE),
        ({"url": "http://p.example/2020/04/28/story"}, None),
        ({"url": "http://p.example/2020/05/13/story"}, Rejection.DATES_DISAGREE),
        ({"modified_date": datetime.date(2020, 4, 27)}, Rejection.DATES_DISAGREE),
        ({"modified_date": datetime.date(2021, 4, 27)}, None),
    ],
)
def test_each_rule_rejects_its_articles(changes, expected):
    assert reason(**changes) == expected


@pytest.mark.parametrize(
    ("switch", "changes"),
    [
        ({"min_words": 0}, {"body": "It is too short. Really it is. So they said."}),
        ({"min_sentences": 0}, {"body": "the council voted on a bridge " * 30 + "."}),
        ({"refuse_error_pages": False}, {"title": "404 Not Found"}),
        ({"refuse_placeholder_text": False}, {"body": text(1) + "\nLorem ipsum dolor sit amet."}),
        ({"max_repeated_share": 1, "max_repeated_span_share": 1}, {"body": (text(1, 6) + "\n") * 3}),
        ({"require_author": False}, {"authors": ()}),
        ({"require_byline_date": False}, {"byline_date": None}),
        ({"earliest_date": datetime.date(1980, 1, 1)}, {"byline_date": datetime.date(1989, 12, 31)}),
        ({"max_date_disagreement_days": -1}, {"url": "http://p.example/2010/04/27/story"}),
        ({"require_language": False, "min_language_probability": 1.1}, {}),
    ],
)
def test_each_rule_has_a_switch(switch, changes):
    assert reason(**changes, options=OPTIONS) is not None or "min_language_probability" in switch
    assert reason(**changes, options=CleanOptions(**switch)) is None


def test_braces_are_refused_where_asked():
    body = text(1) + "\nA line with {braces} in it."
    assert reason(body=body) is None
    assert reason(CleanOptions(refuse_curly_braces=True), body=body) is Rejection.CURLY_BRACE
    assert reason(CleanOptions(refuse_curly_braces=True)) is None


def test_the_last_day_holds_to_the_day():
    options = CleanOptions(latest_date=datetime.date(2020, 5, 4))
    assert reason(options) is Rejection.DATE_IN_FUTURE
    assert reason(dataclasses.replace(options, latest_date=datetime.date(2020, 5, 5))) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"bands": 13},
        {"near_duplicate_threshold": 0.0},
        {"min_words": -1},
        {"min_script_share": 1.5},
        {"min_yield_drop": -0.1},
    ],
)
def test_bad_options_are_named(changes):
    with pytest.raises(InputError, match=f"--.*{next(iter(changes))}"):
        CleanOptions(**changes)


@pytest.mark.parametrize(
    ("line", "name", "switch"),
    [
        ("Please turn on JavaScript to see the page.", "javascript_lines", {"drop_javascript_lines": False}),
        ("We use cookies to improve your visit.", "cookie_lines", {"drop_cookie_lines": False}),
        ("Diese Seite verwendet Cookies zur Analyse.", "cookie_lines", {"drop_cookie_lines": False}),
        ("Read our privacy policy for details.", "policy_lines", {"drop_policy_lines": False}),
        ("Все права защищены их владельцами.", "policy_lines", {"drop_policy_lines": False}),
        (
            "Photo of a bridge by the river",
            "lines_without_terminal_punctuation",
            {"require_terminal_punctuation": False},
        ),
        ("Read more.", "lines_with_too_few_words", {"min_words_per_line": 0}),
    ],
)
def test_each_line_rule_drops_what_it_names_and_has_a_switch(line, name, switch):
    body = f"A sentence stays here.\n{line}\nAnother one stays too."
    kept, dropped = clean_lines(body, OPTIONS)
    assert kept == "A sentence stays here.\nAnother one stays too."
    assert dropped == {name: 1}
    assert clean_lines(body, CleanOptions(**switch)) == (body, {})


def test_a_report_about_cookies_is_not_a_notice():
    line = "The regulator said on Monday that the use of cookies must be agreed to. " * 5
    assert clean_lines(line, OPTIONS) == (line.strip(), {})


def test_an_empty_body_is_rejected_under_the_rule_that_dropped_most_lines():
    for line, rejection in [
        ("We use cookies here.", Rejection.ONLY_COOKIE_LINES),
        ("Enable JavaScript now.", Rejection.ONLY_JAVASCRIPT_LINES),
        ("See the terms of use.", Rejection.ONLY_POLICY_LINES),
        ("menu item", Rejection.NO_TERMINAL_PUNCTUATION),
        ("Read more.", Rejection.TOO_FEW_WORDS_PER_LINE),
    ]:
        body, dropped = clean_lines(f"{line}\n{line}\n" + ("menu" if line != "menu item" else ""), OPTIONS)
        assert body == ""
        assert rejection_of_lines(dropped)[0] is rejection
    assert rejection_of_lines(clean_lines("", OPTIONS)[1]) == (Rejection.TOO_FEW_WORDS, "no text")


def test_every_name_is_used_once():
    names = [rejection for *_, rejection in (*RULES, *LINE_RULES)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("two words", 2),
        ("", 0),
        ("北京时间今天下午三点整", 6),  # 11 characters / 1.7
        ("東京 Olympics", 2),
        ("สวัสดีชาวโลก", 3),  # 12 characters / 4
        ("བོད་སྐད་ཡིག་ཆ", 2),  # four syllables
        ("한국어 문장 셋", 3),
    ],
)
def test_words_of_scripts_with_and_without_spaces(said, words):
    assert count_words(said) == words


@pytest.mark.parametrize(
    ("said", "sentences"),
    [
        ("One. Two! Three?", 3),
        ("It cost 3.50 at 5 p.m. today.", 2),  # an abbreviation counts: the rule asks for a few only
        ("他来了。她走了！真的？", 3),
        ("यह एक वाक्य है। यह दूसरा है।", 2),
        ("هل جاء؟ نعم.", 2),
        ("ประโยคแรก ประโยคที่สอง", 2),
        ("no end", 0),
    ],
)
def test_sentences_of_many_scripts(said, sentences):
    assert count_sentences(said) == sentences


def test_lines_of_a_script_without_full_stops_end_by_their_length():
    assert ends_sentence("นายกรัฐมนตรีกล่าวว่ารัฐบาลจะเร่งแก้ไขปัญหาน้ำท่วม")
    assert not ends_sentence("หน้าแรก")
    assert ends_sentence("ປະ" * 20)


def test_news_in_scripts_without_spaces_passes():
    chinese = "市议会周二晚间投票通过了一项计划，将在河上修建一座新桥，许多居民冒雨前来旁听会议。" * 3
    body = "\n".join(f"{chinese}第{number}次会议将在下个月举行。" for number in "一二三四五六")
    assert reason(CleanOptions(max_repeated_span_share=1), title="市议会通过修桥计划", body=body) is None


SPANISH = (
    "El alcalde de la ciudad presento ayer el plan para ampliar el puerto. Los vecinos "
    "del barrio piden que se respete el parque. "
    "La obra costara doce millones y empezara en otono, segun el ayuntamiento. "
)


@pytest.mark.parametrize(
    ("declared", "language"), [("", "es"), ("es-MX", "es"), ("en", "es"), ("de", "es"), ("xx", "es")]
)
def test_a_declared_language_does_not_overrule_a_clear_text(declared, language):
    assert (
        cleaned(article(title="Plan del puerto", body=SPANISH * 3, language=declared), OPTIONS)[0].language == language
    )


def test_a_declared_language_decides_between_near_ones(monkeypatch):
    monkeypatch.setattr(languages, "probabilities", lambda _: {"gl": 0.6, "es": 0.3, "pt": 0.1})
    found = {
        declared: cleaned(article(language=declared), OPTIONS)[0].language
        for declared in ("", "es-ES", "ES", "pt", "en")
    }
    assert found == {"": "gl", "es-ES": "es", "ES": "es", "pt": "gl", "en": "gl"}


HEADLINES = {
    "am": "የኢትዮጵያ ጠቅላይ ሚኒስትር ዛሬ በአዲስ አበባ መግለጫ ሰጡ",
    "ar": "رئيس الوزراء يلتقي وزير الخارجية في العاصمة اليوم",
    "de": "Bundestag stimmt am Freitag über den Haushalt ab",
    "en": "Parliament votes on the new budget this Friday",
    "fr": "L'Assemblée nationale vote le budget vendredi",
    "hi": "संसद शुक्रवार को नए बजट पर मतदान करेगी",
    "ru": "Парламент проголосует по новому бюджету в пятницу",
    "zh": "议会将于星期五对新预算进行表决，总理在北京表示，政府将减少开支。",
}


@pytest.mark.parametrize("language", HEADLINES)
def test_a_headline_is_enough_to_know_a_language(language):
    text = f"{HEADLINES[language]}\n{HEADLINES[language]}"
    assert languages.detect_language(article(title=text, body=""), OPTIONS) == language


def test_capitals_do_not_change_a_language():
    assert languages.detect_language(article(title="The budget", body=HEADLINES["en"].upper()), OPTIONS) == "en"


def test_a_language_written_almost_like_another_counts_as_that_one(monkeypatch):
    labels, probabilities = ["__label__nn", "__label__no", "__label__war"], [0.3, 0.3, 0.4]
    identifier = types.SimpleNamespace(predict=lambda *_, **__: (labels, probabilities))
    monkeypatch.setattr(languages, "_identifier", lambda: identifier)
    assert languages.detect_language(article(), OPTIONS) == "no"


def test_letters_of_another_script_than_the_language_has():
    assert rejection_of(article(language="ru"), OPTIONS) == (Rejection.WRONG_SCRIPT, "0.00 of the letters fit ru")
    assert rejection_of(article(language="ru"), CleanOptions(min_script_share=0)) is None
    assert rejection_of(article(language="en"), OPTIONS) is None
    unknown = article(language="", body=article().body.translate({ord(letter): "ж" for letter in "aeiou"}))
    assert rejection_of(unknown, CleanOptions(require_language=False, min_script_share=0.9)) is None


@pytest.mark.parametrize(
    ("said", "language", "share"),
    [
        ("Москва", "ru", 1),
        ("Москва Moscow", "ru", 0.5),
        ("東京タワー", "ja", 1),
        ("東京", "zh", 1),
        ("한국", "zh", 0),
        ("हिन्दी समाचार।", "hi", 1),
        ("12:30, 45 %", "en", 1),
        ("Ćwiczenia ąęłó", "pl", 1),
        ("Tiếng Việt", "vi", 1),
    ],
)
def test_script_shares(said, language, share):
    assert script_share(said, language) == share


def test_every_language_has_a_script():
    assert len(languages.LANGUAGES) == 101
    assert set(languages._SCRIPTS) <= languages.LANGUAGES
    assert set(languages._ALIASES.values()) <= languages.LANGUAGES
    assert {script for scripts in languages._SCRIPTS.values() for script in scripts} <= set(languages._RANGES)


def test_bad_words_are_whole_words_of_any_case(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("bridge\nc++\n\n")
    words = read_bad_words([str(path)])
    assert bad_word(article(body="The Bridge."), words) == "Bridge"
    assert bad_word(article(body="The bridges."), words) == ""
    assert bad_word(article(body="Written in C++ at last."), words) == "C++"
    assert bad_word(article(body="The Bridge."), read_bad_words([])) == ""
    (tmp_path / "more.txt").write_text("\ufefftunnel\r\n", encoding="utf-8")  # as editors on Windows write it
    both = read_bad_words([str(path), str(tmp_path / "more.txt")])
    assert [bad_word(article(body=body), both) for body in ("A bridge.", "A tunnel.")] == ["bridge", "tunnel"]
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="contains no words"):
        read_bad_words([str(path), str(tmp_path / "empty.txt")])
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        read_bad_words([str(tmp_path / "latin.txt")])


def test_repeats_by_hand():
    assert repeated_share("aa\nbb\naa") == pytest.approx(2 / 8)
    assert repeated_span_share("A. B. C. D. A. B. C.") == pytest.approx(3 / 7)
    assert repeated_span_share("A. B.\nA. B.") == 0  # no span of three comes back
    assert repeated_span_share("A. A. A. A. A") == pytest.approx(4 / 5)  # the second span and the third are the first
    assert repeated_span_share("甲。乙。丙。丁。甲。乙。丙。") == pytest.approx(3 / 7)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_properties_that_hold_for_any_text(said):
    kept, dropped = clean_lines(said, OPTIONS)
    assert clean_lines(kept, OPTIONS) == (kept, {})
    assert len(kept.splitlines()) + dropped.total() == sum(bool(line.split()) for line in said.splitlines())
    assert count_words(said) <= len(said)
    assert 0 <= repeated_share(said) <= 1
    assert 0 <= repeated_span_share(said) <= 1
    assert 0 <= script_share(said, "ru") <= 1
