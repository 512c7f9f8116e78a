"""Second phase of ``extract``: joins link texts, hubs and image hashes to their articles.

Posts are kept if their article is there. Only ids, link texts and hashes are shuffled. Each article shard is then read
again and written with its evidence.
"""

import bisect
import dataclasses
import datetime
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from ...formats.parquet import read_records
from ...formats.records import Article, Hub, Post, Rejection
from ..shards import Shard, shard_of
from .read import FeedStatement, ImageHash, Link

MAX_ANCHOR_TEXTS = 20
_MAX_EVIDENCE = {"anchor": 2 * MAX_ANCHOR_TEXTS, "day": 1, "author": 1, "hub": 1_000}  # per article
_POST = "post"
DERIVED = "feed:"  # URL scheme of hubs that are derived from the feeds in pre-extracted rows

Evidence = tuple[str, Any]


@dataclasses.dataclass
class JoinEvidence(beam.PTransform):
    """Transforms shard indexes to (shard of the article, (doc_id, kind, rank, value)), one for each piece of evidence.

    Attributes:
      workspace: the job's temporary folder.
      groups: the shards of the first phase that each shard of articles is made of.
      with_images: whether the input may hold images; a table of articles holds only their URLs.
    """

    workspace: str
    groups: Sequence[range]
    with_images: bool

    def __post_init__(self) -> None:
        super().__init__(label="JoinEvidence")

    def expand(self, indexes: beam.PCollection) -> beam.PCollection:
        """Applies the transform to (shard index, shard count) pairs of the first phase."""
        keyed = (self.workspace, self.groups)
        by_id = indexes | "ReadById" >> beam.FlatMap(_keyed_by_id, *keyed) | "GroupById" >> beam.GroupByKey()
        found = by_id | beam.FlatMap(_join_id)
        if not self.with_images:
            return found
        by_image = (
            indexes | "ReadByImage" >> beam.FlatMap(_keyed_by_image, *keyed) | "GroupByImage" >> beam.GroupByKey()
        )
        return (found, by_image | beam.FlatMap(_join_image)) | beam.Flatten()


def _stream(workspace: str, stream: str, index_of: tuple[int, int], record_type: type) -> Iterator[Any]:
    index, count = index_of
    return read_records(f"{workspace}/{stream}/part-{index:05d}-of-{count:05d}.parquet", record_type)


def _streams(workspace: str, stream: str, places: Iterable[tuple[int, int]], record_type: type) -> Iterator[Any]:
    for index_of in places:
        yield from _stream(workspace, stream, index_of, record_type)


def _shard_of_slice(index_of: tuple[int, int], groups: Sequence[range]) -> int:
    return bisect.bisect_right(groups, index_of[0], key=lambda group: group.start) - 1


def _keyed_by_id(index_of: tuple[int, int], workspace: str, groups: Sequence[range]) -> Iterator[tuple[str, Evidence]]:
    shard = _shard_of_slice(index_of, groups)
    for article in _stream(workspace, "_articles", index_of, Article):
        yield article.doc_id, ("article", shard)
    for link in _stream(workspace, "_links", index_of, Link):
        yield link.target, ("anchor", link.text)
    for hub in _stream(workspace, "_hubs", index_of, Hub):
        for member in hub.doc_ids:
            yield member, ("hub", hub.hub_id)
    for target in sorted({post.doc_id for post in _stream(workspace, "_posts", index_of, Post)}):
        yield target, (_POST, shard)
    for stated in _stream(workspace, "_statements", index_of, FeedStatement):
        if stated.byline_date:
            yield stated.target, ("day", stated.byline_date.isoformat())
        if stated.authors:
            yield stated.target, ("author", "; ".join(stated.authors))


def _keyed_by_image(
    index_of: tuple[int, int], workspace: str, groups: Sequence[range]
) -> Iterator[tuple[str, Evidence]]:
    shard = _shard_of_slice(index_of, groups)
    for article in _stream(workspace, "_articles", index_of, Article):
        if article.image_url:
            yield _short(article.image_url), ("article", (shard, article.doc_id))
    for image in _stream(workspace, "_images", index_of, ImageHash):
        yield _short(image.url), ("hash", image.image_hash.hex())


def _short(url: str) -> str:
    """The digest of a URL: the local runner holds every key several times, and URLs of images are long."""
    return hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _join_id(grouped: tuple[str, Iterable[Evidence]]) -> Iterator[tuple[int, tuple[str, str, int, str]]]:
    """Yields (shard, (doc_id, kind, rank, value)): the most frequent link texts first, and the earliest day.

    The shards of posts get the id of an article that is there.
    """
    doc_id, found = grouped
    counted = Counter(found)
    shards = sorted(value for kind, value in counted if kind == "article")
    for kind, most in _MAX_EVIDENCE.items() if shards else ():
        values = ((-times, value) for (known, value), times in counted.items() if known == kind)
        chosen = sorted(values) if kind in ("anchor", "author") else sorted((0, value) for _, value in values)
        for rank, (_, value) in enumerate(chosen[:most]):
            for shard in shards:
                yield shard, (doc_id, kind, rank, value)
    for shard in sorted(value for kind, value in counted if kind == _POST and shards):
        yield shard, (doc_id, _POST, 0, "")


def _join_image(grouped: tuple[str, Iterable[Evidence]]) -> Iterator[tuple[int, tuple[str, str, int, str]]]:
    evidence = sorted(grouped[1])
    hashes = [value for kind, value in evidence if kind == "hash"]
    for kind, value in evidence:
        if kind == "article" and hashes:
            yield value[0], (value[1], "image", 0, hashes[0])


