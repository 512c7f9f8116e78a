"""Which articles may contain translations of each other: two languages, near days, and common entities or an image."""

import dataclasses
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats import files, parquet
from ...formats.arrays import read_npy
from ...formats.records import Failure, Rejection, Space, Vector
from ..arrays import Array, write_array
from ..neighbors.index import build_index
from ..shards import Shard
from ..shuffle import Received, Rows, send
from ..texts import language_key
from .options import BitextOptions

LANGUAGE: Final = "S16"
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_COUNTS: Final = np.dtype([("block", np.int32), ("language", LANGUAGE), ("count", np.int64)])
LINKS: Final = np.dtype([("source", np.uint64), ("target", np.uint64)])
_WANTED: Final = np.dtype([("doc_id", np.uint64), ("task", np.int32)])
_SPACES: Final = (Space.ENTITY, Space.IMAGE)
_IMAGE_BITS: Final = 64


@dataclasses.dataclass(frozen=True, slots=True)
class ArticleFacts:
    """The columns of an article that decide whether it takes part."""

    doc_id: str
    title: str
    language: str
    byline_date: datetime.date | None


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What one worker compares: the articles of one language in a block of days with those of another near them.

    Attributes:
      block: number of the block of days.
      source: language of the source side, whose articles are of the block.
      target: language of the target side, whose articles may be ``window_days`` outside of it.
    """

    block: int
    source: str
    target: str

    @property
    def languages(self) -> str:
        """``"<source>-<target>"``."""
        return f"{self.source}-{self.target}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The tasks of a job.

    Attributes:
      tasks: all of them; their place is their number.
      blocks: the blocks that occur in tasks, ascending.
      shard_count: number of shards of articles.
      is_linked: whether only articles with similar vectors are compared.
      dimensions: of entity vectors; 0 if there are none.
    """

    tasks: tuple[Task, ...]
    blocks: tuple[int, ...]
    shard_count: int
    is_linked: bool
    dimensions: int

    def of_block(self, block: int) -> Iterator[tuple[int, Task]]:
        """Yields the numbers and tasks of one block."""
        return ((number, task) for number, task in enumerate(self.tasks) if task.block == block)


def main_language(tag: str) -> str | None:
    """Returns the language of a tag without script and region, in lower case; ``None`` if it is not a BCP-47 tag.

    >>> main_language("pt-BR"), main_language("x y")
    ('pt', None)
    """
    key = language_key(tag)
    return None if key is None else key.partition("-")[0].lower()


def day_of(date: datetime.date) -> int:
    """Returns the number of a day since 1970-01-01."""
    return date.toordinal() - _EPOCH


def takes_part(article: Any, options: BitextOptions) -> bool:
    """Whether an article has a date and one of the languages; :func:`count_documents` counts those that have not."""
    language = main_language(article.language) if article.language else None
    is_wanted = not options.languages or language in {main_language(tag) for tag in options.languages}
    return article.byline_date is not None and language is not None and is_wanted


def count_documents(options: BitextOptions, shard: Shard, path: str) -> None:
    """Counts the articles that take part, by block of days and language."""
    counts: dict[tuple[int, bytes], int] = {}
    for article in parquet.read_records(path, ArticleFacts):
        shard.read()
        language = main_language(article.language)
        if language is None:
            problem = f"language {article.language!r} is not a BCP-47 tag"
            shard.fail(article.doc_id, Failure.BROKEN_RECORD, problem, article.title)
        elif not article.language:
            shard.reject(article.doc_id, Rejection.UNKNOWN_LANGUAGE, "no language", article.title)
        elif article.byline_date is None:
            shard.reject(article.doc_id, Rejection.NO_BYLINE_DATE, "", article.title)
        elif not takes_part(article, options):
            shard.reject(article.doc_id, Rejection.OTHER_LANGUAGE, language, article.title)
        else:
            shard.written()
            key = day_of(article.byline_date) // options.block_days, language.encode()
            counts[key] = counts.get(key, 0) + 1
    rows = [(*key, count) for key, count in sorted(counts.items())]
    write_array(shard.path("_counts", "npy"), np.array(rows, _COUNTS))


