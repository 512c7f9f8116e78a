"""Entities in texts: aliases, forms of words, and names that another script spells as they sound."""

import collections
import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.entities import spellings
from newsembed.beam_pipelines.entities.linking import Linker, find_mentions, priors_without
from newsembed.beam_pipelines.entities.spellings import Spellings, normal_letters, readings, similarity, sound_key
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.formats.records import Article, make_doc_id


@functools.cache
def linker(*names):
    """Links names; the surname of each names it, too."""
    aliases = [Alias(name, name, 1, name) for name in names]
    aliases += [Alias(name.split(" ")[-1], name, 1, name) for name in names if " " in name]
    return Linker(aliases, {name: row for row, name in enumerate(names)})


def linked(text, language, *names):
    return {names[row]: count for row, count in linker(*names).link([text], language).items()}


WORD = st.sampled_from(["ab", "abc", "b", "a-b", "New", "York"])


@given(st.lists(st.lists(WORD, min_size=1, max_size=3), min_size=1, max_size=6), st.lists(WORD, max_size=12))
def test_the_leftmost_and_longest_alias_is_found_as_by_a_plain_scan(names, text):
    keys = sorted({" ".join(name) for name in names})
    found = Linker([Alias(key, key, 1, "") for key in keys], {key: row for row, key in enumerate(keys)})
    expected, place = {}, 0
    while place < len(text):
        match = max(
            (key for key in keys if text[place : place + len(key.split())] == key.split()),
            key=lambda key: len(key.split()),
            default="",
        )
        if match:
            expected[keys.index(match)] = expected.get(keys.index(match), 0) + 1
        place += max(1, len(match.split()))
    assert found.link([" ".join(text)]) == expected


def test_an_alias_means_what_the_document_names_otherwise_else_the_most_likely():
    meanings = [("Jane Roe", "jane", 1), ("John Roe", "john", 1), ("Roe", "jane", 0.7), ("Roe", "john", 0.3)]
    aliases = [Alias(*meaning, "") for meaning in meanings]
    found = Linker(aliases, {"jane": 0, "john": 1})
    assert found.link(["Roe"]) == {0: 1}
    assert found.link(["John Roe came. Roe left."]) == {1: 2}
    assert Linker([Alias("Roe", "jane", 0.4, "")], {"jane": 0}).link(["Roe"]) == {}
    assert Linker([Alias("Roe", "jane", 0.5, "")], {"jane": 0}).link(["Roe"]) == {0: 1}
    assert Linker([], {}).link(["Roe"]) == {}


def test_mentions_are_ranked_by_count_and_words_come_from_title_keywords_and_lead():
    found = linker("Roe", "Ulm", "Poe")
    body = "Ulm met Poe and Roe. Late vote."
    article = Article(make_doc_id("a"), "u", "p", "Flood in Ulm", body, keywords=("Storm",))
    mentions = find_mentions(article, found, {"flood": 0, "vote": 1, "storm": 2, "met": 3, "roe": 4}, 5)
    assert (mentions.entities, mentions.entity_counts) == ((1, 0, 2), (2, 1, 1))
    assert mentions.words == (0, 2, 3, 4)  # the fifth word of the body is "Roe"; "vote" comes later


def test_a_short_name_counts_only_if_a_text_has_it_inside_of_a_sentence():
    assert linked("Si tratta di un gioco. Si gioca.", "it", "Si", "UN") == {}  # a word at the start of a sentence
    assert linked("Oggi, Si ha vinto. Si gioca.", "it", "Si", "UN") == {"Si": 2}
    assert linked("UN troops", "en", "Si", "UN") == {"UN": 1}


