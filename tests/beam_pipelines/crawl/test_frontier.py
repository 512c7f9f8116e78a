"""The order of the visits of a site."""

import datetime

import pytest
from newsembed.beam_pipelines.crawl.frontier import Frontier, Visit
from newsembed.beam_pipelines.crawl.state import UrlRecord


def known(day=1, kind="page"):
    return UrlRecord("", "", "", datetime.date(2024, 5, day), kind)


def order_of(*added):
    frontier = Frontier()
    for visit, record, last in added:
        frontier.add(visit, record, last=last)
    found = []
    while frontier:
        found.append(frontier.pop().url)
    return found


def test_without_records_pages_are_breadth_first_and_precede_sitemaps():
    visits = [Visit("map", 0, "sitemap"), Visit("b", 1), Visit("a", 1), Visit("seed"), Visit("c", 2)]
    assert order_of(*((visit, None, False) for visit in visits)) == ["seed", "b", "a", "c", "map"]


def test_at_each_depth_new_pages_and_feeds_come_before_known_pages():
    assert order_of(
        (Visit("deeper", 2), None, True),
        (Visit("section", 1), known(), False),
        (Visit("new", 1), None, False),
        (Visit("feed", 1), known(kind="feed"), True),
    ) == ["new", "feed", "section", "deeper"]


def test_known_articles_come_last_the_longest_unrequested_first():
    assert order_of(
        (Visit("yesterday", 1), known(day=2), True),
        (Visit("long ago", 1), known(day=1), True),
        (Visit("yesterday, too", 1), known(day=2), True),
        (Visit("map", 0, "sitemap"), None, False),
        (Visit("deep", 9), None, True),
    ) == ["deep", "map", "long ago", "yesterday", "yesterday, too"]


def test_an_empty_frontier_has_no_next_visit():
    with pytest.raises(IndexError):
        Frontier().pop()
