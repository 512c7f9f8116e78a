"""The stream types: frozen, typed, keyed records, and the names of every rejection and failure.

On disk a stream is a folder of zstd Parquet shards whose schema follows from the dataclass (``parquet.py``).
"""

import dataclasses
import datetime
import enum
import hashlib
import struct


class Rejection(enum.StrEnum):
    """Why a job rejected a well-formed record. Each value is a counter and a reason in the dead letters."""

    # crawl
    ROBOTS_DISALLOWED = "robots_disallowed"
    PRIVATE_ADDRESS = "private_address"
    OUT_OF_SCOPE = "out_of_scope"
    PAGE_LIMIT = "page_limit"
    UNSUPPORTED_CONTENT_TYPE = "unsupported_content_type"
    NOT_MODIFIED = "not_modified"  # an earlier crawl with the same --state has it
    # extract
    NOT_HTML = "not_html"
    NOT_OK_STATUS = "not_ok_status"
    NO_CONTENT = "no_content"
    NO_TITLE = "no_title"
    NOT_AN_ARTICLE = "not_an_article"
    # clean
    TOO_FEW_WORDS = "too_few_words"
    NO_AUTHOR = "no_author"
    NO_BYLINE_DATE = "no_byline_date"
    DATE_TOO_EARLY = "date_too_early"
    DATE_IN_FUTURE = "date_in_future"
    DATES_DISAGREE = "dates_disagree"
    TOO_FEW_SENTENCES = "too_few_sentences"
    NO_TERMINAL_PUNCTUATION = "no_terminal_punctuation"
    TOO_FEW_WORDS_PER_LINE = "too_few_words_per_line"
    ONLY_JAVASCRIPT_LINES = "only_javascript_lines"
    ONLY_COOKIE_LINES = "only_cookie_lines"
    ONLY_POLICY_LINES = "only_policy_lines"
    PLACEHOLDER_TEXT = "placeholder_text"
    CURLY_BRACE = "curly_brace"
    BAD_WORDS = "bad_words"
    REPEATED_TEXT = "repeated_text"
    REPEATED_SPANS = "repeated_spans"
    COOKIE_OR_ERROR_PAGE = "cookie_or_error_page"
    UNKNOWN_LANGUAGE = "unknown_language"
    WRONG_SCRIPT = "wrong_script"
    DUPLICATE_URL = "duplicate_url"
    DUPLICATE_BODY = "duplicate_body"
    NEAR_DUPLICATE = "near_duplicate"
    # vocabulary, pack
    NOT_SAMPLED = "not_sampled"
    TOO_SHORT_TO_PACK = "too_short_to_pack"
    EMPTY_SIDE = "empty_side"  # a translation pair without source or target text
    SAME_LANGUAGE = "same_language"  # a translation pair in one language
    # translations
    NO_PIVOT = "no_pivot"  # a translation pair with no side in a pivot language
    # bitext
    NO_CANDIDATE = "no_candidate"  # no article of another language is near in time, by entities or by image
    NO_SENTENCE = "no_sentence"
    BELOW_MARGIN = "below_margin"
    COPIED_TEXT = "copied_text"  # both sides of a pair have most words in common
    LENGTH_RATIO = "length_ratio"
    WRONG_LANGUAGE = "wrong_language"  # a side of a pair is in another language than its article
    SENTENCE_TAKEN = "sentence_taken"  # a side of a pair has a better translation
    REPEATED_PAIR = "repeated_pair"
    # vectors
    NO_VECTOR = "no_vector"
    # neighbors and triplets
    NO_NEIGHBOR = "no_neighbor"
    NO_POSITIVE = "no_positive"
    NO_NEGATIVE = "no_negative"
    CROWDED_EVENT = "crowded_event"
    # categories
    NO_CATEGORY = "no_category"  # none that other articles share
    # topics, examples
    NO_TOPIC = "no_topic"
    DOWN_SAMPLED = "down_sampled"
    HELD_OUT_NEGATIVE = "held_out_negative"  # a negative of held-out days, whose text no run may train on
    # posts of extract, pairs
    NO_ARTICLE = "no_article"  # a post that links to none of the articles
    NO_OTHER_TEXT = "no_other_text"  # an article without the second text of a pair
    TOO_FEW_TOKENS = "too_few_tokens"
    DUPLICATE_PAIR = "duplicate_pair"  # the same two texts again, such as a shared post


