"""clean: worked examples for each rule, its bound and its switch, in many scripts, and properties of any text."""

import dataclasses
import datetime
import random
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.clean import CleanOptions, checked, rules, with_latest_date
from newsembed.beam_pipelines.clean.rules import bad_word, clean_lines, count_sentences, read_bad_words, rejection_of
from newsembed.errors import InputError
from newsembed.formats import dates
from newsembed.formats.records import Article, Rejection

WORDS = (
    "the council voted on late plans for a bridge over river and town while people watched with great interest as "
    "rain fell"
).split()
OPTIONS = CleanOptions()
DAY = datetime.date(2020, 5, 5)


def text(seed, sentences=12):
    draw = random.Random(seed)
    return "\n".join(" ".join(draw.choice(WORDS) for _ in range(12)).capitalize() + "." for _ in range(sentences))


def article(**changes):
    site = "0" * 16, "http://p.example/1", "p.example"
    return dataclasses.replace(Article(*site, "Title", text(1), ("Ann Lee",), DAY, date_source="meta"), **changes)


def reason(options=OPTIONS, **changes):
    broken = rejection_of(rules.cleaned(article(**changes), options)[0], options)
    return broken[0] if broken else None


SHORT = "It is too short. Really it is. So they said."
LOREM = text(1) + "\nLorem ipsum dolor sit amet."
PASSAGE = text(1, 6).replace("\n", " ")
FIRST_DAY, LAST_FETCH = datetime.date(1989, 12, 31), datetime.datetime(2020, 5, 3, 23, tzinfo=datetime.UTC)
UNREPEATED = {"max_repeated_share": 1, "max_repeated_span_share": 1}
# Changes of an article, its rejection (None: it passes), and options that turn the rule off.
RULES = [
    ({}, None, {}),
    ({"title": ""}, Rejection.NO_TITLE, None),
    ({"title": "404 Not Found"}, Rejection.COOKIE_OR_ERROR_PAGE, {"refuse_error_pages": False}),
    ({"body": SHORT}, Rejection.TOO_FEW_WORDS, {"min_words": 0}),
    ({"body": "word " * 150 + "."}, Rejection.TOO_FEW_SENTENCES, {"min_sentences": 0}),
    ({"body": LOREM}, Rejection.PLACEHOLDER_TEXT, {"refuse_placeholder_text": False}),
    ({"body": (text(1, 6) + "\n") * 3}, Rejection.REPEATED_TEXT, UNREPEATED),
    ({"body": f"{PASSAGE}\nThen. {PASSAGE}"}, Rejection.REPEATED_SPANS, {"max_repeated_span_share": 1}),
    ({"authors": ()}, None, {}),
    ({"byline_date": None}, Rejection.NO_BYLINE_DATE, {"require_byline_date": False}),
    ({"byline_date": FIRST_DAY}, Rejection.DATE_TOO_EARLY, {"earliest_date": FIRST_DAY}),
    ({"byline_date": datetime.date(1990, 1, 1)}, None, {}),
    ({"fetched_at": LAST_FETCH}, Rejection.DATE_IN_FUTURE, None),
    ({"fetched_at": LAST_FETCH + datetime.timedelta(hours=1)}, None, {}),
    ({"url": "http://p.example/2020/04/27/x"}, Rejection.DATES_DISAGREE, {"max_date_disagreement_days": -1}),
    ({"url": "http://p.example/2020/04/28/x"}, None, {}),
    ({"url": "http://p.example/2020/05/13/x"}, Rejection.DATES_DISAGREE, {"max_date_disagreement_days": 8}),
    ({"modified_date": datetime.date(2020, 4, 27)}, Rejection.DATES_DISAGREE, {"max_date_disagreement_days": 8}),
    ({"modified_date": datetime.date(2021, 4, 27)}, None, {}),
]


def test_an_author_is_required_on_request():
    assert reason(CleanOptions(require_author=True), authors=()) == Rejection.NO_AUTHOR
    assert reason(CleanOptions(require_author=True)) is None


@pytest.mark.parametrize(("changes", "expected", "switch"), RULES)
def test_each_rule_rejects_its_articles_and_has_a_switch(changes, expected, switch):
    assert reason(**changes) == expected
    if switch is not None:
        assert reason(CleanOptions(**switch), **changes) is None


