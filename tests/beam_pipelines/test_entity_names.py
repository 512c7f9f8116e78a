"""Which words of a corpus are names: titles before surnames, names of days, hyphens, countries and abbreviations."""

import datetime

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.entities import JOB, EntitiesOptions, tables
from newsembed.beam_pipelines.entities.aliases import Entity, resolve_names
from newsembed.beam_pipelines.entities.gazetteer import built_in_names, calendar_words
from newsembed.beam_pipelines.entities.known import is_also_a_word, known_aliases, merge_known, readable_names
from newsembed.beam_pipelines.entities.linking import Linker
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.beam_pipelines.entities.tokens import WordUse
from newsembed.formats import parquet
from newsembed.formats.names import KnownName
from newsembed.formats.records import Article, make_doc_id

PEOPLE = {"Ada Trent": 30, "Bo Quill": 20, "Cy Marsh": 20, "Di Voss": 20, "Ed Lunn": 20, "Flo Parr": 20}
TITLED = {f"Captain {name.split(' ')[1]}": 9 for name in PEOPLE}
WORDS = {"captain", "department"}


def owners(documents, **options):
    options = {"is_word": lambda word: word.lower() in WORDS} | options
    _, aliases = resolve_names(documents, 100, **options)
    return {item.alias: item.entity for item in aliases if item.prior >= 0.5}


def test_a_title_before_a_surname_names_its_bearer():
    found = owners(PEOPLE | TITLED | {"Trent": 40})
    assert found["Captain Trent"] == found["Trent"] == "Ada_Trent"
    # The bare surnames of the others are in no document, so nothing tells that they mean these people.
    assert found["Captain Quill"] == "Captain_Quill"


def test_titles_are_words_that_stand_before_many_surnames():
    few = {name: count for name, count in TITLED.items() if name.split(" ")[1] in ("Trent", "Quill", "Marsh", "Voss")}
    surnames = {"Trent": 40}
    assert owners(PEOPLE | few | surnames)["Captain Trent"] == "Captain_Trent"  # four, five are asked
    not_words = owners(PEOPLE | TITLED | surnames, is_word=lambda word: False)
    assert not_words["Captain Trent"] == "Captain_Trent"  # it may be a first name
    own = {f"Captain {word}": 50 for word in ("Abel", "Cole")}
    assert owners(PEOPLE | TITLED | surnames | own)["Captain Trent"] == "Captain_Trent"  # 6 of 8 belong to others


def test_a_title_before_a_word_or_an_ambiguous_surname_is_another_name():
    documents = PEOPLE | TITLED | {"State Department": 50, "Department": 60, "Captain Department": 4}
    assert owners(documents)["Captain Department"] == "Captain_Department"
    documents = PEOPLE | TITLED | {"Trent": 40, "Gus Trent": 12}  # 30 of 42 are less than 0.8
    assert owners(documents)["Captain Trent"] == "Captain_Trent"


def test_names_that_differ_in_hyphens_and_capitals_are_one():
    found = owners({"Kim Jong Un": 9, "Kim Jong-un": 5, "KIM JONG-UN": 3, "Kim Jong Il": 4})
    assert {found[name] for name in ("Kim Jong Un", "Kim Jong-un", "KIM JONG-UN")} == {"Kim_Jong_Un"}
    assert found["Kim Jong Il"] == "Kim_Jong_Il"


def test_words_that_are_no_names_are_no_entities_but_may_be_surnames():
    documents = {"Monday": 90, "Theresa May": 50, "May": 60, "Monday Club": 9}
    found = owners(documents, no_names={"Monday", "May"})
    assert found == {"Theresa May": "Theresa_May", "May": "Theresa_May", "Monday Club": "Monday_Club"}


def test_a_word_of_two_letters_is_no_surname():
    assert owners({"Laudato Si": 9, "Si": 9})["Si"] == "Si"


def test_calendar_words_are_those_of_the_languages_with_a_capital():
    assert {"Monday", "Mon", "Sep", "May"} <= calendar_words(frozenset({"en"}))
    assert {"lundi", "Lundi", "Janvier", "janv"} <= calendar_words(frozenset({"fr-CA"}))
    assert "Montag" not in calendar_words(frozenset({"en", "xx"}))


