"""Generates a fictional news world: sites, the truth about their pages, and evaluation sets.

Equal options give equal bytes.

example: newsembed newsroom --output newsroom --scale 0.2 --serve
"""

import collections
import dataclasses
import json
import os
import time
from collections.abc import Iterable, Iterator

from ..errors import InputError
from ..formats.command_line import option, required
from ..formats.files import check_output
from . import evaluation_sets as sets
from .articles import Desk, Story
from .evaluation_sets import write_mldoc
from .prose import ABROAD, CASES, decline, in_cyrillic
from .server import NewsroomServer, SiteWriter, write_lines
from .site import JunkPage, Site, junk_pages
from .world import PUBLISHERS, NewsroomOptions, World, build_world


@dataclasses.dataclass(frozen=True)
class NewsroomSummary:
    """Counts of what was written.

    Attributes:
      articles: lines of truth.jsonl.
      by_kind: articles per kind (news, evergreen, syndicated, junk:…).
      by_language: articles per language.
      events: events published on the site.
      hubs: HTML hub pages, further pages of a hub included.
      feeds: RSS, Atom and JSON feeds.
      images: thumbnails.
      heldout / paraphrases / bitext / sts: lines of the evaluation files.
      bytes: size of the site's store.
      mean_words: words per body over news, syndicated and evergreen articles.
    """

    articles: int
    by_kind: dict[str, int]
    by_language: dict[str, int]
    events: int
    hubs: int
    feeds: int
    images: int
    heldout: int
    paraphrases: int
    bitext: int
    sts: int
    bytes: int
    mean_words: float


@dataclasses.dataclass(frozen=True)
class Truth:
    """The truth about one article URL: one line of truth.jsonl.

    Attributes:
      event: None for junk and evergreen pieces.
      kind: news, evergreen, syndicated or junk:<which>.
      near_duplicate_group: shared by near-duplicates, None if there are none.
      byline_date: UTC day, even if the page does not show it.
      author: None if the page names none.
    """

    url: str
    publisher: str
    title: str
    event: str | None
    topic: str | None
    kind: str
    near_duplicate_group: str | None
    language: str
    byline_date: str | None
    author: str | None


def generate_newsroom(output: str, options: NewsroomOptions) -> NewsroomSummary:
    """Generates a newsroom; equal options give byte-identical files.

    Args:
      output: folder for ``site/``, ``seeds.txt``, ``truth.jsonl``, ``names.tsv`` (kind, name, a form of it in
        Russian), ``bitext.tsv``, ``heldout.jsonl``, ``paraphrases.jsonl`` and ``sts.tsv``. Files of an earlier newsroom
        are replaced.
      options: seed and scale.

    Returns:
      Counts of what was written.

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
    with SiteWriter(os.path.join(output, "site")) as writer:
        for site in sites:
            for resource in site.resources():
                writer.add(resource)
    truth = [*map(_story_truth, stories), *map(_junk_truth, junk)]
    # Last in every file: what is generated for the other languages does not depend on those without a region.
    truth.sort(key=lambda line: line.language in ABROAD)
    _write_json(os.path.join(output, "truth.jsonl"), truth)
    _write_table(os.path.join(output, "names.tsv"), name_forms(world))
    held_out = sets.held_out_events(world, options)
    words = sum(len(" ".join(story.sentences).split()) for story in stories)
    summary = NewsroomSummary(
        articles=len(truth),
        by_kind=_counts(line.kind for line in truth),
        by_language=_counts(line.language for line in truth),
        events=len(desk.events),
        hubs=sum(site.hubs for site in sites),
        feeds=sum(site.feeds for site in sites),
        images=sum(site.images for site in sites),
        heldout=_write_json(os.path.join(output, "heldout.jsonl"), sets.held_out_articles(world, options, held_out)),
        paraphrases=_write_json(os.path.join(output, "paraphrases.jsonl"), sets.paraphrases(world, options, held_out)),
        bitext=_write_table(os.path.join(output, "bitext.tsv"), sets.bitext(world, options, desk.events)),
        sts=_write_table(os.path.join(output, "sts.tsv"), sets.graded_pairs(world, options, held_out)),
        bytes=sum(entry.stat().st_size for entry in os.scandir(os.path.join(output, "site"))),
        mean_words=round(words / len(stories), 1),
    )
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
    events = sets.held_out_events(world, options)
    return _write_json(path, sets.articles_across_languages(world, options, events))


def _story_truth(story: Story) -> Truth:
    return Truth(
        url=story.url,
        publisher=f"{story.publisher.slug}.example",
        title=story.title,
        event=story.event.id if story.event else None,
        topic=story.topic,
        kind=story.kind,
        near_duplicate_group=story.group or None,
        language=story.publisher.language,
        byline_date=story.published.date().isoformat(),
        author=story.author,
    )


def _junk_truth(page: JunkPage) -> Truth:
    publisher, kind = page.publisher, f"junk:{page.kind.value}"
    site = f"{publisher.slug}.example"
    return Truth(page.url, site, page.title, None, None, kind, None, publisher.language, None, None)


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(collections.Counter(values).items()))


def _write_json(path: str, records: Iterable[Truth | sets.HeldOut]) -> int:
    return write_lines(path, (json.dumps(dataclasses.asdict(record), ensure_ascii=False) for record in records))


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
    found: dict[str, object] = (
        {**write_mldoc(options.output, options)}
        if options.format == "mldoc"
        else dataclasses.asdict(generate_newsroom(options.output, options))
    )
    for name, value in found.items():
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
