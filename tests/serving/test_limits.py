"""Requests over the limits of documents, characters and tokens, by the routes."""

import argparse
import math
import sys
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.serving import server
from newsembed.serving.encoder import fresh_encoder
from newsembed.serving.interface import TokenCounter, most_tokens
from newsembed.serving.limits import Limits, RefusedError, UnavailableError, add_limit_arguments, limits_from
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


class Words(Letters):
    """Reads at most four words of a document; ``counted`` lists the documents of each count."""

    def __init__(self, *, knows=True):
        super().__init__()
        self.counted = []
        self._knows = knows

    def count_tokens(self, titles, bodies):
        self.counted.append(len(titles))
        words = (len(f"{title} {body}".split()) for title, body in zip(titles, bodies, strict=True))
        return sum(min(4, count) for count in words) if self._knows else None


def embed(encoder, most, *documents):
    limits = Limits(max_tokens=most)
    with TestClient(server.create_app(server.Service(encoder), limits), base_url="http://localhost") as client:
        return client.post("/embed", json={"documents": [{"title": text} for text in documents]})


def test_more_tokens_than_allowed_get_413_with_the_limit_and_its_option():
    reply = embed(Words(), 40, *["a b c d"] * 11)
    assert reply.status_code == 413
    assert (reply.json()["limit"], reply.json()["option"]) == (40, "--max_tokens")
    assert reply.json()["detail"].startswith("more than 40 tokens in a request; send its documents in several requests")


def test_counting_ends_where_there_are_too_many():
    encoder = Words()
    limits = Limits(max_tokens=1_000, max_documents=2_000)
    with TestClient(server.create_app(server.Service(encoder), limits), base_url="http://localhost") as client:
        reply = client.post("/embed", json={"documents": [{"title": "a b c d"}] * 1_200})
    assert reply.status_code == 413
    assert encoder.counted == [256]  # 1,024 tokens


def test_only_the_tokens_that_are_read_count():
    assert embed(Words(), 40, *["a b c d " * 50] * 10).status_code == 200


def test_a_request_that_is_short_enough_in_any_case_is_not_counted():
    encoder = Words()
    assert embed(encoder, 30, "a b c d", "e").status_code == 200  # 8 characters, and 8 special tokens for each
    assert encoder.counted == []
    assert embed(encoder, 20, "a b c d", "e").status_code == 200
    assert encoder.counted == [2]


@pytest.mark.parametrize("encoder", [Letters(), Words(knows=False)], ids=["no counter", "a graph that cuts"])
def test_where_tokens_cannot_be_counted_the_other_limits_hold(encoder):
    assert embed(encoder, 1, "a b c d").status_code == 200


def test_an_encoder_counts_what_it_reads(model_dir):
    encoder = fresh_encoder(model_dir, max_length=16)
    assert isinstance(encoder, TokenCounter)
    titles, bodies = ["storm", "", "x " * 100], ["it rained .", "rain", ""]
    rows = encoder.tokenize(titles, bodies)
    assert encoder.count_tokens(titles, bodies) == sum(len(row) for row in rows)
    assert len(rows[2]) == 16
    for text in ("storm", "\ufdfa" * 5, "ÅÉ" * 9, "川の水", "!?" * 30):
        assert len(encoder.vocabulary.encode_documents([text], [text], 10_000)[0]) <= most_tokens([text], [text])


def options_of(*arguments):
    parser = argparse.ArgumentParser()
    add_limit_arguments(parser)
    return limits_from(parser.parse_args(arguments))


DEFAULTS = {
    "max_bytes": 8_388_608,
    "max_documents": 256,
    "max_characters": 200_000,
    "max_tokens": 131_072,
    "max_queue": 128,
    "read_seconds": 30.0,
}


def test_every_limit_has_an_option_and_a_default():
    assert options_of() == Limits() == Limits(**DEFAULTS)
    given = {name: int(value) + 1 for name, value in DEFAULTS.items()}
    assert options_of(*(f"--{name}={value}" for name, value in given.items())) == Limits(**given)
    assert options_of("--read_seconds=0.5").read_seconds == 0.5


@pytest.mark.parametrize("name", DEFAULTS)
def test_limits_are_positive_numbers(name):
    assert getattr(options_of(f"--{name}=1"), name) == 1
    for value in ("0", "-1", *(["inf", "nan"] if name == "read_seconds" else [])):
        with pytest.raises(InputError, match=f"--{name}: got {value}.*expected a positive number"):
            options_of(f"--{name}={value}")
    assert not math.isnan(getattr(Limits(), name))


def test_refusals_as_answers():
    refusal = RefusedError(418, "no", {"a": 1}, {"X-B": "c"}).response()
    assert (refusal.status_code, refusal.body, refusal.headers["x-b"]) == (418, b'{"detail":"no","a":1}', "c")
    for close, expected in ((False, None), (True, "close")):
        answer = UnavailableError("later", close=close).response()
        assert (answer.status_code, answer.headers["retry-after"], answer.headers.get("connection")) == (
            503,
            "1",
            expected,
        )
