"""clean: marks, notices and languages one by one, and how much of a text each rule reads."""

import datetime
import types

import pytest
from newsembed.beam_pipelines.clean import CleanOptions, dates, languages
from newsembed.beam_pipelines.clean.counting import count_sentences, count_words, ends_sentence
from newsembed.beam_pipelines.clean.languages import detect_language, script_share
from newsembed.beam_pipelines.clean.lines import clean_lines
from newsembed.beam_pipelines.clean.rules import error_page
from newsembed.formats.records import Article

OPTIONS = CleanOptions()


def article(title="Title", body="Text.", **fields):
    return Article("0" * 16, fields.pop("url", "http://p.example/1"), "p.example", title, body, ("Ann Lee",), **fields)


@pytest.mark.parametrize("mark", [".", "!", "?", "…", "؟", "۔", "։"])
def test_marks_that_end_a_sentence_before_a_space(mark):
    assert count_sentences(f"a{mark} b{mark}c{mark}") == 2
    assert count_sentences(f"a{mark}”") == 1
    assert count_sentences(f"a{mark}{mark} b") == 1
    assert ends_sentence(f"a{mark}")


@pytest.mark.parametrize("mark", ["。", "！", "？", "｡", "।", "॥", "။", "។", "៕", "།", "༎", "።"])
def test_marks_that_end_a_sentence_anywhere(mark):
    assert count_sentences(f"a{mark}b{mark}") == 2
    assert ends_sentence(f"a{mark}")


def test_a_colon_or_a_quote_ends_a_line_but_no_sentence():
    for line in ("He said:", "He came;", "He said “yes”", "He left 「後」"):
        assert ends_sentence(line)
        assert count_sentences(line) == 0
    assert not ends_sentence("He came,")
    assert not ends_sentence("A caption of nine words that has no mark")
    assert not ends_sentence("")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("水" * 17, 10),
        ("水" * 16, 9),  # 9.4
        ("ひ" * 5, 2),
        ("カ" * 6, 3),
        ("ก" * 11, 2),
        ("က" * 8, 2),  # Burmese
        ("ក" * 8, 2),  # Khmer
        ("ກ" * 8, 2),  # Lao
        ("ཀ་" * 3, 1),  # three syllables
        ("水 one, two - 3", 3),
        ("één twee", 2),
    ],
)
def test_words_by_script(text, words):
    assert count_words(text) == words


NOTICES = {
    "javascript_lines": "javascript|Java Script",
    "cookie_lines": "Cookie Policy|uses cookies|the use of cookies|We use cookies|our cookies|accept cookies"
    "|accept all cookies|verwendet Cookies|verwenden Cookies|utiliza cookies|utilizamos cookies|utilise des cookies"
    "|utilise les cookies|utilizza cookie|utilizza i cookie|gebruikt cookies|использует cookie"
    "|использует файлы cookie|используем файлы cookie",
    "policy_lines": "Terms of use|terms of service|Privacy Policy|privacy notice|sign up for our newsletter"
    "|all rights reserved|Datenschutzerklärung|Nutzungsbedingungen|alle Rechte vorbehalten|privacybeleid"
    "|alle rechten voorbehouden|política de privacidad|términos y condiciones|todos los derechos reservados"
    "|todos os direitos reservados|politique de confidentialité|conditions d'utilisation|conditions d’utilisation"
    "|tous droits réservés|politica sulla privacy|tutti i diritti riservati|Политика конфиденциальности"
    "|политики конфиденциальности|Все права защищены",
}


@pytest.mark.parametrize(
    ("name", "phrase"), [(name, one) for name, phrases in NOTICES.items() for one in phrases.split("|")]
)
def test_every_notice_is_dropped_unless_it_is_a_long_paragraph(name, phrase):
    tail = " of this site."
    assert clean_lines(f"Some words {phrase}{tail}", OPTIONS) == ("", {name: 1})
    for length, kept in ((299, False), (300, True)):
        line = "x" * (length - len(phrase) - len(tail) - 5) + " a b " + phrase + tail
        assert len(line) == length
        assert clean_lines(line, OPTIONS)[0] == (line if kept else "")


@pytest.mark.parametrize(
    "phrase",
    [
        *("Page not found", "404 not found", "Seite nicht gefunden", "Página no encontrada", "page introuvable"),
        *("page you requested", "Page cannot be found", "accept cookies to continue", "accept all cookies to continue"),
        "Enable JavaScript",
    ],
)
def test_error_pages_say_so_in_the_title_or_the_first_400_characters(phrase):
    assert error_page(article(title=f"x {phrase} x"), OPTIONS) is not None
    assert error_page(article(body="x" * (400 - len(phrase)) + phrase), OPTIONS) == f"{phrase}: Title"
    assert error_page(article(body="x" * (401 - len(phrase)) + phrase), OPTIONS) is None
    assert error_page(article(title=phrase), CleanOptions(refuse_error_pages=False)) is None


