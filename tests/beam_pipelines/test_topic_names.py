"""topics: one entity for all spellings and languages of a section, a story type, a place or a language."""

import collections
import itertools

import pytest
from newsembed.beam_pipelines.topics.choose import normalize_title
from newsembed.beam_pipelines.topics.names import (
    entity_of,
    join_entities,
    link_names,
    place_names,
    plain,
    read_sections,
    section_names,
)
from newsembed.newsroom.options import LANGUAGES
from newsembed.newsroom.prose import load_prose
from newsembed.newsroom.world import TOPICS

FIFTEEN = "en de es fr it pt nl pl ru uk tr ar hi zh ja".split()


@pytest.mark.parametrize(
    "titles",
    [
        ("Football", "Fußball", "Fussball", "Fútbol", "Futbol", "Футбол", "Calcio", "كرة القدم", "サッカー", "Soccer"),
        ("US", "U.S.", "USA", "Estados Unidos", "États-Unis", "Vereinigte Staaten", "США", "United States", "美国"),
        ("Germany", "Alemania", "Deutschland", "Германия", "ドイツ"),
        ("World", "Mundo", "Welt", "Monde", "Мир"),
        ("Politics", "Política", "Politik", "Politique", "Политика", "Siyaset"),
        ("Opinion", "Opinión", "Meinung", "Мнение", "رأي"),
        ("Interview", "Entrevista", "Интервью", "インタビュー"),
        ("Weather", "El tiempo", "Wetter aktuell", "Météo"),
        ("Spanish", "Español", "Spanisch"),
    ],
)
def test_spellings_and_languages_of_one_entity(titles):
    entities = {entity_of(plain(title)) for title in titles}
    assert len(entities) == 1
    assert None not in entities
    assert {entity_of(title.casefold()) for title in titles} == entities  # as hub titles are normalised


@pytest.mark.parametrize(
    ("title", "entity"),
    [
        ("crime and courts", "section:crime and justice"),
        ("arte y cultura", "section:culture"),
        ("floods and weather", "section:weather"),  # one part has no entity
        ("actualidad política", "section:politics"),
        ("science and health", None),
        ("politics and germany", None),
        ("donald trump", None),
        ("", None),
        ("the", None),
        ("and", None),
    ],
)
def test_titles_of_several_parts(title, entity):
    assert entity_of(title) == entity


def test_the_newsroom_s_titles_of_sections_have_their_topic():
    """Pairs of titles: of those with one entity 95 % are of one topic, and the reverse."""
    topics = {}
    for language, topic in itertools.product(LANGUAGES, TOPICS):
        for name in load_prose(language).lines("general", f"hub.{topic}")[0].split("||"):
            topics[language, normalize_title(name.strip(), "x.example")] = topic
    entities = {key: entity_of(key[1]) for key in topics}
    pairs = collections.Counter(
        (topics[one] == topics[other], entities[one] is not None and entities[one] == entities[other])
        for one, other in itertools.combinations(topics, 2)
    )
    assert len(topics) > 70
    assert pairs[True, True] / (pairs[True, True] + pairs[False, True]) >= 0.95
    assert pairs[True, True] / (pairs[True, True] + pairs[True, False]) >= 0.95


def test_the_table_of_sections_has_every_language_and_no_name_twice():
    languages, names = collections.defaultdict(set), set()
    for section, language, name in read_sections():
        assert name == name.strip() != ""
        languages[section].add(language)
        names.add((plain(name), section))
    assert all(found == set(FIFTEEN) for found in languages.values())
    assert len({name for name, _ in names}) == len(names) == len(section_names())  # a name is of one section


def test_a_name_of_two_places_names_none():
    places = place_names()
    assert (places["kenia"], places["espana"], places["espanol"]) == ("place:KE", "place:ES", "language:es")
    assert "end" not in places  # India in a language whose names are not read
    assert not {"in", "it", "no", "is"} & set(places)
    assert not set(places) & set(section_names())


def test_accents_of_other_scripts_are_letters():
    assert plain("Économie") == "economie"
    assert plain("Й ガ") == "й ガ"


def test_titles_are_joined_by_either_source():
    aliases = {"soccer": "Q1", "fútbol": "Q1", "trump": "Q2", "sport": "Q3", "politics": "Q3", "races": "Q3"}
    names = link_names(["fútbol", "football", "sport", "politics", "trump"])
    assert join_entities(aliases, names) == {
        "soccer": "section:football",
        "fútbol": "section:football",
        "football": "section:football",
        "trump": "Q2",
        "sport": "section:sport",
        "politics": "section:politics",
        "races": "Q3",  # the alias table has one entity for two sections
    }


@pytest.mark.parametrize(
    ("title", "publisher", "expected"),
    [
        ("Politics News - Harbour Times", "harbourtimes.example", "politics"),
        ("top/sports/us", "example.com", "sports"),
        ("9/11", "example.com", "9/11"),
        ("Noticias de energía", "vozdelmuelle.example", "energía"),
        ("Vida práctica - La Voz del Muelle", "vozdelmuelle.example", "vida práctica"),
        ("Harbour Times", "harbourtimes.example", "harbourtimes.example"),
        ("Football RSS", "x.example", "football"),
        ("News", "x.example", "news"),
        ("", "x.example", ""),
        (" | ", "x.example", ""),
    ],
)
def test_hub_titles_are_normalised(title, publisher, expected):
    assert normalize_title(title, publisher) == expected