def test_an_article_at_the_bound_of_a_rule_passes():
    exact = {"min_words": 144, "min_sentences": 12, "latest_date": DAY, "earliest_date": DAY}
    assert reason(CleanOptions(**exact)) is None
    past = [{"min_words": 145}, {"min_sentences": 13}]
    past += [{"latest_date": datetime.date(2020, 5, 4)}, {"earliest_date": datetime.date(2020, 5, 6)}]
    assert all(reason(CleanOptions(**one)) is not None for one in past)
    loose = {"min_words": 0, "min_sentences": 0, "require_language": False, "require_terminal_punctuation": False}
    for body, share, name, rejection in (
        ("a b c.\na b c.", 6 / 13, "max_repeated_share", Rejection.REPEATED_TEXT),
        ("A. B. C. D. E. A. B. C.", 3 / 8, "max_repeated_span_share", Rejection.REPEATED_SPANS),
    ):
        assert rejection_of(article(body=body), CleanOptions(**loose, **{name: share})) is None
        assert rejection_of(article(body=body), CleanOptions(**loose, **{name: share - 1e-9}))[0] is rejection


ERRORS = """
    Page not found|404 not found|Seite nicht gefunden|Página no encontrada|page introuvable|page you requested
    Page cannot be found|accept cookies to continue|accept all cookies to continue|Enable JavaScript
"""


@pytest.mark.parametrize("phrase", [phrase for line in ERRORS.split("\n")[1:-1] for phrase in line.strip().split("|")])
def test_error_pages_say_so_in_the_title_or_the_first_400_characters(phrase):
    def rejected(title="Title", **changes):
        expected = (Rejection.COOKIE_OR_ERROR_PAGE, f"{phrase}: {title}")
        return rejection_of(article(title=title, **changes), OPTIONS) == expected

    assert rejected(f"x {phrase} x")
    assert rejected(body="x" * (400 - len(phrase)) + phrase)
    assert not rejected(body="x" * (401 - len(phrase)) + phrase)


def test_braces_are_refused_where_asked():
    body = text(1) + "\nA line with {braces} in it."
    assert reason(body=body) is None
    assert reason(CleanOptions(refuse_curly_braces=True), body=body) is Rejection.CURLY_BRACE
    assert reason(CleanOptions(refuse_curly_braces=True)) is None


NOTICES = {
    "javascript_lines": "javascript|Java Script",
    "cookie_lines": "Cookie Policy|verwendet Cookies|используем файлы cookie",
    "policy_lines": "Terms of use|conditions d’utilisation|Все права защищены",
}


@pytest.mark.parametrize("name", NOTICES)
def test_every_notice_is_dropped_unless_it_is_a_long_paragraph_or_the_rule_is_off(name):
    tail = " of this site."
    off = CleanOptions(**{f"drop_{name}": False})
    for phrase in NOTICES[name].split("|"):
        assert clean_lines(f"Some words {phrase}{tail}", OPTIONS) == ("", {name: 1})
        assert clean_lines(f"Some words {phrase}{tail}", off)[1] == {}
        for length, stays in ((299, False), (300, True)):
            line = "x" * (length - len(phrase) - len(tail) - 5) + " a b " + phrase + tail
            assert clean_lines(line, OPTIONS)[0] == (line if stays else ""), phrase


@pytest.mark.parametrize(
    ("line", "name", "switch"),
    [
        ("Photo of a bridge by it", "lines_without_terminal_punctuation", {"require_terminal_punctuation": False}),
        ("Read more.", "lines_with_too_few_words", {"min_words_per_line": 2}),
        ("他来了她走。", "lines_with_too_few_words", {"min_words_per_line": 2}),  # 5 characters: 2.9 words
    ],
)
def test_lines_that_are_no_sentences_are_dropped_unless_the_rule_is_off(line, name, switch):
    body = f"A sentence stays here.\n{line}\nAnother one stays too."
    assert clean_lines(body, OPTIONS) == ("A sentence stays here.\nAnother one stays too.", {name: 1})
    assert clean_lines(body, CleanOptions(**switch)) == (body, {})


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
        assert rules.rejection_of_lines(dropped)[0] is rejection
    assert rules.rejection_of_lines(clean_lines("", OPTIONS)[1]) == (Rejection.TOO_FEW_WORDS, "no text")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        *(("two words", 2), ("één twee", 2), ("", 0), ("한국어 문장 셋", 3), ("水 one, two - 3", 3)),
        *(("水" * 17, 10), ("水" * 16, 9), ("ひ" * 5, 2), ("カ" * 6, 3), ("東京で", 1), ("東京 - Olympics", 2)),
        *(("ก" * 11, 2), ("က" * 8, 2), ("ក" * 8, 2), ("ກ" * 8, 2), ("ཀ་" * 3, 1)),  # Thai to Lao, Tibetan syllables
    ],
)
def test_words_of_scripts_with_and_without_spaces(said, words):
    assert rules.count_words(said) == words


@pytest.mark.parametrize("mark", [".", "!", "?", "…", "؟", "۔", "։"])
def test_marks_that_end_a_sentence_before_a_space(mark):
    assert count_sentences(f"a{mark} b{mark}c{mark}") == 2
    assert count_sentences(f"a{mark}”") == count_sentences(f"a{mark}{mark} b") == 1
    assert rules.ends_sentence(f"a{mark}")


