"""First phase of ``extract``: reads each record of a slice as an article, a hub, an image hash or a dead letter."""

import dataclasses
import datetime
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from ...errors import InputError
from ...formats.dates import day_order
from ...formats.fields import read_as, standard
from ...formats.parquet import ParquetShardWriter
from ...formats.records import Article, Failure, Hub, HubKind, Post, Rejection, make_doc_id
from ...formats.urls import canonical_url, registered_domain
from ..progress import ABSENT_FIELD, READ_AS, UNREAD_FIELD
from ..shards import Shard
from .bylines import people
from .feeds import MAX_ENTRIES, Feed
from .isolation import Limits, PageError, read_payload, reader
from .layout import letters_of
from .page import MAX_LINKS, ExtractedPage, PageTooLargeError
from .responses import kind_of
from .rows import DATES, remarks_on, row_to_article, row_to_post, texts_of, unread_fields
from .sources import Slice, lost_records, read_rows, read_warc
from .warc import MAX_CONTENT_BYTES, Gap, Response

_MAX_HUB_MEMBERS = 5_000
_ROWS_THAT_SHOW_ORDER: Final = 1_000  # of day and month

_Read = Callable[..., ExtractedPage | Feed | bytes | None]  # of kind, payload, charset, URL
_Outputs = dict[type, ParquetShardWriter[Any]]  # by type of record
_Row = dict[str, Any]
R = TypeVar("R")


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
class PageArticle(Article):
    """An article, and the URL of its page where that is not the article's; else ""."""

    page_url: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ImageHash:
    """The wavelet hash of an image, and its canonical URL."""

    url: str
    image_hash: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Alias:
    """The doc_id of a URL under which another page was found: by a redirect, or an article by its own URL.

    The title's letters are those of the article; "" for redirects.
    """

    source: str
    target: str
    title: str = ""


# The intermediate streams, by type of record.
STREAMS: Final[dict[type, str]] = {
    PageArticle: "_articles",
    Hub: "_hubs",
    Link: "_links",
    ImageHash: "_images",
    FeedStatement: "_statements",
    Alias: "_aliases",
    Post: "_posts",
}


def read_slice(
    shard: Shard, piece: Slice, limits: Limits, max_links: int = MAX_LINKS, names: tuple[tuple[str, str], ...] = ()
) -> None:
    """Reads one slice of input; payloads of responses are read by a child process within limits.

    Args:
      shard: shard of this phase.
      piece: the slice.
      limits: limits for one response.
      max_links: number of links that are taken from a page.
      names: of fields in rows, see :func:`~newsembed.formats.fields.standard`.
    """
    outputs: _Outputs = {kind: shard.records(stream, kind) for kind, stream in STREAMS.items()}
    if piece.kind == "warc":
        begun, read = set[int](), partial(reader(limits).call, read_payload, max_links)
        for response in read_warc(piece, begun):
            _read_response(shard, outputs, piece, response, read)
        if piece.indexes:
            listed, lost = lost_records(piece, begun)
            shard.tally("records_in_index", listed)
            for reason, key, detail in lost:
                shard.read()
                shard.fail(key, reason, detail)
    elif piece.holds == "posts":
        for where, row in _whole_rows(shard, piece):
            _read_post(shard, outputs, where, row)
    else:
        _read_articles(shard, outputs, piece, names)


def _read_response(shard: Shard, outputs: _Outputs, piece: Slice, response: Response | Gap, read: _Read) -> None:
    shard.read()
    if isinstance(response, Gap):
        lost = f"; bytes {response.offset} to {response.end} are passed over" if response.end > response.offset else ""
        detail = f"{response.problem}{lost}{f'; {response.url}' if response.url else ''}"
        shard.fail(f"{piece.path}:{response.offset}", Failure.BROKEN_RECORD, detail)
    elif response.cut and not response.oversized:
        shard.fail(response.url, Failure.TRUNCATED, f"{piece.path}: {response.cut}")
    elif response.status != 200:
        _write_alias(outputs, response.url, response.leads_to)
        shard.reject(response.url, Rejection.NOT_OK_STATUS, str(response.status))
    elif (kind := kind_of(response.content_type, response.payload)) is None:
        shard.reject(response.url, Rejection.NOT_HTML, response.content_type)
    elif response.oversized:
        shard.fail(response.url, Failure.TOO_LARGE, f"{MAX_CONTENT_BYTES} bytes or more")
    else:
        _write_payload(shard, outputs, response, kind, read)


def _write_payload(shard: Shard, outputs: _Outputs, response: Response, kind: str, read: _Read) -> None:
    url, sample = response.url, response.payload[:2_000].decode("utf-8", "replace")
    try:
        found = read(kind, response.payload, response.charset, url)
    except PageError as error:
        shard.fail(url, error.reason, str(error), sample)
        return
    if isinstance(found, Feed):
        _write_feed(shard, outputs, url, found)
    elif isinstance(found, bytes):
        outputs[ImageHash].write(ImageHash(canonical_url(url), found))
        shard.written()
        shard.tally("images")
    elif isinstance(found, ExtractedPage):
        _write_page(shard, outputs, response, found, sample)
    elif kind != "feed":
        detail = f"{len(response.payload)} bytes that are not text, sent as {response.content_type}"
        shard.fail(url, Failure.UNDECODABLE, detail)
    else:
        shard.reject(url, Rejection.NOT_HTML, response.content_type)


def _write_feed(shard: Shard, outputs: _Outputs, url: str, feed: Feed) -> None:
    _write_hub(shard, outputs, url, feed.title, HubKind.FEED, feed.entries)
    _tally(shard, f"feed_entries_beyond_{MAX_ENTRIES}", feed.dropped)
    _write_links(outputs, ((canonical_url(link, url), words) for link, words in feed.entries))
    for link, day, authors in feed.stated:
        if target := canonical_url(link, url):
            outputs[FeedStatement].write(FeedStatement(make_doc_id(target), day, people(authors)))


