"""The routes of the page: answers, filters, pages, refusals."""

import datetime
import json
import sys
import threading
from xml.etree import ElementTree

import pytest
from letters import Letters, client_of
from newsembed.formats.archive import IndexedDocument
from newsembed.serving import explorer, server
from newsembed.serving.events import EventOptions
from tables import index_of

TITLES = ["aaab", "aaac", "aaad", "zzzz", "qqqq", "mm"]
PUBLISHERS = [f"{name}.example" for name in "one two three one one one".split()]
DAYS = [1, 1, 2, 2, 20, None]
KEY = "0123456789abcdef"


def make_index(count=6, **more):
    documents = []
    for n, (title, site, day) in enumerate(zip(TITLES[:count], PUBLISHERS, DAYS, strict=False)):
        date = day and datetime.date(2024, 5, day)
        documents.append(IndexedDocument(f"{n:016x}", f"https://{site}/{n}", site, title, date))
    return index_of(Letters().encode(TITLES[:count], [""] * count), documents, **more)


@pytest.fixture
def client():
    books = explorer.Books(options=EventOptions(threshold=0.8))
    with client_of(server.Service(Letters(), make_index(), books=books)) as client:
        yield client


def month(client):
    """The events of the last thirty days."""
    return client.get("/events", params={"days": 30}).json()


def titles(reply):
    assert reply.status_code == 200, reply.text
    return [event["lead"]["title"][:3] for event in reply.json()["events"]]


def test_events_of_some_days(client):
    reply = client.get("/events", params={"since": "2024-05-01", "until": "2024-05-02"})
    assert titles(reply) == ["aaa", "zzz"]
    first = reply.json()["events"][0]
    assert (first["articles"], first["first"], first["last"]) == (3, "2024-05-01", "2024-05-02")
    assert first["timeline"] == [["2024-05-01", 2], ["2024-05-02", 1]]
    assert len(first["reports"]) == 3
    assert reply.json()["span"] == ["2024-05-01", "2024-05-20"]


def test_without_days_the_last_ones_are_shown(client):
    assert titles(client.get("/events", params={"days": 7})) == ["qqq"]
    assert titles(client.get("/events")) == ["aaa", "qqq", "zzz"]  # the last month has an event of several reports
    reply = client.get("/events", params={"days": 19})
    assert titles(reply) == ["qqq", "aaa", "zzz"]
    assert (reply.json()["since"], reply.json()["until"]) == ("2024-05-02", "2024-05-20")


def test_events_come_in_pages(client):
    found = [titles(client.get("/events", params={"days": 30, "count": 1, "offset": n})) for n in range(4)]
    assert found == [["aaa"], ["qqq"], ["zzz"], []]
    assert client.get("/events", params={"days": 30, "count": 1}).json()["total"] == 3


def test_filters(client):
    assert titles(client.get("/events", params={"days": 30, "publisher": "two.example"})) == ["aaa"]
    wrong = client.get("/events", params={"publisher": "tow.example"})
    assert (wrong.status_code, "two.example" in wrong.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    "query", ["days=0", "count=0", "offset=-1", "since=1714521600", "since=2024-05-02&until=2024-05-01", "what=1"]
)
def test_bad_days_are_refused(client, query):
    for route in ("events", "map"):
        assert client.get(f"/{route}?{query}").status_code == 422


def test_an_event_by_id_and_by_article(client):
    event = month(client)["events"][0]
    whole = client.get("/event", params={"id": event["id"]}).json()
    assert sorted(report["title"] for report in whole["event"]["reports"]) == TITLES[:3]
    assert (whole["article"], whole["similar"]) == (None, [])
    found = client.get("/event", params={"url": "https://two.example/1"}).json()
    assert (found["event"]["id"], found["article"]["title"]) == (event["id"], "aaac")
    assert {hit["title"] for hit in found["similar"]} == {"zzzz", "qqqq", "mm"}
    assert [hit["rank"] for hit in found["similar"]] == [1, 2, 3]


def test_an_article_without_a_date_is_in_no_event(client):
    found = client.get("/event", params={"url": "https://one.example/5"}).json()
    assert (found["event"], found["article"]["title"], len(found["similar"])) == (None, "mm", 5)


def test_unknown_events_and_articles(client):
    assert client.get("/event", params={"url": "https://one.example/none"}).status_code == 404
    unknown = client.get("/event", params={"id": "none"})
    assert unknown.status_code == 404
    assert unknown.json() == {"detail": "no event 'none'; it may have become part of another event"}
    assert client.get("/event").status_code == 422
    assert client.get("/event", params={"id": "a", "url": "b"}).status_code == 422


