"""Writes a whole newsroom: the site, its seeds, the truth about its pages and the evaluation sets."""

import collections
import dataclasses
import json
import os
from collections.abc import Iterable, Sequence

from . import evaluation_sets as sets
from .articles import Desk, Story
from .junk import JunkPage, junk_pages
from .options import ABROAD, NewsroomOptions, NewsroomSummary
from .russian import name_forms
from .site import build_sites
from .store import SiteWriter, make_folder, write_lines
from .world import build_world


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
    make_folder(output)
    seeds = os.path.join(output, "seeds.txt")
    if os.path.exists(seeds):
        os.remove(seeds)
    world = build_world(options)
    desk = Desk(world, options)
    stories = [*desk.news(), *desk.evergreens(), *desk.abroad()]
    junk = junk_pages(options, stories)
    sites = build_sites(world, options, stories, junk)
    with SiteWriter(os.path.join(output, "site")) as writer:
        for site in sites:
            for resource in site.resources():
                writer.add(resource)
    truth = [*map(_story_truth, stories), *map(_junk_truth, junk)]
    # Last in every file: what is generated for the other languages does not depend on those without a region.
    truth.sort(key=lambda line: line.language in ABROAD)
    _write_json(output, "truth.jsonl", truth)
    _write_table(output, "names.tsv", name_forms(world))
    held_out = sets.held_out_events(world, options)
    summary = NewsroomSummary(
        articles=len(truth),
        by_kind=_counts(line.kind for line in truth),
        by_language=_counts(line.language for line in truth),
        events=len(desk.events),
        hubs=sum(site.hubs for site in sites),
        feeds=sum(site.feeds for site in sites),
        images=sum(site.images for site in sites),
        heldout=_write_json(output, "heldout.jsonl", sets.held_out_articles(world, options, held_out)),
        paraphrases=_write_json(output, "paraphrases.jsonl", sets.paraphrases(world, options, held_out)),
        bitext=_write_table(output, "bitext.tsv", sets.bitext(world, options, desk.events)),
        sts=_write_table(output, "sts.tsv", sets.graded_pairs(world, options, held_out)),
        bytes=sum(entry.stat().st_size for entry in os.scandir(os.path.join(output, "site"))),
        mean_words=_mean_words(stories),
    )
    # Written last: a folder with seeds.txt is complete.
    _write(output, "seeds.txt", (seed for site in sites for seed in site.seeds))
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
    return _write_json(*os.path.split(path), sets.articles_across_languages(world, options, events))


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
    publisher = page.publisher
    kind = f"junk:{page.kind.value}"
    return Truth(
        page.url, f"{publisher.slug}.example", page.title, None, None, kind, None, publisher.language, None, None
    )


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(collections.Counter(values).items()))


def _mean_words(stories: Sequence[Story]) -> float:
    return round(sum(len(" ".join(story.sentences).split()) for story in stories) / len(stories), 1)


def _write(output: str, name: str, lines: Iterable[str]) -> int:
    written = list(lines)
    with open(os.path.join(output, name), "w", encoding="utf-8", newline="\n") as file:
        write_lines(file, written)
    return len(written)


def _write_json(output: str, name: str, records: Iterable[Truth | sets.HeldOut]) -> int:
    return _write(output, name, (json.dumps(dataclasses.asdict(record), ensure_ascii=False) for record in records))


def _write_table(output: str, name: str, rows: Iterable[tuple[object, ...]]) -> int:
    return _write(output, name, ("\t".join(map(str, row)) for row in rows))
