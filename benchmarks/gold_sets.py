"""Converts public sets of pages with a known text to the folder format of `gold_pages.read_folder`.

    python benchmarks/gold_sets.py wcxb web-content-extraction-benchmark gold/wcxb-articles --split dev
    python benchmarks/gold_sets.py fundus fundus/tests/resources/parser/test_data gold/fundus-parsers

A folder contains `pages.jsonl`, one object for each page (`name`, `url`, `body`, `optional`: paragraphs that may be
extracted or not), and `html/NAME.html.gz`. The sets are downloaded by the user:

| set | repository on GitHub | licence | text |
|---|---|---|---|
| wcxb | Murrough-Foley/web-content-extraction-benchmark | CC BY 4.0 | drafted by a model, reviewed by people |
| fundus | flairNLP/fundus, tests/resources/parser/test_data | MIT (code) | a parser written for each publisher |
"""

import argparse
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from newsembed.benchmarks.gold_pages import GoldPage


def wcxb(folder: Path, split: str = "dev") -> Iterator[GoldPage]:
    """Yields the pages of one split of WCXB that are articles."""
    for path in sorted((folder / split / "ground-truth").glob("*.json")):
        truth = json.loads(path.read_text())
        if truth["_internal"]["page_type"]["primary"] == "article":
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


SETS: dict[str, Callable[..., Iterator[GoldPage]]] = {"wcxb": wcxb, "fundus": fundus}


def write_folder(pages: Iterator[GoldPage], output: Path) -> int:
    """Writes pages in the folder format, returns their number; pages without a text are left out."""
    (output / "html").mkdir(parents=True)
    count = 0
    with (output / "pages.jsonl").open("w") as lines:
        for page in pages:
            if page.body.strip():
                url = page.url or f"http://{page.name}.example/story"
                row = {"name": page.name, "url": url, "body": page.body, "optional": page.optional}
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
    args = parser.parse_args()
    options = {"split": args.split} if args.set == "wcxb" else {}
    print(write_folder(SETS[args.set](args.source, **options), args.output), "pages")


if __name__ == "__main__":
    main()
