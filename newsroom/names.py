"""Invented names: places with a nickname in each language, people, brands."""
# ruff: noqa: RUF001 - Cyrillic letters are meant

PLACES = {
    "en": (
        "Calder Bay", "Thornmere", "Wexcombe", "Ashdrift", "Pellworth", "Marrowick", "Dunhallow", "Oxfirth",
        "Brindlesea", "Harrowmouth", "Saltwick Regis", "Tarnmoor", "Elverholt", "Gorsebury", "Kettleness Cross",
        "Lindrake", "Mossgate", "Nethercombe", "Quillhaven", "Ravenscote", "Skellbeck", "Tidemarsh", "Umberleigh Down",
        "Vexholm", "Wendlecliff", "Yarrowby", "Zennick", "Fallowmere",
    ),
    "de": (
        "Aldersbruck", "Grünwerth", "Falkenrode", "Löwenfurth", "Haselbrugg", "Moorstetten", "Nebelhausen",
        "Ostermünde", "Quellbach", "Rothenhagen", "Silberweiler", "Tannenbrück", "Uhlenhorn", "Wacholdern",
        "Zirbelstadt", "Krähenwinkel",
    ),
    "es": (
        "Calabán", "Villarrosal", "Montelera", "Peñavieja", "Fuentelar", "Riocándalo", "Torrequemal", "Almirena",
        "Brezales", "Cantarrana", "Dehesilla", "Esparragar", "Guadalvera", "Hornamora", "Jarabela", "Lobregal",
    ),
}  # fmt: skip

# A plural noun per place, in the order of LANGUAGES; the nickname is "the City of …" in every language.
NICKNAMES = (
    ("Lanterns", "Laternen", "los Faroles", "Фонарей"), ("Herons", "Reiher", "las Garzas", "Цапель"),
    ("Kites", "Papierdrachen", "las Cometas", "Змеев"), ("Bells", "Glocken", "las Campanas", "Колоколов"),
    ("Mills", "Windmühlen", "los Molinos", "Мельниц"), ("Orchards", "Obstgärten", "los Huertos", "Садов"),
    ("Spires", "Turmspitzen", "las Agujas", "Шпилей"), ("Gulls", "Möwen", "las Gaviotas", "Чаек"),
    ("Cranes", "Kraniche", "las Grullas", "Журавлей"), ("Vines", "Reben", "las Viñas", "Лоз"),
    ("Foxes", "Füchse", "los Zorros", "Лис"), ("Otters", "Otter", "las Nutrias", "Выдр"),
    ("Clocks", "Uhren", "los Relojes", "Часов"), ("Looms", "Webstühle", "los Telares", "Станков"),
    ("Anchors", "Anker", "las Anclas", "Якорей"), ("Barrels", "Fässer", "los Toneles", "Бочек"),
    ("Chestnuts", "Kastanien", "las Castañas", "Каштанов"), ("Falcons", "Falken", "los Halcones", "Соколов"),
    ("Fountains", "Springbrunnen", "las Fuentes", "Фонтанов"), ("Kilns", "Brennöfen", "los Hornos", "Печей"),
    ("Larks", "Lerchen", "las Alondras", "Жаворонков"), ("Masks", "Larven", "las Caretas", "Масок"),
    ("Mirrors", "Spiegel", "los Espejos", "Зеркал"), ("Needles", "Nadeln", "los Alfileres", "Игл"),
    ("Oaks", "Eichen", "los Robles", "Дубов"), ("Owls", "Eulen", "los Búhos", "Сов"),
    ("Pearls", "Perlen", "las Perlas", "Жемчужин"), ("Poppies", "Mohnblumen", "las Amapolas", "Маков"),
    ("Quarries", "Steinbrüche", "las Canteras", "Карьеров"), ("Ravens", "Raben", "los Cuervos", "Воронов"),
    ("Reeds", "Schilfrohre", "los Juncos", "Тростников"), ("Roses", "Rosen", "las Rosas", "Роз"),
    ("Saddles", "Sättel", "las Monturas", "Сёдел"), ("Sails", "Segel", "las Velas", "Парусов"),
    ("Shells", "Muscheln", "las Conchas", "Ракушек"), ("Swans", "Schwäne", "los Cisnes", "Лебедей"),
    ("Thistles", "Disteln", "los Cardos", "Репейников"), ("Tulips", "Tulpen", "los Tulipanes", "Тюльпанов"),
    ("Violins", "Geigen", "los Violines", "Скрипок"), ("Walnuts", "Walnüsse", "las Nueces", "Орехов"),
    ("Willows", "Weiden", "los Sauces", "Ив"), ("Wolves", "Wölfe", "los Lobos", "Волков"),
    ("Almonds", "Mandeln", "los Almendros", "Миндалей"), ("Bees", "Bienen", "las Abejas", "Пчёл"),
    ("Cherries", "Kirschen", "las Cerezas", "Вишен"), ("Domes", "Kuppeln", "las Cúpulas", "Куполов"),
    ("Drums", "Trommeln", "los Tambores", "Барабанов"), ("Ferns", "Farne", "los Helechos", "Папоротников"),
    ("Geese", "Gänse", "los Gansos", "Гусей"), ("Horns", "Hörner", "las Cornetas", "Рожков"),
    ("Keys", "Schlüssel", "las Llaves", "Ключей"), ("Lemons", "Zitronen", "los Limones", "Лимонов"),
    ("Beavers", "Biber", "los Castores", "Бобров"), ("Badgers", "Dachse", "los Tejones", "Барсуков"),
    ("Arches", "Torbögen", "los Arcos", "Арок"), ("Seals", "Robben", "las Focas", "Тюленей"),
    ("Candles", "Kerzen", "las Candelas", "Свечей"), ("Ropes", "Seile", "las Cuerdas", "Канатов"),
    ("Stags", "Hirsche", "los Ciervos", "Оленей"), ("Dolphins", "Delfine", "los Delfines", "Дельфинов"),
)  # fmt: skip