def test_the_map_has_the_events_of_the_days(client):
    reply = client.get("/map", params={"days": 30}).json()
    assert [event["articles"] for event in reply["events"]] == [3, 1, 1]
    assert all(0 <= x <= 1 for event in reply["events"] for x in event["place"])
    assert client.get("/map", params={"since": "1990-01-01", "until": "1990-01-02"}).json()["events"] == []


def test_without_scikit_learn_the_map_says_what_to_install(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    reply = client.get("/map", params={"days": 30})
    assert (reply.status_code, "newsembed[evaluate]" in reply.json()["detail"]) == (501, True)


def test_without_an_index_there_are_no_events():
    with client_of(server.Service(Letters())) as client:
        for path in ("/events", "/event?id=a", "/map"):
            assert client.get(path).status_code == 404
        assert client.get("/").status_code == 200


def test_while_events_are_found_the_answer_is_to_try_again(monkeypatch):
    release = threading.Event()
    find = explorer.found_events
    monkeypatch.setattr(explorer, "_PATIENCE", 0.01)
    monkeypatch.setattr(explorer, "found_events", lambda *given: release.wait(60) and find(*given))
    service = server.Service(Letters(), make_index())
    with client_of(service) as client:
        early = client.get("/events")
        assert (early.status_code, "grouped into events" in early.json()["detail"]) == (503, True)
        assert early.headers["retry-after"]
        release.set()
        service.books.prepare(service.index).result(60)
        assert client.get("/events").status_code == 200


def test_a_new_version_of_the_index_has_its_own_events(client):
    before = month(client)["total"]
    client.app.state.service.replace(make_index(1))
    assert (before, month(client)["total"]) == (3, 1)


def test_the_events_before_are_shown_until_those_of_a_new_version_are_found(client, monkeypatch):
    find, shown = explorer.found_events, [month(client)["total"]]
    monkeypatch.setattr(explorer, "_PATIENCE", 0.01)
    monkeypatch.setattr(explorer, "found_events", lambda *given: shown.append(month(client)["total"]) or find(*given))
    client.app.state.service.replace(make_index(1))
    assert [*shown, month(client)["total"]] == [3, 3, 1]


def test_the_events_of_an_archive_are_those_that_it_keeps():
    names = [f"{n:016x}" for n in range(len(TITLES))]
    index = make_index(events=[names[0]] * 2 + names[2:5] + [""])
    with client_of(server.Service(Letters(), index)) as client:
        found = month(client)["events"]
        assert [(event["id"], event["articles"]) for event in found][0] == (names[0], 2)
        assert len(found) == 4


def test_the_page_and_its_files_need_no_other_server():
    with client_of(server.Service(Letters(), make_index()), None, server.Access(key=KEY)) as client:
        for path, kind in explorer.FILES.items():
            reply = client.get(path)
            assert (reply.status_code, reply.headers["content-type"].split(";")[0]) == (200, kind)
            assert "default-src 'self'" in reply.headers["content-security-policy"]
            for outside in ('src="http', "@import", "url(", 'href="http', "innerHTML"):  # titles enter as text only
                assert outside not in reply.text
        assert client.get("/events").status_code == 401
        allowed = client.get("/events", headers={"Authorization": f"Bearer {KEY}"})
        assert json.loads(allowed.text)["total"] == 3


def test_a_search_says_how_well_an_article_answers_in_which_event_it_is_and_what_there_is_more(client):
    client.get("/events")  # the events are known now
    found = client.get("/search", params={"q": "aaab", "count": 2, "facets": True}).json()
    assert [(hit["title"], hit["band"]) for hit in found["hits"]][0] == ("aaab", "strong")
    assert {hit["event_id"] for hit in found["hits"]} == {f"{0:016x}"}
    assert found["facets"]["publisher"] == [["one.example", 4], ["three.example", 1], ["two.example", 1]]
    assert found["facets"]["month"] == [["2024-05", 5]]
    assert client.get("/search", params={"q": "aaab"}).json()["facets"] == {}


def test_a_search_is_a_feed_newest_first(client):
    query = {"q": "aaab aaad <&>", "mode": "words"}
    items = client.get("/feed.json", params=query).json()["items"]
    assert [item["title"] for item in items] == ["aaad", "aaab"]
    assert items[0]["date_published"] == "2024-05-02T00:00:00Z"
    reply = client.get("/feed.atom", params=query)
    assert reply.headers["content-type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(reply.text)
    name = "{http://www.w3.org/2005/Atom}"
    assert [entry.findtext(f"{name}title") for entry in feed.iter(f"{name}entry")] == ["aaad", "aaab"]
    assert feed.findtext(f"{name}title") == "newsembed: aaab aaad <&>"
    assert feed.findtext(f"{name}updated") == "2024-05-02T00:00:00Z"
    empty = ElementTree.fromstring(client.get("/feed.atom", params={"q": "x\u0001", "mode": "words"}).text)
    assert not list(empty.iter(f"{name}entry"))