def plan_tasks(workspace: str, options: BitextOptions) -> tuple[Task, ...]:
    """Returns the tasks for the articles that :func:`count_documents` counted, by pair of languages, then block."""
    present: dict[str, set[int]] = {}
    for path in files.list_files(f"{workspace}/_counts/part-*.npy"):
        with files.open_read(path) as source:
            for block, language, _ in read_npy(source, path).tolist():
                present.setdefault(language.decode(), set()).add(block)
    margin = -(-options.window_days // options.block_days)
    return tuple(
        Task(block, source, target)
        for source, target in language_pairs(sorted(present), options.pivot)
        for block in sorted(present[source])
        if not present[target].isdisjoint(range(block - margin, block + margin + 1))
    )


def language_pairs(languages: Sequence[str], pivot: str) -> list[tuple[str, str]]:
    """Returns the (source, target) pairs of languages; the pivot, or else the later name, is the target.

    >>> language_pairs(["de", "en", "fr"], "en"), language_pairs(["de", "en"], "")
    ([('de', 'en'), ('fr', 'en')], [('de', 'en')])
    """
    if pivot:
        target = main_language(pivot) or pivot
        return [(language, target) for language in languages if language != target and target in languages]
    return list(itertools.combinations(languages, 2))


def vector_paths(folder: str, shard_count: int) -> list[tuple[str, ...]]:
    """Returns the shards of entity and image vectors that belong to each shard of articles.

    Raises:
      InputError: if the vectors have another number of shards than the articles.
    """
    paths = [parquet.shard_paths(f"{folder}/{space.value}") for space in _SPACES]
    if any(len(found) != shard_count for found in paths):
        problem = f"got {len(paths[0])} shards of vectors for {shard_count} shards of articles"
        remedy = "give the vectors that `newsembed vectors` made of these articles"
        raise InputError(problem, path=folder, field="--vectors", remedy=remedy)
    return list(zip(*paths, strict=True))


def entity_dimensions(paths: Sequence[tuple[str, ...]]) -> int:
    """Returns the size of entity vectors, 0 if there are none."""
    for entity, _ in paths:
        for batch in parquet.read_batches(entity, ["values"], rows=1):
            return len(batch.column("values")[0])
    return 0


def document_rows(plan: Plan) -> Rows:
    """Returns the articles that are sent to the blocks of their days."""
    return Rows("_documents", _row_type(plan))


def wanted_rows() -> Rows:
    """Returns the ids of linked articles, which are sent to the shards of the articles, each with its task."""
    return Rows("_wanted", _WANTED)


def _row_type(plan: Plan) -> np.dtype[Any]:
    """Articles with their vectors; zeros stand for none."""
    image = _IMAGE_BITS if plan.is_linked else 0
    vectors = [("entity", np.float32, (plan.dimensions,)), ("image", np.float32, (image,))]
    return np.dtype([("doc_id", np.uint64), ("day", np.int32), ("language", LANGUAGE), ("shard", np.int32), *vectors])


def send_documents(
    options: BitextOptions, plan: Plan, shard: Shard, payload: tuple[str, tuple[str, ...] | None]
) -> None:
    """Sends the articles of a shard, with their vectors, to all blocks that they may have to do with."""
    path, vectors = payload
    entities, images = ({}, {}) if vectors is None else (_read_vectors(one) for one in vectors)
    articles = [one for one in parquet.read_records(path, ArticleFacts) if takes_part(one, options)]
    rows = np.zeros(len(articles), _row_type(plan))
    for row, article in zip(rows, articles, strict=True):
        assert article.byline_date is not None
        row["doc_id"], row["day"] = int(article.doc_id, 16), day_of(article.byline_date)
        row["language"], row["shard"] = (main_language(article.language) or "").encode(), shard.index
        for name, found in (("entity", entities), ("image", images)):
            if (values := found.get(article.doc_id)) is not None:
                row[name] = values
    near = [_blocks_near(int(day), options) for day in rows["day"]]
    numbers = {block: number for number, block in enumerate(plan.blocks)}
    sent = [(row, numbers[block]) for row, blocks in enumerate(near) for block in blocks if block in numbers]
    chosen = np.array(sent, np.int64).reshape(-1, 2)
    send(shard, "_documents", rows[chosen[:, 0]], chosen[:, 1])


def _read_vectors(path: str) -> Mapping[str, tuple[float, ...]]:
    return {vector.doc_id: vector.values for vector in parquet.read_records(path, Vector)}


def _blocks_near(day: int, options: BitextOptions) -> range:
    first, last = ((day + gap) // options.block_days for gap in (-options.window_days, options.window_days))
    return range(first, last + 1)


def link_documents(options: BitextOptions, plan: Plan, shard: Shard, received: Received) -> None:
    """Writes the linked articles of every task of a block, and tells the shards of the articles."""
    rows, block = received.rows["_documents"], plan.blocks[shard.index]
    shards = dict(zip(rows["doc_id"].tolist(), rows["shard"].tolist(), strict=True))
    first = block * options.block_days
    wanted = [np.zeros(0, _WANTED)]
    for number, task in plan.of_block(block):
        is_here = (rows["day"] >= first) & (rows["day"] < first + options.block_days)
        sources = rows[(rows["language"] == task.source.encode()) & is_here]
        targets = rows[rows["language"] == task.target.encode()]
        if plan.is_linked:
            links = find_links(sources, targets, options)
            write_array(links_path(shard.workspace, number), links)
            doc_ids = [np.unique(links[side]) for side in ("source", "target")]
            shard.tally(f"linked_articles/{task.languages}", len(links))
        else:
            doc_ids = [np.unique(side["doc_id"]) for side in (sources, targets) if len(sources) and len(targets)]
        for found in doc_ids:
            of_task = np.zeros(len(found), _WANTED)
            of_task["doc_id"], of_task["task"] = found, number
            wanted.append(of_task)
    joined = np.concatenate(wanted)
    send(shard, "_wanted", joined, np.array([shards[doc_id] for doc_id in joined["doc_id"].tolist()], np.int64))


def links_path(workspace: str, task: int) -> str:
    """Returns the path of the linked articles of a task."""
    return f"{workspace}/_links/task-{task:06d}.npy"


def find_links(sources: Array, targets: Array, options: BitextOptions) -> Array:
    """Returns pairs of articles, at most ``window_days`` apart, that are near in a space, sorted, each once.

    Args:
      sources: rows of one language.
      targets: rows of the other.
      options: how many, how near.
    """
    found = [np.zeros((0, 2), np.uint64)]
    for space, least in (
        (Space.ENTITY, options.min_entity_similarity),
        (Space.IMAGE, options.min_image_similarity),
    ):
        left, right = (side[side[space.value].any(axis=1)] for side in (sources, targets))
        found += [_nearest(left, right, space, least, options), _nearest(right, left, space, least, options)[:, ::-1]]
    pairs = np.unique(np.concatenate(found), axis=0)
    links = np.zeros(len(pairs), LINKS)
    links["source"], links["target"] = pairs.T
    return links


def _nearest(queries: Array, others: Array, space: Space, least: float, options: BitextOptions) -> Array:
    """The ids of each query and its nearest others, uint64 ``[P, 2]``."""
    found = [np.zeros((0, 2), np.uint64)]
    for day in np.unique(queries["day"]):
        asked = queries[queries["day"] == day]
        near = others[np.abs(others["day"] - day) <= options.window_days]
        if not len(near):
            continue
        index = build_index(near[space.value], options.engine, options.exact_below, len(asked))
        hits, cosines = index.search(asked[space.value], options.candidates)
        places, slots = np.nonzero((hits >= 0) & (cosines >= least))
        found.append(np.stack([asked["doc_id"][places], near["doc_id"][hits[places, slots]]], 1))
    return np.concatenate(found)
