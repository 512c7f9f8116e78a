"""Extraction compared with peers in one run: quality on pages with a known truth, and pages per second on a WARC.

    python benchmarks/extraction.py ../shared/data --pages 300
    python benchmarks/extraction.py --gold gold/wcxb-test gold/fundus-parsers

Quality: body F1, days and authors, see `gold_pages.py`; `gold_sets.py` makes folders of other sets for `--gold`.
Speed: CPU seconds of one process on the same decoded pages. All readers run in turn on each page, so that other load on
the machine affects them equally. "ours" is the complete `extract_page` (text, title, authors, days, links, hub or
article).
"""

import argparse
import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path

from newsembed.beam_pipelines.extract.charsets import decode
from newsembed.beam_pipelines.extract.page import extract_page
from newsembed.benchmarks import gold_pages
from newsembed.formats.dates import parse_day


def ours(html: str, url: str) -> tuple:
    """Returns (text, authors, day) by `extract_page`."""
    article = extract_page(html, url).article
    return (article.body, article.authors, article.byline_date) if article else ("", (), None)


def trafilatura(html: str, url: str) -> tuple:
    """Returns (text, authors, day) by trafilatura with metadata."""
    import trafilatura

    document = trafilatura.bare_extraction(html, url=url, with_metadata=True, include_comments=False)
    if document is None:
        return "", (), None
    authors = tuple(name.strip() for name in (document.author or "").split(";") if name.strip())
    return document.text or "", authors, parse_day(document.date)


def text_only(html: str, _url: str) -> tuple:
    """Returns (text, (), None) by trafilatura's default."""
    import trafilatura

    return trafilatura.extract(html) or "", (), None


def resiliparse(html: str, _url: str) -> tuple:
    """Returns (text, (), None) by Resiliparse's main content."""
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(html, main_content=True, alt_texts=False), (), None


READERS: dict[str, Callable[[str, str], tuple]] = {"ours": ours, "trafilatura": trafilatura, "resiliparse": resiliparse}
TIMED = READERS | {"trafilatura, text only": text_only}


def quality(name: str, pages: list[gold_pages.GoldPage]) -> None:
    """Prints a table of the quality of each reader on a set of pages."""
    decoded = [(page, decode(page.html, "") or "") for page in pages]
    print(f"\n{name}, {len(pages)} pages\n\n| reader | F1 | precision | recall | exact | days | author F1 |")
    print("|---|---|---|---|---|---|---|")
    for reader, read in READERS.items():
        found = [(page, *read(html, page.url)) for page, html in decoded]
        matches = [gold_pages.match(page, text) for page, text, _, _ in found]
        scores = " | ".join(f"{score:.4f}" for score in gold_pages.body_scores(matches))
        exact = sum(one.f1 == 1.0 for one in matches) / len(pages)
        days = [day == page.day for page, _, _, day in found if page.day]
        names = [(authors, page.authors) for page, _, authors, _ in found if page.authors is not None]
        right = f"{sum(days)} of {len(days)}" if days else "-"
        author_f1 = f"{gold_pages.author_f1(names):.3f}" if names else "-"
        print(f"| {reader} | {scores} | {exact:.3f} | {right} | {author_f1} |", flush=True)


def speed(path: Path, pages: int) -> None:
    """Prints a table of the speed of each reader on pages of a WARC file."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    with path.open("rb") as source:
        records = [
            (record.headers["WARC-Target-URI"], record.http_charset or "", record.reader.read())
            for record in ArchiveIterator(source, parse_http=True, record_types=WarcRecordType.response)
        ]
    step = max(2, len(records) // pages)
    others, decoded = (
        [(url, html) for url, charset, raw in records[start::step] if (html := decode(raw, charset))]
        for start in (1, 0)
    )
    seconds = dict.fromkeys(TIMED, 0.0)
    # Imports, and the word lists that ours and trafilatura's default share, are loaded by other pages.
    for url, html in others:
        for read in TIMED.values():
            read(html, url)
    for url, html in decoded:
        for reader, read in TIMED.items():
            started = time.process_time()
            read(html, url)
            seconds[reader] += time.process_time() - started
    print(
        f"\n{path.name}, {len(decoded)} of {len(records)} pages, "
        f"{sum(len(html) for _, html in decoded) / len(decoded) / 1000:.0f} thousand characters each"
    )
    print("\n| reader | pages per second and core | times text only |\n|---|---|---|")
    for reader, spent in seconds.items():
        print(f"| {reader} | {len(decoded) / spent:.1f} | {seconds['trafilatura, text only'] / spent:.2f} |")


def main() -> None:
    """Prints the versions and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder that contains html-gold/ and us-news/")
    parser.add_argument("--gold", type=Path, nargs="*", default=[], help="folders that gold_sets.py wrote")
    parser.add_argument("--pages", type=int, default=300, help="number of pages of the WARC that are timed")
    args = parser.parse_args()
    for package in ("trafilatura", "lxml", "resiliparse"):
        print(package, importlib.metadata.version(package))
    if args.data:
        for name, read_pages in gold_pages.SETS.items():
            quality(name, list(read_pages(args.data / "html-gold" / name)))
        speed(args.data / "us-news/stories-2016-11.warc.gz", args.pages)
    for folder in args.gold:
        quality(folder.name, list(gold_pages.read_folder(folder)))


if __name__ == "__main__":
    main()