def write_joined(
    shard: Shard, evidence: Sequence[tuple[str, str, int, str]], groups: Sequence[range], *, with_posts: bool = False
) -> None:
    """Writes one shard of articles with their evidence, and counts its hubs and images.

    Args:
      shard: shard of this phase.
      evidence: (doc_id, kind, rank, value) for articles of the shard, sorted.
      groups: the shards of the first phase that each shard of this phase is made of.
      with_posts: whether there is a stream of posts; it gets those of the shard whose article is there.
    """
    places = [(index, groups[-1].stop) for index in groups[shard.index]]
    found: dict[str, dict[str, list[str]]] = {}
    for doc_id, kind, _, value in evidence:
        found.setdefault(doc_id, {}).setdefault(kind, []).append(value)
    output = shard.records("articles", Article)
    for article in _streams(shard.workspace, "_articles", places, Article):
        shard.read()
        output.write(_with_evidence(article, found.get(article.doc_id, {})))
        shard.written()
    others = sum(not hub.url.startswith(DERIVED) for hub in _streams(shard.workspace, "_hubs", places, Hub))
    others += sum(1 for _ in _streams(shard.workspace, "_images", places, ImageHash))
    shard.read(others)
    shard.written(others)
    if with_posts:
        _write_posts(shard, places, {doc_id for doc_id, kinds in found.items() if _POST in kinds})


def _write_posts(shard: Shard, places: Sequence[tuple[int, int]], there: Collection[str]) -> None:
    """Writes the posts of one shard whose article is there, by its id."""
    output = shard.records("posts", Post)
    for post in _streams(shard.workspace, "_posts", places, Post):
        shard.read()
        if post.doc_id in there:
            output.write(post)
            shard.written()
        else:
            shard.reject(post.url, Rejection.NO_ARTICLE, "no article has this URL", post.text)


def _with_evidence(article: Article, found: dict[str, list[str]]) -> Article:
    title = article.title.casefold()
    texts = [text for text in found.get("anchor", []) if text.casefold() != title]
    images = found.get("image", [])
    return dataclasses.replace(
        _with_feed(article, found),
        anchor_texts=(*article.anchor_texts, *texts)[:MAX_ANCHOR_TEXTS],
        hubs=tuple(found.get("hub", [])),
        image_hash=bytes.fromhex(images[0]) if images else None,
    )


def _with_feed(article: Article, found: dict[str, list[str]]) -> Article:
    """Takes date and authors from feeds, if the page does not state them or the date is only a guess from its text."""
    if "day" in found and article.date_source in ("", "text"):
        article = dataclasses.replace(
            article,
            byline_date=datetime.date.fromisoformat(found["day"][0]),
            date_source="feed",
            sources=_restated(article.sources, "byline_date"),
        )
    if "author" in found and not article.authors:
        article = dataclasses.replace(
            article, authors=tuple(found["author"][0].split("; ")), sources=_restated(article.sources, "authors")
        )
    return article


def _restated(sources: tuple[str, ...], field: str) -> tuple[str, ...]:
    return tuple(sorted([*(source for source in sources if not source.startswith(f"{field}: ")), f"{field}: feed"]))


@dataclasses.dataclass
class MergeHubs(beam.PTransform):
    """Transforms shard indexes to (hub shard, fields of a Hub), merging captures of a hub and dropping unknown members.

    Attributes:
      workspace: the job's temporary folder.
      hub_shards: number of shards of hubs.
    """

    workspace: str
    hub_shards: int

    def __post_init__(self) -> None:
        super().__init__(label="MergeHubs")

    def expand(self, indexes: beam.PCollection) -> beam.PCollection:
        """Applies the transform to (shard index, shard count) pairs of the first phase."""
        members = (
            indexes
            | "ReadMembers" >> beam.FlatMap(_members, self.workspace)
            | "GroupMembers" >> beam.GroupByKey()
            | beam.FlatMap(_existing)
        )
        heads = indexes | "ReadHeads" >> beam.FlatMap(_heads, self.workspace)
        joined = {"members": members, "heads": heads} | beam.CoGroupByKey()
        return joined | beam.FlatMap(_merge, self.hub_shards)


def _members(index_of: tuple[int, int], workspace: str) -> Iterator[tuple[str, str]]:
    for article in _stream(workspace, "_articles", index_of, Article):
        yield article.doc_id, ""
    for hub in _stream(workspace, "_hubs", index_of, Hub):
        for member in hub.doc_ids:
            yield member, hub.hub_id


def _existing(grouped: tuple[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    doc_id, hubs = grouped[0], set(grouped[1])
    if "" in hubs:
        for hub_id in hubs - {""}:
            yield hub_id, doc_id


def _heads(index_of: tuple[int, int], workspace: str) -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    for hub in _stream(workspace, "_hubs", index_of, Hub):
        yield hub.hub_id, (hub.url, hub.publisher, hub.title, hub.kind)


def _merge(grouped: tuple[str, dict[str, Iterable[Any]]], hub_shards: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    hub_id, parts = grouped
    members = tuple(sorted(set(parts["members"])))
    if members:
        yield shard_of(hub_id, hub_shards), (hub_id, *min(parts["heads"]), members)


def write_hubs(shard: Shard, hubs: Sequence[tuple[Any, ...]]) -> None:
    """Writes one shard of merged hubs."""
    output = shard.records("hubs", Hub)
    for fields in hubs:
        shard.read()
        output.write(Hub(*fields))
        shard.written()
