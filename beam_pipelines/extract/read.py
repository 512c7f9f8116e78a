"""First phase of ``extract``: reads each record of a slice as an article, a hub, an image hash or a dead letter."""

import dataclasses
import datetime
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...formats.parquet import ParquetShardWriter
from ...formats.records import Article, Failure, Hub, HubKind, Post, Rejection, make_doc_id
from ...formats.urls import canonical_url, registered_domain
from ..accounting import CUT_BODIES, MARKUP_IN_BODIES, UNREAD_DATES, UNREAD_FIELD
from ..shards import Shard
from .cdx import Part, read_listing
from .decoding import decode
from .feeds import MAX_ENTRIES, Feed
from .isolation import Limits, PageMemoryError, PageReadError, PageTimeoutError, reader
from .links import MAX_LINKS
from .page import ArticlePage, ExtractedPage, PageTooLargeError, as_fields
from .payload import read_payload
from .people import people
from .posts import row_to_post
from .rows import feeds_of, has_markup, has_unread_date, impossible_dates, is_cut, row_to_article, unread_fields
from .sources import Response, Slice, read_rows, read_warc
from .warc import Gap

_HTML = ("text/html", "application/xhtml")
_FEED = ("rss", "atom", "xml", "json")
_MAX_HUB_MEMBERS = 5_000

_Payload = ExtractedPage | Feed | bytes | None


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """A link between pages: the doc_id of its target, and its text."""

    target: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class FeedStatement:
    """The statement of a feed about an entry: doc_id of the target, day of publication, and names of the authors."""

    target: str
    byline_date: datetime.date | None
    authors: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ImageHash:
    """The wavelet hash of an image, and its canonical URL."""

    url: str
    image_hash: bytes


@dataclasses.dataclass
class Outputs:
    """The six intermediate streams of a slice."""

    articles: ParquetShardWriter[Article]
    hubs: ParquetShardWriter[Hub]
    links: ParquetShardWriter[Link]
    images: ParquetShardWriter[ImageHash]
    statements: ParquetShardWriter[FeedStatement]
    posts: ParquetShardWriter[Post]


def read_slice(shard: Shard, piece: Slice, limits: Limits, max_links: int = MAX_LINKS) -> None:
    """Reads one slice of input; payloads of responses are read by a child process within limits.

    Args:
      shard: shard of this phase.
      piece: the slice.
      limits: limits for one response.
      max_links: number of links that are taken from a page.
    """
    read = partial(_read_payload, limits=limits, max_links=max_links)
    outputs = Outputs(
        shard.records("_articles", Article),
        shard.records("_hubs", Hub),
        shard.records("_links", Link),
        shard.records("_images", ImageHash),
        shard.records("_statements", FeedStatement),
        shard.records("_posts", Post),
    )
    if piece.kind == "warc":
        begun = set[int]()
        for response in read_warc(piece, begun):
            _read_response(shard, outputs, piece, response, read)
        if piece.part is not None:
            _compare_with_indexes(shard, piece.path, piece.part, begun)
    elif piece.holds == "posts":
        _read_posts(shard, outputs.posts, piece)
    else:
        _read_rows(shard, outputs, piece)


def _read_response(
    shard: Shard, outputs: Outputs, piece: Slice, response: Response | Gap, read: Callable[[Response, str], _Payload]
) -> None:
    shard.read()
    if isinstance(response, Gap):
        shard.fail(f"{piece.path}:{response.offset}", Failure.BROKEN_RECORD, _described(response))
    elif response.truncated:
        shard.fail(
            response.url, Failure.TRUNCATED, f"{piece.path} ends after {len(response.payload)} bytes of this record"
        )
    elif response.status != 200:
        shard.reject(response.url, Rejection.NOT_OK_STATUS, str(response.status))
    elif (kind := _kind_of(response.content_type)) is None:
        shard.reject(response.url, Rejection.NOT_HTML, response.content_type)
    elif response.oversized:
        shard.fail(response.url, Failure.TOO_LARGE, f"{len(response.payload)} bytes or more")
    else:
        _write_payload(shard, outputs, response, kind, read)


