"""Events as cards: ranks, leads, near copies and filters, by hand and against plain loops."""

import dataclasses
import datetime

import numpy as np
import pytest
from newsembed.formats.archive import Archive, EventMerge, IndexedDocument
from newsembed.formats.archive_writer import Writer
from newsembed.formats.articles import ArticleText
from newsembed.serving.events import EventOptions
from newsembed.serving.explorer.book import EventBook, center_of, folded, found_events
from newsembed.serving.filters import DateRange
from newsembed.serving.index import DocumentIndex
from refusals import refuses
from tables import index_of
from vectors import circle, unit

DAY = datetime.date(2024, 3, 1)


def article(name, publisher="a.example", day=0, language="en", image=""):
    date = None if day is None else DAY + datetime.timedelta(day)
    return IndexedDocument(name, f"https://{publisher}/{name}", publisher, f"title {name}", date, language, image)


def book_of(articles, degrees, events):
    return EventBook(index_of(circle(*degrees), articles), events)


@pytest.fixture(scope="module")
def book():
    """Three events: "a" with four articles of three publishers, "e" with two of one, "g" alone; "h" has no date."""
    articles = [article("a", "one.example"), article("b", "two.example", 1, "de", "https://two.example/b.jpg")]
    articles += [article("c", "three.example", 1), article("d", "one.example", 3), article("e", "one.example", 1)]
    articles += [article("f", "one.example", 2), article("g", "two.example", 9), article("h", "two.example", None)]
    return book_of(articles, [0, 10, 12, 30, 90, 92, 180, 200], ["a", "a", "a", "a", "e", "e", "g", ""])


def ids(book, filters):
    return [book.card(number).id for number in book.ranked(filters).tolist()]


def test_events_of_most_publishers_come_first(book):
    assert ids(book, book.index.filters()) == ["a", "e", "g"]


def test_events_with_as_many_publishers_are_ranked_by_articles_then_by_their_last_day():
    articles = [article("a", day=1), article("b", day=2), article("c", day=3), article("d", day=3)]
    book = book_of(articles, [0, 0, 90, 180], ["a", "a", "c", "d"])
    assert ids(book, book.index.filters()) == ["a", "c", "d"]


def test_only_articles_that_pass_the_filters_are_counted(book):
    # Of the days 2 and 3, each event has one article of one publisher; d is later.
    filters = book.index.filters(DateRange(DAY + datetime.timedelta(2), DAY + datetime.timedelta(3)))
    assert ids(book, filters) == ["a", "e"]
    assert ids(book, book.index.filters(publishers=["two.example"])) == ["g", "a"]
    assert ids(book, book.index.filters(languages=["de"])) == ["a"]


def test_a_card_describes_the_whole_event(book):
    card = book.card(book.number("a"))
    assert (card.first, card.last, card.articles) == (DAY, DAY + datetime.timedelta(3), 4)
    assert card.publishers == (("one.example", 2), ("three.example", 1), ("two.example", 1))
    assert card.languages == (("en", 3), ("de", 1))
    assert [(day.day, count) for day, count in card.timeline] == [(1, 1), (2, 2), (4, 1)]
    assert card.image_url == "https://two.example/b.jpg"


def test_the_lead_is_the_article_most_like_the_others(book):
    # Sums of cosines of 0, 10, 12, 30: those of 12 are the largest.
    card = book.card(book.number("a"))
    assert card.lead.doc_id == "c"
    assert [report.doc_id for report in card.reports] == ["c", "a", "b"]  # one article of each publisher


def test_the_image_of_the_lead_is_preferred():
    articles = [article("a", image="https://a.example/a.jpg"), article("b", image="https://a.example/b.jpg")]
    book = book_of([*articles, article("c")], [0, 10, 20], ["a", "a", "a"])
    assert book.card(0).image_url == "https://a.example/b.jpg"


def test_a_whole_event_has_all_articles_by_date_with_near_copies_folded(book):
    reports = book.card(book.number("a"), whole=True).reports
    # cos 10 and cos 12 exceed 0.95 (18 degrees), 30 is 18 from 12 but 30 from the first.
    assert [(one.doc_id, [copy.doc_id for copy in one.copies]) for one in reports] == [("a", ["b", "c"]), ("d", [])]


def test_folding_loses_no_article():
    vectors = unit(3, 60, 3)
    documents = [article(str(place)) for place in range(60)]
    reports = folded(documents, vectors)
    found = [one.doc_id for report in reports for one in (report, *report.copies)]
    assert sorted(found) == sorted(document.doc_id for document in documents)
    shown = [int(report.doc_id) for report in reports]
    cosines = vectors[shown] @ vectors[shown].T
    assert (cosines[~np.eye(len(shown), dtype=bool)] < 0.95).all()
    for report in reports:
        for copy in report.copies:
            near = [place for place in shown if vectors[place] @ vectors[int(copy.doc_id)] >= 0.95]
            assert near[0] == int(report.doc_id)


def test_events_are_looked_up_by_id_and_by_article(book):
    assert book.event_of("https://one.example/f") == book.number("e")
    assert book.event_of("https://two.example/h") is None
    assert [book.number(name) for name in ("b", "", "zzz")] == [None] * 3
    refuses("no document with the URL", book.event_of, "https://one.example/none")


