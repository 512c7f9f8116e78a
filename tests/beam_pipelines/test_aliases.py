"""The alias table: names of the corpus, known names, entities of each language alone, and the job that writes it."""

import datetime
import functools

import pytest
from newsembed.beam_pipelines import entities
from newsembed.beam_pipelines.entities import JOB, EntitiesOptions, tables
from newsembed.beam_pipelines.entities.aliases import (
    CorpusWords,
    Entity,
    known_aliases,
    may_occur,
    merge_known,
    readable_names,
    resolve_names,
    spans_of,
)
from newsembed.beam_pipelines.entities.gazetteer import built_in_names
from newsembed.beam_pipelines.entities.linking import Linker
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.names import KnownName, NameCounts, read_names
from newsembed.formats.records import Article, make_doc_id
from newsembed.tests.example_inputs import manifest_of, write_stream

DAY = datetime.date(2021, 6, 1)


def meanings(documents):
    return {(item.alias, item.entity): item.prior for item in resolve_names(documents, 100)[1]}


def test_variants_and_clear_surnames_are_one_entity():
    documents = {"Jane Roe": 10, "Jane Q Roe": 3, "President Jane Roe": 4, "Roe": 9, "Ann Poe": 5, "Bob Poe": 5}
    entities, aliases = resolve_names(documents | {"Poe": 8}, 100)
    meaning = {item.alias: item.entity for item in aliases if item.prior >= 0.5}
    assert {meaning[name] for name in ("Jane Roe", "Jane Q Roe", "President Jane Roe", "Roe")} == {"Jane_Roe"}
    assert meaning["Poe"] == "Poe"
    assert sorted(item.entity for item in aliases if item.alias == "Poe") == ["Ann_Poe", "Bob_Poe", "Poe"]
    assert [item.name for item in entities][0] == "Jane Roe"


def test_whose_surname_it_is():
    for jane, own in ((60, set()), (59, {"Roe"})):
        found = meanings({"Jane Roe": jane, "Bob Roe": 100 - jane, "Roe": 90})
        assert {entity for alias, entity in found if alias == "Roe"} == {"Jane_Roe", "Bob_Roe", *own}
    # A bare word much more frequent than the full name stays its own entity.
    assert meanings({"Jane Roe": 10, "Roe": 50}) == {("Jane Roe", "Jane_Roe"): 1.0, ("Roe", "Jane_Roe"): 1.0}
    found = meanings({"Jane Roe": 10, "Roe": 51})
    assert found.pop(("Jane Roe", "Jane_Roe")) == 1.0
    assert found == {("Roe", "Roe"): 0.6, ("Roe", "Jane_Roe"): pytest.approx(0.4)}
    # Full names with less than a tenth of the documents are no meanings of the surname.
    for cid, listed in ((9, set()), (10, {"Cid_Poe"})):
        found = meanings({"Ann Poe": 45, "Bob Poe": 55 - cid, "Cid Poe": cid, "Poe": 80})
        assert {entity for alias, entity in found if alias == "Poe"} == {"Poe", "Ann_Poe", "Bob_Poe", *listed}
    assert meanings({"Laudato Si": 9, "Si": 9})["Si", "Si"] == 0.6  # two letters are no surname


PEOPLE = {"Ada Trent": 30, "Bo Quill": 20, "Cy Marsh": 20, "Di Voss": 20, "Ed Lunn": 20, "Flo Parr": 20}
TITLED = {f"Captain {name.split(' ')[1]}": 9 for name in PEOPLE}
TRENT = {"Trent": 40}


def owners(documents, **options):
    options = {"is_word": lambda word: word.lower() in {"captain", "department"}} | options
    _, aliases = resolve_names(documents, 100, **options)
    return {item.alias: item.entity for item in aliases if item.prior >= 0.5}


def test_a_title_before_a_surname_names_its_bearer():
    found = owners(PEOPLE | TITLED | TRENT)
    assert found["Captain Trent"] == found["Trent"] == "Ada_Trent"
    # The bare surnames of the others are in no document, so nothing tells that they mean these people.
    assert found["Captain Quill"] == "Captain_Quill"


@pytest.mark.parametrize(
    ("language", "alias", "expected"),
    [
        ("de", "New York", True),
        ("de", "New Delhi", False),  # both are words, but never together in a name
        ("de", "Delhi", True),
        ("ru", "Город Москва", True),
        ("ru", "Город Тула", False),
        ("zh-Hant", "紐約", True),
        ("ja", "東京", False),
    ],
)
def test_names_are_compared_with_the_words_of_the_corpus(language, alias, expected):
    words = {"new", "delhi", "york", "город", "москва"}
    corpus = CorpusWords(words, spans_of(["New York Times"]), {"en", "zh"})
    assert may_occur(KnownName("a", language, alias), corpus) == expected