def test_words_in_lower_case_are_compared_with_those_in_capitals():
    uses = {"en": {"president": WordUse(2, 10), "trump": WordUse(1, 10)}, "de": {"trump": WordUse(0, 1)}}
    assert is_also_a_word("President", uses)
    assert not is_also_a_word("Trump", uses)
    assert not is_also_a_word("Unknown", uses)


def test_a_country_comes_before_names_that_end_in_it():
    entities = [Entity("New_Mexico", "New Mexico", 9), Entity("Jim_Jordan", "Jim Jordan", 8)]
    aliases = [
        Alias("Jim Jordan", "Jim_Jordan", 1.0, "Jim Jordan"),
        Alias("Jordan", "Jim_Jordan", 1.0, "Jim Jordan"),
        Alias("Mexico", "New_Mexico", 1.0, "New Mexico"),
        Alias("New Mexico", "New_Mexico", 1.0, "New Mexico"),
    ]
    known = [KnownName("region:MX", "en", "Mexico"), KnownName("region:JO", "en", "Jordan")]
    kept, merged = merge_known(entities, aliases, known, ["en"])
    assert {(item.alias, item.entity): pytest.approx(item.prior) for item in merged if item.alias == "Mexico"} == {
        ("Mexico", "region:MX"): 0.6,
        ("Mexico", "New_Mexico"): 0.4,
    }
    keys = [entity.key for entity in kept]
    linker = Linker(merged, {key: row for row, key in enumerate(keys)})
    assert {keys[row] for row in linker.link(["Jordan and Mexico"], "en")} == {"region:JO", "region:MX"}
    assert {keys[row] for row in linker.link(["Jim Jordan said no. Jordan left."], "en")} == {"Jim_Jordan"}


def test_priors_of_names_that_become_one_entity_add_up():
    entities = [Entity("Britain", "Britain", 9), Entity("Great_Britain", "Great Britain", 8)]
    aliases = [Alias("Britain", "Britain", 0.6, "Britain"), Alias("Britain", "Great_Britain", 0.4, "Great Britain")]
    known = [KnownName("Q145", "en", "Britain"), KnownName("Q145", "en", "Great Britain")]
    _, merged = merge_known(entities, aliases, known, ["en"])
    assert {item.alias: item.prior for item in merged} == {"Britain": 1.0, "Great Britain": 1.0}


def test_the_last_word_of_a_place_or_an_organisation_is_no_name_of_it():
    names = ("Middle East", "Great Britain", "Denzel Washington")
    keys = [name.replace(" ", "_") for name in names]
    entities = [Entity(key, name, 9) for key, name in zip(keys, names, strict=True)]
    aliases = [Alias(name.split(" ")[1], key, 1.0, name) for key, name in zip(keys, names, strict=True)]
    known = [
        KnownName("place:Middle_East", "en", "Middle East"),
        KnownName("region:GB", "en", "Great Britain"),
        KnownName("region:GB", "en", "Britain"),
        KnownName("Q42101", "en", "Denzel Washington"),
    ]
    _, merged = merge_known(entities, aliases, known, ["en"])
    found = {(item.alias, item.entity) for item in merged if " " not in item.alias}
    assert found == {("Britain", "region:GB"), ("Washington", "Q42101")}  # a name of its own, and a surname


def test_a_short_name_counts_only_if_a_text_has_it_inside_of_a_sentence():
    linker = Linker([Alias("Si", "Si", 1, "Si"), Alias("UN", "UN", 1, "UN")], {"Si": 0, "UN": 1})
    assert linker.link(["Si tratta di un gioco. Si gioca."], "it") == {}  # a word at the start of a sentence
    assert linker.link(["Oggi, Si ha vinto. Si gioca."], "it") == {0: 2}
    assert linker.link(["Si tratta di un gioco.", "con Si"], "it") == {0: 2}
    assert linker.link(["UN troops"], "en") == {1: 1}


