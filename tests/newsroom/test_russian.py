"""Russian words of the newsroom: every name has Cyrillic letters, and cases follow its ending and gender."""

import pytest
from newsembed.newsroom.articles import slug
from newsembed.newsroom.generate import name_forms
from newsembed.newsroom.prose import (
    CASES,
    agree,
    decline,
    decline_first,
    decline_person,
    fill,
    in_cyrillic,
    is_few,
    millions,
    since,
)
from newsembed.newsroom.world import NewsroomOptions, build_world


def cases(word, feminine=False):
    return [decline(word, case, feminine) for case in CASES]


@pytest.mark.parametrize("turnover", [0.0, 1.0])
def test_every_name_of_the_world_has_a_form_in_cyrillic_letters(turnover):
    world = build_world(NewsroomOptions(turnover=turnover))
    found = list(name_forms(world))
    assert all(set(form.lower()) <= {*map(chr, range(ord("а"), ord("я") + 1)), "ё", "-"} for _, _, form in found)
    people = len(world.people) + len(world.successions)
    assert len({(kind, name) for kind, name, _ in found if kind == "person"}) == people
    for person in world.people.values():
        assert in_cyrillic(person.first)
    with pytest.raises(KeyError):
        in_cyrillic("Nowhere")


@pytest.mark.parametrize(
    ("word", "feminine", "expected"),
    [
        ("Хартвик", False, ["Хартвика", "Хартвику", "Хартвиком", "Хартвике"]),
        ("Хартвик", True, ["Хартвик"] * 4),
        ("Хартридж", False, ["Хартриджа", "Хартриджу", "Хартриджем", "Хартридже"]),
        ("Аккермантель", False, ["Аккермантеля", "Аккермантелю", "Аккермантелем", "Аккермантеле"]),
        ("Альвальеда", True, ["Альвальеды", "Альвальеде", "Альвальедой", "Альвальеде"]),
        ("Лавиния", True, ["Лавинии", "Лавинии", "Лавинией", "Лавинии"]),
        ("Фридерика", True, ["Фридерики", "Фридерике", "Фридерикой", "Фридерике"]),
        ("Хартстоу", False, ["Хартстоу"] * 4),
        ("Фалькенроде", False, ["Фалькенроде"] * 4),
        ("Колдер-Бей", False, ["Колдер-Бея", "Колдер-Бею", "Колдер-Беем", "Колдер-Бее"]),
        ("судья", False, ["судьи", "судье", "судьей", "судье"]),
    ],
)
def test_cases(word, feminine, expected):
    assert cases(word, feminine) == expected


def test_phrases_and_people():
    assert decline_first("компания «Велмора»", "i") == "компанией «Велмора»"
    assert decline_person("мэр Флора Хартвик", "g", feminine=True) == "мэра Флоры Хартвик"
    assert decline_person("Эдмунд Хартвик", "d", feminine=False) == "Эдмунду Хартвику"
    assert decline_person("прокурор", "p", feminine=True) == "прокуроре"


def test_nouns_after_numbers():
    assert [number for number in range(2, 30) if is_few(number)] == [2, 3, 4, 22, 23, 24]
    template = "пришли {n1:гостья|гостей}"
    assert fill(template, {"n1": "22", "n1_few": "few"}, 0, "ru") == "Пришли 22 гостья"
    assert fill(template, {"n1": "25", "n1_few": ""}, 0, "ru") == "Пришли 25 гостей"
    assert agree("двадцать два", "недели") == "двадцать две"
    assert agree("двенадцать", "недели") == "двенадцать"
    assert [millions(number) for number in (2, 11, 21)] == ["миллиона", "миллионов", "миллион"]


def test_days():
    days = ["в понедельник", "во вторник", "в среду", "в четверг", "в пятницу", "в субботу", "в воскресенье"]
    assert [since(day) for day in days] == [
        *("с понедельника", "со вторника", "со среды", "с четверга", "с пятницы", "с субботы", "с воскресенья")
    ]


def test_addresses_have_latin_letters():
    assert slug("Ещё щука в Колдер-Бее: 5 эпох") == "eshche-shchuka-v-kolder-bee-5-epokh"
