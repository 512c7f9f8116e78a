"""Values of filters: any case, and the nearest ones where none is known."""

import datetime

import pytest
from newsembed.errors import InputError
from newsembed.serving.filters import NO_FILTERS, DateRange, Filters, known_value

PUBLISHERS = ["daily.example", "news.example", "", "news.example", "globe.example", "d.test", "e.test", "f.test"]


def problem(given, known, field="publisher"):
    with pytest.raises(InputError) as raised:
        known_value(given, known, field)
    assert (raised.value.field, raised.value.problem) == (field, f"no article of the index has the {field} {given!r}")
    return raised.value.remedy


def test_a_value_is_found_in_any_case():
    assert known_value(" News.EXAMPLE ", PUBLISHERS, "publisher") == "news.example"
    assert known_value("en", iter(["en", "de"]), "language") == "en"


def test_the_nearest_values_are_named_and_how_many_more_there_are():
    assert problem("new.example", PUBLISHERS).startswith("the index has news.example, ")
    assert problem("new.example", PUBLISHERS).endswith(" and 3 more")
    assert problem("zzz", PUBLISHERS) == (
        "the index has d.test, daily.example, e.test, f.test, globe.example and 1 more"
    )
    assert problem("zzz", PUBLISHERS[:4]) == "the index has daily.example, news.example"
    assert problem("BBC", ["aaa", "bbc news", "vox"]) == "the index has bbc news and 2 more"
    assert problem("fr", ["de", "en"], "language") == "the index has de, en"
    assert problem("", PUBLISHERS[:1]) == "the index has daily.example"
    assert problem("fr", ["", ""], "language") == "leave it out; no article has a language"


def test_filters_are_a_condition_in_sql():
    assert NO_FILTERS.condition == ""
    both = Filters(DateRange(datetime.date(2020, 1, 2), datetime.date(2021, 3, 4)), ("en", "en-GB"), ("D'oh",))
    assert both.condition == (
        "language IN ('en', 'en-GB') AND publisher IN ('D''oh') AND byline_date >= date '2020-01-02'"
        " AND byline_date <= date '2021-03-04'"
    )
