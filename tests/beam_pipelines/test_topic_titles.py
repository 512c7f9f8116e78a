"""Titles of hubs: their verdicts, and one entity for all spellings and languages of a section, place or language."""

import collections
import csv
import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.beam_pipelines.topics.choose import (
    Decision,
    Verdict,
    choose,
    gather,
    group_titles,
    hub_title,
    link_titles,
    normalize_title,
    rank_topics,
    read_review,
    write_topics,
)
from newsembed.beam_pipelines.topics.names import (
    entity_of,
    join_entities,
    link_names,
    place_names,
    plain,
    read_sections,
    section_names,
)
from newsembed.formats.records import Hub
from newsembed.newsroom.prose import LANGUAGES, load_prose
from newsembed.newsroom.world import TOPICS

FIFTEEN = "en de es fr it pt nl pl ru uk tr ar hi zh ja".split()


ENTITIES = """
Football | Fußball | Fussball | Fútbol | Futbol | Футбол | Calcio | كرة القدم | サッカー | Soccer
US | U.S. | USA | Estados Unidos | États-Unis | Vereinigte Staaten | США | United States | 美国
Germany | Alemania | Deutschland | Германия | ドイツ
World | Mundo | Welt | Monde | Мир
Politics | Política | Politik | Politique | Политика | Siyaset
Opinion | Opinión | Meinung | Мнение | رأي
Interview | Entrevista | Интервью | インタビュー
Weather | El tiempo | Wetter aktuell | Météo
Spanish | Español | Spanisch
"""


@pytest.mark.parametrize("line", ENTITIES.strip().split("\n"))
def test_spellings_and_languages_of_one_entity(line):
    titles = line.split(" | ")
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
        *((title, None) for title in ("science and health", "politics and germany", "donald trump", "", "the", "and")),
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


def hub(number, publisher, title, members, url=""):
    return Hub(f"{number:016x}", url or f"http://{publisher}/{number}", publisher, title, "feed", tuple(members))


def decided(hubs, signed=None, entities=None, **limits):
    """The evidence and the decisions; ``signed`` has the number of articles by an author of a title's name."""
    titles = {one.hub_id: hub_title(one) for one in hubs}
    listed, groups_of = collections.defaultdict(set), collections.defaultdict(set)
    for one in hubs:
        listed[titles[one.hub_id]] |= set(one.doc_ids)
    counts = {title: (len(found), (signed or {}).get(title, 0)) for title, found in listed.items()}
    evidence = gather(hubs, titles, counts)
    groups = group_titles(evidence, entities or {})
    for title, group in groups.items():
        groups_of[group] |= listed[title]
    limits = {"min_publishers": 2, "min_documents": 4, "max_topics": 600} | limits
    return evidence, *choose(evidence, groups, {group: len(found) for group, found in groups_of.items()}, **limits)


def verdicts(hubs, signed=None, **limits):
    return {title: decision.verdict for title, decision in decided(hubs, signed, **limits)[1].items()}


VERDICTS = {
    Verdict.DATE: "2021|March 2021|Archivo del 3 de julio de 2021|Montag, 12.07.|Архив за июль 2021",
    Verdict.FURNITURE: "Регионы|Breaking News & Top Stories|Home Front",
    Verdict.KEPT: "Election 2024|Covid-19|US news",
    Verdict.AUTHOR: "Articles by Bo Chen|Bo Chen, Author at The Post",
    Verdict.EMPTY: "***",
}


@pytest.mark.parametrize(
    ("title", "verdict"), [(title, verdict) for verdict, titles in VERDICTS.items() for title in titles.split("|")]
)
def test_dates_site_furniture_and_bylines_are_recognised_by_their_words(title, verdict):
    assert set(verdicts([hub(1, "a.example", title, "abcde"), hub(2, "b.example", title, "")]).values()) == {verdict}