def test_priors_of_known_names_add_up_and_rare_meanings_are_left_out():
    names = [KnownName("uk", "", "London", 90), KnownName("on", "", "London", 10), KnownName("x", "", "London", 0.1)]
    found = list(known_aliases(names, {"uk": "London", "on": "London", "x": "X"}))
    assert [(item.entity, pytest.approx(item.prior, abs=1e-3)) for item in found] == [("uk", 0.9), ("on", 0.1)]
    names = [KnownName("city:1", "ks", "لِما", 1.0), KnownName("city:1", "en", "Lima", 1.0)]
    found = {item.alias: item.languages for item in known_aliases(names, {"city:1": "Lima"})}
    assert found == {"Lima": "", "لِما": "ks"}  # without marks it is short: "when" in other languages


def entity(name, documents=9):
    return Entity(name.replace(" ", "_"), name, documents)


def alias_of(text, name, prior=1.0):
    return Alias(text, name.replace(" ", "_"), prior, name)


def test_known_entities_take_over_those_of_the_same_name_but_not_surnames():
    entities = [entity("Berlin"), entity("Denzel Washington"), entity("Middle East"), entity("Britain")]
    aliases = [alias_of("Berlin", "Berlin"), alias_of("East", "Middle East"), alias_of("Britain", "Britain", 0.6)]
    aliases += [alias_of("Washington", "Denzel Washington"), alias_of("Britain", "Great Britain", 0.4)]
    names = [KnownName("Q64", "en", "Berlin"), KnownName("Q64", "zh", "柏林"), KnownName("Q61", "en", "Washington")]
    names += [KnownName("place:Middle_East", "en", "Middle East")]
    names += [KnownName("Q145", "en", "Britain"), KnownName("Q145", "en", "Great Britain")]
    kept, merged = merge_known([*entities, entity("Great Britain")], aliases, names, ["en"])
    documents = {"Q64": 0, "Denzel_Washington": 9, "Q61": 0, "place:Middle_East": 0, "Q145": 0}
    assert {item.key: item.documents for item in kept} == documents
    assert {(item.alias, item.entity): item.prior for item in merged} == {
        ("Berlin", "Q64"): 1,
        ("柏林", "Q64"): 1,
        ("Washington", "Denzel_Washington"): 1,
        ("Middle East", "place:Middle_East"): 1,  # "East" is no name of it
        ("Britain", "Q145"): 1,  # priors of names that become one entity add up
        ("Great Britain", "Q145"): 1,
    }


def test_a_country_comes_before_names_that_end_in_it():
    aliases = [alias_of(name.split(" ")[-1], name) for name in ("Jim Jordan", "New Mexico")]
    aliases += [alias_of(name, name) for name in ("Jim Jordan", "New Mexico")]
    known = [KnownName("region:MX", "en", "Mexico"), KnownName("region:JO", "en", "Jordan")]
    kept, merged = merge_known([entity("New Mexico"), entity("Jim Jordan")], aliases, known, ["en"])
    mexico = {item.entity: pytest.approx(item.prior) for item in merged if item.alias == "Mexico"}
    assert mexico == {"region:MX": 0.6, "New_Mexico": 0.4}
    keys = [one.key for one in kept]
    linker = Linker(merged, {key: row for row, key in enumerate(keys)})
    assert {keys[row] for row in linker.link(["Jordan and Mexico"], "en")} == {"region:JO", "region:MX"}
    assert {keys[row] for row in linker.link(["Jim Jordan said no. Jordan left."], "en")} == {"Jim_Jordan"}


def test_names_of_the_corpus_in_other_scripts_are_those_in_latin_letters():
    names = ["Angela Merkel", "Меркель", "Ангелы Меркель", "Берлине", "Москвич"]
    aliases = [*(alias_of(name, name) for name in names), alias_of("Merkel", "Angela Merkel")]
    known = [KnownName("Q64", "ru", "Берлин"), KnownName("Q64", "en", "Berlin")]
    kept, merged = merge_known(list(map(entity, names)), aliases, known, ["en", "ru"])
    assert {item.key for item in kept} == {"Angela_Merkel", "Q64", "Москвич"}
    assert {item.alias for item in merged if item.entity == "Angela_Merkel"} == {*names[:3], "Merkel"}
    assert {item.alias for item in merged if item.entity == "Q64"} == {"Берлине", "Берлин", "Berlin"}


@functools.cache
def built_in():
    return list(built_in_names())


@functools.cache
def built_in_linker():
    names = [name for name in built_in() if not name.entity.startswith("city:") or name.prior > 0.1]
    readable = readable_names(names)
    rows = {entity: row for row, entity in enumerate(sorted(readable))}
    return Linker(known_aliases(names, readable), rows), [readable[entity] for entity in rows]


