"""The demo's check of names in two scripts: what counts as right, missed, and not known."""

import pytest
from newsembed.beam_pipelines.entities.linking import Linker
from newsembed.beam_pipelines.entities.tables import Alias, write_aliases
from newsembed.formats import parquet
from newsembed.formats.records import Article
from newsembed.launch.demo.names import PRECISION, RECALL, Name, found_names, score_names
from newsembed.launch.demo.steps import Places

NAMES = [
    Name("place", "Thornmere", frozenset({"Торнмир", "Торнмира", "Торнмире"})),
    Name("place", "Oxfirth", frozenset({"Оксферт", "Оксферте"})),
    Name("person", "Edmund Kestling", frozenset({"Кестлинг", "Кестлинга"})),
]


def russian(body, number=0):
    return Article(f"{number:016x}", f"http://p.example/{number}", "p.example", "Новость", body, language="ru")


def linker_of(*aliases):
    rows = {entity: row for row, entity in enumerate(sorted({alias.entity for alias in aliases}))}
    return Linker(aliases, rows)


def known(name, alias=None, languages=""):
    return Alias(alias or name, name.replace(" ", "_"), 1.0, name, languages)


EVERYONE = (known("Thornmere"), known("Oxfirth"), known("Edmund Kestling"), known("Edmund Kestling", "Kestling"))


def test_forms_in_another_script_are_linked_to_the_latin_name():
    articles = [russian("Вчера в Торнмире был дождь."), russian("Речь Эдмунда Кестлинга в Оксферте.")]
    found = score_names(linker_of(*EVERYONE), NAMES, articles)
    assert (found[PRECISION], found[RECALL], found["names across scripts"]) == (1, 1, 3)
    assert found[f"{RECALL}, person"] == found[f"{RECALL}, place"] == 1


def test_a_name_with_an_entity_of_its_own_is_missed():
    table = (known("Thornmere"), known("Торнмир"), known("Oxfirth"))
    found = score_names(linker_of(*table), NAMES, [russian("Вчера в Торнмире и Оксферте был дождь.")])
    assert (found[PRECISION], found[RECALL]) == (1, 0.5)


def test_a_link_to_a_name_that_the_article_does_not_have_is_wrong():
    table = (known("Thornmere"), known("Thornmere", "Оксферт"), known("Oxfirth"))
    found = score_names(linker_of(*table), NAMES, [russian("Вчера в Оксферте был дождь.")])
    assert (found[PRECISION], found[RECALL]) == (0, 0)


def test_a_name_without_an_entity_in_latin_letters_is_not_asked_for():
    found = score_names(linker_of(known("Thornmere")), NAMES, [russian("В Торнмире и Оксферте был дождь.")])
    assert (found[RECALL], found["names across scripts"]) == (1, 1)


def test_names_of_one_language_only_are_missed():
    table = [known(name, languages="en") for name in ("Thornmere", "Oxfirth")]
    found = score_names(linker_of(*table), NAMES, [russian("В Торнмире и Оксферте был дождь.")])
    assert (found[PRECISION], found[RECALL]) == (0, 0)


@pytest.mark.parametrize(("language", "asked"), [("ru", 1), ("en", 0)])
def test_the_articles_and_the_table_of_a_demo_are_read(tmp_path, language, asked):
    places = Places(str(tmp_path))
    (tmp_path / "newsroom").mkdir()
    (tmp_path / "work/entities").mkdir(parents=True)
    lines = ("place\tThornmere\tТорнмир", "place\tThornmere\tТорнмире")
    (tmp_path / "newsroom/names.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_aliases(f"{places.work}/entities/aliases.tsv", EVERYONE)
    article = Article("0" * 16, "http://p.example/", "p.example", "Торнмир", "В Торнмире дождь.", language=language)
    parquet.write_shard(f"{places.work}/clean/articles/part-00000-of-00001.parquet", [article], Article)
    found = found_names(places)
    assert (found[RECALL], found["names across scripts"]) == (asked, asked)
