"""The newsroom's sentences: files are complete, every line fills, voices differ, numbers read right."""

import random
import re

import pytest
from newsembed.newsroom.prose import LANGUAGES, REGIONS, fill, load_prose, number_words, spell_name
from newsembed.newsroom.telling import FACT_SLOTS, Manner, Register, Teller
from newsembed.newsroom.world import MATTERS_PER_TOPIC, TOPICS, EventPlanner, NewsroomOptions, build_world

OPTIONS = NewsroomOptions(seed=1, scale=0.3)
WORLD = build_world(OPTIONS)


def event_of(topic):
    planner = EventPlanner(WORLD, OPTIONS, "test")
    while True:
        event = planner.series("en")[0]
        if event.topic == topic:
            return event


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_all_slots_and_every_line_fills(language, topic):
    prose = load_prose(language)
    assert len(prose.lines(topic, "matter")) == MATTERS_PER_TOPIC
    event = event_of(topic)
    for slot in ("head", "lead", "context", *FACT_SLOTS):
        assert len(prose.lines(topic, slot)) == (3 if language == "en" else 2)
        for register in Register:
            for voice in range(6):
                text = Teller(WORLD, language, Manner(voice, register, wander=0), random.Random(0)).sentence(
                    event, slot
                )
                assert not re.search(r"[{}<>|]", text)
                assert not re.search(r"\b(de|a) el\b|seit am|since on|  ", text)
                assert language != "ru" or not re.search(r"(?!(?:SV|FC)\b)[A-Za-z]", text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_registers_name_the_same_event_in_different_words(language):
    event = event_of("court")
    actor = WORLD.actor(event)

    def text(register):
        teller = Teller(WORLD, language, Manner(0, register, wander=0), random.Random(0))
        return " ".join(teller.sentence(event, slot) for slot in ("lead", *FACT_SLOTS))

    plain, oblique, mixed = (text(register) for register in Register)
    nick = event.place.nouns[LANGUAGES.index(language)]
    place, last = spell_name(event.place.name, language), spell_name(actor.last, language)
    assert [name in plain for name in (place, last, nick)] == [True, True, False]
    assert [name in oblique for name in (place, last, nick)] == [False, False, True]
    assert last in mixed


def test_neighbouring_voices_disagree_on_every_choice():
    template = "<a|b> <c|d> <e|f>"
    first, second = (fill(template, {}, voice, "en").lower().split() for voice in (0, 1))
    assert all(one != two for one, two in zip(first, second, strict=True))


def test_fill_capitalises_and_contracts():
    assert fill("{actor} de el alcalde a el puerto", {"actor": "«el juez"}, 0, "es") == "«El juez del alcalde al puerto"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (7, ("seven", "sieben", "siete", "семь")),
        (16, ("sixteen", "sechzehn", "dieciséis", "шестнадцать")),
        (40, ("forty", "vierzig", "cuarenta", "сорок")),
    ]
    + [
        (83, ("eighty-three", "dreiundachtzig", "ochenta y tres", "восемьдесят три")),
        (22, ("twenty-two", "zweiundzwanzig", "veintidós", "двадцать два")),
    ],
)
def test_number_words(number, words):
    assert tuple(number_words(number, language) for language in LANGUAGES) == words


@pytest.mark.parametrize("name", [*LANGUAGES, "names", "pages"])
def test_the_brackets_of_a_prose_file_close(name):
    prose = load_prose(name)
    lines = [line for slots in prose.sections.values() for own in slots.values() for line in own]
    assert lines
    assert not [line for line in lines if line.count("<") != line.count(">") or line.count("{") != line.count("}")]
    assert all(slot and line for slots in prose.sections.values() for slot, own in slots.items() for line in own)


def test_world_gives_everyone_a_name_of_their_own():
    world = build_world(NewsroomOptions())
    assert (len(world.places), len(world.people), len(world.organisations)) == (60, 150, 90)
    assert len({person.last for person in world.people.values()}) == 150
    assert len({organisation.brand for organisation in world.organisations.values()}) == 90
    assert len({organisation.acronym for organisation in world.organisations.values()}) == 90
    assert len({place.nouns for place in world.places}) == 60
    for topic in TOPICS:
        for language in REGIONS:
            assert world.hosts(topic, language)