# A name in lower case is found in its language only.
PLACES = """
en The Mexicans flew to Germany. -> Germany Mexico
de Mexikanische Spieler flogen nach Deutschland. -> Germany Mexico
fr Les joueurs mexicains sont en Allemagne. -> Germany Mexico
ru Мексиканские игроки прилетели в Германию. -> Germany Mexico
ar وصل لاعبو المكسيك إلى ألمانيا -> Germany Mexico
hi मैक्सिको के खिलाड़ी जर्मनी पहुँचे -> Germany Mexico
zh 墨西哥球员抵达德国 -> Germany Mexico
fr Il parle russe. -> Russia
en Il parle russe. ->
de Nach London und Moskau -> London Moscow
ru В Лондоне и Москве -> London Moscow
ar شمال ->
en North and South ->
"""


@pytest.mark.parametrize("case", PLACES.strip().split("\n"))
def test_countries_and_cities_are_found_in_all_languages(case):
    text, found = case.split(" ->")
    linker, names = built_in_linker()
    assert sorted(names[row] for row in linker.link([text[3:]], text[:2])) == found.split()


def test_built_in_names_have_no_words_that_look_like_cities():
    found = {(name.alias, name.entity) for name in built_in()}
    assert readable_names(built_in())["city:4140963"] == "Washington"  # and not the District of Columbia
    aliases = {alias for alias, _ in found}
    assert aliases.isdisjoint({"Landen", "Dabei"})  # "countries", "besides"
    london = {alias for alias, entity in found if entity == "city:2643743"}
    assert {"London", "Londres", "Londyn", "Лондон", "伦敦", "لندن"} <= london
    assert {("саудовский", "region:SA"), ("Schottland", "region:GB-SCT"), ("IA", "concept:AI")} <= found
    assert {("OTAN", "organisation:NATO"), ("路透社", "organisation:Reuters"), ("新墨西哥", "region:US-NM")} <= found
    assert ("المدينة", "city:109223") not in found  # "the city", and a short form of Medina
    assert ("中美", "region:013") not in found  # China and the US, and Central America


def entities_job(tmp_path, texts, table="", name="out", base="kb.tsv", **options):
    rows = [
        Article(make_doc_id(f"{language}{n}"), "u", "p", "", text, byline_date=DAY, language=language)
        for language, text in texts.items()
        for n in range(4)
    ]
    inputs = {"articles": write_stream(tmp_path / "clean", "articles", [rows], Article)}
    if table:
        (tmp_path / base).write_text(table, encoding="utf-8")
    if (tmp_path / base).exists():
        inputs["knowledge_base"] = [str(tmp_path / base)]
    options = EntitiesOptions(dimensions=2, **options)
    manifest_of(JOB, inputs, tmp_path / name, options)
    keys = {fields[0]: fields[1] for fields in tables.read_keys(f"{tmp_path}/{name}/entities.tsv")}
    return keys, tables.read_aliases(f"{tmp_path}/{name}/aliases.tsv")


def test_the_job_names_no_titles_and_days_but_countries_in_capitals(tmp_path, monkeypatch):
    monkeypatch.setattr(entities, "built_in_names", built_in)  # which are read once
    text = "We met the new Mr. Rook in Marrowick on Monday. They told us that the US would sign, as nice as Nice is."
    keys, aliases = entities_job(tmp_path, {"en": text}, "Q1\ten\tUS\nQ2\ten\tNice\n")
    assert set(keys) == {"Marrowick", "region:US"}  # the user's "US" may be a code, and "us" is a frequent word
    assert ("US", "region:US") in {(item.alias, item.entity) for item in aliases}


def test_a_table_joins_languages_and_a_broken_row_stops_the_job(tmp_path):
    texts = {"en": "Yesterday we met Jane Roe in Marrowick again.", "zh": "昨天我们在马罗威克见到了简罗。"}
    table = "Q1\ten\tJane Roe\nQ1\tzh\t简罗\nQ2\tzh\t马罗威克\nQ2\ten\tMarrowick\nQ3\ten\tElsewhere\nQ3\ten\tE\n"
    keys, aliases = entities_job(tmp_path, texts, table, built_in_names=False)
    assert keys == {"Q1": "8", "Q2": "8"}
    names = read_names(f"{tmp_path}/kb.tsv", NameCounts())
    parquet.write_shard(f"{tmp_path}/names/part-00000.parquet", names, KnownName)
    of_folder = entities_job(tmp_path, texts, base="names", name="folder", built_in_names=False)
    assert of_folder == (keys, aliases)  # as `newsembed knowledge` writes it
    linker = Linker(aliases, {"Q1": 1, "Q2": 2})
    assert linker.link(["简罗在马罗威克"], "zh") == linker.link(["Jane Roe, Marrowick"], "en") == {1: 1, 2: 1}
    with pytest.raises(InputError) as caught:
        entities_job(tmp_path, texts, "Q1\ten\tJane Roe\nQ2\n", built_in_names=False)
    assert caught.value.field == "line 2"
