"""Metrics and the access log: every answer is counted once, refusals too; no line tells what was searched for."""

import io
import json
import sys
from pathlib import Path

import pytest
from newsembed.serving import server
from newsembed.serving.limits import Limits
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from letters import Letters


@pytest.fixture
def log():
    return io.StringIO()


@pytest.fixture
def client(log):
    access = server.Access(log=log)
    app = server.create_app(server.Service(Letters()), Limits(max_documents=2), access)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


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


def test_refused_hosts_are_counted(client):
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400
    assert requests_of(client, "/healthz", "GET", 400) == 1


def test_an_error_of_the_encoder_is_counted_as_500(log):
    class Broken(Letters):
        def encode(self, titles, bodies):
            raise ValueError("broken")

    app = server.create_app(server.Service(Broken()), None, server.Access(log=log))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
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


def test_without_a_log_nothing_is_written(capsys):
    app = server.create_app(server.Service(Letters()))
    with TestClient(app, base_url="http://localhost") as client:
        client.get("/healthz")
    assert capsys.readouterr() == ("", "")


def test_metrics_need_the_key_of_the_server():
    app = server.create_app(server.Service(Letters()), None, server.Access(key="0123456789abcdef"))
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/metrics").status_code == 401
        assert metrics(client, headers={"Authorization": "Bearer 0123456789abcdef"})