def test_the_last_week_ends_with_the_last_date(book):
    days = book.last_days(7)
    assert (days.since, days.until) == (DAY + datetime.timedelta(3), DAY + datetime.timedelta(9))
    assert book.span() == (DAY, DAY + datetime.timedelta(9))
    undated = book_of([article("a", day=None)], [0], [""])
    assert undated.span() is None
    refuses("no article of the index has a byline date", undated.last_days)
    assert not len(undated.ranked(undated.index.filters()))


def test_the_shortest_period_with_enough_events_of_several_reports_is_shown_first():
    def shown(*ages):
        """The days of the default for events of two reports each, so many days before the last one."""
        articles = [article(f"{n}-{copy}", day=400 - age) for n, age in enumerate(ages) for copy in range(2)]
        names = [f"{n}-0" for n in range(len(ages)) for _ in range(2)]
        days = book_of(articles, [0] * len(articles), names).last_days()
        return (days.until - days.since).days + 1

    assert shown(*[0] * 12) == 1
    assert shown(*[0] * 11, 3) == 7
    assert shown(*[0] * 11, 8) == 31
    assert shown(0, 20) == 31  # never enough: where most are
    assert shown(0, 399) == 1


def test_a_last_article_years_after_all_events_is_not_the_period_that_is_shown():
    days = {"a": 0, "b": 1, "late": 900, "x": None, "y": None}
    articles = [article(name, day=day) for name, day in days.items()]
    days = book_of(articles, [0, 1, 90, 5, 6], ["a", "a", "late", "", ""]).last_days()
    assert (days.since, days.until) == (DAY, DAY)


def test_publishers_that_write_on_these_days_but_not_of_the_event_are_named():
    articles = [article("a", "one.example", 8), article("b", "two.example", 9)]
    articles += [article(f"c{n}", "often.example", 9 - n) for n in range(3)]
    articles += [article("d", "once.example", 9), *(article(f"e{n}", "before.example", 1) for n in range(3))]
    articles += [article(f"f{n}", "most.example", 5) for n in range(4)]
    book = book_of(articles, [0] * len(articles), ["a", "a", *(one.doc_id for one in articles[2:])])
    assert book.card(book.number("a"), whole=True).silent == ("most.example", "often.example")
    assert book.card(book.number("a")).silent == ()


def test_the_first_publisher_is_named_if_it_was_alone_and_others_followed(book):
    assert [book.card(book.number(name)).first_by for name in ("a", "e", "g")] == ["one.example", "", ""]
    two = book_of([article("a"), article("b", "two.example")], [0, 1], ["a", "a"])
    assert two.card(0).first_by == ""


def test_a_whole_event_says_what_each_report_adds_and_cards_have_a_summary():
    bodies = ["The river rose on Friday morning near the old stone bridge.", "Nobody was hurt. " * 2]
    bodies[1] = bodies[0] + " Rescue teams carried forty people out of flooded houses with boats."
    sites = [(f"{n}", f"https://p{n}.example/", f"p{n}.example") for n in range(2)]
    texts = [ArticleText(*site, "t", body, "en", DAY) for site, body in zip(sites, bodies, strict=True)]
    book = EventBook(index_of(circle(0, 40), texts), ["0", "0"])
    (card,) = book.with_summaries([book.card(0)])
    assert card.summary in bodies[0] + bodies[1]
    first, second = book.card(0, whole=True).reports
    assert (first.adds, second.adds) == ((), ("Rescue teams carried forty people out of flooded houses with boats.",))
    assert first.summary == bodies[0]


def test_the_story_of_an_event_has_similar_events_before_and_after_it():
    rng = np.random.default_rng(0)
    near = [article(f"n{n}", day=10 * n) for n in range(11)]
    far = [article(f"f{n}", day=n) for n in range(300)]
    vectors = rng.normal(size=(311, 40)).astype(np.float32)
    vectors[:11] = vectors[0] + 0.3 * vectors[:11]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    book = EventBook(index_of(vectors, [*near, *far]), [one.doc_id for one in (*near, *far)])
    before, after = book.story(book.number("n5"))
    assert {card.id[0] for card in (*before, *after)} == {"n"}
    assert [card.id for card in before] == sorted(card.id for card in before)
    assert all(card.first <= near[5].byline_date for card in before)
    assert all(card.first > near[5].byline_date for card in after)
    assert before
    assert after


def test_the_center_is_the_mean_direction(book):
    (vectors,) = book.vectors([book.number("e")])
    np.testing.assert_allclose(center_of(vectors), circle(91)[0], atol=1e-6)


def test_events_are_found_by_similarity_and_date_and_named_by_their_first_article():
    days = {"late": 1, "first": 0, "far": 30, "other": 0, "h": None}
    articles = [article(name, day=day) for name, day in days.items()]
    index = index_of(circle(5, 0, 0, 90, 0), articles)
    assert found_events(index, EventOptions(threshold=0.8)) == ["first", "first", "far", "other", ""]


def test_what_was_merged_in_runs_that_were_rolled_back_does_not_count(tmp_path):
    index_of(circle(0, 10, 180), [article(name) for name in "abc"], tmp_path)
    for number, into, report in ((2, "c", {}), (3, "", {"rollback": 1}), (4, "b", {})):
        with Writer(str(tmp_path)) as writer:
            merges = [EventMerge("a", into, "a")] if into else []
            writer.publish(dataclasses.replace(writer.base, number=number, report=report, merges=merges))
    book = EventBook(DocumentIndex(Archive(str(tmp_path))), ["b", "b", "c"])
    assert book.number("a") == book.number("b") == 0
