"""Names in other scripts and in compounds: readings of Latin words, pairs of words, starts of sentences, Chinese."""

import functools

import pytest
from newsembed.beam_pipelines.entities.forms import BETWEEN, Forms
from newsembed.beam_pipelines.entities.linking import Linker
from newsembed.beam_pipelines.entities.sounds import Spellings, letters_of, readings, similarity, sound_key
from newsembed.beam_pipelines.entities.tables import Alias


@functools.cache
def linker(*names):
    """Links names; the surname of each names it, too."""
    aliases = [Alias(name, name, 1, name) for name in names]
    aliases += [Alias(name.split(" ")[-1], name, 1, name) for name in names if " " in name]
    return Linker(aliases, {name: row for row, name in enumerate(names)})


def linked(text, language, *names):
    return {names[row]: count for row, count in linker(*names).link([text], language).items()}


@pytest.mark.parametrize(
    ("word", "letters"),
    [
        ("Хашогги", "hašogi"),
        ("Чикаго", "čikago"),
        ("كاليفورنيا", "kalyfwrnya"),  # anyascii would drop the vowels
        ("شيكاغو", "šykagw"),
        ("कारण", "karən"),  # the vowel after a consonant is not written, and may be silent
        ("ट्रंप", "trəmp"),  # the nasal before "p" is "m"
        ("Brighton", "braiton"),
    ],
)
def test_letters_stand_for_sounds(word, letters):
    assert letters_of(word) == letters


def test_a_latin_word_has_several_readings():
    assert readings("Virginia") == ("virginia", "virjinia")
    assert set(readings("Wilson")) == {"wilson", "uilson"}
    assert {"kromwel", "kromvel", "kromuel"} == set(readings("Cromwell"))
    assert len(readings("Jeorghechwigh")) <= 6
    assert sound_key("Jones") == sound_key("Джонс")


def test_an_unwritten_vowel_costs_little():
    assert similarity("trəmp", "trmp") == pytest.approx(1 - 0.1 / 4.1)
    assert similarity("trəmp", "tramp") == pytest.approx(1 - 0.25 * 0.3 / 4.3)  # "a" is written in the second word
    assert similarity("baris", "bariš") == pytest.approx(1 - 0.25 / 3.6)


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("ru", "Памятник Кромвелю снесли", "Oliver Cromwell"),
        ("ru", "о защите Брайтона говорят", "Brighton"),
        ("ar", "في ولاية أريزونا اليوم", "Arizona"),
        ("ar", "وكاليفورنيا أيضا", "California"),
        ("hi", "यह वर्जीनिया में है", "Virginia"),
        ("hi", "कल कैलिफोर्निया में", "California"),
    ],
)
def test_other_scripts_spell_names_as_they_sound(language, text, name):
    assert linked(text, language, name) == {name: 1}


def test_common_words_of_scripts_without_capitals_are_no_names():
    names = "Logan", "Boris", "Koran", "Salon", "Panama", "Sonoma"
    assert linked("लोगों ने कहा कि बारिश के कारण सालों से", "hi", *names) == {}
    assert linked("بينما منذ سنوات", "ar", *names) == {}


def test_arabic_endings_are_those_of_arabic_names_only():
    aliases = [Alias("الرياض", "Riyadh", 1, ""), Alias("كانو", "Kano", 1, ""), Alias("روسيا", "Russia", 1, "", "ar")]
    found = Linker(aliases, {"Riyadh": 0, "Kano": 1, "Russia": 2})
    assert found.link(["كانوا في الرياضة"], "ar") == {}  # "they were", "sports"
    assert found.link(["وكانو بالرياض والروسية"], "ar") == {0: 1, 1: 1, 2: 1}


def test_the_capital_at_the_start_of_a_sentence_is_no_sign_of_a_name():
    names = "Oregon", "Sonoma", "Vladimir Putin", "Texas"
    assert linked("Ураган близко. Цунами тоже.", "ru", *names) == {}
    assert linked("Когда Ураган близко", "ru", *names) == {"Oregon": 1}
    assert linked("Путин здесь. «Путин там»", "ru", *names) == {"Vladimir Putin": 2}


def test_an_ending_that_may_be_that_of_a_name_is_left_out_of_spellings_that_are_nearly_equal_only():
    assert linked("Команда Наполи и стадион Макарони", "ru", "Nepal", "Emmanuel Macron") == {}
    assert linked("письмо Макрону и Непалу", "ru", "Nepal", "Emmanuel Macron") == {"Emmanuel Macron": 1, "Nepal": 1}


def test_readings_of_english_spellings():
    names = "Asa Hutchinson", "Kate Bolduan", "Baldwin"
    assert linked("актер Аткинсон и Болдуин", "ru", *names) == {"Baldwin": 1}
    assert "hakinson" not in readings("Hutchinson")
    assert "balduin" in readings("Baldwin")


def test_two_words_of_a_name_are_found_together_where_one_is_too_short():
    names = "Jeff Flake", "Paul Ryan", "Kanye West"
    assert linked("сенатор Джефф Флейк и Канье Уэст", "ru", *names) == {"Jeff Flake": 1, "Kanye West": 1}
    assert linked("सीनेटर जेफ फ्लेक ने", "hi", *names) == {"Jeff Flake": 1}
    assert linked("सीनेटर फ्लेक ने", "hi", *names) == {}
    assert Spellings({"Jeff": 0, "Flake": 1}, [("Jeff", "Flake")]).closest_pair("Флейк", "Джефф")[1] == 0


