"""Invented names: places with a nickname in each language, people, brands."""

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

# A plural noun per place; the nickname is "the City of …" in every language.
NICKNAMES = (
    ("Lanterns", "Laternen", "los Faroles"), ("Herons", "Reiher", "las Garzas"),
    ("Kites", "Papierdrachen", "las Cometas"), ("Bells", "Glocken", "las Campanas"),
    ("Mills", "Windmühlen", "los Molinos"), ("Orchards", "Obstgärten", "los Huertos"),
    ("Spires", "Turmspitzen", "las Agujas"), ("Gulls", "Möwen", "las Gaviotas"), ("Cranes", "Kraniche", "las Grullas"),
    ("Vines", "Reben", "las Viñas"), ("Foxes", "Füchse", "los Zorros"), ("Otters", "Otter", "las Nutrias"),
    ("Clocks", "Uhren", "los Relojes"), ("Looms", "Webstühle", "los Telares"), ("Anchors", "Anker", "las Anclas"),
    ("Barrels", "Fässer", "los Toneles"), ("Chestnuts", "Kastanien", "las Castañas"),
    ("Falcons", "Falken", "los Halcones"), ("Fountains", "Springbrunnen", "las Fuentes"),
    ("Kilns", "Brennöfen", "los Hornos"), ("Larks", "Lerchen", "las Alondras"), ("Masks", "Larven", "las Caretas"),
    ("Mirrors", "Spiegel", "los Espejos"), ("Needles", "Nadeln", "los Alfileres"), ("Oaks", "Eichen", "los Robles"),
    ("Owls", "Eulen", "los Búhos"), ("Pearls", "Perlen", "las Perlas"), ("Poppies", "Mohnblumen", "las Amapolas"),
    ("Quarries", "Steinbrüche", "las Canteras"), ("Ravens", "Raben", "los Cuervos"),
    ("Reeds", "Schilfrohre", "los Juncos"), ("Roses", "Rosen", "las Rosas"), ("Saddles", "Sättel", "las Monturas"),
    ("Sails", "Segel", "las Velas"), ("Shells", "Muscheln", "las Conchas"), ("Swans", "Schwäne", "los Cisnes"),
    ("Thistles", "Disteln", "los Cardos"), ("Tulips", "Tulpen", "los Tulipanes"), ("Violins", "Geigen", "los Violines"),
    ("Walnuts", "Walnüsse", "las Nueces"), ("Willows", "Weiden", "los Sauces"), ("Wolves", "Wölfe", "los Lobos"),
    ("Almonds", "Mandeln", "los Almendros"), ("Bees", "Bienen", "las Abejas"), ("Cherries", "Kirschen", "las Cerezas"),
    ("Domes", "Kuppeln", "las Cúpulas"), ("Drums", "Trommeln", "los Tambores"), ("Ferns", "Farne", "los Helechos"),
    ("Geese", "Gänse", "los Gansos"), ("Horns", "Hörner", "las Cornetas"), ("Keys", "Schlüssel", "las Llaves"),
    ("Lemons", "Zitronen", "los Limones"), ("Beavers", "Biber", "los Castores"), ("Badgers", "Dachse", "los Tejones"),
    ("Arches", "Torbögen", "los Arcos"), ("Seals", "Robben", "las Focas"), ("Candles", "Kerzen", "las Candelas"),
    ("Ropes", "Seile", "las Cuerdas"), ("Stags", "Hirsche", "los Ciervos"), ("Dolphins", "Delfine", "los Delfines"),
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
}

BRAND_PARTS = (
    ("Vel", "Mor", "Tas", "Quin", "Zan", "Ori", "Bel", "Kas", "Lum", "Fen", "Dov", "Hal", "Jun"),
    ("mora", "tis", "dara", "lex", "vane", "nor", "quil", "bria", "sona"),
)
