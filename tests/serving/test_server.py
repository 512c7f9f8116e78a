"""The routes: what they answer, and that every bad request gets a clear 4xx and never a 500."""

import argparse
import datetime
import math

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.index import IndexedDocument
from newsembed.serving import server
from newsembed.serving.index import DocumentIndex
from starlette.testclient import TestClient

TITLES = ["alpha", "beta", "gamma"]
DAYS = ["2024-01-01", "2024-01-08", None]


class Letters:
    """Counts letters: enough of an encoder to have an order of results."""

    digest, dimensions, tokenizer_name = "letters", 26, "letters"

    def encode(self, titles, bodies):
        counts = np.zeros((len(titles), 26), np.float32)
        for row, text in enumerate(f"{title} {body}".lower() for title, body in zip(titles, bodies, strict=True)):
            for letter in text:
                if "a" <= letter <= "z":
                    counts[row, ord(letter) - 97] += 1
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)

    def encode_queries(self, texts):
        return self.encode(texts, [""] * len(texts))


@pytest.fixture
def client():
    documents = [
        IndexedDocument(
            f"{i}", f"https://a.example/{i}", "a.example", title, DAYS[i] and datetime.date.fromisoformat(DAYS[i])
        )
        for i, title in enumerate(TITLES)
    ]
    index = DocumentIndex(Letters().encode(TITLES, [""] * 3), documents)
    with TestClient(server.create_app(server.Service(Letters(), index))) as client:
        yield client


@pytest.fixture
def without_index():
    with TestClient(server.create_app(server.Service(Letters()))) as client:
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
        ({"documents": [{"title": "a"}] * (server.MAX_BATCH + 1)}, f"at most {server.MAX_BATCH} items"),
        ({"documents": [{"title": " ", "body": ""}]}, "title and body are both empty"),
        ({"documents": [{"headline": "a"}]}, "Extra inputs are not permitted"),
        ({"documents": [{"title": 3}]}, "valid string"),
        ({"documents": [{"title": "a" * (server.MAX_CHARACTERS + 1)}]}, "at most"),
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
        {"q": "a", "since": "1/2/24"},
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
    for outside in ("src=", "@import", 'href="http', "innerHTML"):  # self-contained, and titles enter as text only
        assert outside not in page.text


def parse(*arguments):
    parser = argparse.ArgumentParser()
    server.add_arguments(parser)
    return parser.parse_args(arguments)


def test_service_from_options(model_dir, tmp_path):
    service = server.load_service(parse("--model", model_dir))
    assert service.embed(["storm"], [""]).shape == (1, 8)
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


def test_the_options_reach_the_encoder_and_the_listener(monkeypatch, capsys):
    import uvicorn

    seen = []
    monkeypatch.setattr(server, "encoder_from_spec", lambda spec, **options: seen.append((spec, options)) or Letters())
    monkeypatch.setattr(uvicorn, "run", lambda _app, **options: seen.append(options))
    options = ["--max_length", "9", "--host", "0.0.0.0", "--port", "65535"]
    assert server.run(parse("--saved_model", "there", *options)) == 0
    (spec, encoder), listener = seen
    assert (spec, encoder["max_length"], encoder["progress"]) == ("savedmodel:there", 9, False)
    assert listener == {"host": "0.0.0.0", "port": 65535, "log_level": "warning"}
    assert "listening on http://0.0.0.0:65535" in capsys.readouterr().out
    for port in ("-1", "65536"):
        with pytest.raises(InputError, match=f"--port: got {port}"):
            server.run(parse("--saved_model", "there", "--port", port))