def _tally(shard: Shard, name: str, count: int) -> None:
    if count:
        shard.tally(name, count)


def _write_links(outputs: _Outputs, links: Any) -> None:
    for target, words in links:
        if target and words:
            outputs[Link].write(Link(make_doc_id(target), words))


def _write_page(shard: Shard, outputs: _Outputs, response: Response, page: ExtractedPage, sample: str) -> None:
    _tally(shard, "links_beyond_limit", page.links_beyond)
    _write_links(outputs, page.links)
    if page.article is not None:
        _write_alias(outputs, response.url, page.article.url, letters_of(page.article.title))
        page_url = response.url if page.page_url != canonical_url(page.article.url) else ""
        fields = fields_of(page.article) | {"fetched_at": response.fetched_at, "page_url": page_url}
        outputs[PageArticle].write(PageArticle(**fields))
        shard.written()
        shard.tally("articles")
    elif page.hub_title is not None:
        _write_hub(shard, outputs, response.url, page.hub_title, HubKind.DIRECTORY, page.links)
    else:
        _write_alias(outputs, response.url, response.leads_to)
        shard.reject(response.url, page.rejection or Rejection.NO_CONTENT, page.detail, sample)


def _write_alias(outputs: _Outputs, url: str, target: str, title: str = "") -> None:
    source, found = canonical_url(url), canonical_url(target)
    if source and found and source != found:
        outputs[Alias].write(Alias(make_doc_id(source), make_doc_id(found), title))


def fields_of(article: Article) -> dict[str, Any]:
    """Returns the fields of an article by name, without those of a page."""
    return {field.name: getattr(article, field.name) for field in dataclasses.fields(Article)}


def _write_hub(shard: Shard, outputs: _Outputs, url: str, title: str, kind: HubKind, entries: Any) -> None:
    own = canonical_url(url)
    targets = (canonical_url(link, url) for link, _ in entries)
    members = sorted({make_doc_id(target) for target in targets if target and target != own})
    _tally(shard, f"hub_members_beyond_{_MAX_HUB_MEMBERS}", max(0, len(members) - _MAX_HUB_MEMBERS))
    kept, name = tuple(members[:_MAX_HUB_MEMBERS]), " ".join(title.split())
    outputs[Hub].write(Hub(make_doc_id(own), own, registered_domain(own), name, kind.value, kept))
    shard.written()
    shard.tally("hubs")


def _read_articles(shard: Shard, outputs: _Outputs, piece: Slice, names: tuple[tuple[str, str], ...]) -> None:
    """Reads pre-extracted articles; their ``feeds`` become a hub for each (publisher, feed), merged in the join."""
    feeds: dict[tuple[str, str], set[str]] = {}
    unread = set[str]()
    rows = ((where, given, standard(given, names)) for where, given in _whole_rows(shard, piece))
    first = [*itertools.islice(rows, _ROWS_THAT_SHOW_ORDER)]
    order = day_order(row.get(name) for _, _, row in first for name in DATES)
    for where, given, row in itertools.chain(first, rows):
        if (article := _converted(shard, where, partial(row_to_article, order=order), row, given)) is None:
            continue
        for ours, theirs in read_as(given, names):
            shard.tally(f"{READ_AS}{ours} from {theirs}")
        for theirs in {theirs for _, theirs in names if theirs.partition(".")[0] not in given}:
            shard.tally(f"{ABSENT_FIELD}{theirs}")
        outputs[PageArticle].write(PageArticle(**fields_of(article)))
        for name, count in remarks_on(row, article, order):
            _tally(shard, name, count)
        for name in unread_fields(row, unread):
            shard.tally(f"{UNREAD_FIELD}{name}")
        for feed in texts_of(row.get("feeds")):
            feeds.setdefault((article.publisher, feed), set()).add(article.doc_id)
        shard.written()
        shard.tally("articles")
    for (publisher, feed), members in sorted(feeds.items()):
        url = f"feed:{publisher}/{feed}"
        hub = Hub(make_doc_id(url), url, publisher, feed, HubKind.FEED.value, tuple(sorted(members)))
        outputs[Hub].write(hub)


def _read_post(shard: Shard, outputs: _Outputs, where: str, row: _Row) -> None:
    post = _converted(shard, where, row_to_post, row, row)
    if post is not None and not post.text:
        shard.reject(where, Rejection.NO_CONTENT, "only URLs and mentions", str(row))
    elif post is not None:
        outputs[Post].write(post)
        shard.written()
        shard.tally("posts")


def _converted(shard: Shard, where: str, convert: Callable[[_Row], R], row: _Row, given: _Row) -> R | None:
    """The record of a row; ``None`` if it has failed, counted with what was given."""
    try:
        return shard.limited(where, convert, row)
    except (InputError, PageTooLargeError) as error:
        shard.fail(where, Failure.MISSING_FIELD, str(error), str(given))
        return None


def _whole_rows(shard: Shard, piece: Slice) -> Iterator[tuple[str, _Row]]:
    """Yields ("path:line", row), and counts what is read and what is broken."""
    for where, row in read_rows(piece):
        shard.read()
        if isinstance(row, EOFError):
            shard.fail(where, Failure.TRUNCATED, f"the file is cut or broken from here on: {row}")
        elif isinstance(row, str):
            problem = "it is not in UTF-8: convert the file, for example by `iconv -f WINDOWS-1252 -t UTF-8`"
            shard.fail(where, Failure.BROKEN_RECORD, problem if "\ufffd" in row else f"no JSON object: {row[:80]}", row)
        else:
            yield where, row