class Failure(enum.StrEnum):
    """Why a record could not be processed at all: broken input or an error in our own code."""

    BROKEN_RECORD = "broken_record"  # a WARC record, JSON line or Parquet row that does not parse
    MISSING_RECORD = "missing_record"  # an index of a WARC file lists it, but the file does not have it there
    MISSING_FIELD = "missing_field"  # parses, but lacks a field that the contract requires
    UNDECODABLE = "undecodable"  # bytes that no declared or detected charset decodes
    TRUNCATED = "truncated"  # the file ends inside a record
    FETCH_ERROR = "fetch_error"  # DNS, connect, TLS, protocol
    TIMEOUT = "timeout"
    HTTP_ERROR = "http_error"  # the server answered 4xx or 5xx
    ROBOTS_UNAVAILABLE = "robots_unavailable"  # robots.txt could not be read, so nothing is allowed now
    HOST_DOWN = "host_down"  # not asked for: the host failed too often, or asks to be left alone
    TOO_LARGE = "too_large"
    PARSER_ERROR = "parser_error"  # a library raised on this input; the detail says what
    TRANSLATION_ERROR = "translation_error"  # the translator raised, or returned nothing; the detail says what


@dataclasses.dataclass(frozen=True, slots=True)
class Article:
    """One news article.

    Attributes:
      doc_id: 16 hex digits, the first 64 bits of SHA-1 of the canonical URL (see :func:`make_doc_id`), or of title and
        body where there is none.
      url: as the publisher writes it, or "".
      publisher: registered domain of ``url``, or the source's name in pre-extracted input.
      title: the headline.
      body: the text.
      authors: their names.
      byline_date: UTC day of first publication; ``None`` if unknown.
      modified_date: UTC day of the last change; ``None`` if unknown.
      date_source: where ``byline_date`` was read (json-ld, meta, markup, text, url, feed, given).
      language: BCP-47 tag, "" if unknown.
      keywords: as the page states them.
      anchor_texts: texts of links on other pages that point to this article.
      image_url: of the thumbnail, as it is written; "" if unknown.
      image_hash: 8 bytes, wavelet hash of the thumbnail.
      hubs: ids of the hubs that list this article.
      fetched_at: when the page was fetched, UTC; ``None`` for pre-extracted input.
      sources: "field: where it was read" for each field that a page states (json-ld, meta, markup, url, text); empty
        for pre-extracted input.
      paywalled: whether the page says that only some readers may read it.
      live_blog: whether it is a running report in posts instead of one article.
    """

    doc_id: str
    url: str
    publisher: str
    title: str
    body: str
    authors: tuple[str, ...] = ()
    byline_date: datetime.date | None = None
    modified_date: datetime.date | None = None
    date_source: str = ""
    language: str = ""
    keywords: tuple[str, ...] = ()
    anchor_texts: tuple[str, ...] = ()
    image_url: str = ""
    image_hash: bytes | None = None
    hubs: tuple[str, ...] = ()
    fetched_at: datetime.datetime | None = None
    sources: tuple[str, ...] = ()
    paywalled: bool = False
    live_blog: bool = False

    @property
    def key(self) -> str:
        """What names it in dead letters: its URL, or its id where there is none."""
        return self.url or self.doc_id


class HubKind(enum.StrEnum):
    """The kind of page that a hub is."""

    FEED = "feed"
    DIRECTORY = "directory"  # a section or front page


