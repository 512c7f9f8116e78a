"""Russian words: names in Cyrillic letters, their cases, and nouns after numbers.

Names are transcribed part by part by a table, as a newspaper writes them by the rules of the name's own language. No
code of the pipeline knows the table.
"""
# ruff: noqa: RUF001, RUF002 - Cyrillic letters are meant

import functools
import itertools
from collections.abc import Iterator, Mapping

from .names import BRAND_PARTS, SURNAME_PARTS
from .world import World

CASES = "gdip"  # genitive, dative, instrumental, prepositional

_NAMES = {
    "Alder": "Олдер", "Barnaby": "Барнаби", "Clement": "Клемент", "Desmond": "Десмонд", "Edmund": "Эдмунд",
    "Fergus": "Фергус", "Gilbert": "Гилберт", "Humphrey": "Хамфри", "Ivo": "Айво", "Jasper": "Джаспер",
    "Kenrick": "Кенрик", "Lionel": "Лайонел", "Agnes": "Агнес", "Beatrix": "Беатрикс", "Cordelia": "Корделия",
    "Dorothea": "Доротея", "Edith": "Эдит", "Flora": "Флора", "Greta": "Грета", "Harriet": "Харриет",
    "Imogen": "Имоджен", "Josephine": "Джозефина", "Lavinia": "Лавиния", "Mabel": "Мейбл", "Anselm": "Ансельм",
    "Bertold": "Бертольд", "Detlef": "Детлеф", "Eckhard": "Экхард", "Gerold": "Герольд", "Hartmut": "Хартмут",
    "Ingolf": "Ингольф", "Kuno": "Куно", "Leopold": "Леопольд", "Ruprecht": "Рупрехт", "Adelheid": "Адельхайд",
    "Brunhild": "Брунхильд", "Friederike": "Фридерика", "Gisela": "Гизела", "Hedwig": "Хедвиг", "Irmgard": "Ирмгард",
    "Kunigunde": "Кунигунда", "Liselotte": "Лизелотта", "Ottilie": "Оттилия", "Walburga": "Вальбурга",
    "Amadeo": "Амадео", "Baltasar": "Бальтасар", "Cosme": "Косме", "Demetrio": "Деметрио", "Evaristo": "Эваристо",
    "Fermín": "Фермин", "Gaspar": "Гаспар", "Horacio": "Орасио", "Isidro": "Исидро", "Leandro": "Леандро",
    "Asunción": "Асунсьон", "Brígida": "Брихида", "Casilda": "Касильда", "Dorotea": "Доротея", "Eulalia": "Эулалия",
    "Fermina": "Фермина", "Herminia": "Эрминия", "Leocadia": "Леокадия", "Petronila": "Петронила",
    "Remedios": "Ремедиос",
    "Calder Bay": "Колдер-Бей", "Thornmere": "Торнмир", "Wexcombe": "Уэкскомб", "Ashdrift": "Эшдрифт",
    "Pellworth": "Пелуорт", "Marrowick": "Марровик", "Dunhallow": "Данхаллоу", "Oxfirth": "Оксферт",
    "Brindlesea": "Бриндлси", "Harrowmouth": "Харроумут", "Saltwick Regis": "Солтвик-Реджис", "Tarnmoor": "Тарнмур",
    "Elverholt": "Элверхолт", "Gorsebury": "Горсбери", "Kettleness Cross": "Кетлнесс-Кросс", "Lindrake": "Линдрейк",
    "Mossgate": "Моссгейт", "Nethercombe": "Незеркомб", "Quillhaven": "Квиллхейвен", "Ravenscote": "Рейвенскот",
    "Skellbeck": "Скеллбек", "Tidemarsh": "Тайдмарш", "Umberleigh Down": "Амберли-Даун", "Vexholm": "Вексхолм",
    "Wendlecliff": "Уэндлклифф", "Yarrowby": "Ярроуби", "Zennick": "Зенник", "Fallowmere": "Фаллоумир",
    "Aldersbruck": "Альдерсбрук", "Grünwerth": "Грюнверт", "Falkenrode": "Фалькенроде", "Löwenfurth": "Лёвенфурт",
    "Haselbrugg": "Хазельбругг", "Moorstetten": "Морштеттен", "Nebelhausen": "Небельхаузен",
    "Ostermünde": "Остермюнде", "Quellbach": "Квелльбах", "Rothenhagen": "Ротенхаген", "Silberweiler": "Зильбервайлер",
    "Tannenbrück": "Танненбрюк", "Uhlenhorn": "Уленхорн", "Wacholdern": "Вахольдерн", "Zirbelstadt": "Цирбельштадт",
    "Krähenwinkel": "Креенвинкель", "Calabán": "Калабан", "Villarrosal": "Вильярросаль", "Montelera": "Монтелера",
    "Peñavieja": "Пеньявьеха", "Fuentelar": "Фуэнтелар", "Riocándalo": "Риокандало", "Torrequemal": "Торрекемаль",
    "Almirena": "Альмирена", "Brezales": "Бресалес", "Cantarrana": "Кантаррана", "Dehesilla": "Деэсилья",
    "Esparragar": "Эспаррагар", "Guadalvera": "Гуадальвера", "Hornamora": "Орнамора", "Jarabela": "Харабела",
    "Lobregal": "Лобрегаль",
}  # fmt: skip