# A word of each script, and the languages that are written in it.
WORDS = {
    "Straße": "en de fr tr vi az sr uz ku", "Αθήνα": "el", "Москва": "ru uk bg sr kk mn az tt", "Երևան": "hy",
    "ירושלים": "he yi", "القاهرة": "ar fa ur ug ku pa kk az", "މާލެ": "dv", "दिल्ली": "hi mr ne sa", "ঢাকা": "bn as",
    "ਅੰਮ੍ਰਿਤਸਰ": "pa", "અમદાવાદ": "gu", "କଟକ": "or", "சென்னை": "ta", "హైదరాబాద్": "te", "ಬೆಂಗಳೂರು": "kn", "കൊച്ചി": "ml",
    "කොළඹ": "si", "กรุงเทพ": "th", "ལྷ་ས": "bo", "ရန်ကုန်": "my", "თბილისი": "ka", "ວຽງຈັນ": "lo", "አዲስ": "am",
    "ភ្នំពេញ": "km", "ᠮᠣᠩᠭᠣᠯ": "mn", "とうきょう": "ja", "トウキョウ": "ja", "서울": "ko", "東京": "ja zh ko",
}  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_letters_fit_the_languages_of_their_script_only(word):
    written = WORDS[word].split()
    assert {language: script_share(f"{word} 12", language) for language in written} == dict.fromkeys(written, 1.0)
    for other in ("en", "el", "ru", "he", "hi", "th", "zh", "ko"):
        if other not in written:
            assert script_share(word, other) == 0, other


@pytest.mark.parametrize(
    ("label", "language"),
    [
        *(("arz", "ar"), ("azb", "az"), ("bs", "hr"), ("ckb", "ku"), ("nn", "no"), ("pnb", "pa"), ("sh", "hr")),
        *(("wuu", "zh"), ("yue", "zh"), ("de", "de"), ("war", ""), ("ceb", "")),
    ],
)
def test_labels_of_the_identifier(monkeypatch, label, language):
    found = types.SimpleNamespace(predict=lambda *_, **__: ([f"__label__{label}"], [0.9]))
    monkeypatch.setattr(languages, "_identifier", lambda: found)
    assert detect_language(article(), OPTIONS) == language


def test_the_language_is_detected_from_the_first_1500_characters_of_title_and_body(monkeypatch):
    asked = []
    predict = lambda line, k: asked.append(line) or (["__label__en"], [0.9])  # noqa: E731
    monkeypatch.setattr(languages, "_identifier", lambda: types.SimpleNamespace(predict=predict))
    detect_language(article("ab", "c" * 5_000), OPTIONS)
    assert asked == ["ab " + "c" * 1_497]
    assert languages.text_of(article("ab", "c" * 5_000)) == "ab\n" + "c" * 3_997


@pytest.mark.parametrize(
    ("date", "fields", "options", "detail"),
    [
        (datetime.date(2020, 5, 6), {"fetched_at": datetime.datetime(2020, 5, 4, 23)}, {}, "fetched on 2020-05-04"),
        (datetime.date(2020, 5, 5), {"fetched_at": datetime.datetime(2020, 5, 4, 23)}, {}, None),
        (datetime.date(2020, 5, 5), {}, {"latest_date": datetime.date(2020, 5, 4)}, "after 2020-05-04"),
        (datetime.date(2020, 5, 4), {}, {"latest_date": datetime.date(2020, 5, 4)}, None),
        (None, {"fetched_at": datetime.datetime(2020, 5, 4)}, {}, None),
    ],
)
def test_dates_of_the_future_say_what_they_are_compared_with(date, fields, options, detail):
    found = dates.in_future(article(byline_date=date, **fields), CleanOptions(**options))
    assert found == (detail and f"{date} by an unnamed source, {detail}")


@pytest.mark.parametrize(
    ("fields", "most", "detail"),
    [
        ({"url": "http://p.example/2020/05/03/x"}, 1, "2020-05-03 by the URL"),
        ({"url": "http://p.example/2020/05/03/x"}, 2, None),
        ({"url": "http://p.example/2020/05/03/x"}, -1, None),
        ({"modified_date": datetime.date(2020, 5, 4)}, 0, "modified on 2020-05-04"),
        ({"modified_date": datetime.date(2020, 5, 5)}, 0, None),
        ({"url": "http://p.example/2020/01/03/x", "byline_date": None}, 1, None),
        ({"modified_date": datetime.date(2020, 5, 4), "byline_date": None}, 0, None),
    ],
)
def test_dates_that_disagree_are_named_with_their_source(fields, most, detail):
    dated = article(**{"byline_date": datetime.date(2020, 5, 5), "date_source": "meta"} | fields)
    found = dates.disagreeing(dated, CleanOptions(max_date_disagreement_days=most))
    assert found == (detail and f"2020-05-05 by meta, {detail}")
