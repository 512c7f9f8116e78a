"""``newsembed categories``: triplets of documents that share a category and one that does not.

Source: Okura, Tagami and Tajima 2016, section 3: (article, article of the same or a similar category, article of
another category). Anchor, positive and negative have one language. `newsembed examples` reads this output
like that of `newsembed triplets`.
"""

import dataclasses
import datetime
import functools
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from ...errors import InputError, require_option
from ...formats.command_line import option
from ...formats.parquet import read_records, read_stream, shard_paths
from ...formats.records import Rejection, TopicLabels, Triplet
from ..arrays import doc_id_of
from ..jobs import InputSpec, Job, JobRun
from ..lookup import open_lookup, write_part
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from ..texts import UNDETERMINED
from ..token_store import day_number
from ..triplets.candidates import SPACES
from ..triplets.events import STORIES, read_stories
from .drawing import NO_DAY, CategoryTable, Drawn, Member, Rules, draw, read_table, write_table

_MEMBERS: Final = "_members"
_TABLE: Final = "_table/categories.npz"
_SENT_TOPICS: Final = Rows("_sent_topics", np.dtype([("id", "<u8"), ("topic", "<i8")]))
_TOPICS: Final = "_topics"  # see `lookup`
# By --category: the input that it reads, None for the articles.
SOURCES: Final = {"keywords": None, "hub": None, "topics": "topics", "event": "triplets"}


@dataclasses.dataclass(frozen=True)
class CategoriesOptions:
    """Options of ``categories``."""

    category: str = option(
        "keywords",
        "keywords: as the pages state them; topics: positive labels of --topics; hub: feeds and sections "
        "that list the article; event: stories that --triplets mined",
    )
    triplets_per_anchor: int = option(1, "triplets of each article as the anchor")
    max_positive_days: int | None = option(None, "largest day gap between anchor and positive; any without it")
    max_negative_days: int | None = option(
        None, "largest day gap between anchor and negative: 0 takes negatives of the same day; any without"
    )
    cross_publisher: bool = option(False, "take positives only from other publishers")
    min_documents: int = option(2, "least number of articles of a category in a language")
    max_share: float = option(0.5, "largest share of the articles of a language that a category may have")
    seed: int = option(0, "another seed draws other triplets")

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="categories")
        require(self.category in SOURCES, "category", self.category, f"one of {', '.join(SOURCES)}")
        require(self.triplets_per_anchor >= 1, "triplets_per_anchor", self.triplets_per_anchor, "1 or more")
        for name in ("max_positive_days", "max_negative_days"):
            days = getattr(self, name)
            require(days is None or days >= 0, name, days, "0 or more")
        require(self.min_documents >= 2, "min_documents", self.min_documents, "2 or more")
        require(0 < self.max_share <= 1, "max_share", self.max_share, "a share above 0, at most 1")


@dataclasses.dataclass(frozen=True, slots=True)
class Categorised:
    """The columns of an :class:`~newsembed.formats.records.Article` that categories need."""

    doc_id: str
    publisher: str
    byline_date: datetime.date | None
    language: str
    keywords: tuple[str, ...]
    hubs: tuple[str, ...]


def run(job: JobRun) -> None:
    """Lists the categories of every article, then draws the triplets of each.

    A record is an article; it counts as written if it is the anchor of a triplet. Writes the stream ``triplets``.

    Raises:
      InputError: if the input that the category needs is not given.
    """
    options: CategoriesOptions = job.options
    needed = SOURCES[options.category]
    if needed is not None and not job.inputs[needed]:
        raise InputError(
            f"--category={options.category} reads what `newsembed {needed}` wrote",
            field=f"--{needed}",
            remedy=f"give the folder, or another category: {', '.join(SOURCES)}",
        )
    folder = job.input(needed) if needed is not None else ""
    paths = shard_paths(f"{job.input('articles')}/articles")
    list_members = functools.partial(_list_members, category=options.category, folder=folder)
    labels = shard_paths(f"{folder}/labels") if options.category == "topics" else []
    with job.graph("categories", max(len(paths), len(labels))):
        if options.category == "topics":
            send_topics, sent = functools.partial(_send_topics, shard_count=len(paths)), [("send topics", _SENT_TOPICS)]
            job.map_shards("send topics", send_topics, labels, accounted=False, listed=False)
            job.map_rows("topics", _write_topics, [None] * len(paths), sent, accounted=False, listed=False)
        job.map_shards("list", list_members, paths, accounted=False)
        job.map_shards("table", functools.partial(_tabulate, options=options), [None], accounted=False)
        job.map_shards("draw", functools.partial(_write_triplets, options=options), range(len(paths)))
    job.extra["categories"] = job.counts_of("table").tallies.get("categories", 0)