# The parts of surnames and brands, in the order of SURNAME_PARTS and BRAND_PARTS.
_SURNAME_PARTS = {
    "en": (
        "Харт Брак Пенн Вин Так Морл Колд Данст Элл Фэрб Госл Холб Ингл Кемб Ладд Став",
        "вик ерли стоу амор ридж ингем",
    ),
    "de": ("Аккер Брунн Даль Айхель Фельс Грамм Хёльц Кест Линд Мор Нус Рапп", "еггер хофер линг вассер мантель"),
    "es": ("Альва Бере Корри Дари Эска Фона Гари Лоре Мона Нава Орте Пери", "ндо льеда сабаль кера монтес"),
}
_BRAND_PARTS = (
    "Вел Мор Тас Квин Зан Ори Бел Кас Лум Фен Дов Хал Джун",
    "мора тис дара лекс вейн нор квил брия сона",
)
_ACRONYM_LETTERS = str.maketrans({**dict(zip("BDFGKMPRTVZAEIOULNS", "БДФГКМПРТВЗАЕИОУЛНС", strict=True)), "X": "КС"})
# For addresses of pages, as Russian sites write their own words in Latin letters.
LATIN_LETTERS = str.maketrans(
    dict(
        zip(
            "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
            "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch . y . e yu ya".replace(".", "").split(" "),
            strict=True,
        )
    )
)
_HISSING, _GUTTURAL = "жшчщц", "гкх"
_FEW = (2, 3, 4)


@functools.cache
def _names() -> Mapping[str, str]:
    """Every name of the world in Cyrillic letters; surnames and brands also with the parts that successors have."""
    found = dict(_NAMES)
    heads, tails = (
        [pair for language, parts in _SURNAME_PARTS.items() for pair in _pairs(SURNAME_PARTS[language], parts, side)]
        for side in (0, 1)
    )
    brands = [_pairs(BRAND_PARTS, _BRAND_PARTS, side) for side in (0, 1)]
    for (one, first), (other, second) in (*itertools.product(heads, tails), *itertools.product(*brands)):
        found[one + other] = first + second
    for (one, first), (other, second) in itertools.product(*brands):
        found[other.capitalize() + one.lower()] = second.capitalize() + first.lower()
    return found


def _pairs(
    latin: tuple[tuple[str, ...], tuple[str, ...]], cyrillic: tuple[str, str], side: int
) -> list[tuple[str, str]]:
    return list(zip(latin[side], cyrillic[side].split(), strict=True))


def in_cyrillic(name: str) -> str:
    """A name of the world, or an acronym, in Cyrillic letters.

    Raises:
      KeyError: if the word is neither of them.

    >>> in_cyrillic("Hartwick"), in_cyrillic("BAX")
    ('Хартвик', 'БАКС')
    """
    return name.translate(_ACRONYM_LETTERS) if name.isupper() else _names()[name]