def _compare_with_indexes(shard: Shard, path: str, part: Part, begun: set[int]) -> None:
    """Fails the records that indexes list and that were not met, and what cannot be read of the indexes."""
    found = read_listing(path, part)
    shard.tally("records_in_index", len(found.entries))
    missing = [
        (f"{path}:{one.offset}", f"listed in {one.index}, but no record begins here; {one.url}")
        for one in found.entries
        if one.offset not in begun
    ]
    lost = (
        (Failure.MISSING_RECORD, missing),
        (Failure.BROKEN_RECORD, found.broken),
        (Failure.OTHER_INDEX, found.others),
    )
    for reason, letters in lost:
        for key, detail in letters:
            shard.read()
            shard.fail(key, reason, detail)


def _described(gap: Gap) -> str:
    lost = f"; bytes {gap.offset} to {gap.end} are passed over" if gap.end > gap.offset else ""
    return f"{gap.problem}{lost}{f'; {gap.url}' if gap.url else ''}"


def _kind_of(content_type: str) -> str | None:
    if content_type.startswith("image/"):
        return "image"
    if content_type.startswith(_HTML):
        return "page"
    return "feed" if any(sign in content_type for sign in _FEED) else None


def _read_payload(response: Response, kind: str, limits: Limits, max_links: int) -> _Payload:
    arguments = (kind, response.payload, response.charset, response.url, max_links)
    found: _Payload = reader(limits).call(read_payload, *arguments)
    return found


def _write_payload(
    shard: Shard, outputs: Outputs, response: Response, kind: str, read: Callable[[Response, str], _Payload]
) -> None:
    try:
        found = read(response, kind)
    except PageTimeoutError as error:
        shard.fail(response.url, Failure.TIMEOUT, str(error), _sample(response))
        return
    except PageMemoryError as error:
        shard.fail(response.url, Failure.TOO_LARGE, str(error), _sample(response))
        return
    except PageReadError as error:
        reason = Failure.TOO_LARGE if str(error).startswith(PageTooLargeError.__name__) else Failure.PARSER_ERROR
        shard.fail(response.url, reason, str(error), _sample(response))
        return
    if isinstance(found, Feed):
        _write_feed(shard, outputs, response.url, found)
    elif isinstance(found, bytes):
        outputs.images.write(ImageHash(canonical_url(response.url), found))
        shard.written()
        shard.tally("images")
    elif isinstance(found, ExtractedPage):
        _write_page(shard, outputs, response, found)
    elif kind == "page":
        detail = f"{len(response.payload)} bytes that are not text, sent as {response.content_type}"
        shard.fail(response.url, Failure.UNDECODABLE, detail)
    else:
        shard.reject(response.url, Rejection.NOT_HTML, response.content_type)


def _write_feed(shard: Shard, outputs: Outputs, url: str, feed: Feed) -> None:
    _write_hub(shard, outputs, url, feed.title, HubKind.FEED, feed.entries)
    if feed.dropped:
        shard.tally(f"feed_entries_beyond_{MAX_ENTRIES}", feed.dropped)
    if feed.impossible_dates:
        shard.tally("impossible_dates", feed.impossible_dates)
    for link, day, authors in feed.stated:
        if target := canonical_url(link, url):
            outputs.statements.write(FeedStatement(make_doc_id(target), day, people(authors)))


def _sample(response: Response) -> str:
    return response.payload[:2_000].decode("utf-8", "replace")


def _write_page(shard: Shard, outputs: Outputs, response: Response, page: ExtractedPage) -> None:
    if page.links_beyond:
        shard.tally("links_beyond_limit", page.links_beyond)
    if page.impossible_dates:
        shard.tally("impossible_dates", page.impossible_dates)
    source = make_doc_id(page.article.url if page.article else canonical_url(response.url))
    for target, words in page.links:
        if words:
            outputs.links.write(Link(make_doc_id(target), words))
    if page.article is not None:
        _write_article(shard, outputs, source, page.article, response)
    elif page.hub_title is not None:
        _write_hub(shard, outputs, response.url, page.hub_title, HubKind.DIRECTORY, page.links)
    else:
        shard.reject(response.url, page.rejection or Rejection.NO_CONTENT, page.detail, _sample(response))


