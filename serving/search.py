"""``newsembed search``: search an index by words or by the URL of an indexed article.

Example::

    newsembed search --index work/index "storm hits the coast"
    newsembed search --index work/index "storm hits the coast" --since 2024-01-01 --until 2024-01-31
    newsembed search --index work/index "storm hits the coast" --language de --publisher news.example --mode words
    newsembed search --index work/index https://example.org/2024/storm --days 2 --count 5 --json

A query that is the URL of an indexed article finds articles like it, without itself and without loading a model.
Words are searched as words (BM25 over stems, or over pairs of characters where a script writes no spaces) and by their
vector, and the index says how both count; ``--mode`` takes one of them. Quotes and colons are not operators.
Words are embedded by the encoder that built the index, or by ``--model`` or ``--saved_model`` where that one has moved;
``--mode words`` needs none. They get the model's prompt of queries, or that of ``--prompt``.

The score is from 0 to 1 in the mode hybrid (near 0 for articles that have little to do with the query), BM25 in the
mode words, and a cosine in the mode vectors and for URLs.
"""

import dataclasses
import datetime
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ..errors import InputError, refusing, visible
from ..formats.command_line import option, required
from ..formats.trust import check_encoder
from .analysis import has_text
from .extracts import Places
from .filters import NO_FILTERS, DateRange, Filters, parse_day
from .hybrid import MODES, Found, Mode, chosen_mode, find
from .index import DocumentIndex, Hit
from .interface import TextEncoder
from .saved_model import SavedModelEncoder
from .specs import PROMPT_HELP, EncoderOptions, encoder_from_spec, split_encoder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_INDENT: Final = 6  # characters left of the results, for the rank
_SLOW_START: Final = "TensorFlow takes seconds to start; an index by --model, or newsembed serve, answers sooner"
_WEAK: Final = "nothing matches; these are the nearest articles"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchOptions(EncoderOptions):
    """The options of ``newsembed search``."""

    prompt: str | None = option(None, PROMPT_HELP.format("query"), metavar="TEXT")
    query: tuple[str, ...] = required("words, or the URL of an indexed article", many=True, positional=True)
    index: str = required("what newsembed index or update wrote", metavar="DIR|URI")
    mode: str = option(MODES[0], "what is compared", choices=MODES)
    since: str | None = option(None, "articles of this day and later only", metavar="YYYY-MM-DD")
    until: str | None = option(None, "articles of this day and earlier only", metavar="YYYY-MM-DD")
    language: tuple[str, ...] = option((), "articles of this language only; repeatable", repeated=True, metavar="NAME")
    publisher: tuple[str, ...] = option(
        (), "articles of this publisher only; repeatable", repeated=True, metavar="NAME"
    )
    days: int | None = option(None, "with a URL: only articles at most this many days from its byline date")
    count: int = option(10, "results to show", ge=1)
    json: bool = option(False, "print JSON, one array of results")

    def day(self, name: str) -> datetime.date | None:
        """The day of the option since or until."""
        with refusing("", ValueError, field=f"--{name}"):
            return None if getattr(self, name) is None else parse_day(getattr(self, name))


OPTIONS: Final = SearchOptions


def run(args: SearchOptions) -> int:
    """Runs the command."""
    index = DocumentIndex.load(args.index)
    query = " ".join(args.query).strip()
    url = query if is_url(query) else ""
    filters = index.filters(
        date_range(index, url, args.day("since"), args.day("until"), args.days), args.language, args.publisher
    )
    if not index.count(filters):
        raise index.nothing_left(filters)
    if url:
        found = Found(index.search_url(url, args.count, filters), "vectors")
    else:
        mode = chosen_mode(args.mode)
        reading: dict[str, Any] = {"max_length": args.max_length, "query_prompt": args.prompt}
        encoder = None if mode == "words" else index_encoder(index, args.spec, **reading)
        if isinstance(encoder, SavedModelEncoder):
            print(f"note: {_SLOW_START}", file=sys.stderr)
        found = find_words(index, encoder, query, args.count, mode=mode, filters=filters)
    weak = () if found.matches or not found.hits else (_WEAK,)
    for note in (*found.notes, *weak):
        print(f"note: {visible(note)}", file=sys.stderr)
    if args.json:
        results = json.dumps([hit.to_dict() for hit in found.hits], ensure_ascii=False, indent=2)
        print(visible(results, "\\u{:04x}"))
    elif found.hits:
        from rich.console import Console

        print_results(found.hits, Console())
    return 0


def is_url(query: str) -> bool:
    """Whether ``query`` asks by URL."""
    return query.startswith(("http://", "https://")) and not any(map(str.isspace, query))