def categories_of(category: str, folder: str) -> Callable[[Categorised], tuple[str, ...]]:
    """The function that returns the names of the categories of an article.

    Args:
      category: see `CategoriesOptions`.
      folder: what ``triplets`` wrote, or the stream of topics by document; "" for the others.
    """
    if category == "keywords":
        return lambda article: tuple(" ".join(word.casefold().split()) for word in article.keywords)
    if category == "hub":
        return lambda article: article.hubs
    if category == "topics":
        topics = open_lookup(folder)
        return lambda article: tuple(str(row["topic"]) for row in topics.all_rows(int(article.doc_id, 16)))
    stories = read_stories(f"{folder}/{STORIES}")

    def story_of(article: Categorised) -> tuple[str, ...]:
        story = stories.of(int(article.doc_id, 16))
        return (doc_id_of(story),) if story else ()

    return story_of


def _send_topics(shard: Shard, path: str, shard_count: int) -> None:
    """Sends the topics of the documents of one shard of labels."""
    found = [
        (int(row.doc_id, 16), topic)
        for row in read_records(path, TopicLabels)
        for topic, label in zip(row.topic_ids, row.labels, strict=True)
        if label == 1
    ]
    rows = np.array(found, _SENT_TOPICS.dtype)
    send(shard, _SENT_TOPICS.stream, rows, shard_numbers(rows["id"], shard_count))


def _write_topics(shard: Shard, received: Received) -> None:
    write_part(shard, _TOPICS, received.rows[_SENT_TOPICS.stream])


def _list_members(shard: Shard, path: str, category: str, folder: str) -> None:
    folder = f"{shard.workspace}/{_TOPICS}" if category == "topics" else folder
    of_article, output = categories_of(category, folder), shard.records(_MEMBERS, Member)
    for article in read_records(path, Categorised):
        shard.read()
        shard.written()
        day = NO_DAY if article.byline_date is None else day_number(article.byline_date)
        names = tuple(sorted({name for name in of_article(article) if name}))
        output.write(Member(article.doc_id, article.publisher, article.language or UNDETERMINED, int(day), names))


def _tabulate(shard: Shard, _: None, options: CategoriesOptions) -> None:
    members: Iterator[Member] = read_stream(f"{shard.workspace}/{_MEMBERS}", Member)
    sizes = write_table(f"{shard.workspace}/{_TABLE}", members, options.min_documents, options.max_share)
    shard.tally("categories", sizes.kept)
    shard.tally("categories that are too rare", sizes.rare)
    shard.tally("categories that are too wide", sizes.wide)


def _write_triplets(shard: Shard, number: int, options: CategoriesOptions) -> None:
    table = read_table(f"{shard.workspace}/{_TABLE}")
    rules = Rules(options.seed, options.max_positive_days, options.max_negative_days, options.cross_publisher)
    output = shard.records("triplets", Triplet)
    path = shard_paths(f"{shard.workspace}/{_MEMBERS}")[number]
    for member in read_records(path, Member):
        shard.read()
        row = table.row(member.doc_id)
        if row < 0:
            detail = f"{len(member.categories)} categories, none of which separates" if member.categories else "none"
            shard.reject(member.doc_id, Rejection.NO_CATEGORY, detail)
            continue
        drawn = [draw(table, row, place, rules) for place in range(options.triplets_per_anchor)]
        # Several draws may find the same documents; what is not there for one is there for none.
        distinct = dict.fromkeys(found for found in drawn if isinstance(found, Drawn))
        if not distinct:
            shard.reject(member.doc_id, next(one for one in drawn if isinstance(one, Rejection)), f"day {member.day}")
            continue
        shard.written()
        shard.tally("triplets", len(distinct))
        for found in distinct:
            output.write(_triplet(table, row, found, member.language))


def _triplet(table: CategoryTable, row: int, drawn: Drawn, language: str) -> Triplet:
    def gap(other: int) -> int:
        days = (int(table.days[other]), int(table.days[row]))
        return 0 if NO_DAY in days else days[0] - days[1]

    nothing = (np.nan,) * len(SPACES)  # no space was searched
    anchor, positive, negative = (doc_id_of(int(table.ids[place])) for place in (row, *drawn))
    gaps = gap(drawn.positive), gap(drawn.negative)
    return Triplet(anchor, positive, negative, language, nothing, nothing, *gaps, np.nan)


JOB = Job(
    name="categories",
    summary="triplets of articles that share a category and one that does not",
    example="newsembed categories --articles work/clean --category=keywords --output work/categories",
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("topics", "folder that `newsembed topics` wrote, for --category=topics", required=False),
        InputSpec("triplets", "folder that `newsembed triplets` wrote, for --category=event", required=False),
    ),
    options=CategoriesOptions,
    run=run,
)
