"""The routes: what they answer, and that every bad request gets a clear 4xx and never a 500."""

import datetime
import gzip
import json
import math
import re
import socket
import zlib

import brotli
import numpy as np
import pytest
import zstandard
from letters import Letters, client_of, parsed, run
from newsembed.errors import InputError
from newsembed.formats.archive import IndexedDocument
from newsembed.serving import server
from newsembed.serving.batching import BatchOptions
from newsembed.serving.gate import Limits
from refusals import refuses
from tables import index_of, numbered

BOTH = {"instances": ["a", {"title": "b"}]}
TITLES = ["alpha", "beta", "gamma"]


@pytest.fixture
def client():
    documents = numbered(TITLES, [datetime.date(2024, 1, 1), datetime.date(2024, 1, 8)])
    index = index_of(Letters().encode(TITLES, [""] * 3), documents)
    with client_of(server.Service(Letters(), index)) as client:
        yield client


@pytest.fixture
def without_index():
    with client_of(server.Service(Letters())) as client:
        yield client


def test_requests_of_vertex_and_tensorflow_serving(client):
    instances = [
        "aaa",
        {"title": "ab"},
        {"title": {"b64": "Yg=="}, "body": "c"},
        {"b64": "YWFh"},
        {"text": {"b64": "Yg=="}},
    ]
    reply = client.post("/predict", json={"instances": instances, "parameters": {}})
    assert reply.status_code == 200
    assert list(reply.json()) == ["predictions"]
    expected = Letters().encode(["", "ab", "b", "", ""], ["aaa", "", "c", "aaa", "b"])
    np.testing.assert_allclose(reply.json()["predictions"], expected, atol=1e-7)
    for wrong in (
        {},
        {"instances": []},
        {"instances": [""]},
        {"instances": [3]},
        {"instances": [{"b64": "not base64"}]},
        {"instances": [{"b64": "/w=="}]},
        {"signature_name": "x", "instances": ["a"]},
    ):
        assert client.post("/predict", json=wrong).status_code == 422


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
    for broken in (b'{"documents": [{"title": "\\ud800 Storm"}]}', b'{"\\ud800": 1}', b"{"):
        assert posted(client, broken).status_code == 422


def test_a_body_of_another_content_type_names_the_header(client):
    """As `curl -d` sends it."""
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        for route, body in (("/embed", {"documents": [{"title": "a"}]}), ("/search", {"q": "a"})):
            reply = client.post(route, content=json.dumps(body), headers={"content-type": kind})
            assert (reply.status_code, reply.headers["accept"]) == (415, "application/json")
            assert reply.json()["detail"] == (
                f"got the content type {kind}: send the header content-type: application/json"
            )


def test_predict_reads_json_of_any_content_type(client):
    """As TensorFlow Serving does; `curl -d` sends a form."""
    body = json.dumps({"instances": ["Sturm \u00fcber der K\u00fcste"]}, ensure_ascii=False).encode()
    expected = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert expected.status_code == 200
    for kind in ("application/x-www-form-urlencoded", "text/plain;charset=ascii", ""):
        assert client.post("/predict", content=body, headers={"content-type": kind}).json() == expected.json()
    form = {"content-type": "text/plain", "origin": "https://other.example"}  # a page of another site
    assert client.post("/predict", content=body, headers=form).status_code == 415
    packed = {"content-type": "text/plain", "content-encoding": "gzip"}
    assert client.post("/predict", content=gzip.compress(body, mtime=0), headers=packed).json() == expected.json()


DOCUMENTS = json.dumps({"documents": [{"title": "Sturm \u00fcber der K\u00fcste"}]}, ensure_ascii=False)


def posted(client, content, kind="application/json", **headers):
    given = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return client.post("/embed", content=content, headers={name: value for name, value in given.items() if value})


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(DOCUMENTS.encode(), mtime=0)),
        ("X-GZip", gzip.compress(DOCUMENTS.encode(), mtime=0)),
        ("deflate", zlib.compress(DOCUMENTS.encode())),
        ("br", brotli.compress(DOCUMENTS.encode())),
        ("zstd", zstandard.compress(DOCUMENTS.encode())),
        ("gzip, br", brotli.compress(gzip.compress(DOCUMENTS.encode(), mtime=0))),
        ("identity", DOCUMENTS.encode()),
    ],
)
def test_bodies_may_have_codings(client, coding, packed):
    assert posted(client, packed, content_encoding=coding).json() == posted(client, DOCUMENTS.encode()).json()


def test_codings_that_cannot_be_undone_are_refused(client):
    reply = posted(client, b"x", content_encoding="gzip, lzma")
    assert (reply.status_code, reply.headers["accept-encoding"]) == (415, "gzip, deflate, br, zstd")
    assert posted(client, gzip.compress(DOCUMENTS.encode())[:-9], content_encoding="gzip").status_code == 400
    bomb = posted(client, gzip.compress(b" " * 9_000_000), content_encoding="gzip")
    assert (bomb.status_code, bomb.json()["option"]) == (413, "--max_bytes")


