"""``newsembed categories``: triplets of documents that share a category and one that does not.

Source: Okura, Tagami and Tajima 2016, section 3: (article, article of the same or a similar category, article of
another category). Anchor, positive and negative have one language. `newsembed examples` reads this output
like that of `newsembed triplets`.

Documents of one language in one category form a group, and so do all documents of a language that are in any category.
Both are sorted by day, so that "at most this many days apart" is a range of a group.
"""

import dataclasses
import datetime
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..formats.arrays import write_arrays
from ..formats.command_line import Options, option
from ..formats.parquet import read_batches, read_records, schema_of, shard_paths
from ..formats.records import Rejection, TopicLabels, Triplet
from .arrays import Array, doc_id_of, doc_numbers_of, find_one, map_arrays
from .graph import Received, Rows, send
from .jobs import ARTICLES, Job, JobRun, optional
from .shards import Shard, shard_numbers
from .texts import UNDETERMINED
from .token_store import day_number, open_lookup, write_part
from .triplets.rules import SPACES
from .triplets.table import STORIES, read_stories

NO_DAY: Final = np.iinfo(np.int32).min
_TRIES: Final = 32  # random tries before all candidates are looked at
_MEMBERS: Final = "_members"
_TABLE: Final = "_table/categories.npz"
_SENT_TOPICS: Final = Rows("_sent_topics", np.dtype([("id", "<u8"), ("topic", "<i8")]))
_TOPICS: Final = "_topics"  # see `token_store.Lookup`
# By --category: the input that it reads, None for the articles.
SOURCES: Final = {"keywords": None, "hub": None, "topics": "topics", "event": "triplets"}


@dataclasses.dataclass(frozen=True)
class CategoriesOptions(Options):
    """Options of ``categories``."""

    category: str = option(
        "keywords",
        "keywords: as the pages state them; topics: positive labels of --topics; hub: feeds and sections "
        "that list the article; event: stories that --triplets mined",
        choices=tuple(SOURCES),
    )
    triplets_per_anchor: int = option(1, "triplets of each article as the anchor", ge=1)
    max_negative_days: int | None = option(None, "most days from anchor to negative, 0: same day; default: any", ge=0)
    cross_publisher: bool = option(False, "take positives only from other publishers")
    min_documents: int = option(2, "least number of articles of a category in a language", ge=2)
    max_share: float = option(0.5, "largest share of the articles of a language that a category may have", gt=0, le=1)
    seed: int = option(0, "another seed draws other triplets")


@dataclasses.dataclass(frozen=True, slots=True)
class Categorised:
    """The columns of an :class:`~newsembed.formats.records.Article` that categories need."""

    doc_id: str
    publisher: str
    byline_date: datetime.date | None
    language: str
    keywords: tuple[str, ...]
    hubs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A document as pairing by category sees it.

    Attributes:
      doc_id: see ``Article``.
      publisher: see ``Article``.
      language: BCP-47 tag, "und" if unknown.
      day: days since 1970-01-01, `NO_DAY` if unknown.
      categories: names of its categories, distinct and sorted.
    """

    doc_id: str
    publisher: str
    language: str
    day: int
    categories: tuple[str, ...]


def run(job: JobRun) -> None:
    """Lists the categories of every article, then draws the triplets of each.

    A record is an article; it counts as written if it is the anchor of a triplet. Writes the stream ``triplets``.

    Raises:
      InputError: if the input that the category needs is not given.
    """
    options: CategoriesOptions = job.options
    needed = SOURCES[options.category]
    if needed is not None and not job.inputs[needed]:
        problem = f"--category={options.category} reads what `newsembed {needed}` wrote"
        remedy = f"give the folder, or another category: {', '.join(SOURCES)}"
        raise InputError(problem, field=f"--{needed}", remedy=remedy)
    folder = job.input(needed) if needed is not None else ""
    paths = job.shards("articles")
    labels = shard_paths(f"{folder}/labels") if options.category == "topics" else []
    with job.graph(max(len(paths), len(labels))):
        if labels:
            sent = [("send topics", _SENT_TOPICS)]
            job.map_shards("send topics", _send_topics, labels, shard_count=len(paths), accounted=False)
            job.map_rows("topics", _write_topics, [None] * len(paths), sent, accounted=False)
            folder = f"{job.workspace}/{_TOPICS}"
        job.map_shards("list", _list_members, paths, category=options.category, folder=folder, accounted=False)
        job.map_shards("table", _tabulate, [None], options=options, accounted=False)
        job.map_shards("draw", _write_triplets, [None] * len(paths), options=options)
    job.extra["categories"] = job.counts_of("table").tallies.get("categories", 0)


def _categories_of(category: str, folder: str) -> Callable[[Categorised], Sequence[str]]:
    """Returns the function that returns the names of the categories of an article.

    Args:
      category: see `CategoriesOptions`.
      folder: what ``triplets`` wrote, or the stream of topics by document; "" for the others.
    """
    if category == "keywords":
        return lambda article: [" ".join(word.casefold().split()) for word in article.keywords]
    if category == "hub":
        return lambda article: article.hubs
    if category == "topics":
        topics = open_lookup(folder)
        return lambda article: [str(row["topic"]) for row in topics.all_rows(int(article.doc_id, 16))]
    stories = read_stories(f"{folder}/{STORIES}")
    return lambda article: [doc_id_of(story)] if (story := stories.of(int(article.doc_id, 16))) else []


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
    of_article, output = _categories_of(category, folder), shard.records(_MEMBERS, Member)
    for article in read_records(path, Categorised):
        shard.read()
        shard.written()
        day = NO_DAY if article.byline_date is None else day_number(article.byline_date)
        names = tuple(sorted({name for name in of_article(article) if name}))
        output.write(Member(article.doc_id, article.publisher, article.language or UNDETERMINED, int(day), names))


class CategoryTable:
    """All documents with a category.

    Attributes:
      ids: uint64 ``[N]``, sorted.
      days: int32 ``[N]``.
      publishers: numbers, int64 ``[N]``.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.ids, self.days, self.publishers = arrays["ids"], arrays["days"], arrays["publishers"]
        self._arrays = arrays

    def row(self, doc_id: str) -> int:
        """The row of a document, -1 if it is in no category."""
        return find_one(self.ids, int(doc_id, 16))

    def _list(self, name: str, number: int) -> Array:
        starts = self._arrays[f"{name}_starts"]
        return self._arrays[name][starts[number] : starts[number + 1]]

    def groups(self, row: int) -> Array:
        """The groups of a document, sorted; a group is a category in one language."""
        return self._list("groups", row)

    def members(self, group: int) -> Array:
        """The rows of a group by day."""
        return self._list("members", group)

    def pool(self, row: int) -> Array:
        """The rows of all documents of the language of a document, by day."""
        return self._list("pools", int(self._arrays["languages"][row]))

    def near(self, rows: Array, row: int, days: int | None) -> Array:
        """Those of rows, which are sorted by day, that are at most ``days`` from a document; all for ``None``."""
        if days is None:
            return rows
        day = int(self.days[row])
        if day == NO_DAY:
            return rows[:0]
        of_rows = self.days[rows]
        return rows[np.searchsorted(of_rows, day - days) : np.searchsorted(of_rows, day + days, side="right")]