@dataclasses.dataclass(frozen=True, slots=True)
class Hub:
    """A feed or section page and the articles it lists.

    Attributes:
      hub_id: 16 hex digits of the hub's URL, made like ``doc_id``.
      url: canonical URL.
      publisher: registered domain of ``url``.
      title: of the feed or page.
      kind: a :class:`HubKind` value.
      doc_ids: the articles that it lists, sorted, unique.
    """

    hub_id: str
    url: str
    publisher: str
    title: str
    kind: str
    doc_ids: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Post:
    """A short text that links to an article, such as a post in a social network.

    Attributes:
      doc_id: of the article that it links to.
      url: canonical URL of that article.
      text: without URLs and mentions; hashtags are split into words.
    """

    doc_id: str
    url: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Vector:
    """One document's vector in one auxiliary space (entity, image or text), float32, not normalised."""

    doc_id: str
    space: str
    byline_date: datetime.date
    publisher: str
    language: str
    values: tuple[float, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Membership of an article in a cluster of duplicates, named by the doc_id of the member that was kept."""

    doc_id: str
    cluster_id: str
    kept: bool


class Space(enum.StrEnum):
    """The auxiliary embedding spaces of section 2.2."""

    ENTITY = "entity"
    IMAGE = "image"
    TEXT = "text"


@dataclasses.dataclass(frozen=True, slots=True)
class Neighbor:
    """One neighbor of one query document in one space.

    Attributes:
      query: doc_id of the query.
      neighbor: doc_id of the neighbor.
      space: a :class:`Space` value.
      similarity: cosine similarity, in [-1, 1].
      day_gap: neighbor's byline date minus the query's, in days.
    """

    query: str
    neighbor: str
    space: str
    similarity: float
    day_gap: int


@dataclasses.dataclass(frozen=True, slots=True)
class MinedPair:
    """Two sentences that translate each other, as ``newsembed bitext`` found them.

    Attributes:
      source_language / target_language: languages without script and region.
      source / target: the sentences, with single spaces.
      margin: the ratio margin of the pair.
      cosine: of their embeddings.
      source_doc / target_doc: doc_ids of the articles; of the first one where a sentence is in several.
      source_number / target_number: place in the article; 0 is the title.
    """

    source_language: str
    target_language: str
    source: str
    target: str
    margin: float
    cosine: float
    source_doc: str
    target_doc: str
    source_number: int
    target_number: int


@dataclasses.dataclass(frozen=True, slots=True)
class Triplet:
    """(anchor, positive, negative) document ids with the evidence for them.

    Attributes:
      anchor / positive / negative: doc_ids.
      language: of the anchor.
      positive_similarity / negative_similarity: by space, in the order of :class:`Space`; NaN where the pair was not
        found in that space.
      positive_day_gap / negative_day_gap: days, other minus anchor.
      evergreen_score: probability that the negative is an evergreen false negative, in [0, 1].
    """

    anchor: str
    positive: str
    negative: str
    language: str
    positive_similarity: tuple[float, ...]
    negative_similarity: tuple[float, ...]
    positive_day_gap: int
    negative_day_gap: int
    evergreen_score: float


@dataclasses.dataclass(frozen=True, slots=True)
class TopicLabels:
    """Document-topic labels: ``labels[i]`` in {0, 1} for ``topic_ids[i]``."""

    doc_id: str
    topic_ids: tuple[int, ...]
    labels: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a job did not pass on.

    Attributes:
      key: doc_id, URL or "file:line", whichever identifies the record best.
      outcome: "rejected" or "failed".
      reason: a :class:`Rejection` or :class:`Failure` value.
      detail: free text: the value that broke the rule, or the error.
      sample: up to 500 characters of the record, for people to read.
    """

    key: str
    outcome: str
    reason: str
    detail: str
    sample: str


def make_doc_id(canonical_url: str) -> str:
    """First 64 bits of SHA-1 of the URL, or of the texts of an article without one, as 16 hex digits."""
    return hashlib.sha1(canonical_url.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]


def doc_id_to_words(doc_id: str) -> tuple[int, int]:
    """Splits a document id into two int32, which a device without 64-bit integers can compare.

    >>> doc_id_to_words("00000001ffffffff")
    (1, -1)

    Args:
      doc_id: 16 hexadecimal digits.

    Raises:
      ValueError: if ``doc_id`` is not 16 hexadecimal digits.
    """
    if len(doc_id) != 16:
        raise ValueError(f"got the document id {doc_id!r}, expected 16 hexadecimal digits")
    high, low = struct.unpack(">ii", int(doc_id, 16).to_bytes(8))
    return high, low


def words_to_doc_id(words: tuple[int, int]) -> str:
    """Inverse of :func:`doc_id_to_words`.

    >>> words_to_doc_id((1, -1))
    '00000001ffffffff'
    """
    return struct.pack(">ii", *words).hex()
