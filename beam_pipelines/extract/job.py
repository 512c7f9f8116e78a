"""The ``extract`` job: reads slices of the input, then joins link texts, hubs and image hashes to their articles.

Posts are kept if their article is there. Only ids, link texts and hashes are shuffled. Each article shard is then read
again and written with its evidence.
"""

import bisect
import dataclasses
import datetime
import functools
import hashlib
import itertools
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import apache_beam as beam

from ...errors import InputError
from ...formats.command_line import Options, option
from ...formats.fields import chosen
from ...formats.parquet import read_records
from ...formats.records import Article, Hub, Post, Rejection, make_doc_id
from ...formats.urls import canonical_url, registered_domain
from ..graph import Graph
from ..jobs import Job, JobRun, input_digest, optional
from ..shards import Phase, Shard, group_by_shard, process_shards, shard_of
from .isolation import Limits
from .layout import letters_of
from .page import GUESSED_ORDER, MAX_LINKS
from .read import STREAMS, Alias, FeedStatement, ImageHash, Link, PageArticle, fields_of, read_slice
from .sources import groups_of, indexes_beside, is_path_list, row_slices, warc_slices

MAX_ANCHOR_TEXTS = 20
_MAX_EVIDENCE = {"anchor": 2 * MAX_ANCHOR_TEXTS, "day": 1, "author": 1, "hub": 1_000}  # per article
_DERIVED = "feed:"  # URL scheme of hubs that are derived from the feeds in pre-extracted rows
_MIN_TITLES = 3  # as many pages with different titles and one canonical URL are different articles
_MAX_TITLE = 100
_LEAST_HUB_SHARDS = 4
_ARTICLE_SHARDS_PER_HUB_SHARD = 8  # a worker holds the hubs of a shard, with the ids of the articles that they list

_Place = tuple[int, int]  # index and count of a shard of the first phase
_Evidence = tuple[str, str, int, str]  # doc_id, kind, rank, value


@dataclasses.dataclass(frozen=True)
class ExtractOptions(Options):
    """Limits for one page. The rules for articles are options of ``clean``."""

    page_seconds: float = option(20.0, "seconds for reading one page; beyond them it fails as timeout", ge=0.1)
    page_megabytes: int = option(1_024, "megabytes for reading one page; beyond them it fails as too_large", ge=64)
    max_links_per_page: int = option(
        MAX_LINKS,
        "different links taken from one page, from its start; the rest is counted as links_beyond_limit",
        ge=1,
    )
    warc_base: str = option(
        "",
        "prefix of relative paths in lists of WARC files, such as s3://commoncrawl/; default: the folder of the list",
    )
    fields: tuple[str, ...] = option(
        (),
        "a field of article files under its name there, such as title=headline; repeatable. Usual names are known",
        repeated=True,
        metavar="OURS=THEIRS",
    )


def run(job: JobRun) -> None:
    """Reads slices of the inputs, then joins the evidence that pages give for one another.

    A record is a captured response, a line or a row; it is written as an article, a hub, an image hash or a post.
    Streams: ``articles`` (with anchor texts, hubs and image hashes), ``hubs`` (captures of the same hub are merged)
    and, where ``--posts`` is given, ``posts`` (those whose article is there).

    Raises:
      InputError: if there is no input.
    """
    options: ExtractOptions = job.options
    pieces = [
        *warc_slices(job.inputs["warc"], options.warc_base, job.inputs["cdx"]),
        *row_slices(job.inputs["articles"], "articles"),
        *row_slices(job.inputs["posts"], "posts"),
    ]
    if not job.inputs["warc"] and not job.inputs["articles"]:
        raise InputError("no input", field="--warc, --articles", remedy="give WARC files, article files or both")
    limits = Limits(options.page_seconds, options.page_megabytes)
    read = partial(read_slice, limits=limits, max_links=options.max_links_per_page, names=chosen(options.fields))
    with job.graph(len(pieces)) as graph:
        job.map_shards("read", read, pieces)
        groups, places = groups_of(pieces), [(index, len(pieces)) for index in range(len(pieces))]
        # A table of articles holds only the URLs of images.
        with_posts, with_images = bool(job.inputs["posts"]), bool(job.inputs["warc"])
        joined, hubs = job.phase("join", len(groups)), job.phase("hubs", hub_shards(len(groups)), accounted=False)
        write = partial(write_joined, groups=groups, with_posts=with_posts)
        graph.add(joined, lambda: _join(graph, joined, places, groups, with_images) | process_shards(write, joined))
        graph.add(hubs, lambda: _merge(graph, hubs, places) | process_shards(write_hubs, hubs))


