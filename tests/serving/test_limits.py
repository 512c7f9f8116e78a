"""Requests over the limits of documents and characters, by the routes."""

import sys
from pathlib import Path

import pytest
from newsembed.serving import server
from newsembed.serving.limits import Limits
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from letters import Letters

LIMITS = Limits(max_bytes=1_000, max_documents=2, max_characters=10)


@pytest.fixture(scope="module")
def client():
    with TestClient(server.create_app(server.Service(Letters()), LIMITS), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize(
    ("documents", "limit", "option"),
    [
        ([{"title": "a"}] * 3, 2, "--max_documents"),
        ([{"title": "a" * 11}], 10, "--max_characters"),
        ([{"title": "a" * 5, "body": "b" * 6}], 10, "--max_characters"),
        ([{"title": "a"}, {"body": "b" * 11}], 10, "--max_characters"),
        ([{"title": "a" * 1_000}], 1_000, "--max_bytes"),
    ],
)
def test_a_request_over_a_limit_gets_413_with_the_limit_and_its_option(client, documents, limit, option):
    reply = client.post("/embed", json={"documents": documents})
    assert reply.status_code == 413
    answer = reply.json()
    assert (answer["limit"], answer["option"]) == (limit, option)
    assert f"more than {limit} " in answer["detail"]
    assert answer["detail"].endswith(f"or start the server with a larger {option}")


def test_requests_at_the_limits_are_answered(client):
    documents = [{"title": "a" * 4, "body": "b" * 6}, {"title": "c"}]
    assert len(client.post("/embed", json={"documents": documents}).json()["embeddings"]) == 2


def test_long_queries_are_refused(client):
    for reply in (
        client.get("/search", params={"q": "a" * 11}),
        client.post("/search", json={"q": "a" * 11}),
        client.get("/search", params={"url": "a" * 11}),
    ):
        assert (reply.status_code, reply.json()["option"]) == (413, "--max_characters")
