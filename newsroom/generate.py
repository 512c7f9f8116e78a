"""Generates a fictional news world: sites, the truth about their pages, and evaluation sets.

Equal options give equal bytes.

example: newsembed newsroom --output newsroom --scale 0.2 --serve
"""

import collections
import dataclasses
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import InputError
from ..formats.command_line import option, required
from ..formats.files import check_output
from . import evaluation_sets as sets
from .articles import Desk, Story
from .evaluation_sets import write_mldoc
from .prose import ABROAD, CASES, decline, in_cyrillic
from .server import NewsroomServer, write_lines, write_site
from .site import JunkPage, Site, junk_pages
from .world import PUBLISHERS, NewsroomOptions, World, build_world


def generate_newsroom(output: str, options: NewsroomOptions) -> dict[str, Any]:
    """Generates a newsroom; equal options give byte-identical files.

    Args:
      output: folder for ``site/``, ``seeds.txt``, ``truth.jsonl``, ``names.tsv`` (kind, name, a form of it in
        Russian), ``bitext.tsv``, ``heldout.jsonl``, ``paraphrases.jsonl`` and ``sts.tsv``. Files of an earlier newsroom
        are replaced.
      options: seed and scale.

    Returns:
      What was written: the number of "articles" (lines of ``truth.jsonl``), the same "by_kind" (news, evergreen,
      syndicated, junk:…) and "by_language", of "events" on the site, HTML "hubs" with their further pages, "feeds" and
      "images"; lines of the evaluation files by name; "bytes" of the site's store; "mean_words" per body, without junk.

    Raises:
      InputError: if ``output`` is a file.
    """
    check_output(output, is_folder=True)
    os.makedirs(output, exist_ok=True)
    seeds = os.path.join(output, "seeds.txt")
    if os.path.exists(seeds):
        os.remove(seeds)
    world = build_world(options)
    desk = Desk(world, options)
    stories = [*desk.news(), *desk.evergreens(), *desk.abroad()]
    junk = junk_pages(options, stories)
    sites = [Site(publisher, world, options, stories, junk) for publisher in PUBLISHERS]
    write_site(os.path.join(output, "site"), (resource for site in sites for resource in site.resources()))
    truth = [*map(_story_truth, stories), *map(_junk_truth, junk)]
    # Last in every file: what is generated for the other languages does not depend on those without a region.
    truth.sort(key=lambda line: line["language"] in ABROAD)
    _write_json(os.path.join(output, "truth.jsonl"), truth)
    _write_table(os.path.join(output, "names.tsv"), name_forms(world))
    held_out = sets.held_out_events(world, options)
    words = sum(len(" ".join(story.sentences).split()) for story in stories)
    articles, others = sets.held_out_articles(world, options, held_out), sets.paraphrases(world, options, held_out)
    summary = {
        "articles": len(truth),
        **{f"by_{name}": _counts(line[name] for line in truth) for name in ("kind", "language")},
        "events": len(desk.events),
        **{name: sum(getattr(site, name) for site in sites) for name in ("hubs", "feeds", "images")},
        "heldout": _write_json(os.path.join(output, "heldout.jsonl"), articles),
        "paraphrases": _write_json(os.path.join(output, "paraphrases.jsonl"), others),
        "bitext": _write_table(os.path.join(output, "bitext.tsv"), sets.bitext(world, options, desk.events)),
        "sts": _write_table(os.path.join(output, "sts.tsv"), sets.graded_pairs(world, options, held_out)),
        "bytes": sum(entry.stat().st_size for entry in os.scandir(os.path.join(output, "site"))),
        "mean_words": round(words / len(stories), 1),
    }
    # Written last: a folder with seeds.txt is complete.
    write_lines(seeds, (seed for site in sites for seed in site.seeds))
    return summary


def write_across_languages(path: str, options: NewsroomOptions) -> int:
    """Writes the held-out events of a newsroom as told in every language, in the format of ``heldout.jsonl``.

    Args:
      path: of the file.
      options: of the newsroom.

    Returns:
      The number of articles.
    """
    world = build_world(options)
    return _write_json(path, sets.articles_across_languages(world, options, sets.held_out_events(world, options)))


def _story_truth(story: Story) -> dict[str, str | None]:
    """The line of an article in truth.jsonl; null stands for what it lacks."""
    return {
        "url": story.url,
        "publisher": f"{story.publisher.slug}.example",
        "title": story.title,
        "event": story.event.id if story.event else None,  # evergreen pieces have none
        "topic": story.topic,
        "kind": story.kind,
        "near_duplicate_group": story.group or None,
        "language": story.publisher.language,
        "byline_date": story.published.date().isoformat(),  # also where the page does not show it
        "author": story.author,
    }


def _junk_truth(page: JunkPage) -> dict[str, str | None]:
    """The line of a junk page, in the form of `_story_truth`."""
    of_stories = dict.fromkeys(("event", "topic", "kind", "near_duplicate_group", "language", "byline_date", "author"))
    own = {"url": page.url, "publisher": f"{page.publisher.slug}.example", "title": page.title}
    return own | of_stories | {"kind": f"junk:{page.kind.value}", "language": page.publisher.language}


def _counts(values: Iterable[Any]) -> dict[str, int]:
    return dict(sorted(collections.Counter(values).items()))


def _write_json(path: str, records: Iterable[Mapping[str, Any]]) -> int:
    return write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records))


def _write_table(path: str, rows: Iterable[tuple[object, ...]]) -> int:
    return write_lines(path, ("\t".join(map(str, row)) for row in rows))


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommandOptions(NewsroomOptions):
    """Options of ``newsembed newsroom``."""

    output: str = required("folder to write", metavar="DIR", local=True)
    format: str = option(
        "site",
        "site, or mldoc: labelled articles as MLDoc has them (english.train.1000, …; the classes are topics), for "
        "`newsembed evaluate --suite mldoc_laser`",
        choices=("site", "mldoc"),
    )
    serve: bool = option(False, "serve the site on 127.0.0.1 afterwards, until Ctrl-C")
    port: int = option(0, "port of --serve; 0 takes a free one", metavar="N")

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.format == "mldoc" and self.serve:
            raise InputError("given with --format mldoc", field="--serve", remedy="it has no site: leave out --serve")


OPTIONS = CommandOptions


def run(options: CommandOptions) -> int:
    """Generates the newsroom, prints the summary and, with ``--serve``, serves the site; returns the exit code."""
    start = time.perf_counter()
    write = write_mldoc if options.format == "mldoc" else generate_newsroom
    for name, value in write(options.output, options).items():
        shown = ", ".join(f"{key} {count}" for key, count in value.items()) if isinstance(value, dict) else value
        print(f"{name:12} {shown}")
    print(f"{'seconds':12} {time.perf_counter() - start:.1f}")
    if options.serve:
        with NewsroomServer(options.output, options.port) as server:
            address = f"127.0.0.1:{server.port}"
            print(f"serving on {address}; try: curl -H 'Host: www.harbourtimes.example' http://{address}/", flush=True)
            try:
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                print("stopped")
    return 0
