"""Requests in front of the routes: limits, hosts, the key, what is counted and logged, and large bodies."""

import io
import json
import threading

import letters
import pytest
from letters import Letters
from newsembed.serving import bodies, server
from newsembed.serving import gate as access
from newsembed.serving.bodies import AT_ONCE
from newsembed.serving.encoder import JaxEncoder, fresh_model
from newsembed.serving.gate import Access, Limits
from newsembed.serving.interface import TokenCounter, most_tokens
from prometheus_client.parser import text_string_to_metric_families
from refusals import refuses

KEY = "a-key-of-24-characters-x"
JSON = {"content-type": "application/json"}


def client_of(encoder=None, limits=None, **access):
    service = server.Service(encoder or Letters())
    return letters.client_of(service, limits, Access(**access), raise_server_exceptions=False)


LIMITS = Limits(max_bytes=1_000, max_documents=2, max_characters=10)


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
def test_a_request_over_a_limit_gets_413_with_the_limit_and_its_option(documents, limit, option):
    client = client_of(limits=LIMITS)
    reply = client.post("/embed", json={"documents": documents})
    assert reply.status_code == 413
    answer = reply.json()
    assert (answer["limit"], answer["option"]) == (limit, option)
    assert f"more than {limit} " in answer["detail"]
    assert answer["detail"].endswith(f"or start the server with a larger {option}")


def test_requests_at_the_limits_are_answered():
    client = client_of(limits=LIMITS)
    documents = [{"title": "a" * 4, "body": "b" * 6}, {"title": "c"}]
    assert len(client.post("/embed", json={"documents": documents}).json()["embeddings"]) == 2


def test_long_queries_are_refused():
    client = client_of(limits=LIMITS)
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
    client = client_of(encoder, Limits(max_tokens=most))
    return client.post("/embed", json={"documents": [{"title": text} for text in documents]})


def test_more_tokens_than_allowed_get_413_with_the_limit_and_its_option():
    reply = embed(Words(), 40, *["a b c d"] * 11)
    assert reply.status_code == 413
    assert (reply.json()["limit"], reply.json()["option"]) == (40, "--max_tokens")
    assert reply.json()["detail"].startswith("more than 40 tokens in a request; send its documents in several requests")


def test_counting_ends_where_there_are_too_many():
    encoder = Words()
    client = client_of(encoder, Limits(max_tokens=1_000, max_documents=2_000))
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
    encoder = JaxEncoder(fresh_model(model_dir), max_length=16)
    assert isinstance(encoder, TokenCounter)
    titles, bodies = ["storm", "", "x " * 100], ["it rained .", "rain", ""]
    rows = encoder.tokenize(titles, bodies)
    assert encoder.count_tokens(titles, bodies) == sum(len(row) for row in rows)
    assert len(rows[2]) == 16
    for text in ("storm", "\ufdfa" * 5, "ÅÉ" * 9, "川の水", "!?" * 30):
        assert len(encoder.vocabulary.encode_documents([text], [text], 10_000)[0]) <= most_tokens([text], [text])


def ask(client, host, path="/healthz", **headers):
    return client.get(path, headers={"host": host} | headers)


@pytest.mark.parametrize(
    ("allowed", "answered", "refused"),
    [
        (
            access.allowed_hosts("127.0.0.1", []),
            ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "[::1]:8000"],
            ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.evil.example", "a b"],
        ),
        (access.allowed_hosts("192.0.2.1", ["a.example"]), ["192.0.2.1", "a.example:80"], ["192.0.2.2", "b.example"]),
        (access.allowed_hosts("2001:db8::1", []), ["[2001:db8::1]:8000"], ["[2001:db8::2]"]),
        (access.allowed_hosts("127.0.0.1", ["*.a.example"]), ["b.a.example"], ["a.example", "ba.example"]),
        (access.allowed_hosts("127.0.0.1", ["*"]), ["evil.example"], []),
    ],
)
def test_only_allowed_hosts_are_answered(allowed, answered, refused):
    client = client_of(hosts=allowed)
    for host in answered:
        assert ask(client, host).status_code == 200, host
    for host in refused:
        for path in ("/healthz", "/", "/search?q=a", "/nothing"):
            assert ask(client, host, path).status_code == 400, host