def test_a_pair_needs_both_words_to_sound_alike():
    spellings = Spellings({"Christine": 0, "Pelosi": 1}, [("Christine", "Pelosi")])
    assert spellings.closest_pair("Кристин", "Пелоси")[0] == ("Christine", "Pelosi")
    assert spellings.closest_pair("Кристин", "Блази") == (("", ""), 0)


def test_names_in_compounds_and_after_elided_articles():
    names = "EU", "Europe", "Donald Trump", "NATO", "Kim Jong-un", "Mexico"
    assert linked("Der EU-Beitritt und das Kim-Trump-Treffen", "de", *names) == {"EU": 1, "Donald Trump": 1}
    assert linked("L’Europe et l'EU, d'Europe", "fr", *names) == {"Europe": 2, "EU": 1}
    assert linked("dell'Europe", "it", *names) == {"Europe": 1}
    assert linked("x'Europe", "fr", *names) == {}
    assert linked("a NATO-led force, anti-Trump, Kim Jong-un", "en", *names) == {
        "NATO": 1,
        "Donald Trump": 1,
        "Kim Jong-un": 1,
    }
    assert linked("en Nuevo-Mexico, Нью-Mexico", "es", *names) == {}
    assert linked("New-Mexico", "en", *names) == {}


def test_a_divided_word_is_one_word_with_a_space_on_both_sides_of_its_parts():
    forms = Forms({"EU": 0}, {})
    assert forms.in_latin(["EU-Beitritt", "EU-", "-", "a-b"], "de") == [f"EU{BETWEEN}Beitritt", "EU-", "-", "a-b"]
    assert forms.in_latin(["l'", "l'EU"], "fr") == ["l'", f"l{BETWEEN}EU"]


def test_chinese_writes_names_by_sound():
    names = "Donald Trump", "Livingston", "Johnson", "Jeremy Corbyn", "Nelson", "Delhi"
    assert linked("美国总统唐纳德·特朗普和科尔宾在利文斯顿", "zh-CN", *names) == {
        "Donald Trump": 1,
        "Jeremy Corbyn": 1,
        "Livingston": 1,
    }
    assert linked("特朗普", "ja", *names) == {}
    assert linked("特别是约翰", "zh", *names) == {}


def test_a_name_in_chinese_is_no_part_of_a_longer_one():
    names = "Ben Carson", "Dalton", "Duncan", "Donald Trump", "Johnson"
    assert linked("克尔森，德尔顿", "zh", *names) == {"Ben Carson": 1, "Dalton": 1}
    assert linked("米克尔森和米德尔顿", "zh", *names) == {}  # Mickelson and Middleton
    assert linked("乔丹·考尼", "zh", *names) == {}  # Jordan Cownie
    assert linked("唐纳德·特朗普", "zh", *names) == {"Donald Trump": 1}
    assert linked("约翰逊特朗普", "zh", *names) == {"Johnson": 1, "Donald Trump": 1}
    assert linked("由于特朗普让约翰逊", "zh", *names) == {"Johnson": 1, "Donald Trump": 1}  # beside other words
    assert linked("尔约翰逊", "zh", *names) == {}


def test_two_countries_that_chinese_joins_are_both_named():
    names = "中国", "美国", "法国"
    assert linked("中美贸易，其中美国和中法律师", "zh", *names) == {"中国": 1, "美国": 2}
    assert linked("中法关系", "zh", *names) == {"中国": 1, "法国": 1}
    assert linked("中美関係", "ja", *names) == {}


def test_known_names_in_chinese_are_not_read_by_sound_and_short_ones_are_no_parts_of_others():
    aliases = [
        Alias("德里", "Delhi", 1, "Delhi"),
        Alias("约翰逊", "Island", 1, "Island"),
        Alias("Johnson", "B", 1, "B"),
    ]
    found = Linker(aliases, {"Delhi": 0, "Island": 1, "B": 2})
    assert found.link(["在德里"], "zh") == {0: 1}
    assert found.link(["弗雷德里克"], "zh") == {}
    assert found.link(["约翰逊在德里"], "zh") == {1: 1, 0: 1}
    assert found.link(["德里"], "zh") == {0: 1}
    assert found.link(["于德里"], "zh") == found.link(["“弗”德里"], "zh") == {0: 1}
    assert found.link(["弗德里"], "zh") == found.link(["德里克"], "zh") == {}
    with_london = Linker([*aliases, Alias("伦敦", "London", 1, "")], {"Delhi": 0, "Island": 1, "B": 2, "London": 3})
    assert with_london.link(["伦敦德里"], "zh") == {}  # Londonderry
    assert with_london.link(["约翰逊伦敦"], "zh") == {1: 1, 3: 1}


def test_a_chinese_text_in_latin_letters_may_have_divided_words():
    assert linked("US-China talks in China", "zh", "US", "China") == {"US": 1, "China": 2}


def test_comparing_stops_where_less_than_the_least_similarity_is_certain():
    exact = similarity("kromvel", "kramvil")
    assert 0.95 < exact < 0.99
    assert similarity("kromvel", "kramvil", exact - 1e-6) == exact
    assert similarity("kromvel", "tsarsia", 0.99) == 0.0 < similarity("kromvel", "tsarsia")