def decline(word: str, case: str, feminine: bool = False) -> str:
    """A noun or foreign name in a case; words in -о, -е, -и, -у and women's names in consonants have no cases.

    Args:
      word: in the nominative.
      case: one of `CASES`.
      feminine: whether it names a woman.

    >>> [decline("Торнмир", case) for case in CASES]
    ['Торнмира', 'Торнмиру', 'Торнмиром', 'Торнмире']
    """
    at = CASES.index(case)
    stem, last = word[:-1], word[-1]
    if last in "ая":
        hissing = stem[-1] in _HISSING
        soft = last == "я" or stem[-1] in _GUTTURAL or hissing
        dative = "и" if word.endswith("ия") else "е"
        return stem + ("и" if soft else "ы", dative, "ей" if last == "я" or hissing else "ой", dative)[at]
    if word.endswith("ье"):
        return stem + ("я", "ю", "ем", "е")[at]
    if feminine or last in "ёеиоуыэю":
        return word
    if last in "ьй":
        return stem + ("я", "ю", "ем", "и" if word.endswith("ий") else "е")[at]
    return word + ("а", "у", "ем" if last in _HISSING else "ом", "е")[at]


def decline_first(phrase: str, case: str) -> str:
    """A phrase with its first word in a case, such as a place's nickname or an organisation.

    >>> decline_first("Город Фонарей", "p")
    'Городе Фонарей'
    """
    word, space, rest = phrase.partition(" ")
    return decline(word, case) + space + rest


def decline_person(mention: str, case: str, feminine: bool) -> str:
    """A mention of somebody in a case: an office, a name of two words, or both; the words of offices are masculine.

    >>> decline_person("мэр Агнес Хартвик", "d", feminine=True)
    'мэру Агнес Хартвик'
    """
    words = mention.split()
    offices = len(words) % 2
    return " ".join(decline(word, case, feminine and number >= offices) for number, word in enumerate(words))


def past_ending(feminine: bool, reflexive: bool = False) -> str:
    """The ending of a verb in the past."""
    if reflexive:
        return "ась" if feminine else "ся"
    return "а" if feminine else ""


def is_feminine(phrase: str) -> bool:
    """Whether the first word of a phrase is feminine, such as that of a company."""
    return phrase.split(maxsplit=1)[0][-1] in "ая"


def since(day: str) -> str:
    """A day as the beginning of something.

    Args:
      day: as in "on Tuesday", or "4 March".

    >>> since("во вторник"), since("в среду"), since("4 марта")
    ('со вторника', 'со среды', 'с 4 марта')
    """
    weekday = day.rsplit(maxsplit=1)[-1]
    if day[0].isdigit():
        return f"с {day}"
    genitive = f"{weekday[:-1]}ы" if weekday.endswith("у") else decline(weekday, "g")
    return f"со {genitive}" if genitive.startswith(("вт", "ср")) else f"с {genitive}"


def more_than_millions(words: str, number: int) -> str:
    """A sum of somewhat more than a number of millions, which is given in words, too."""
    millions = "миллиона" if is_few(number) else "миллионов"
    if number % 10 == 1 and number != 11:
        millions = "миллион"
    return f"{words} с лишним {millions} крон"


def is_few(number: int) -> bool:
    """Whether a noun after the number is in the genitive singular: 2 to 4, 22 to 24 and so on."""
    return number % 10 in _FEW and number // 10 % 10 != 1


def agree(words: str, noun: str) -> str:
    """The words of a number before a noun of its gender; the genitive singular of feminine nouns ends in -ы or -и.

    >>> agree("сорок два", "минуты"), agree("сорок два", "дома")
    ('сорок две', 'сорок два')
    """
    return words[:-1] + "е" if words.endswith("два") and noun[-1] in "ыи" else words


def name_forms(world: World) -> Iterator[tuple[str, str, str]]:
    """Yields (kind, name, form): each word that Russian texts have for a name of the world; of people, last names."""
    people = [*world.people.values(), *(change.person for change in world.successions.values())]
    later = (change.organisation for change in world.successions.values())
    organisations = [*world.organisations.values(), *filter(None, later)]
    named = [
        *(("place", place.name, in_cyrillic(place.name), False) for place in world.places),
        *(("person", f"{one.first} {one.last}", in_cyrillic(one.last), bool(one.gender)) for one in people),
    ]
    for kind, name, word, feminine in named:
        for form in dict.fromkeys((word, *(decline(word, case, feminine) for case in CASES))):
            yield kind, name, form
    for organisation in organisations:  # in quotation marks, so without cases
        yield "organisation", organisation.brand, in_cyrillic(organisation.brand)
