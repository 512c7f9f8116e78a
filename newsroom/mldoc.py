"""Articles in the layout of MLDoc: classes are topics, and no event is in two parts.

``LANGUAGE.train.1000``, ``LANGUAGE.train.10000``, ``LANGUAGE.dev`` and ``LANGUAGE.test`` hold lines
``topic<TAB>text``, as MLDoc has them (Schwenk and Li 2018); the smaller training part is the beginning of the larger
one. Names are the same at every scale; the numbers of documents change with it. The site mentions none of the events.
The languages are those of regions: two Russian publishers are fewer than the reports of an event.
Folds of all parts (``newsembed evaluate --folds``) do not keep the reports of an event together.
"""

import os
from collections.abc import Iterator
from typing import Final

from .articles import SITE_LEAK, register_for
from .options import REGIONS, NewsroomOptions
from .publishers import of_language
from .store import make_folder, write_lines
from .telling import Manner, Teller
from .world import EventPlanner, World, build_world

NAMES: Final = {"en": "english", "de": "german", "es": "spanish"}
# Documents at full scale, and the least.
_PARTS: Final = {"train.10000": (10_000, 100), "dev": (1000, 40), "test": (4000, 40)}
_SMALL: Final = ("train.1000", 1000, 40)
_REPORTS: Final = 3  # of each event, by as many publishers


def write_mldoc(output: str, options: NewsroomOptions) -> dict[str, int]:
    """Writes the parts of every language; equal options give equal bytes.

    Args:
      output: folder, created if need be.
      options: seed and scale; 1 has the numbers of MLDoc.

    Returns:
      The documents of each file.

    Raises:
      InputError: if ``output`` is a file.
    """
    make_folder(output)
    world = build_world(options)
    counts = {}
    for language in REGIONS:
        planner = EventPlanner(world, options, f"mldoc-{language}")
        for part, (at_full_scale, at_least) in _PARTS.items():
            lines = _part(world, options, planner, language, options.count(at_full_scale, at_least))
            parts = {part: lines}
            if part.startswith("train"):
                name, full, least = _SMALL
                parts[name] = lines[: options.count(full, least)]
            for name, written in parts.items():
                file_name = f"{NAMES[language]}.{name}"
                with open(os.path.join(output, file_name), "w", encoding="utf-8", newline="\n") as file:
                    write_lines(file, written)
                counts[file_name] = len(written)
    return counts


def _part(world: World, options: NewsroomOptions, planner: EventPlanner, language: str, count: int) -> list[str]:
    """The lines of a part, of events that no other part has."""
    lines: list[str] = []
    while len(lines) < count:
        lines += _reports(world, options, planner, language)
    return lines[:count]


def _reports(world: World, options: NewsroomOptions, planner: EventPlanner, language: str) -> Iterator[str]:
    event = planner.single(language, set())
    random = options.stream("mldoc", event.id, language)
    for publisher in random.sample(of_language(language), _REPORTS):
        teller = Teller(world, language, Manner(publisher.voice, register_for(random.random()), leak=SITE_LEAK), random)
        text = " ".join([teller.headline(event), *teller.body(event, random.randint(2, 7))])
        yield f"{event.topic}\t{' '.join(text.split())}"