FIRST_NAMES = {  # men, women
    "en": (
        (
            "Alder",
            "Barnaby",
            "Clement",
            "Desmond",
            "Edmund",
            "Fergus",
            "Gilbert",
            "Humphrey",
            "Ivo",
            "Jasper",
            "Kenrick",
            "Lionel",
        ),
        (
            "Agnes",
            "Beatrix",
            "Cordelia",
            "Dorothea",
            "Edith",
            "Flora",
            "Greta",
            "Harriet",
            "Imogen",
            "Josephine",
            "Lavinia",
            "Mabel",
        ),
    ),
    "de": (
        ("Anselm", "Bertold", "Detlef", "Eckhard", "Gerold", "Hartmut", "Ingolf", "Kuno", "Leopold", "Ruprecht"),
        (
            "Adelheid",
            "Brunhild",
            "Friederike",
            "Gisela",
            "Hedwig",
            "Irmgard",
            "Kunigunde",
            "Liselotte",
            "Ottilie",
            "Walburga",
        ),
    ),
    "es": (
        ("Amadeo", "Baltasar", "Cosme", "Demetrio", "Evaristo", "Fermín", "Gaspar", "Horacio", "Isidro", "Leandro"),
        (
            "Asunción",
            "Brígida",
            "Casilda",
            "Dorotea",
            "Eulalia",
            "Fermina",
            "Herminia",
            "Leocadia",
            "Petronila",
            "Remedios",
        ),
    ),
    "ru": (
        ("Аркадий", "Богдан", "Всеволод", "Геннадий", "Ефим", "Захар", "Игнат", "Климент", "Лаврентий", "Макар"),
        ("Аглая", "Варвара", "Глафира", "Евдокия", "Зинаида", "Клавдия", "Лукерья", "Марфа", "Полина", "Устинья"),
    ),
}

SURNAME_PARTS = {
    "en": (
        (
            "Hart",
            "Brack",
            "Penn",
            "Wyn",
            "Thack",
            "Morl",
            "Cald",
            "Dunst",
            "Ell",
            "Fairb",
            "Gosl",
            "Holb",
            "Ingl",
            "Kemb",
            "Ludd",
            "Stav",
        ),
        ("wick", "erley", "stow", "amore", "ridge", "ingham"),
    ),
    "de": (
        ("Acker", "Brunn", "Dahl", "Eichel", "Fels", "Gramm", "Hölz", "Kest", "Lind", "Mohr", "Nuss", "Rapp"),
        ("egger", "hofer", "ling", "wasser", "mantel"),
    ),
    "es": (
        ("Alva", "Bere", "Corri", "Dari", "Esca", "Fona", "Gari", "Lore", "Mona", "Nava", "Orte", "Peri"),
        ("ndo", "lleda", "zábal", "quera", "montes"),
    ),
    # Of reporters only; women have the same forms.
    "ru": (
        ("Бондар", "Гонч", "Дробот", "Ковал", "Марч", "Онищ", "Пилип", "Рудн", "Савч", "Ткач", "Шевел", "Ярем"),
        ("енко", "ук", "ак", "евич", "ейко"),
    ),
}

BRAND_PARTS = (
    ("Vel", "Mor", "Tas", "Quin", "Zan", "Ori", "Bel", "Kas", "Lum", "Fen", "Dov", "Hal", "Jun"),
    ("mora", "tis", "dara", "lex", "vane", "nor", "quil", "bria", "sona"),
)
