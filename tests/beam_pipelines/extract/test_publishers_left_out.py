"""Quality floors on publishers that neither the rules nor the thresholds saw. Never lower a floor."""

import os
import sys
from pathlib import Path
from statistics import mean

import pytest
from newsembed.beam_pipelines.extract.page import extract_page
from newsembed.benchmarks import fit_body_choice, gold_pages, gold_sets

sys.path.insert(0, os.path.dirname(__file__))

import written_pages
from unseen_pages import PAGES

DATA = Path(__file__).parents[3] / "../shared/data/html-gold"
FLOORS = {"fundus-evaluation": 0.965, "newspaper4k": 0.955}


def named(page):
    """The page with its publisher."""
    return gold_pages.GoldPage(
        page.name, page.url, page.html, page.body, page.optional, publisher=gold_sets.publisher_of(page)
    )


def test_pages_written_after_the_rules_reach_the_floor():
    matches = {}
    for page in PAGES:
        article = extract_page(page.html, page.url).article
        matches[page.name] = gold_pages.match(page, article.body if article else "")
    score, precision, recall = gold_pages.body_scores(matches.values())
    found = {name: round(one.f1, 3) for name, one in matches.items()}
    assert score >= 0.94, (precision, recall, found)
    # Two sentences between 25 links with long names are taken for a list of links.
    assert [name for name, f1 in found.items() if f1 < 0.9] == ["association with a long menu"]


def test_written_pages_reach_the_floor_with_thresholds_of_other_publishers():
    pages = [fit_body_choice.read(named(page)) for page in [*PAGES, *written_pages.PAGES]]
    assert len({page.part for page in pages}) > 1
    assert mean(fit_body_choice.held_out(pages)) >= 0.9


@pytest.mark.real_data
@pytest.mark.parametrize("name", FLOORS)
def test_real_pages_reach_the_floor_with_thresholds_of_other_publishers(name):
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"../shared/data/html-gold/{name} is absent")
    pages = [read for page in gold_pages.SETS[name](folder) if (read := fit_body_choice.read(named(page)))]
    assert len({page.part for page in pages}) == fit_body_choice.PARTS
    assert mean(fit_body_choice.held_out(pages)) >= FLOORS[name]