def test_author_pages_are_recognised_by_their_articles_or_urls():
    page = [hub(1, "a.example", "Bo Chen", "abcd", "http://a.example/author/bo"), hub(2, "b.example", "Bo Chen", "")]
    assert verdicts(page) == {"bo chen": Verdict.KEPT}  # half of the pages only
    assert verdicts(page[:1], min_publishers=1) == {"bo chen": Verdict.AUTHOR}
    assert verdicts(page, {"bo chen": 2}) == {"bo chen": Verdict.AUTHOR}
    assert verdicts(page, {"bo chen": 1}) == {"bo chen": Verdict.KEPT}  # a desk that signs an article here and there


def test_titles_that_name_one_entity_are_one_topic():
    names = [("Donald Trump", "Q1", 1.0), ("TRUMP", "Q1", 0.9), ("Trump", "Q2", 0.1), ("Paris", "Q3", 0.4)]
    aliases = [Alias(*fields, "") for fields in (*names, ("Rome", "Q4", 0.5))]
    entities = link_titles(["donald trump", "trump", "trump tower", "paris", "rome"], aliases)
    assert entities == {"donald trump": "Q1", "trump": "Q1", "rome": "Q4"}
    page = [hub(1, "a.example", "Donald Trump", "ab"), hub(2, "b.example", "Trump", "cde")]
    page.append(hub(3, "b.example", "Trump Tower", "c"))
    assert set(verdicts(page).values()) == {Verdict.FEW_PUBLISHERS}
    _, found, _ = decided(page, entities=entities)
    assert found["donald trump"] == found["trump"] == Decision("trump", Verdict.KEPT)
    assert found["trump tower"] == Decision("trump tower", Verdict.FEW_PUBLISHERS)
    few = {Verdict.FEW_DOCUMENTS, Verdict.FEW_PUBLISHERS}
    assert set(verdicts(page, entities=entities, min_documents=6).values()) == few
    # A verdict is the title's own: an author of that name takes nothing from the topic but the page.
    assert verdicts(page, {"donald trump": 1}, entities=entities)["trump"] is Verdict.FEW_PUBLISHERS
    more = [*page, hub(4, "a.example", "Sport", "fghi"), hub(5, "b.example", "Sport", "klmn")]
    over = verdicts(more, entities=entities, max_topics=1)
    assert (over["sport"], over["trump"], over["donald trump"]) == (Verdict.KEPT, *[Verdict.OVER_LIMIT] * 2)


TITLES = st.one_of(
    st.sampled_from(["Sports", "Sports News", "a.example", "Home", "", " ", "2021", '"quoted" news', "top/x/us"]),
    st.text("|:-/ \t\n\r\x85\u2028\"'.&\x00#newsaİß", max_size=12),
)


@given(
    st.lists(st.tuples(TITLES, st.sampled_from(["a.example", "b.example", "Süd Post", ""])), max_size=12),
    st.dictionaries(st.sampled_from(["sports", "us", "# tag", "home"]), st.sampled_from(["sports", "Q1"])),
)
def test_every_hub_is_counted_once_and_every_table_is_read_back(found, entities):
    hubs = [hub(number, publisher, title, [str(number)]) for number, (title, publisher) in enumerate(found)]
    evidence, decisions, sizes = decided(hubs, entities=entities, min_publishers=1, min_documents=1, max_topics=3)
    assert len(sizes) <= 3
    with tempfile.TemporaryDirectory() as folder:
        numbers = {topic: number for number, topic in enumerate(rank_topics(sizes))}
        write_topics(folder, decisions, evidence, numbers)
        with Path(folder, "topics.tsv").open(encoding="utf-8", newline="") as source:
            rows = list(csv.DictReader(source, dialect="excel-tab"))
        kept = {title: one.topic for title, one in decisions.items() if one.verdict is Verdict.KEPT}
        assert read_review(f"{folder}/topics.tsv", 3) == kept
    assert sum(int(row["hubs"]) for row in rows) == len(hubs)
    assert sorted(row["title"] for row in rows) == sorted({hub_title(one) for one in hubs})
    assert all((row["topic_id"] != "") == (row["verdict"] == "kept") for row in rows)
