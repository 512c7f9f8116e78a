"""The routes: what they answer, and that every bad request gets a clear 4xx and never a 500."""

import argparse
import datetime
import json
import math
import re
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.index import IndexedDocument
from newsembed.serving import server
from newsembed.serving.batching import BatchOptions
from newsembed.serving.index import DocumentIndex
from newsembed.serving.limits import Limits
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from letters import Letters

TITLES = ["alpha", "beta", "gamma"]
DAYS = ["2024-01-01", "2024-01-08", None]


@pytest.fixture
def client():
    documents = [
        IndexedDocument(
            f"{i}", f"https://a.example/{i}", "a.example", title, DAYS[i] and datetime.date.fromisoformat(DAYS[i])
        )
        for i, title in enumerate(TITLES)
    ]
    index = DocumentIndex(Letters().encode(TITLES, [""] * 3), documents)
    with TestClient(server.create_app(server.Service(Letters(), index)), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def without_index():
    with TestClient(server.create_app(server.Service(Letters())), base_url="http://localhost") as client:
        yield client


def test_embed(client):
    reply = client.post("/embed", json={"documents": [{"title": "ab"}, {"body": "aaa"}]})
    assert reply.status_code == 200
    body = reply.json()
    assert (body["dimensions"], body["encoder"]) == (26, "letters")
    np.testing.assert_allclose(body["embeddings"], Letters().encode(["ab", ""], ["", "aaa"]), atol=1e-7)
    assert all(math.isclose(np.linalg.norm(row), 1, abs_tol=1e-6) for row in body["embeddings"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"documents": []}, "at least 1 item"),
        ({"documents": [{"title": " ", "body": ""}]}, "title and body are both empty"),
        ({"documents": [{"headline": "a"}]}, "Extra inputs are not permitted"),
        ({"documents": [{"title": 3}]}, "valid string"),
        ({"documents": [{"title": "\u200b", "body": "\x00"}]}, "no text to read in title and body"),
        ({"texts": ["a"]}, "Field required"),
        ([], "valid dictionary"),
    ],
)
def test_bad_embed_requests(client, content, message):
    reply = client.post("/embed", json=content)
    assert reply.status_code == 422
    assert message in str(reply.json()["detail"])


def test_broken_json(client):
    for half_a_pair in (b'{"documents": [{"title": "\\ud800 Storm"}]}', b'{"\\ud800": 1}'):
        assert (
            client.post("/embed", content=half_a_pair, headers={"content-type": "application/json"}).status_code == 422
        )
    assert client.post("/embed", content=b"{", headers={"content-type": "application/json"}).status_code == 422


def test_a_body_of_another_content_type_names_the_header(client):
    """As `curl -d` sends it."""
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        for route, body in (("/embed", {"documents": [{"title": "a"}]}), ("/search", {"q": "a"})):
            reply = client.post(route, content=json.dumps(body), headers={"content-type": kind})
            assert reply.status_code == 422
            (found,) = reply.json()["detail"]
            assert found["msg"] == f"got the content type {kind}: send the header content-type: application/json"


def test_the_description_says_what_each_route_does(client):
    routes = client.get("/openapi.json").json()["paths"]
    lacking = [
        f"{method} {path}"
        for path, methods in routes.items()
        for method, one in methods.items()
        if not one.get("description")
    ]
    assert lacking == []


def test_search_by_words(client):
    for reply in (
        client.get("/search", params={"q": "gamma", "count": 2}),
        client.post("/search", json={"q": "gamma", "count": 2}),
    ):
        assert reply.status_code == 200
        hits = reply.json()["hits"]
        assert [hit["title"] for hit in hits] == ["gamma", "alpha"]
        assert hits[0]["score"] == pytest.approx(1)
        assert hits[0]["byline_date"] is None


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"q": "gamma", "since": "2024-01-03"}, ["beta"]),
        ({"q": "gamma", "until": "2024-01-03"}, ["alpha"]),
        ({"q": "gamma", "since": "2023-01-01", "until": "2024-12-31"}, ["alpha", "beta"]),
        ({"url": "https://a.example/0", "days": 1}, []),
        ({"url": "https://a.example/0", "days": 9}, ["beta"]),
    ],
)
def test_search_among_dates(client, params, expected):
    for reply in (client.get("/search", params=params), client.post("/search", json=params)):
        assert [hit["title"] for hit in reply.json()["hits"]] == expected


def test_search_by_url(client):
    hits = client.get("/search", params={"url": "https://a.example/0"}).json()["hits"]
    assert [hit["title"] for hit in hits] == ["gamma", "beta"]
    missing = client.get("/search", params={"url": "https://a.example/9"})
    assert missing.status_code == 404
    assert "no document with the URL" in missing.json()["detail"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"q": " "},
        {"q": "a", "url": "b"},
        {"q": "a", "count": 0},
        {"q": "a", "count": 101},
        {"q": "a", "count": "x"},
        {"query": "a"},
        {"q": "\x00\x1b"},
        {"q": "\u200b\u2060\ufeff"},
        {"q": "a", "since": "1/2/24"},
        {"q": "a", "since": "1714521600"},
        {"q": "a", "until": "20240501"},
        {"q": "a", "until": "2024-05-01T00:00:00"},
        {"q": "a", "since": "2024-02-30"},
        {"q": "a", "since": "2024-01-02", "until": "2024-01-01"},
        {"q": "a", "days": 1},
        {"url": "https://a.example/0", "days": -1},
        {"url": "https://a.example/0", "days": 1, "since": "2024-01-02"},
        {"url": "https://a.example/2", "days": 1},
    ],
)
def test_bad_searches(client, params):
    assert client.get("/search", params=params).status_code == 422
    assert client.post("/search", json=params).status_code == 422