@pytest.mark.parametrize(
    ("charset", "kind"),
    [
        ("utf-8-sig", "application/json"),
        ("utf-16", "application/json"),
        ("utf-16-le", "application/json"),
        ("utf-32", "application/ld+json"),
        ("utf-8", "Application/JSON;charset=UTF-8"),
        ("utf-8", ""),
    ],
)
def test_bodies_are_read_in_the_encodings_of_unicode(client, charset, kind):
    assert posted(client, DOCUMENTS.encode(charset), kind).json() == posted(client, DOCUMENTS.encode()).json()


def test_a_body_in_another_encoding_is_refused(client):
    assert posted(client, DOCUMENTS.encode("latin-1")).status_code == 400


@pytest.mark.parametrize("path", ["/healthz", "/search?q=storm", "/docs", "/metrics", "/none", "/embed"])
def test_head_is_answered_as_get_without_the_content(client, path):
    head, got = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers.get("content-type") == got.headers.get("content-type")


def test_the_description_says_what_each_route_does(client):
    routes = client.get("/openapi.json").json()["paths"]
    described = {(method, path): one.get("description") for path in routes for method, one in routes[path].items()}
    assert [route for route, text in described.items() if not text] == []


def test_search_by_words(client):
    for reply in (
        client.get("/search", params={"q": "gamma", "count": 2, "mode": "vectors"}),
        client.post("/search", json={"q": "gamma", "count": 2, "mode": "vectors"}),
    ):
        assert reply.status_code == 200
        hits = reply.json()["hits"]
        assert [hit["title"] for hit in hits] == ["gamma", "alpha"]
        assert hits[0]["score"] == pytest.approx(1)
        assert hits[0]["byline_date"] is None


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
        {"q": "\u200b\u2060\ufeff"},
        {"q": "a", "until": "20240501"},
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
    assert "<title>newsembed</title>" in page.text


def test_service_from_options(model_dir, tmp_path):
    service = server.load_service(parsed(server, "--model", model_dir))
    service.prepare()
    assert service.batcher.documents(["storm"], [""]).result(60).shape == (1, 8)
    service.batcher.close()
    digest = service.encoder.digest
    document = [IndexedDocument("d", "u", "p", "t")]
    index_of(np.ones((1, 8), np.float32), document, tmp_path, encoder=f"model:{model_dir}", encoder_digest=digest)
    served = server.load_service(parsed(server, "--index", tmp_path))
    assert served.encoder.digest == digest
    assert len(served.index) == 1
    with pytest.raises(InputError, match="not the encoder that built the index"):
        server.load_service(parsed(server, "--model", f"{model_dir}@10", "--index", str(tmp_path)))
    refuses("nothing to serve", server.load_service, parsed(server))


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
    assert run(server, "--saved_model", "there", *options) == 0
    (spec, encoder), ((limits, access), *place) = seen
    assert (spec, encoder["max_length"], encoder["progress"]) == ("savedmodel:there", 9, False)
    assert place == ["0.0.0.0", 65535]
    assert limits == Limits(max_bytes=1, max_documents=2, max_characters=3, max_tokens=5, max_queue=4, read_seconds=0.5)
    assert access.hosts == ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "a.example", "*.b.example")
    assert access.key == "k3y-of-32-characters"
    assert "k3y" not in repr(access)
    for port in ("-1", "65536"):
        refuses(f"--port: got {port}", run, server, "--saved_model", "there", "--port", port)
    shared = server.load_service(
        parsed(server, "--saved_model", "there", "--batch_documents", "7", "--batch_wait_ms", "0")
    )
    assert shared.batcher.options == BatchOptions(batch_documents=7, batch_wait_ms=0)


def test_an_encoder_that_fails_gives_500_and_the_next_request_is_answered():
    class Broken(Letters):
        def encode(self, titles, bodies):
            return np.full((len(titles), 26), np.nan if "nan" in titles else 1, np.float32) / len(titles[0])

    with client_of(server.Service(Broken()), raise_server_exceptions=False) as client:
        for title, status in (("nan", 500), ("a", 200)):
            assert client.post("/embed", json={"documents": [{"title": title}]}).status_code == status


def test_a_port_in_use_is_noticed_before_the_model_is_read(monkeypatch):
    monkeypatch.setattr(server, "load_service", lambda _: pytest.fail("the port is checked first"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        args = ("--model", "m", "--port", other.getsockname()[1])
        refuses("Address already in use", run, server, *args)


def test_the_page_of_the_api_needs_no_other_site(client):
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "text/html" in answer.headers["content-type"]
    assert not re.search(r"https?://|<script|src=", answer.text)
    for field in ("since", "documents", "hits"):
        assert f"<td>{field}</td>" in answer.text
    routes = re.findall(r"<h2 class=\"part\">(\w+) ([^<]+)</h2>", answer.text)
    assert {("POST", "/embed"), ("GET", "/search")} <= set(routes)
    assert {path for _, path in routes} == set(client.get("/openapi.json").json()["paths"])