def _tabulate(shard: Shard, _: Any, options: CategoriesOptions) -> None:
    table, members = f"{shard.workspace}/{_TABLE}", f"{shard.workspace}/{_MEMBERS}"
    sizes = write_table(table, members, options.min_documents, options.max_share)
    for name, size in zip(("", " that are too rare", " that are too wide"), sizes, strict=True):
        shard.tally(f"categories{name}", size)


def write_table(path: str, members: str, least: int, max_share: float) -> tuple[int, int, int]:
    """Writes the table of all documents that stay in a group.

    Args:
      path: of the npz file.
      members: folder of the stream of :class:`Member`.
      least: documents of a group.
      max_share: of the documents with a category of a language that a group may have.

    Returns:
      Numbers of groups: those of the table, with fewer documents than asked, and with a larger share than asked.
    """
    ids, days, sizes, publishers, languages, names = _read_members(members)
    row_of = np.repeat(np.arange(len(ids)), sizes)
    width = int(names.max(initial=0)) + 1
    pairs, group_of = np.unique(languages[row_of] * width + names, return_inverse=True)
    counts, of_language = np.bincount(group_of), np.bincount(languages[sizes > 0])
    rare = counts < least
    wide = (counts > max_share * of_language[pairs // width]) & ~rare
    is_kept = ~rare & ~wide
    row_of, group_of = row_of[is_kept[group_of]], (np.cumsum(is_kept) - 1)[group_of[is_kept[group_of]]]
    order = np.unique(row_of)  # documents with a group that is kept, by id
    order = order[np.argsort(ids[order], kind="stable")]
    place = np.zeros(len(ids), np.int64)
    place[order] = np.arange(len(order))
    by_row = np.lexsort((group_of, place[row_of]))
    rows, group_of, days, languages = place[row_of][by_row], group_of[by_row], days[order], languages[order]
    arrays = {
        "ids": ids[order],
        "days": days,
        "publishers": publishers[order],
        "languages": languages,
        # Row r has groups[groups_starts[r] : groups_starts[r + 1]]; likewise the rows of groups and of languages.
        "groups": group_of,
        "groups_starts": _starts(rows, len(order)),
        "members": rows[np.lexsort((rows, days[rows], group_of))],
        "members_starts": _starts(group_of, 0),
        "pools": np.lexsort((np.arange(len(order)), days, languages)),
        "pools_starts": _starts(languages, 0),
    }
    write_arrays(path, arrays)
    return int(is_kept.sum()), int(rare.sum()), int(wide.sum())


def _read_members(folder: str) -> tuple[Array, ...]:
    """Returns ids, days, numbers of categories, publishers and languages of all members, and all their categories.

    Names are numbered in their order.
    """
    batches = (batch for path in shard_paths(folder) for batch in read_batches(path))
    table = pa.Table.from_batches(batches, schema_of(Member)).combine_chunks()
    lists = table["categories"].combine_chunks()
    texts = table["publisher"], table["language"], lists.flatten()
    numbers = (pc.rank(text, tiebreaker="dense").to_numpy().astype(np.int64) - 1 for text in texts)
    return doc_numbers_of(table["doc_id"]), table["day"].to_numpy(), lists.value_lengths().to_numpy(), *numbers


def _starts(numbers: Array, lists: int) -> Array:
    """Returns where the list of each number starts, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(numbers, minlength=lists))])


@functools.lru_cache(maxsize=2)
def read_table(path: str) -> CategoryTable:
    """Maps what `write_table` wrote, once per process."""
    return CategoryTable(map_arrays(path))


class Drawn(NamedTuple):
    """The positive and the negative of a triplet, as rows of the table."""

    positive: int
    negative: int


def draw(table: CategoryTable, row: int, number: int, options: CategoriesOptions) -> Drawn | Rejection:
    """Draws a positive and a negative of an anchor, or says which of them does not exist.

    The group of the positive is drawn among those of the anchor in which there is one, each with the same probability.
    The draw depends on the seed, the document id and ``number`` alone.

    Args:
      table: all documents.
      row: of the anchor.
      number: of the triplet of this anchor, from 0.
      options: of the job.
    """
    key = f"{options.seed}\0{int(table.ids[row])}\0{number}".encode()
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))
    groups, publishers = table.groups(row), table.publishers
    excluded = publishers[row] if options.cross_publisher else None
    for group in rng.permutation(groups).tolist():
        positive = _draw(rng, table.members(group), lambda other: other != row and publishers[other] != excluded)
        if positive is not None:
            break
    else:
        return Rejection.NO_POSITIVE
    near = table.near(table.pool(row), row, options.max_negative_days)
    negative = _draw(rng, near, lambda other: not np.isin(groups, table.groups(other), assume_unique=True).any())
    return Rejection.NO_NEGATIVE if negative is None else Drawn(positive, negative)


def _draw(rng: np.random.Generator, rows: Array, accepts: Callable[[int], bool]) -> int | None:
    """One of the accepted rows, each with the same probability; ``None`` if there is none."""
    if not len(rows):
        return None
    for place in rng.integers(0, len(rows), _TRIES).tolist():
        if accepts(int(rows[place])):
            return int(rows[place])
    accepted = [row for row in rows.tolist() if accepts(row)]
    return int(accepted[rng.integers(0, len(accepted))]) if accepted else None


def _write_triplets(shard: Shard, _: Any, options: CategoriesOptions) -> None:
    table = read_table(f"{shard.workspace}/{_TABLE}")
    output = shard.records("triplets", Triplet)
    for member in read_records(shard.path(_MEMBERS, "parquet"), Member):
        shard.read()
        row = table.row(member.doc_id)
        if row < 0:
            missing = f"it has no {options.category}; another --category: {', '.join(SOURCES)}"
            detail = f"{len(member.categories)} categories, none of which separates" if member.categories else missing
            shard.reject(member.doc_id, Rejection.NO_CATEGORY, detail)
            continue
        # Several draws may find the same documents; what is not there for one is there for none.
        drawn = dict.fromkeys(draw(table, row, place, options) for place in range(options.triplets_per_anchor))
        distinct = [found for found in drawn if isinstance(found, Drawn)]
        if not distinct:
            shard.reject(member.doc_id, next(one for one in drawn if isinstance(one, Rejection)), f"day {member.day}")
            continue
        shard.written()
        shard.tally("triplets", len(distinct))
        for found in distinct:
            output.write(_triplet(table, row, found, member.language))


def _triplet(table: CategoryTable, row: int, drawn: Drawn, language: str) -> Triplet:
    nothing = (np.nan,) * len(SPACES)  # no space was searched
    anchor, positive, negative = (doc_id_of(int(table.ids[place])) for place in (row, *drawn))
    days = [int(table.days[place]) for place in (row, *drawn)]
    near, far = (0 if NO_DAY in (days[0], day) else day - days[0] for day in days[1:])
    return Triplet(anchor, positive, negative, language, nothing, nothing, near, far, np.nan)


JOB = Job(
    name="categories",
    example="newsembed categories --articles work/clean --category=keywords --output work/categories",
    inputs=(
        ARTICLES,
        optional("topics", "folder that `newsembed topics` wrote, for --category=topics"),
        optional("triplets", "folder that `newsembed triplets` wrote, for --category=event"),
    ),
    options=CategoriesOptions,
    run=run,
)
