"""Chooses the thresholds of `extract.body` that ask a second reader and trafilatura, publishers left out in turn.

    python benchmarks/fit_body_choice.py gold/wcxb-dev gold/fundus-parsers gold/fundus-evaluation gold/newspaper4k

Every page is read once by the rules, by the same rules without names, and by trafilatura. For each combination of least
support, least coverage and bonus, the body is chosen as in `read_body`, without JSON-LD. Publishers are divided into
five parts: thresholds that give the highest mean F1 on four parts are tested on the fifth. Prints the result beside
that of the thresholds in use and of the rules alone, and the best thresholds of all pages.
"""

import argparse
import dataclasses
import itertools
import zlib
from pathlib import Path
from statistics import mean

from newsembed.beam_pipelines.extract import body
from newsembed.beam_pipelines.extract.charsets import decode
from newsembed.beam_pipelines.extract.content import main_content
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.page import headings_of, parse
from newsembed.benchmarks import gold_pages

PARTS = 5
GRID = tuple(itertools.product((0.0, 0.25, 0.5, 0.75), (0.0, 0.1, 0.25, 0.5), (0.0, 0.3, 0.6)))


@dataclasses.dataclass(frozen=True)
class Page:
    """What the choice depends on, and F1 of the texts: rules, trafilatura, rules without names.

    Attributes:
      part: part of its publisher.
      sure: whether the rules are sure before the second reader is asked; ``None`` if it is not asked at all.
      support: share of the words of the rules' text that the second reader has.
      coverage: share of the words of the second reader that the rules' text has.
      agreement: sum of the F1 with the other two, for each text; -1 for an empty text.
      f1: F1 with the truth.
    """

    part: int
    sure: bool | None
    support: float
    coverage: float
    agreement: tuple[float, ...]
    f1: tuple[float, ...]


def read(gold: gold_pages.GoldPage) -> Page | None:
    """Reads a page; ``None`` if it has no markup."""
    html = decode(gold.html, "") or ""
    tree = parse(html)
    if tree is None:
        return None
    layout, title = lay_out(tree), next(iter(headings_of(tree)), "")
    own, second = main_content(layout, title), main_content(layout, title, by_names=False)
    texts = (own.text, body.slow_text(html, gold.url), second.text)
    sure = own.confidence >= body.MIN_CONFIDENCE and len(own.text) >= body.least_characters(layout)
    agreement = [
        sum(body.f1_of(*body.overlap(one, texts[other])) for other in range(3) if other != index) if one else -1.0
        for index, one in enumerate(texts)
    ]
    return Page(
        zlib.crc32(gold.publisher.encode()) % PARTS,
        None if sure and own.share >= body.CLEAR_SHARE else sure,
        *body.overlap(own.text, second.text),
        tuple(agreement),
        tuple(gold_pages.match(gold, text).f1 for text in texts),
    )


def chosen(page: Page, support: float, coverage: float, bonus: float) -> float:
    """Returns F1 of the text that is chosen with these thresholds."""
    if page.sure is None or (page.sure and page.support >= support and page.coverage >= coverage):
        return page.f1[0]
    scores = [score + bonus * (index == 0) for index, score in enumerate(page.agreement)]
    return page.f1[scores.index(max(scores))]


def fitted(pages: list[Page]) -> tuple[float, float, float]:
    """Returns the thresholds with the highest mean F1 on some pages."""
    return max(GRID, key=lambda values: mean(chosen(page, *values) for page in pages))


def held_out(pages: list[Page]) -> list[float]:
    """Returns F1 of each page with thresholds that were fitted on the pages of other publishers."""
    thresholds = {part: fitted([page for page in pages if page.part != part]) for part in {page.part for page in pages}}
    return [chosen(page, *thresholds[page.part]) for page in pages]


def main() -> None:
    """Prints mean F1 of each set: rules alone, thresholds in use, thresholds fitted on other publishers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders that gold_sets.py wrote")
    sets = {
        folder.name: [page for gold in gold_pages.read_folder(folder) if (page := read(gold)) is not None]
        for folder in parser.parse_args().folders
    }
    pages = [page for one in sets.values() for page in one]

    out = dict(zip(map(id, pages), held_out(pages), strict=True))
    in_use = (body.MIN_SUPPORT, 0.0, body.OWN_BONUS)
    print("| set | pages | rules alone | in use | fitted without the publisher |\n|---|---|---|---|---|")
    for name, one in sets.items():
        scores = [
            mean(page.f1[0] for page in one),
            mean(chosen(page, *in_use) for page in one),
            mean(out[id(page)] for page in one),
        ]
        print(f"| {name} | {len(one)} | {' | '.join(f'{score:.4f}' for score in scores)} |")
    print("support, coverage, bonus: in use", in_use, "best", fitted(pages))


if __name__ == "__main__":
    main()
