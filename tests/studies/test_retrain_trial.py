"""The trial of a trained model: which articles and events it is about, what is compared, and what decides."""

import datetime
import json

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.evaluation.statistics import mean_interval
from newsembed.formats import parquet
from newsembed.formats.records import Article, Triplet
from newsembed.studies.retrain import trial as module
from newsembed.studies.retrain.trial import EVENTS, MINED, OWN, compare, summary, write_test

DAY = datetime.date(2021, 3, 1)


def doc(number):
    return f"{number:016x}"


def article(number, publisher, day):
    date = None if day is None else DAY + datetime.timedelta(day)
    return Article(doc(number), f"u{number}", publisher, f"t{number}", f"b{number}", ("A",), date, language="en")


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_test_has_the_held_out_articles_with_events_of_two_kinds(tmp_path):
    days = {5: ("p", 0), 1: ("q", 0), 2: ("p", 3), 3: ("q", 1), 4: ("p", -1), 6: ("q", None), 7: ("q", 9)}
    articles = [article(number, *values) for number, values in days.items()]
    near = (1.0, 1.0, 1.0)
    # 5 and 1 report one event; 2 and 5 have one publisher; 4 is too early, and 6 has no date.
    pairs = [(5, 1), (1, 5), (2, 5), (4, 1), (1, 4), (6, 5), (2, 3), (3, 2)]
    triplets = [Triplet(doc(one), doc(other), doc(7), "en", near, near, 0, 400, 0.1) for one, other in pairs]
    parquet.write_shard(f"{tmp_path}/clean/articles/part-00000-of-00001.parquet", articles, Article)
    parquet.write_shard(f"{tmp_path}/triplets/triplets/part-00000-of-00001.parquet", triplets, Triplet)
    (tmp_path / EVENTS).write_text(json.dumps({doc(1): "x", doc(2): "", doc(4): "y"}))
    assert write_test(str(tmp_path), str(tmp_path), DAY, str(tmp_path)) == 2
    mined, own = rows_of(tmp_path / MINED), rows_of(tmp_path / OWN)
    assert [row["id"] for row in mined] == [row["id"] for row in own] == [doc(number) for number in (1, 2, 3, 5, 7)]
    events = {row["id"]: row["event"] for row in mined}
    assert events[doc(7)] is None
    assert events[doc(1)] == events[doc(5)] != events[doc(2)] == events[doc(3)]
    assert set(events.values()) - {None} <= {doc(number) for number in (1, 2, 3, 5)}
    assert [row["event"] for row in own] == ["x", None, None, None, None]
    assert mined[0] == {
        "id": doc(1), "title": "t1", "body": "b1", "publisher": "q", "language": "en", "byline_date": "2021-03-01",
        "event": events[doc(1)],
    }  # fmt: skip


def test_an_archive_without_pairs_has_no_mined_events(tmp_path):
    parquet.write_shard(f"{tmp_path}/clean/articles/part-00000-of-00001.parquet", [article(1, "p", 0)], Article)
    parquet.write_shard(f"{tmp_path}/triplets/triplets/part-00000-of-00001.parquet", [], Triplet)
    (tmp_path / EVENTS).write_text("{}")
    assert write_test(str(tmp_path), str(tmp_path), DAY, str(tmp_path)) == 0
    assert [row["event"] for row in rows_of(tmp_path / MINED)] == [None]


class Model:
    """Vectors at some angles, one for each document."""

    def __init__(self, digest, *degrees):
        self.digest, self._angles = digest, np.radians(degrees)

    def encode(self, documents):
        assert len(documents) == len(self._angles)
        return 3 * np.stack([np.cos(self._angles), np.sin(self._angles)], axis=1)


def write_events(path, events):
    rows = [
        {"id": str(n), "title": f"t{n}", "body": "b", "publisher": f"p{n % 2}", "language": "en", "event": event}
        for n, event in enumerate(events)
    ]
    write_rows(path, rows)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "DocumentEncoder", lambda encoder: encoder)
    write_events(tmp_path / MINED, ["a", "a", "b", "b", None, None])
    write_events(tmp_path / OWN, ["a", "a", "a", "a", "a", "a"])
    return str(tmp_path)


# Of the other publisher: for even rows 1, 3 and 5, for odd rows 0, 2 and 4.
GOOD = Model("good", 0, 1, 90, 91, 200, 201)  # every query finds its event first
BAD = Model("bad", 0, 90, 91, 1, 200, 201)  # the first four find it second


def test_average_precision_is_compared_on_queries_of_both_models(folder):
    found = compare(folder, BAD, GOOD, 0.01)
    gaps, events = np.full(4, 0.5), np.array(["a", "a", "b", "b"])
    interval = mean_interval(gaps, events)
    assert found["results"] == {
        "mined": {
            "queries": 4, "events": 2, "articles": 6, "serving": 0.5, "candidate": 1.0,
            "difference": {"value": 0.5, "low": interval.low, "high": interval.high},
        },
        "archive": None,
    }  # fmt: skip
    assert (found["accepted"], found["serving"], found["candidate"], found["tolerance"]) == (True, "bad", "good", 0.01)
    worse = compare(folder, GOOD, BAD, 0.01)
    assert (worse["accepted"], worse["results"]["mined"]["difference"]["value"]) == (False, -0.5)
    assert compare(folder, GOOD, BAD, 0.5)["accepted"], "a difference of the tolerance itself does not matter"
    assert not compare(folder, GOOD, BAD, 0.499)["accepted"]
    assert compare(folder, GOOD, GOOD, 0.0)["accepted"]


def test_too_few_events_keep_the_model(folder, tmp_path):
    write_events(tmp_path / MINED, ["a", "a", "b", None, None, None])  # one event has a query
    found = compare(folder, BAD, GOOD, 0.5)
    assert (found["accepted"], found["results"]["mined"]) == (False, None)


def test_the_summary_is_a_row_for_each_kind_of_events():
    result = {
        "events": 7,
        "serving": 0.25,
        "candidate": 0.5,
        "difference": {"value": 0.25, "low": -0.125, "high": 0.75},
    }
    assert summary({"results": {"mined": result, "archive": None}}) == [
        ("mined", "7", "0.2500", "0.5000", "+0.2500", "-0.1250 to +0.7500"),
        ("archive", "too few", "", "", "", ""),
    ]
