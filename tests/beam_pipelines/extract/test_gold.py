"""Floors on pages with a known truth: a change that reads them worse does not pass. The floors may be raised, never lowered."""

from pathlib import Path

import pytest
from newsembed.beam_pipelines.extract.page import extract_page
from newsembed.benchmarks import gold_pages

DATA = Path(__file__).parents[3] / "../shared/data/html-gold"
pytestmark = pytest.mark.real_data


@pytest.fixture(params=["fundus-evaluation", "newspaper4k"])
def gold(request):
    folder = DATA / request.param
    if not folder.is_dir():
        pytest.skip(f"../shared/data/html-gold/{request.param} is absent")
    pages = list(gold_pages.SETS[request.param](folder))
    return request.param, [(page, extract_page(page.html, page.url).article) for page in pages]


FLOORS = {"fundus-evaluation": 0.975, "newspaper4k": 0.965}


def test_bodies_authors_and_days(gold):
    name, found = gold
    score, precision, recall = gold_pages.body_scores(
        gold_pages.match(page, article.body if article else "") for page, article in found
    )
    assert score >= FLOORS[name], f"precision {precision:.4f}, recall {recall:.4f}"
    dated = [(article.byline_date if article else None, page.day) for page, article in found if page.day]
    assert sum(ours == true for ours, true in dated) >= 0.95 * len(dated), dated
    named = [(article.authors if article else (), page.authors) for page, article in found if page.authors is not None]
    assert not named or gold_pages.author_f1(named) >= 0.95, named