def test_numbers_are_no_dates(client):
    for number in (1714521600, 0, 1.5, True):
        reply = client.post("/search", json={"q": "a", "since": number})
        assert reply.status_code == 422
        assert "expected a day as YYYY-MM-DD" in reply.json()["detail"][0]["msg"]


def test_without_index(without_index):
    reply = without_index.get("/search", params={"q": "a"})
    assert reply.status_code == 404
    assert "--index" in reply.json()["detail"]
    assert without_index.get("/healthz").json()["documents"] == 0


def test_health_and_page(client):
    facts = client.get("/healthz").json()
    assert (facts["status"], facts["documents"], facts["dimensions"]) == ("ok", 3, 26)
    assert facts["tokenizer"] == "letters"
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "newsembed explorer" in page.text


def parse(*arguments):
    parser = argparse.ArgumentParser()
    server.add_arguments(parser)
    return parser.parse_args(arguments)


def test_service_from_options(model_dir, tmp_path):
    service = server.load_service(parse("--model", model_dir))
    service.prepare()
    assert service.batcher.documents(["storm"], [""]).result(60).shape == (1, 8)
    service.batcher.close()
    digest = service.encoder.digest
    document = [IndexedDocument("d", "u", "p", "t")]
    DocumentIndex(np.ones((1, 8), np.float32), document, encoder=f"model:{model_dir}", encoder_digest=digest).save(
        str(tmp_path)
    )
    served = server.load_service(parse("--index", str(tmp_path)))
    assert served.encoder.digest == digest
    assert len(served.index) == 1
    with pytest.raises(InputError, match="not the encoder that built the index"):
        server.load_service(parse("--model", f"{model_dir}@10", "--index", str(tmp_path)))
    with pytest.raises(InputError, match="nothing to serve"):
        server.load_service(parse())
    with pytest.raises(InputError, match="--port"):
        server.run(parse("--model", model_dir, "--port", "70000"))


def test_the_options_reach_the_encoder_and_the_listener(monkeypatch, tmp_path):
    seen = []
    key = tmp_path / "key"
    key.write_text(" k3y-of-32-characters \n")
    monkeypatch.setattr(server, "encoder_from_spec", lambda spec, **options: seen.append((spec, options)) or Letters())
    monkeypatch.setattr(server, "create_app", lambda _service, *options: options)
    monkeypatch.setattr(server, "listen", lambda *options: seen.append(options))
    options = ["--max_length", "9", "--host", "0.0.0.0", "--port", "65535", "--allowed_host", "a.example"]
    options += ["--allowed_host", "*.b.example", "--api_key_file", str(key), "--max_bytes", "1", "--max_documents", "2"]
    options += ["--max_characters", "3", "--max_tokens", "5", "--max_queue", "4", "--read_seconds", "0.5"]
    assert server.run(parse("--saved_model", "there", *options)) == 0
    (spec, encoder), ((limits, access), *place) = seen
    assert (spec, encoder["max_length"], encoder["progress"]) == ("savedmodel:there", 9, False)
    assert place == ["0.0.0.0", 65535]
    assert limits == Limits(1, 2, 3, 5, 4, 0.5)
    assert access.hosts == ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "a.example", "*.b.example")
    assert access.key == "k3y-of-32-characters"
    assert "k3y" not in repr(access)
    for port in ("-1", "65536"):
        with pytest.raises(InputError, match=f"--port: got {port}"):
            server.run(parse("--saved_model", "there", "--port", port))
    for option, value in (
        ("max_queue", "0"),
        ("read_seconds", "nan"),
        ("batch_documents", "0"),
        ("batch_wait_ms", "-1"),
    ):
        with pytest.raises(InputError, match=f"--{option}: got {value}"):
            server.run(parse("--saved_model", "there", f"--{option}", value))
    shared = server.load_service(parse("--saved_model", "there", "--batch_documents", "7", "--batch_wait_ms", "0"))
    assert shared.batcher.options == BatchOptions(7, 0)


def test_an_encoder_that_fails_gives_500_and_the_next_request_is_answered():
    class Broken(Letters):
        def encode(self, titles, bodies):
            return np.full((len(titles), 26), np.nan if "nan" in titles else 1, np.float32) / len(titles[0])

    with TestClient(
        server.create_app(server.Service(Broken())), base_url="http://localhost", raise_server_exceptions=False
    ) as client:
        for title, status in (("nan", 500), ("a", 200)):
            assert client.post("/embed", json={"documents": [{"title": title}]}).status_code == status


def test_a_port_in_use_is_an_error_that_names_it():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            InputError, match=f"--port: cannot listen on 127.0.0.1, port {port}: Address already in use"
        ):
            server.listen(server.create_app(server.Service(Letters())), "127.0.0.1", port)


def test_a_port_in_use_is_noticed_before_the_model_is_read(monkeypatch):
    monkeypatch.setattr(server, "load_service", lambda _: pytest.fail("the port is checked first"))
    parser = argparse.ArgumentParser()
    server.add_arguments(parser)
    with socket.create_server(("127.0.0.1", 0)) as other:
        args = parser.parse_args(["--model", "m", "--port", str(other.getsockname()[1])])
        with pytest.raises(InputError, match="Address already in use"):
            server.run(args)


def test_the_page_of_the_api_needs_no_other_site(client):
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "text/html" in answer.headers["content-type"]
    assert not re.search(r"https?://|<script|src=", answer.text)
    for shown in (
        "<h2>POST /embed</h2>",
        "<h2>GET /search</h2>",
        "<td>since</td>",
        "<td>documents</td>",
        "<td>hits</td>",
    ):
        assert shown in answer.text
    assert set(re.findall(r"<h2>\w+ ([^<]+)</h2>", answer.text)) == set(client.get("/openapi.json").json()["paths"])