def test_short_names_are_measured_without_marks():
    names = [KnownName("city:1", "ks", "لِما", 1.0), KnownName("city:1", "en", "Lima", 1.0)]
    found = {item.alias: item.languages for item in known_aliases(names, {"city:1": "Lima"})}
    assert found == {"Lima": "", "لِما": "ks"}  # "when" in other languages


def test_built_in_names_have_no_words_that_look_like_cities_or_parts_of_countries():
    names = list(built_in_names())
    found = {(name.alias, name.entity) for name in names}
    assert readable_names(names)["city:4140963"] == "Washington"  # and not the District of Columbia
    aliases = {alias for alias, _ in found}
    assert aliases.isdisjoint({"Landen", "Dabei", "Новой", "Гвинеи"})  # "countries", "besides", "of new", "of Guinea"
    assert ("Питер", "city:498817") not in found  # a short form of St. Petersburg, and a first name
    london = {alias for alias, entity in found if entity == "city:2643743"}
    assert {"London", "Londres", "Londyn", "Лондон", "伦敦", "لندن"} <= london
    assert {("саудовский", "region:SA"), ("Schottland", "region:GB-SCT"), ("walisisch", "region:GB-WLS")} <= found
    assert {("IA", "concept:AI"), ("КНДР", "region:KP"), ("مجلس الشيوخ", "organisation:Senate")} <= found
    assert {("واشنطن", "city:4140963"), ("西雅图", "city:5809844"), ("路透社", "organisation:Reuters")} <= found
    assert ("المدينة", "city:109223") not in found  # "the city", and a short form of Medina
    assert ("中美", "region:013") not in found  # China and the US, and Central America
    assert {("哥伦比亚特区", "city:4140963"), ("округ Колумбия", "city:4140963")} <= found  # not Colombia
    assert {("Kongress", "organisation:Congress"), ("Vereinigten Staaten", "region:US")} <= found
    assert {("OTAN", "organisation:NATO"), ("НАТО", "organisation:NATO"), ("新墨西哥", "region:US-NM")} <= found


def test_abbreviations_of_titles_and_days_are_no_entities_of_the_job(tmp_path):
    rows = [
        Article(
            make_doc_id(f"{number}"),
            f"http://p.example/{number}",
            "p",
            "",
            "Yesterday we met the new Mr. Rook in Marrowick after a long walk through its many fields and old gardens, "
            "and on Monday we saw him near Elmhurst again.",
            byline_date=datetime.date(2021, 6, 1),
            language="en",
        )
        for number in range(4)
    ]
    parquet.write_shard(f"{tmp_path}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    (tmp_path / "clean/manifest.json").write_text('{"digest": "x"}')
    options = EntitiesOptions(dimensions=2, built_in_names=False)
    jobs.execute(JOB, {"articles": [str(tmp_path / "clean")]}, f"{tmp_path}/out", options, ["--direct_num_workers=1"])
    keys = {fields[0] for fields in tables.read_keys(f"{tmp_path}/out/entities.tsv")}
    assert keys == {"Elmhurst", "Marrowick"}


def test_a_country_in_capitals_is_linked_although_its_letters_are_a_frequent_word(tmp_path):
    text = "They told us that the US would sign. Nobody asked us for a nice word, and Nice was far."
    rows = [
        Article(make_doc_id(f"{number}"), f"http://p.example/{number}", "p", "", text, language="en")
        for number in range(4)
    ]
    parquet.write_shard(f"{tmp_path}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    (tmp_path / "clean/manifest.json").write_text('{"digest": "x"}')
    base = tmp_path / "base.tsv"
    base.write_text("Q1\ten\tUS\nQ2\ten\tNice\n")
    inputs = {"articles": [str(tmp_path / "clean")], "knowledge_base": [str(base)]}
    options = EntitiesOptions(dimensions=2)
    jobs.execute(JOB, inputs, f"{tmp_path}/out", options, ["--direct_num_workers=1"])
    found = {(item.alias, item.entity) for item in tables.read_aliases(f"{tmp_path}/out/aliases.tsv")}
    assert ("US", "region:US") in found
    assert not {entity for _, entity in found} & {"Q1", "Q2"}  # the user's "US" may be a code