@pytest.mark.parametrize("mark", ["。", "！", "？", "｡", "।", "॥", "။", "។", "៕", "།", "༎", "።"])
def test_marks_that_end_a_sentence_anywhere(mark):
    assert count_sentences(f"a{mark}b{mark}") == 2
    assert rules.ends_sentence(f"a{mark}")


def test_a_colon_or_a_quote_ends_a_line_but_no_sentence():
    for line in ("He said:", "He came;", "He said “yes”", "He left 「後」"):
        assert rules.ends_sentence(line)
        assert count_sentences(line) == 0
    assert not any(map(rules.ends_sentence, ("He came,", "A caption of nine words that has no mark", "")))
    assert count_sentences("He said “it is over.” Then he left (for good.) So did she.") == 3
    assert count_sentences("One. Two. Three. Four.", 2) == 2
    assert count_sentences("ประโยคแรก ประโยคที่สอง") == 2


def test_a_declared_language_decides_between_near_ones(monkeypatch):
    monkeypatch.setattr(rules, "probabilities", lambda _: {"gl": 0.6, "es": 0.15, "pt": 0.149})
    found = {
        declared: rules.detect_language(article(language=declared), OPTIONS) for declared in ("", "ES-mx", "pt", "en")
    }
    assert found == {"": "gl", "ES-mx": "es", "pt": "gl", "en": "gl"}  # a quarter of the best is enough
    for least, language in ((0.6, "gl"), (0.61, "")):
        assert rules.detect_language(article(), CleanOptions(min_language_probability=least)) == language


@pytest.mark.parametrize(
    ("text", "declared", "language"),
    [
        ("国产手机新品发布", "", "zh"),
        ("国产手机50%占有率OK", "en", "zh"),
        ("東京五輪延期決定", "ja-JP", "ja"),
        ("東京五輪の延期決定", "", "ko"),
        ("한국의 大統領", "", "ko"),
        ("Cup 杯", "", "ko"),
    ],
)
def test_han_characters_without_kana_are_chinese(monkeypatch, text, declared, language):
    monkeypatch.setattr(rules, "probabilities", lambda _: {"ko": 0.9})
    assert rules.detect_language(article(title=text, body=text, language=declared), OPTIONS) == language


def test_the_identifier_reads_1500_characters_and_small_letters_of_a_text_in_capitals(monkeypatch):
    asked = []

    def predict(line, k):
        asked.append((line, k))
        return ["__label__nn", "__label__no", "__label__war"], [0.3, 0.3, 0.4]

    monkeypatch.setattr(rules, "_identifier", lambda: types.SimpleNamespace(predict=predict))
    for title, body in (("ABC def", ""), ("ABCD", ""), ("ABc\nDe", ""), ("ab", "c" * 5_000)):
        # A language written almost like another counts as that one.
        assert rules.detect_language(article(title=title, body=body), OPTIONS) == "no"
    assert asked == [("ABC def", 5), ("abcd", 5), ("ABc De", 5), ("ab " + "c" * 1_497, 5)]
    assert rules.text_of(article(title="ab", body="c" * 5_000)) == "ab\n" + "c" * 3_997


def test_letters_of_another_script_than_the_language_has():
    assert rejection_of(article(language="ru"), OPTIONS) == (Rejection.WRONG_SCRIPT, "0.00 of the letters fit ru")
    assert rejection_of(article(language="ru"), CleanOptions(min_script_share=0)) is None
    assert rejection_of(article(language="en"), OPTIONS) is None
    half = article(title="Москва Moscow", body="Москва Moscow", language="ru")
    options = {"min_words": 0, "min_sentences": 0}
    assert rejection_of(half, CleanOptions(**options)) is None
    assert rejection_of(half, CleanOptions(**options, min_script_share=0.51))[0] is Rejection.WRONG_SCRIPT
    unknown = article(language="", body=article().body.translate({ord(letter): "ж" for letter in "aeiou"}))
    assert rejection_of(unknown, CleanOptions(require_language=False, min_script_share=0.9)) is None


# A word of each script, and the languages that are written in it.
SCRIPTS = {
    "Straße": "en de fr tr vi az sr uz ku pl", "Αθήνα": "el", "Москва": "ru uk bg sr kk mn az tt", "Երևան": "hy",
    "ירושלים": "he yi", "القاهرة": "ar fa ur ug ku pa kk az", "މާލެ": "dv", "दिल्ली": "hi mr ne sa", "ঢাকা": "bn as",
    "ਅੰਮ੍ਰਿਤਸਰ": "pa", "અમદાવાદ": "gu", "କଟକ": "or", "சென்னை": "ta", "హైదరాబాద్": "te", "ಬೆಂಗಳೂರು": "kn", "കൊച്ചി": "ml",
    "කොළඹ": "si", "กรุงเทพ": "th", "ལྷ་ས": "bo", "ရန်ကုန်": "my", "თბილისი": "ka", "ວຽງຈັນ": "lo", "አዲስ": "am",
    "ភ្នំពេញ": "km", "ᠮᠣᠩᠭᠣᠯ": "mn", "とうきょう": "ja", "トウキョウ": "ja", "서울": "ko", "東京": "ja zh ko",
}  # fmt: skip


