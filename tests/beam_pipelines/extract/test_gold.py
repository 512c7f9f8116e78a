"""Quality floors on pages with a known truth: a change that reads them worse fails. Never lower a floor."""

import os
import sys
from pathlib import Path

import pytest
from newsembed.beam_pipelines.extract.page import extract_page
from newsembed.benchmarks import gold_pages

sys.path.insert(0, os.path.dirname(__file__))

from written_pages import PAGES

DATA = Path(__file__).parents[3] / "../shared/data/html-gold"
FLOORS = {"fundus-evaluation": 0.975, "newspaper4k": 0.965}


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_pages_written_for_the_tests_are_read_exactly(page):
    article = extract_page(page.html, page.url).article
    assert article.body == page.body
    assert article.byline_date == page.day
    if page.authors is not None:
        assert article.authors == page.authors


def test_the_written_pages_reach_the_scores_of_the_benchmark():
    found = [(page, extract_page(page.html, page.url).article) for page in PAGES]
    assert gold_pages.body_scores(gold_pages.match(page, article.body) for page, article in found) == (1.0, 1.0, 1.0)


@pytest.fixture(params=FLOORS)
def gold(request):
    folder = DATA / request.param
    if not folder.is_dir():
        pytest.skip(f"../shared/data/html-gold/{request.param} is absent")
    pages = list(gold_pages.SETS[request.param](folder))
    return request.param, [(page, extract_page(page.html, page.url).article) for page in pages]


@pytest.mark.real_data
def test_bodies_authors_and_days_of_real_pages_reach_the_floors(gold):
    name, found = gold
    score, precision, recall = gold_pages.body_scores(
        gold_pages.match(page, article.body if article else "") for page, article in found
    )
    assert score >= FLOORS[name], f"precision {precision:.4f}, recall {recall:.4f}"
    dated = [(article.byline_date if article else None, page.day) for page, article in found if page.day]
    assert sum(ours == true for ours, true in dated) >= 0.95 * len(dated), dated
    named = [(article.authors if article else (), page.authors) for page, article in found if page.authors is not None]
    assert not named or gold_pages.author_f1(named) >= 0.95, named