def _write_article(shard: Shard, outputs: Outputs, doc_id: str, page: ArticlePage, response: Response) -> None:
    fields = as_fields(page)
    outputs.articles.write(
        Article(doc_id=doc_id, publisher=registered_domain(page.url), fetched_at=response.fetched_at, **fields)
    )
    shard.written()
    shard.tally("articles")


def _write_hub(shard: Shard, outputs: Outputs, url: str, title: str, kind: HubKind, entries: Any) -> None:
    own = canonical_url(url)
    targets = (canonical_url(link, url) for link, _ in entries)
    members = sorted({make_doc_id(target) for target in targets if target and target != own})
    if len(members) > _MAX_HUB_MEMBERS:
        shard.tally(f"hub_members_beyond_{_MAX_HUB_MEMBERS}", len(members) - _MAX_HUB_MEMBERS)
    kept, name = tuple(members[:_MAX_HUB_MEMBERS]), " ".join(title.split())
    outputs.hubs.write(Hub(make_doc_id(own), own, registered_domain(own), name, kind.value, kept))
    if kind is HubKind.FEED:
        for link, words in entries:
            target = canonical_url(link, url)
            if target and words:
                outputs.links.write(Link(make_doc_id(target), words))
    shard.written()
    shard.tally("hubs")


def _read_rows(shard: Shard, outputs: Outputs, piece: Slice) -> None:
    """Reads pre-extracted articles; their ``feeds`` become a hub for each (publisher, feed), merged in the join."""
    feeds: dict[tuple[str, str], set[str]] = {}
    unread = set[str]()
    for where, row in _whole_rows(shard, piece):
        article, problem = row_to_article(row)
        if article is None:
            shard.fail(where, Failure.MISSING_FIELD, problem, str(row))
            continue
        outputs.articles.write(article)
        if count := impossible_dates(row):
            shard.tally("impossible_dates", count)
        if has_unread_date(row, article):
            shard.tally(UNREAD_DATES)
        if has_markup(article.body):
            shard.tally(MARKUP_IN_BODIES)
        if is_cut(row):
            shard.tally(CUT_BODIES)
        for name in unread_fields(row, unread):
            shard.tally(f"{UNREAD_FIELD}{name}")
        for feed in feeds_of(row):
            feeds.setdefault((article.publisher, feed), set()).add(article.doc_id)
        shard.written()
        shard.tally("articles")
    for (publisher, feed), members in sorted(feeds.items()):
        url = f"feed:{publisher}/{feed}"
        outputs.hubs.write(Hub(make_doc_id(url), url, publisher, feed, HubKind.FEED.value, tuple(sorted(members))))


def _read_posts(shard: Shard, output: ParquetShardWriter[Post], piece: Slice) -> None:
    for where, row in _whole_rows(shard, piece):
        post, problem = row_to_post(row)
        if post is None:
            shard.fail(where, Failure.MISSING_FIELD, problem, str(row))
        elif not post.text:
            shard.reject(where, Rejection.NO_CONTENT, "only URLs and mentions", str(row))
        else:
            output.write(post)
            shard.written()
            shard.tally("posts")


def _whole_rows(shard: Shard, piece: Slice) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("path:line", row), and counts what is read and what is broken."""
    for where, row in read_rows(piece):
        shard.read()
        if isinstance(row, EOFError):
            shard.fail(where, Failure.TRUNCATED, f"the file is cut or broken from here on: {row}")
        elif isinstance(row, str):
            shard.fail(where, Failure.BROKEN_RECORD, "no JSON object in UTF-8", row)
        else:
            yield where, row


__all__ = ["Feed", "FeedStatement", "ImageHash", "Link", "decode", "read_slice"]
