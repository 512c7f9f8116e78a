"""Large requests to /embed are parsed in steps, to the same documents and errors as small ones."""

import json
import sys
import threading
from pathlib import Path

import pytest
from newsembed.serving import large_bodies, server
from newsembed.serving.bodies import EmbedRequest
from newsembed.serving.large_bodies import AT_ONCE, read_in_steps
from newsembed.serving.limits import Limits, UnavailableError
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from letters import Letters

DOCUMENTS = [{"title": "Grüße " * (number % 7), "body": f'Nr. {number}, \\ "]}}\n'} for number in range(50)]


@pytest.fixture
def client():
    limits = Limits(max_documents=20_000, max_tokens=10_000_000)
    with TestClient(server.create_app(server.Service(Letters()), limits), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"documents": DOCUMENTS}),
        json.dumps({"documents": DOCUMENTS}, ensure_ascii=False, indent=3).replace("\n", "\r\n\t"),
        json.dumps({"documents": DOCUMENTS}, separators=(",", ":")),
        '{"documents": [{"title": "a"}]}',
    ],
)
def test_documents_are_those_of_the_whole_parser(text):
    assert read_in_steps(text.encode(), 100) == EmbedRequest.model_validate_json(text)


def test_it_stops_after_one_document_more_than_allowed():
    raw = (json.dumps({"documents": DOCUMENTS})[:-30] + "no JSON").encode()
    assert len(read_in_steps(raw, 7).documents) == 8
    assert read_in_steps(raw, 100) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"documents": []}',
        '{"documents": [{"title": "a"}',
        '{"documents": [{"title": "a"}]',
        '{"documents": [{"title": "a"},]}',
        '{"documents": [{"title": "a"} {"title": "a"}]}',
        '{"documents": [{"title": "a"}], "more": 1}',
        '{"documents": [{"title": "a"}]} {}',
        '{"documents": [{"title": ""}]}',
        '{"documents": [{"title": "a", "text": "b"}]}',
        '{"documents": [{"title": "\\ud800"}]}',
        '{"documents": [1]}',
        '{"documents": [' + "[" * 100_000 + "]}",
        "\xff",
    ],
)
def test_anything_else_is_left_to_the_whole_parser(text):
    assert read_in_steps(text.encode("latin-1"), 100) is None


def test_large_requests_are_answered_and_refused_as_small_ones(client):
    many = [{"title": "abc"[: number % 3 + 1], "body": "x" * 40} for number in range(9_000)]
    assert len(json.dumps(many)) > AT_ONCE
    found = client.post("/embed", json={"documents": many}).json()["embeddings"]
    alone = client.post("/embed", json={"documents": many[:3]}).json()["embeddings"]
    assert found[8_997:] == alone
    assert len(found) == 9_000
    bad = client.post("/embed", json={"documents": [*many, {"title": " "}]})
    assert (bad.status_code, bad.json()["detail"][0]["loc"]) == (422, ["body", "documents", 9_000])
    cut = client.post(
        "/embed", content=json.dumps({"documents": many})[:-1], headers={"content-type": "application/json"}
    )
    assert (cut.status_code, cut.json()["detail"][0]["type"]) == (422, "json_invalid")
    over = client.post("/embed", json={"documents": many * 3})
    assert (over.status_code, over.json()["option"]) == (413, "--max_documents")


def test_a_stop_ends_the_parsing():
    many = json.dumps({"documents": [{"title": "abc", "body": "x" * 40}] * 19_000}).encode()
    with pytest.raises(UnavailableError):
        read_in_steps(many, 20_000, lambda: True)


def test_a_request_that_is_parsed_when_the_server_stops_gets_503(client, monkeypatch):
    admission = client.app.state.admission

    def stopped(raw, most, is_stopping):
        monkeypatch.setattr(admission, "_is_stopping", True)
        return read_in_steps(raw, most, is_stopping)

    monkeypatch.setattr(large_bodies, "read_in_steps", stopped)
    many = json.dumps({"documents": [{"title": "abc", "body": "x" * 40}] * 19_000}).encode()
    reply = client.post("/embed", content=many, headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json(), reply.headers["retry-after"]) == (
        503,
        {"detail": "the server is stopping"},
        "1",
    )


def test_other_requests_are_answered_while_a_large_one_is_parsed(client, monkeypatch):
    begun, answered = threading.Event(), threading.Event()

    def slow(raw, most, _is_stopping):
        begun.set()
        assert answered.wait(60)
        return read_in_steps(raw, most)

    monkeypatch.setattr(large_bodies, "read_in_steps", slow)
    statuses = []
    body = json.dumps({"documents": [{"title": "a" * 1_000}] * 300})
    sender = threading.Thread(
        target=lambda: statuses.append(
            client.post("/embed", content=body, headers={"content-type": "application/json"}).status_code
        )
    )
    sender.start()
    assert begun.wait(60)
    assert client.get("/healthz").status_code == 200
    answered.set()
    sender.join(60)
    assert statuses == [200]