@pytest.mark.parametrize("word", SCRIPTS)
def test_letters_fit_the_languages_of_their_script_only(word):
    written = SCRIPTS[word].split()
    assert {language: rules.script_share(f"{word} 12", language) for language in written} == dict.fromkeys(written, 1.0)
    for other in ("en", "el", "ru", "he", "hi", "th", "zh", "ko"):
        assert other in written or rules.script_share(word, other) == 0, other


def test_the_latest_date_is_tomorrow_unless_given():
    today = datetime.datetime.now(datetime.UTC).date()
    found = with_latest_date(OPTIONS).latest_date
    assert found in {today + datetime.timedelta(days=1), today + datetime.timedelta(days=2)}  # near midnight
    given = CleanOptions(latest_date=datetime.date(2020, 1, 1))
    assert with_latest_date(given) is given


def test_a_clock_of_the_past_is_an_error_and_makes_no_day_implausible(monkeypatch):
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, _zone):
            return cls(1970, 1, 2)

    monkeypatch.setattr(datetime, "datetime", Clock)
    with pytest.raises(InputError, match="this machine's clock says 1970-01-02") as raised:
        with_latest_date(OPTIONS)
    assert raised.value.field == "--latest_date"
    given = CleanOptions(latest_date=datetime.date(2020, 1, 1))
    assert with_latest_date(given) is given
    dates._next_year.cache_clear()
    assert dates.is_plausible(datetime.date(2026, 5, 4))
    assert not dates.is_plausible(datetime.date(2028, 1, 1))
    dates._next_year.cache_clear()


def test_an_article_without_a_title_and_text_is_rejected_for_its_title():
    assert checked(article(title="", body="menu"), OPTIONS, None)[2] == (Rejection.NO_TITLE, "")
    expected = (Rejection.NO_TERMINAL_PUNCTUATION, "1 of 1 lines")
    assert checked(article(body="menu"), OPTIONS, None)[2] == expected
    assert rules.cleaned(article(title="  A \n title "), OPTIONS)[0].title == "A title"


def test_bad_words_are_whole_words_of_any_case(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("bridge\nc++\n\n")
    words = read_bad_words([str(path)])
    assert bad_word(article(body="The Bridge."), words) == "Bridge"
    assert bad_word(article(body="The bridges."), words) == ""
    assert bad_word(article(title="A bridge", body="Nothing."), words) == "bridge"
    assert bad_word(article(body="Written in C++ at last."), words) == "C++"
    assert bad_word(article(body="The Bridge."), read_bad_words([])) == ""
    (tmp_path / "more.txt").write_text("\ufefftunnel\r\n", encoding="utf-8")  # as editors on Windows write it
    both = read_bad_words([str(path), str(tmp_path / "more.txt")])
    assert [bad_word(article(body=body), both) for body in ("A bridge.", "A tunnel.")] == ["bridge", "tunnel"]
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="contains no words"):
        read_bad_words([str(path), str(tmp_path / "empty.txt")])
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="UTF-8"):
        read_bad_words([str(tmp_path / "latin.txt")])


def test_repeats_by_hand():
    assert rules.repeated_share("aa\nbb\naa") == pytest.approx(2 / 8)
    assert rules.repeated_span_share("A. B. C. D. A. B. C.") == pytest.approx(3 / 7)
    assert rules.repeated_span_share("A. B.\nA. B.") == 0  # no span of three comes back
    assert rules.repeated_span_share("A. A. A. A. A") == pytest.approx(
        4 / 5
    )  # the second span and the third are the first
    assert rules.repeated_span_share("甲。乙。丙。丁。甲。乙。丙。") == pytest.approx(3 / 7)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_properties_that_hold_for_any_text(said):
    kept, dropped = clean_lines(said, OPTIONS)
    assert clean_lines(kept, OPTIONS) == (kept, {})
    assert len(kept.splitlines()) + dropped.total() == sum(bool(line.split()) for line in said.splitlines())
    assert rules.count_words(said) <= len(said)
    assert 0 <= rules.repeated_share(said) <= 1
    assert 0 <= rules.repeated_span_share(said) <= 1
    assert 0 <= rules.script_share(said, "ru") <= 1