def hub_shards(article_shards: int) -> int:
    """Returns the number of shards of hubs.

    >>> hub_shards(32), hub_shards(33), hub_shards(800)
    (4, 5, 100)
    """
    return max(_LEAST_HUB_SHARDS, -(-article_shards // _ARTICLE_SHARDS_PER_HUB_SHARD))


def _stream(workspace: str, place: _Place, record_type: type) -> Iterator[Any]:
    index, count = place
    return read_records(f"{workspace}/{STREAMS[record_type]}/part-{index:05d}-of-{count:05d}.parquet", record_type)


def _join(
    graph: Graph, phase: Phase, places: list[_Place], groups: Sequence[range], with_images: bool
) -> beam.PCollection:
    """Returns (shard of the article, its pieces of evidence)."""
    read = graph.start("join", places)
    keyed = [("Id", _keyed_by_id, _join_id), ("Image", _keyed_by_image, _join_image)]
    found = [
        read
        | f"ReadBy{name}" >> beam.FlatMap(keys, phase.workspace, groups, uuid.uuid4().hex)
        | f"GroupBy{name}" >> beam.GroupByKey()
        | f"JoinBy{name}" >> beam.FlatMap(joined)
        for name, keys, joined in keyed[: 1 + with_images]
    ]
    return found | "Evidence" >> beam.Flatten() | "GroupEvidence" >> group_by_shard(len(groups))


def _shard_of_slice(place: _Place, groups: Sequence[range]) -> int:
    return bisect.bisect_right(groups, place[0], key=lambda group: group.start) - 1


@functools.lru_cache(maxsize=2)
def _aliases(workspace: str, count: int, _run: str) -> tuple[dict[str, str], frozenset[str]]:
    """Where the URLs of all slices lead, and the canonical URLs that many articles share, to which none leads.

    By doc_id; read once by each worker of a run.
    """
    found, titles = dict[str, str](), dict[str, dict[str, str]]()
    for index in range(count):
        for alias in _stream(workspace, (index, count), Alias):
            found[alias.source] = min(alias.target, found.get(alias.source, alias.target))
            if alias.title:
                titles.setdefault(alias.target, {})[alias.source] = alias.title[:_MAX_TITLE]
    shared = frozenset(target for target, known in titles.items() if len(set(known.values())) >= _MIN_TITLES)
    return {source: target for source, target in found.items() if target not in shared}, shared


def _ids_of(target: str, aliases: Mapping[str, str]) -> Iterator[str]:
    """The doc_id of a link, and those to which it leads."""
    seen = set[str]()
    while target and target not in seen:
        seen.add(target)
        yield target
        target = aliases.get(target, "")


def _keyed_by_id(
    place: _Place, workspace: str, groups: Sequence[range], run_id: str
) -> Iterator[tuple[str, tuple[str, Any]]]:
    shard, (aliases, _) = _shard_of_slice(place, groups), _aliases(workspace, place[1], run_id)
    for article in _stream(workspace, place, PageArticle):
        yield article.doc_id, ("article", shard)
        if article.page_url:  # its evidence is of use if the article's URL turns out to be that of many pages
            page_id = make_doc_id(canonical_url(article.page_url))
            yield page_id, ("page", shard)
            yield article.doc_id, ("title", f"{letters_of(article.title)[:_MAX_TITLE]} {page_id}")
    for target in sorted({post.doc_id for post in _stream(workspace, place, Post)}):
        yield target, ("post", shard)
    for target, found in _evidence(place, workspace):
        for doc_id in _ids_of(target, aliases):
            yield doc_id, found


def _evidence(place: _Place, workspace: str) -> Iterator[tuple[str, tuple[str, Any]]]:
    for link in _stream(workspace, place, Link):
        yield link.target, ("anchor", link.text)
    for hub in _stream(workspace, place, Hub):
        for member in hub.doc_ids:
            yield member, ("hub", hub.hub_id)
    for stated in _stream(workspace, place, FeedStatement):
        if stated.byline_date:
            yield stated.target, ("day", stated.byline_date.isoformat())
        if stated.authors:
            yield stated.target, ("author", "; ".join(stated.authors))


def _keyed_by_image(
    place: _Place, workspace: str, groups: Sequence[range], _run_id: str
) -> Iterator[tuple[str, tuple[str, Any]]]:
    shard = _shard_of_slice(place, groups)
    for article in _stream(workspace, place, PageArticle):
        if article.image_url:
            yield _short(canonical_url(article.image_url)), ("article", (shard, article.doc_id))
    for image in _stream(workspace, place, ImageHash):
        yield _short(image.url), ("hash", image.image_hash.hex())


def _short(url: str) -> str:
    """The digest of a URL: the local runner holds every key several times, and URLs of images are long."""
    return hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _join_id(grouped: tuple[str, Iterable[tuple[str, Any]]]) -> Iterator[tuple[int, _Evidence]]:
    """Yields (shard, evidence): the most frequent link texts first, and the earliest day.

    The shards of posts get the id of an article that is there.
    """
    doc_id, found = grouped
    counted = Counter(found)
    shards = sorted({value for kind, value in counted if kind in ("article", "page")})
    if not shards:
        return
    titles = dict(value.split() for kind, value in counted if kind == "title" and " " in value.strip())
    if len(titles) >= _MIN_TITLES and len(set(titles.values())) >= _MIN_TITLES:
        for shard in shards:
            yield shard, (doc_id, "many", 0, "")
    for kind, most in _MAX_EVIDENCE.items():
        by_frequency = kind in ("anchor", "author")
        chosen = sorted((-times * by_frequency, value) for (known, value), times in counted.items() if known == kind)
        for rank, (_, value) in enumerate(chosen[:most]):
            for shard in shards:
                yield shard, (doc_id, kind, rank, value)
    is_known = any(kind == "article" for kind, _ in counted)
    for shard in sorted(value for kind, value in counted if kind == "post" and is_known):
        yield shard, (doc_id, "post", 0, "")


def _join_image(grouped: tuple[str, Iterable[tuple[str, Any]]]) -> Iterator[tuple[int, _Evidence]]:
    evidence = sorted(grouped[1])
    hashes = [value for kind, value in evidence if kind == "hash"]
    for kind, value in evidence:
        if kind == "article" and hashes:
            yield value[0], (value[1], "image", 0, hashes[0])


def write_joined(
    shard: Shard, evidence: Sequence[_Evidence], groups: Sequence[range], *, with_posts: bool = False
) -> None:
    """Writes one shard of articles with their evidence, and counts its hubs and images.

    Args:
      shard: shard of this phase.
      evidence: (doc_id, kind, rank, value) for articles of the shard, sorted.
      groups: the shards of the first phase that each shard of this phase is made of.
      with_posts: whether there is a stream of posts; it gets those of the shard whose article is there.
    """
    places = [(index, groups[-1].stop) for index in groups[shard.index]]

    def records(record_type: type) -> Iterator[Any]:
        return itertools.chain.from_iterable(_stream(shard.workspace, place, record_type) for place in places)

    found: dict[str, dict[str, list[str]]] = {}
    for doc_id, kind, _, value in evidence:
        found.setdefault(doc_id, {}).setdefault(kind, []).append(value)
    articles = shard.records("articles", Article)
    for article in records(PageArticle):
        shard.read()
        own = _own_article(article, "many" in found.get(article.doc_id, {}))
        if own.doc_id != article.doc_id:
            shard.tally("shared_canonical_urls")
        articles.write(_with_evidence(own, found.get(own.doc_id, {})))
        shard.written()
    others = sum(not hub.url.startswith(_DERIVED) for hub in records(Hub)) + sum(1 for _ in records(ImageHash))
    shard.read(others)
    shard.written(others)
    posts = shard.records("posts", Post) if with_posts else None
    for post in records(Post) if posts else ():
        shard.read()
        if posts and "post" in found.get(post.doc_id, {}):
            posts.write(post)
            shard.written()
        else:
            shard.reject(post.url, Rejection.NO_ARTICLE, "no article has this URL", post.text)


def _own_article(article: PageArticle, is_shared: bool) -> Article:
    """Returns an article with the URL of its page where other articles have the same canonical URL."""
    fields = fields_of(article)
    if is_shared and article.page_url:
        url = article.page_url
        fields |= {"doc_id": make_doc_id(canonical_url(url)), "url": url, "publisher": registered_domain(url)}
    return Article(**fields)


def _with_evidence(article: Article, found: dict[str, list[str]]) -> Article:
    """Adds evidence; feeds give day and authors that the page does not state, or a day that its text only suggests."""
    title, images = article.title.casefold(), found.get("image", [])
    texts = [text for text in found.get("anchor", []) if text.casefold() != title]
    changes: dict[str, Any] = {
        "anchor_texts": (*article.anchor_texts, *texts)[:MAX_ANCHOR_TEXTS],
        "hubs": tuple(found.get("hub", [])),
        "image_hash": bytes.fromhex(images[0]) if images else None,
    }
    sources = dict(source.split(": ", 1) for source in article.sources)
    if "day" in found and (article.date_source in ("", "text") or GUESSED_ORDER in sources):
        changes |= {"byline_date": datetime.date.fromisoformat(found["day"][0]), "date_source": "feed"}
        sources["byline_date"] = "feed"
        sources.pop(GUESSED_ORDER, None)
    if "author" in found and not article.authors:
        changes["authors"] = tuple(found["author"][0].split("; "))
        sources["authors"] = "feed"
    changes["sources"] = tuple(sorted(f"{field}: {source}" for field, source in sources.items()))
    return dataclasses.replace(article, **changes)


def _merge(graph: Graph, phase: Phase, places: list[_Place]) -> beam.PCollection:
    """Returns (hub shard, fields of its hubs): captures of a hub are merged and unknown members dropped."""
    read = graph.start("hubs", places)
    members = (
        read
        | "ReadMembers" >> beam.FlatMap(_members, phase.workspace, uuid.uuid4().hex)
        | "GroupMembers" >> beam.GroupByKey()
        | beam.FlatMap(_existing)
    )
    heads = read | "ReadHeads" >> beam.FlatMap(_heads, phase.workspace)
    merged = {"members": members, "heads": heads} | beam.CoGroupByKey() | beam.FlatMap(_merged, phase.shard_count)
    return merged | "GroupHubs" >> group_by_shard(phase.shard_count)


def _members(place: _Place, workspace: str, run_id: str) -> Iterator[tuple[str, str]]:
    aliases, shared = _aliases(workspace, place[1], run_id)
    for article in _stream(workspace, place, PageArticle):
        is_own = not article.page_url or article.doc_id not in shared
        yield article.doc_id if is_own else make_doc_id(canonical_url(article.page_url)), ""
    for hub in _stream(workspace, place, Hub):
        for member in hub.doc_ids:
            for doc_id in _ids_of(member, aliases):
                yield doc_id, hub.hub_id


def _existing(grouped: tuple[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    doc_id, hubs = grouped[0], set(grouped[1])
    if "" in hubs:
        for hub_id in hubs - {""}:
            yield hub_id, doc_id


def _heads(place: _Place, workspace: str) -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    for hub in _stream(workspace, place, Hub):
        yield hub.hub_id, (hub.url, hub.publisher, hub.title, hub.kind)


def _merged(grouped: tuple[str, dict[str, Iterable[Any]]], hub_shards: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
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


def warc_digest(path: str) -> str:
    """Returns the digest of a WARC file with the indexes next to it, or of a list of WARC files.

    For a list only its text counts: the files of a published list do not change, and checking each takes minutes.
    """
    if is_path_list(path):
        return input_digest(path.removeprefix("@"))
    return " ".join(map(input_digest, (path, *indexes_beside(path))))


JOB = Job(
    name="extract",
    example="newsembed extract --warc 'crawl/warc/*.warc.gz' --articles archive.jsonl.zst --output work/extract",
    inputs=(
        optional(
            "warc",
            "WARC files or patterns; or lists with one path per line, given as @LIST or with a name ending in .txt, "
            ".paths, .txt.gz or .paths.gz (CC-NEWS's warc.paths.gz), with one shard per file",
            many=True,
            digest=warc_digest,
            for_workers=lambda path: not is_path_list(path),
        ),
        optional(
            "cdx",
            "CDX or CDXJ indexes of the WARC files: records that they list and that were not read are dead letters "
            "(missing_record). An index next to a WARC file (a.cdxj, a.warc.gz.cdx) is found without this",
            many=True,
        ),
        optional("articles", "pre-extracted articles: .jsonl, .jsonl.zst, .jsonl.gz, .parquet", many=True),
        optional(
            "posts", "posts that link to articles: rows with `text` and `url`, in files like --articles", many=True
        ),
    ),
    options=ExtractOptions,
    run=run,
)