def test_a_meaning_of_another_language_does_not_count():
    aliases = [Alias("Palu", "PW", 0.8, "", "xx"), Alias("Palu", "city", 0.2, "")]
    found = Linker(aliases, {"PW": 0, "city": 1})
    assert found.link(["Palu"], "en") == {1: 1}
    assert found.link(["Palu"], "xx-YY") == {0: 1}
    assert (found.meaning("Palu", "xx"), found.meaning("Palu Beach", "xx"), found.meaning("Ulm")) == (0, None, None)
    # Readers leave the mark of the second one out, so both are one name, and each spelling has its priors.
    aliases = [Alias("\u0627\u0645", "mother", 0.1, ""), Alias("\u0623\u0645", "nation", 1, "", "fa")]
    found = Linker(aliases, {"mother": 0, "nation": 1})
    assert [found.link(["\u0627\u0645"], language) for language in ("fa", "ar")] == [{1: 1}, {}]
    found = Linker([Alias("Roe", "a", 0.6, "", "de"), Alias("Roe", "b", 0.3, "", "en")], {"a": 0, "b": 1})
    assert [found.link(["Roe"], language) for language in ("de", "en", "fr")] == [{0: 1}, {1: 1}, {}]


@pytest.mark.parametrize(
    ("priors", "kept", "expected"),
    [
        ([0.8, 0.1], [1], {1: 0.5}),  # 0.1 of 0.2, as another 0.1 is of no known meaning
        ([0.8, 0.2], [0, 1], {0: 0.8, 1: 0.2}),
        ([0.8, 0.2], [], {}),
        ([0.5, 0.5001], [0, 1], {0: 0.5, 1: 0.5001}),  # a table has four digits
        ([1.0, 0.5, 0.5], [1, 2], {1: 0.5, 2: 0.5}),  # a table of a user
    ],
)
def test_priors_of_meanings_without_the_others(priors, kept, expected):
    assert priors_without(priors, kept) == pytest.approx(expected, rel=1e-9)


# All parts of a compound that have a capital must be known.
FORMS = """
ru в России росла -> Россия
ru Китая Китаю Китаем китайцев -> Китай Китай Китай
de Berlins Straßen und Bonns -> Berlin
en Berlins ->
ar وبالمكسيك -> المكسيك
he בירושלים -> ירושלים
ko 서울에서 -> 서울
de Der EU-Beitritt und das Berlin-Bonner Treffen -> EU Berlin
fr L’EU, d'EU et x'EU -> EU EU
it dell'EU -> EU
en an EU-led force, anti-Berlin -> EU Berlin
es en Nuevo-Berlin, Нью-Berlin ->
"""


@pytest.mark.parametrize("case", FORMS.strip().split("\n"))
def test_forms_and_compounds_of_known_names(case):
    text, found = case.split(" ->")
    names = "Россия", "Китай", "Berlin", "المكسيك", "ירושלים", "서울", "EU"
    assert linked(text[3:], text[:2], *names) == collections.Counter(found.split())


def test_arabic_endings_are_those_of_arabic_names_only():
    aliases = [Alias("الرياض", "Riyadh", 1, ""), Alias("كانو", "Kano", 1, ""), Alias("روسيا", "Russia", 1, "", "ar")]
    found = Linker(aliases, {"Riyadh": 0, "Kano": 1, "Russia": 2})
    assert found.link(["كانوا في الرياضة"], "ar") == {}  # "they were", "sports"
    assert found.link(["وكانو بالرياض والروسية"], "ar") == {0: 1, 1: 1, 2: 1}


@given(st.lists(st.text(min_size=1, max_size=8), max_size=5), st.sampled_from(["", "de", "ru", "ar", "zh", "x-y"]))
def test_forms_of_any_text_are_found(words, language):
    known = Spellings({"Berlin": 0, "Putin": 1}, {}, None, [["Putin", "Berlin"]])
    assert len(known.apply(words, language)) >= len(words)


def test_marks_that_writers_leave_out_make_no_difference():
    assert normal_letters("أَمْريكا") == normal_letters("امريكا")
    assert normal_letters("ज़") == normal_letters("ज") == normal_letters("\u091c\u093c")
    assert normal_letters("Zoë") == "Zoë"