def test_a_refused_host_learns_which_option_adds_it():
    client = client_of(hosts=access.allowed_hosts("127.0.0.1", []))
    reply = ask(client, "news.example:8000", "/search?q=a")
    assert reply.json() == {
        "detail": "this server does not answer to the host name 'news.example:8000'; "
        "start it with --allowed_host to add it",
        "option": "--allowed_host",
    }
    assert f"the host name {'b' * 253!r};" in ask(client, "b" * 10_000).json()["detail"]


def test_a_name_is_listed_once_and_that_of_the_address_in_lower_case():
    assert access.allowed_hosts("News.Example", ["a.example", "localhost", "news.example", "a.example"]) == (
        *("localhost", "127.0.0.1", "[::1]"),
        *("news.example", "a.example"),
    )


@pytest.mark.parametrize("name", ["a.example:8000", "a.*.example", "**", "http://a.example", "", "*."])
def test_names_that_no_host_header_has_are_errors(name):
    refuses("--allowed_host: got", access.allowed_hosts, "127.0.0.1", [name])


def test_any_host_is_warned_about(monkeypatch, capsys):
    monkeypatch.setattr(server, "encoder_from_spec", lambda *_, **__: Letters())
    monkeypatch.setattr(server, "listen", lambda *_: None)
    letters.run(server, "--model", "m", "--port", "0")
    assert "warning" not in capsys.readouterr().err
    letters.run(server, "--model", "m", "--port", "0", "--allowed_host", "*")
    assert "warning: any host name is answered" in capsys.readouterr().err


def test_without_the_key_only_the_page_and_the_health_are_answered():
    client = client_of(key=KEY)
    wrong = ("", KEY, f"Basic {KEY}", "Bearer", f"Bearer {KEY[:-1]}", f"Bearer {KEY}x", f"Bearer {KEY.upper()}")
    for header in wrong:
        for path in ("/search?q=a", "/embed", "/metrics", "/nothing"):
            reply = ask(client, "localhost", path, authorization=header)
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert "Authorization: Bearer KEY" in reply.json()["detail"]
        assert ask(client, "localhost", "/healthz", authorization=header).json() == {"status": "ok"}
    assert ask(client, "localhost", "/").status_code == 200
    assert ask(client, "localhost", "/openapi.json").json()["components"]["securitySchemes"]


def test_with_the_key_all_is_answered():
    client = client_of(key=KEY)
    for scheme in ("Bearer", "bearer"):
        headers = {"authorization": f"{scheme} {KEY}", "host": "localhost"}
        assert client.post("/embed", json={"documents": [{"title": "a"}]}, headers=headers).status_code == 200
        assert client.get("/search", params={"q": "a"}, headers=headers).status_code == 404  # no index
        assert client.get("/healthz", headers=headers).json()["encoder"] == "letters"
        assert metrics(client, headers=headers)


def test_the_key_is_compared_before_the_body_is_read():
    client = client_of(key=KEY)
    body = {"documents": []}
    assert client.post("/embed", json=body, headers={"host": "localhost"}).status_code == 401


def test_a_key_comes_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(access.KEY_VARIABLE, raising=False)
    assert access.api_key("") is None
    monkeypatch.setenv(access.KEY_VARIABLE, f" {KEY}\n")
    assert access.api_key("") == KEY
    (tmp_path / "key").write_text("another-key-of-some-length\n")
    assert access.api_key(str(tmp_path / "key")) == "another-key-of-some-length"
    monkeypatch.setenv(access.KEY_VARIABLE, "hunter2")
    assert "hunter2" not in str(refuses(f"{access.KEY_VARIABLE}: an API key", access.api_key, ""))


@pytest.fixture
def log():
    return io.StringIO()


@pytest.fixture
def client(log):
    return client_of(limits=Limits(max_documents=2), log=log)


def metrics(client, **options):
    answer = client.get("/metrics", **options)
    assert answer.status_code == 200
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def requests_of(client, route, method, status):
    labels = sorted({"route": route, "method": method, "status": str(status)}.items())
    return metrics(client).get(("newsembed_requests_total", *labels), 0)


