"""The rules of dates at their bounds, and what a rejection says."""

import datetime

import pytest
from newsembed.beam_pipelines.clean import dates
from newsembed.beam_pipelines.clean.options import CleanOptions
from newsembed.formats.records import Article

DAY = datetime.date(2020, 6, 15)


def after(days):
    return DAY + datetime.timedelta(days)


def article(date=DAY, **values):
    return Article("0" * 16, values.pop("url", "http://p.example/x"), "p", "t", "b", ("A",), date, **values)


def test_a_date_is_required_unless_the_options_say_otherwise():
    assert dates.without_date(article(None), CleanOptions()) == ""
    assert dates.without_date(article(None), CleanOptions(require_byline_date=False)) is None
    assert dates.without_date(article(), CleanOptions()) is None


def test_the_earliest_and_the_latest_date_themselves_pass():
    options = CleanOptions(earliest_date=DAY, latest_date=DAY)
    assert dates.too_early(article(after(-1), date_source="meta"), options) == "2020-06-14 by meta"
    assert dates.in_future(article(after(1)), options) == "2020-06-16 by an unnamed source, after 2020-06-15"
    for rule in (dates.too_early, dates.in_future):
        assert rule(article(), options) is rule(article(None), options) is None


def test_a_date_may_be_a_day_after_the_fetch():
    fetched = datetime.datetime(2020, 6, 15, 1, tzinfo=datetime.UTC)
    options = CleanOptions(latest_date=None)
    assert dates.in_future(article(after(1), fetched_at=fetched), options) is None
    found = dates.in_future(article(after(2), fetched_at=fetched, date_source="url"), options)
    assert found == "2020-06-17 by url, fetched on 2020-06-15"
    assert dates.in_future(article(after(999), fetched_at=None), options) is None


@pytest.mark.parametrize("most", [0, 1, 30])
def test_a_date_may_differ_from_the_url_and_the_modification_by_so_many_days(most):
    options = CleanOptions(max_date_disagreement_days=most)
    url = "http://p.example/2020/06/15/x"
    for days in (-most, most):
        assert dates.disagreeing(article(after(days), url=url, modified_date=DAY), options) is None
    for days in (-most - 1, most + 1):
        found = dates.disagreeing(article(after(days), url=url), options)
        assert found == f"{after(days)} by an unnamed source, 2020-06-15 by the URL"
    assert dates.disagreeing(article(after(-most - 1), modified_date=DAY), options) is None
    late = dates.disagreeing(article(after(most + 1), modified_date=DAY), options)
    assert late == f"{after(most + 1)} by an unnamed source, modified on 2020-06-15"
    assert dates.disagreeing(article(None, url=url, modified_date=DAY), options) is None


def test_a_negative_number_of_days_turns_the_comparison_off():
    url = "http://p.example/2010/06/15/x"
    options = CleanOptions(max_date_disagreement_days=-1)
    assert dates.disagreeing(article(url=url, modified_date=after(-999)), options) is None