@pytest.mark.parametrize(
    ("word", "letters"),
    [
        ("Хашогги", "hašogi"),
        ("Чикаго", "čikago"),
        ("كاليفورنيا", "kalyfwrnya"),  # anyascii would drop the vowels
        ("कारण", "karən"),  # the vowel after a consonant is not written, and may be silent
        ("ट्रंप", "trəmp"),  # the nasal before "p" is "m"
        ("Brighton", "braiton"),
    ],
)
def test_letters_stand_for_sounds(word, letters):
    assert spellings.letters_of(word) == letters


def test_a_latin_word_has_several_readings_and_a_key():
    assert readings("Virginia") == ("virginia", "virjinia")
    assert {"kromwel", "kromvel", "kromuel"} == set(readings("Cromwell"))
    assert "balduin" in readings("Baldwin")
    assert len(readings("Jeorghechwigh")) <= 6
    assert sound_key("Khashoggi") == sound_key("Хашогги")
    assert sound_key("Zuckerberg") == sound_key("Цукерберг")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("putin", "putin", 1),
        ("putin", "ptn", 1 - 0.6 / 3.6),  # two vowels of 0.3
        ("putin", "butin", 1 - 0.25 / 3.6),
        ("trəmp", "trmp", 1 - 0.1 / 4.1),
        ("trəmp", "tramp", 1 - 0.25 * 0.3 / 4.3),  # "a" is written in the second word
        ("", "", 0),
    ],
)
def test_similarity_counts_edits_by_letter(left, right, expected):
    assert similarity(left, right) == similarity(right, left) == pytest.approx(expected)


NAMES = ("Donald Trump", "Vladimir Putin", "Angela Merkel", "Oliver Cromwell", "Jeff Flake", "Kanye West", "California")


# Words without a capital are no names, and "Флейк" and "Уэст" are too short to be found alone.
SPELLINGS = """
ru Трампа видели с Путиным -> Donald Trump, Vladimir Putin
ru с трампом ->
ru Памятник Кромвелю снесли -> Oliver Cromwell
ru сенатор Джефф Флейк и Канье Уэст -> Jeff Flake, Kanye West
ar التقى ترامب مع بوتين وميركل بدون كلام -> Angela Merkel, Donald Trump, Vladimir Putin
ar وكاليفورنيا أيضا بينما منذ سنوات -> California
hi पुतिन और मर्केल -> Angela Merkel, Vladimir Putin
hi सीनेटर जेफ फ्लेक ने -> Jeff Flake
hi सीनेटर फ्लेक ने ->
hi लोगों ने कहा कि बारिश के कारण सालों से ->
"""


@pytest.mark.parametrize("case", SPELLINGS.strip().split("\n"))
def test_other_scripts_spell_names_as_they_sound(case):
    text, found = case.split(" ->")
    others = "Logan", "Boris", "Koran", "Salon", "Panama", "Sonoma", "Nepal"
    assert ", ".join(sorted(linked(text[3:], text[:2], *NAMES, *others))) == found.strip()


def test_the_more_frequent_of_words_that_are_equally_alike_is_meant():
    found = Spellings({"Karla": 1, "Carla": 0, "Putin": 2}, {})
    assert found.apply(["Карла", "Мост"], "ru") == ["Carla", "Мост"]
    pair = Spellings({"Christine": 0, "Pelosi": 1}, {}, [], [("Christine", "Pelosi")])
    assert pair.apply(["Кристин", "Пелоси"], "ru") == ["Christine", "Pelosi"]
    assert pair.apply(["Кристин", "Блази"], "ru") == ["Кристин", "Блази"]  # both must sound alike
    assert pair.apply(["Пелоси", "Кристин"], "ru") == ["Пелоси", "Кристин"]


def test_meanings_are_found_again_when_too_many_are_remembered(monkeypatch):
    monkeypatch.setattr(spellings, "_MOST_REMEMBERED", 2)
    found = Spellings({"Berlin": 0}, {})
    for _ in range(2):
        assert found.apply(["Berlins", "Paris", "Rome", "Berlins"], "de") == ["Berlin", "Paris", "Rome", "Berlin"]
    assert len(found._meant("de")) <= 2