def date_range(
    index: DocumentIndex, url: str, since: datetime.date | None, until: datetime.date | None, days: int | None
) -> DateRange:
    """The byline dates that a query is restricted to.

    Args:
      index: the index.
      url: of an indexed document, "" for a query of words.
      since: the first day, or None.
      until: the last day, or None.
      days: the greatest distance from the date of that document, or None.

    Raises:
      InputError: if it has both, or days around words.
    """
    if days is None:
        return DateRange(since, until)
    if since or until:
        raise InputError("given with since or until", field="days", remedy="give one or the other")
    if not url:
        problem = "days are counted from an article, and the query names none"
        raise InputError(problem, field="days", remedy="give since and until")
    return index.dates_around(url, days)


def find_words(
    index: DocumentIndex,
    encoder: TextEncoder | None,
    words: str,
    count: int,
    *,
    mode: Mode | None = None,
    filters: Filters = NO_FILTERS,
) -> Found:
    """The documents that answer ``words``, with the places of the words in them.

    Args:
      index: what is searched.
      encoder: of the index; None in the mode words.
      words: the query.
      count: how many.
      mode: None for hybrid.
      filters: what the documents must be.

    Raises:
      InputError: if there are no words, or no document passes the filters.
    """
    if not has_text(words):
        problem = "the query is empty" if not words.strip() else "the query has no visible characters"
        raise InputError(problem, field="query", remedy="give words or the URL of an indexed article")
    vector = None if encoder is None else encoder.encode_queries([words])[0]
    return find(index, words, vector, count, mode=mode, filters=filters)


def index_encoder(
    index: DocumentIndex,
    spec: str | None = None,
    *,
    max_length: int | None = None,
    query_prompt: str | None = None,
) -> TextEncoder:
    """The encoder for queries to ``index``: that of ``spec``, or the one the index names.

    Args:
      index: whose documents have the prompt that it was built with.
      spec: ``KIND:REST``, None for the index's own.
      max_length: tokens read of each text; None takes as many as the index was built with.
      query_prompt: the text before each query; None takes the model's.

    Raises:
      InputError: if there is none, it differs from the one that built the index, so that its vectors would not compare,
        or the index names a SavedModel that this user neither made nor named.
    """
    named = spec or index.encoder
    if not named:
        raise InputError("the index does not say which encoder built it", remedy="give --model or --saved_model")
    if max_length is None and not named.startswith("savedmodel:"):  # which has its own
        max_length = index.settings["max_length"]
    options = {
        "max_length": max_length,
        "document_prompt": index.settings["document_prompt"],
        "long_documents": index.settings["long_documents"],
        "query_prompt": query_prompt,
    }
    if not spec:
        check_encoder(index.encoder)
    try:
        encoder = encoder_from_spec(named, progress=False, **options)
    except InputError as error:
        if spec or os.path.isdir(split_encoder(index.encoder)[1]):
            raise
        problem = f"the encoder that built the index was not found: {index.encoder}, digest {index.encoder_digest}"
        raise InputError(problem, remedy="give the folder of this encoder by --saved_model or --model") from error
    if index.encoder_digest and encoder.digest != index.encoder_digest:
        model, _, reading = encoder.digest.partition("-")
        model_then, _, reading_then = index.encoder_digest.partition("-")
        if model == model_then and reading_then.isdigit():
            problem = f"the index was built with {reading_then} tokens of each document, the encoder reads {reading}"
            raise InputError(problem, field="--max_length", remedy=f"give --max_length {reading_then}")
        problem = f"{named} is not the encoder that built the index ({index.encoder or 'unnamed'})"
        raise InputError(problem, remedy="give that encoder, or build the index again")
    return encoder


def print_results(hits: Sequence[Hit], console: "Console") -> None:
    """Prints rank, title, publisher, date, URL and extract of each result, and of several languages which.

    Before them stands how well it answers the words of a query, or its cosine where there are none.
    A URL can be given as the next query, so it is not broken into lines: the terminal wraps it, and copies it whole.
    """
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Column, Table

    several = len({hit.document.language for hit in hits}) > 1
    for hit in hits:
        document = hit.document
        date = document.byline_date.isoformat() if document.byline_date else ""
        head = Table.grid(Column(width=_INDENT - 2, justify="right"), Column(overflow="fold"), padding=(0, 2, 0, 0))
        head.add_row(str(hit.rank), _highlighted(document.title, hit.extract.title if hit.extract else ()))
        facts = (hit.band or f"{hit.score:.4f}", document.language if several else "", document.publisher, date)
        head.add_row("", escape(visible("  ".join(filter(None, facts)))))
        console.print(head)
        if document.url:
            console.print(" " * _INDENT + visible(document.url), soft_wrap=True, markup=False, highlight=False)
        if hit.extract and hit.extract.marks:
            console.print(Padding(_highlighted(hit.extract.body, hit.extract.marks), (0, 0, 0, _INDENT)))


def _highlighted(text: str, places: Places) -> "Text":
    """A text for the terminal with the words at some places in bold."""
    from rich.text import Text

    result = Text(visible(text))
    for start, end in places:
        result.stylize("bold", start, end)
    return result