def test_each_answer_is_counted_by_route_and_status(client):
    documents = [{"title": "Storm", "body": "It rained."}]
    for _ in range(3):
        assert client.post("/embed", json={"documents": documents}).status_code == 200
    assert client.post("/embed", json={"documents": documents * 3}).status_code == 413
    assert client.get("/search", params={"q": "storm"}).status_code == 404  # there is no index
    assert requests_of(client, "/embed", "POST", 200) == 3
    assert requests_of(client, "/embed", "POST", 413) == 1
    assert requests_of(client, "/search", "GET", 404) == 1
    found = metrics(client)
    assert found["newsembed_request_seconds_count", ("method", "POST"), ("route", "/embed")] == 4
    assert found["newsembed_request_seconds_sum", ("method", "POST"), ("route", "/embed")] > 0
    assert found["newsembed_index_documents",] == 0
    assert found["newsembed_requests_inside", ("kind", "requests to embed")] == 0


def test_paths_that_do_not_exist_share_one_series(client):
    for number in range(5):
        assert client.get(f"/made-up/{number}").status_code == 404
    assert requests_of(client, "other", "GET", 404) == 5
    assert not [key for key in metrics(client) if "made-up" in str(key)]


def test_an_error_of_the_encoder_is_counted_as_500(log):
    class Broken(Letters):
        def encode(self, titles, bodies):
            raise ValueError("broken")

    client = client_of(Broken(), log=log)
    assert client.post("/embed", json={"documents": [{"title": "a", "body": "b"}]}).status_code == 500
    assert requests_of(client, "/embed", "POST", 500) == 1
    assert json.loads(log.getvalue().splitlines()[0])["status"] == 500


def test_a_line_of_the_log_has_the_outcome_and_not_the_query(client, log):
    client.get("/search", params={"q": "a secret"}, headers={"Authorization": "Bearer of-secrets"})
    (line,) = log.getvalue().splitlines()
    found = json.loads(line)
    assert (found["method"], found["path"], found["status"]) == ("GET", "/search", 404)
    assert found["seconds"] >= 0
    assert found["bytes"] > 0
    assert "secret" not in line


@pytest.fixture
def roomy():
    with client_of(limits=Limits(max_documents=20_000, max_tokens=10_000_000)) as client:
        yield client


def test_large_requests_are_answered_and_refused_as_small_ones(roomy):
    client = roomy
    many = [{"title": "abc"[: number % 3 + 1], "body": "x" * 40} for number in range(9_000)]
    assert len(json.dumps(many)) > AT_ONCE
    found = client.post("/embed", json={"documents": many}).json()["embeddings"]
    alone = client.post("/embed", json={"documents": many[:3]}).json()["embeddings"]
    assert found[8_997:] == alone
    assert len(found) == 9_000
    for bad in ({"title": " "}, {"title": "\ud800"}, {"title": "a", "text": "b"}, 1):
        reply = client.post("/embed", content=json.dumps({"documents": [*many, bad]}), headers=JSON)
        assert (reply.status_code, reply.json()["detail"][0]["loc"][:3]) == (422, ["body", "documents", 9_000])
    cut = client.post("/embed", content=json.dumps({"documents": many})[:-1], headers=JSON)
    assert (cut.status_code, cut.json()["detail"][0]["type"]) == (422, "json_invalid")
    deep = client.post("/embed", content='{"documents": [' + "[" * AT_ONCE + "]}", headers=JSON)
    assert deep.status_code == 400
    over = client.post("/embed", json={"documents": many * 3})
    assert (over.status_code, over.json()["option"]) == (413, "--max_documents")


def test_other_requests_are_answered_while_a_large_one_is_parsed(roomy, monkeypatch):
    client = roomy
    begun, answered = threading.Event(), threading.Event()

    async def slow(function, *args):
        if function == bodies.EmbedRequest.model_validate_json:
            begun.set()
            await in_thread(answered.wait, 60)
        return await in_thread(function, *args)

    in_thread = bodies.run_in_threadpool
    monkeypatch.setattr(bodies, "run_in_threadpool", slow)
    statuses = []
    body = json.dumps({"documents": [{"title": "a" * 1_000}] * 300})
    sender = threading.Thread(
        target=lambda: statuses.append(client.post("/embed", content=body, headers=JSON).status_code)
    )
    sender.start()
    assert begun.wait(60)
    assert client.get("/healthz").status_code == 200
    answered.set()
    sender.join(60)
    assert statuses == [200]
