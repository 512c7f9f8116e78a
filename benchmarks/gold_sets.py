"""Converts public sets of pages with a known text to the folder format of `gold_pages.read_folder`.

    python benchmarks/gold_sets.py wcxb web-content-extraction-benchmark gold/wcxb-articles --split dev
    python benchmarks/gold_sets.py fundus fundus/tests/resources/parser/test_data gold/fundus-parsers

A folder contains `pages.jsonl`, one object for each page (`name`, `url`, `publisher`, `body`, `optional`: paragraphs
that may be extracted or not), and `html/NAME.html.gz`. `publisher` is the registered domain of the URL, or the name of
the page if the set does not state URLs. The sets are downloaded by the user:

| set | repository on GitHub | licence | text |
|---|---|---|---|
| wcxb | Murrough-Foley/web-content-extraction-benchmark | CC BY 4.0 | drafted by a model, reviewed by people |
| fundus | flairNLP/fundus, tests/resources/parser/test_data | MIT (code) | a parser written for each publisher |
| readability | mozilla/readability, test/test-pages | Apache 2.0 | reviewed output of Readability |
| chinese | immortal-autumn/Chinese-Web-Content-Extraction-Dataset | MIT | by hand |
| fundus-evaluation, newspaper4k | see `gold_pages` | | by hand |
"""

import argparse
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tld
from lxml import etree
from newsembed.beam_pipelines.extract.layout import words
from newsembed.benchmarks import gold_pages
from newsembed.benchmarks.gold_pages import GoldPage

_BREAK = "\u2028"
_BLOCKS = words("p h1 h2 h3 h4 h5 h6 li dd dt pre blockquote div section td th figcaption br tr")


def wcxb(folder: Path, split: str = "dev", kind: str = "article") -> Iterator[GoldPage]:
    """Yields the pages of one split and one kind of WCXB."""
    for path in sorted((folder / split / "ground-truth").glob("*.json")):
        truth = json.loads(path.read_text())
        if truth["_internal"]["page_type"]["primary"] == kind:
            html = gzip.decompress((folder / split / "html" / f"{path.stem}.html.gz").read_bytes())
            yield GoldPage(path.stem, truth.get("url") or "", html, truth["ground_truth"].get("main_content") or "")


def fundus(folder: Path) -> Iterator[GoldPage]:
    """Yields the test pages of Fundus; summaries are optional."""
    for path in sorted(folder.glob("*/*.json")):
        addresses = json.loads((path.parent / "meta.info").read_text())
        pages = sorted(path.parent.glob(f"{path.stem}_*.html.gz"))
        truths = list(json.loads(path.read_text()).values())  # one for each version of the parser, oldest first
        for page, truth in zip(pages, truths, strict=False):
            if len(pages) == len(truths) and (body := truth.get("body")):
                parts = [part for one in body["sections"] for part in [*one["headline"], *one["paragraphs"]]]
                name = f"{path.parent.name}-{page.name.removesuffix('.html.gz')}"
                html = gzip.decompress(page.read_bytes())
                yield GoldPage(name, addresses[page.name]["url"], html, "\n".join(parts), tuple(body["summary"]))


def readability(folder: Path) -> Iterator[GoldPage]:
    """Yields the test pages of Mozilla's Readability; the text is that of `expected.html`."""
    for page in sorted(folder.glob("*/source.html")):
        tree = etree.fromstring((page.parent / "expected.html").read_bytes(), etree.HTMLParser(encoding="utf-8"))
        for node in tree.iter():
            if node.tag in _BLOCKS:
                node.text, node.tail = _BREAK + (node.text or ""), _BREAK + (node.tail or "")
        lines = "".join(tree.itertext()).split(_BREAK)
        html = page.read_bytes()
        yield GoldPage(page.parent.name, "", html, "\n".join(line for raw in lines if (line := " ".join(raw.split()))))


def chinese(folder: Path) -> Iterator[GoldPage]:
    """Yields the pages of the Chinese Web Content Extraction Dataset."""
    for path in sorted((folder / "cleaned").glob("*.txt")):
        yield GoldPage(path.stem, "", (folder / "original" / f"{path.stem}.html").read_bytes(), path.read_text())


SETS: dict[str, Callable[..., Iterator[GoldPage]]] = {
    "wcxb": wcxb,
    "fundus": fundus,
    "readability": readability,
    "chinese": chinese,
    "fundus-evaluation": gold_pages.fundus,
    "newspaper4k": gold_pages.newspaper4k,
}


def publisher_of(page: GoldPage) -> str:
    """Returns the registered domain of a page's URL; the name of the page if there is none."""
    return tld.get_fld(page.url, fail_silently=True) or page.name


def write_folder(pages: Iterator[GoldPage], output: Path) -> int:
    """Writes pages in the folder format, returns their number; pages without a text are left out."""
    (output / "html").mkdir(parents=True)
    count = 0
    with (output / "pages.jsonl").open("w") as lines:
        for page in pages:
            if page.body.strip():
                row: dict[str, Any] = {"name": page.name, "url": page.url or f"http://{page.name}.example/story"}
                row |= {"publisher": publisher_of(page), "body": page.body, "optional": page.optional}
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
                (output / "html" / f"{page.name}.html.gz").write_bytes(gzip.compress(page.html, mtime=0))
                count += 1
    return count


def main() -> None:
    """Converts one set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("source", type=Path, help="folder of the set as it is distributed")
    parser.add_argument("output", type=Path, help="folder to write; must not exist")
    parser.add_argument("--split", default="dev", help="wcxb only: dev or test")
    parser.add_argument("--kind", default="article", help="wcxb only: article, forum, listing, ...")
    args = parser.parse_args()
    options = {"split": args.split, "kind": args.kind} if args.set == "wcxb" else {}
    print(write_folder(SETS[args.set](args.source, **options), args.output), "pages")


if __name__ == "__main__":
    main()
