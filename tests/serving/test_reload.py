"""New versions of an archive while it is served: whole, damaged ones refused, searches in flight on the old one."""

import logging
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from letters import Letters, client_of
from newsembed.errors import InputError
from newsembed.serving import server
from newsembed.serving import service as service_module
from newsembed.serving.service import Watcher
from tables import index_of, numbered

TITLES = ["alpha", "beta", "gamma", "delta"]


class Other(Letters):
    """Another encoder, with vectors of another width."""

    digest, dimensions = "other", 4

    def encode(self, titles, bodies):
        return np.asarray(super().encode(titles, bodies)[:, :4])


def save(path, count, encoder=Letters):
    vectors = encoder().encode(TITLES[:count], [""] * count)
    return index_of(vectors, numbered(TITLES[:count]), path, encoder_digest=encoder.digest)


@pytest.fixture
def served(tmp_path):
    """A path with two documents, and a service that has them."""
    service = server.Service(Letters(), save(tmp_path / "there", 2))
    yield str(tmp_path / "there"), service
    service.close()


def warnings_of(caplog):
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_new_version_is_passed_on_once(served, capsys):
    path, service = served
    watcher = Watcher(service)
    assert (watcher.look(), len(service.index)) == (False, 2)
    save(path, 3)
    assert (watcher.look(), watcher.look(), len(service.index)) == (True, False, 3)
    assert capsys.readouterr().out == "a new version of the index is served: 3 documents\n"


def test_a_damaged_version_is_refused_and_the_next_good_one_is_served(served, caplog):
    path, service = served
    watcher = Watcher(service)
    save(path, 3)
    for name in Path(path).glob("terms.lance/data/*"):
        raw = bytearray(name.read_bytes())
        raw[len(raw) // 2] ^= 1
        name.write_bytes(raw)
    assert (watcher.look(), watcher.look(), len(service.index)) == (False, False, 2)
    (line,) = warnings_of(caplog)
    assert "the new version is not served, the old one stays" in line
    assert "terms.lance/data" in line
    shutil.rmtree(path)
    save(path, 2)
    save(path, 2)
    save(path, 4)
    assert (watcher.look(), len(service.index)) == (True, 4)


def test_an_archive_that_is_gone_is_reported_once(served, caplog):
    path, service = served
    watcher = Watcher(service)
    shutil.rmtree(path)
    assert (watcher.look(), watcher.look()) == (False, False)
    assert len(warnings_of(caplog)) == 1


def titles_of(client, query="alpha"):
    return {hit["title"] for hit in client.get("/search", params={"q": query, "count": 9}).json()["hits"]}


def test_the_server_serves_a_new_version_without_a_restart(served):
    path, service = served
    with client_of(service) as client:
        assert titles_of(client) == {"alpha", "beta"}
        replaced, replace = threading.Event(), service.replace
        service.replace = lambda *given: (replace(*given), replaced.set())
        with Watcher(service, 0.01):
            save(path, 4)
            assert replaced.wait(60)
        assert titles_of(client) == set(TITLES)
        assert client.get("/healthz").json()["documents"] == 4


def test_a_search_that_is_under_way_finishes_on_the_old_version(served, monkeypatch):
    path, service = served
    started, finish = threading.Event(), threading.Event()
    nearest = service.index.nearest

    def slow(*args):
        started.set()
        assert finish.wait(60)
        return nearest(*args)

    monkeypatch.setattr(service.index, "nearest", slow)
    with client_of(service) as client:
        found = []
        thread = threading.Thread(target=lambda: found.append(titles_of(client)))
        thread.start()
        assert started.wait(60)
        save(path, 4)
        assert Watcher(service).look()
        assert titles_of(client) == set(TITLES)
        finish.set()
        thread.join(60)
        assert found == [{"alpha", "beta"}]


def test_a_version_of_another_encoder_comes_with_it_or_is_refused(served, caplog, capsys):
    path, service = served
    refusing, before = Watcher(service), service.batcher
    watcher = Watcher(service, 0, lambda index: Other())
    lacking = Watcher(service, 0, lambda index: (_ for _ in ()).throw(InputError("no such model", path="model")))
    with client_of(service) as client:
        save(path, 4, Other)
        assert (refusing.look(), lacking.look(), len(service.index)) == (False, False, 2)
        assert "of another encoder" in warnings_of(caplog)[0]
        assert "no such model" in warnings_of(caplog)[1]
        assert (watcher.look(), len(service.index)) == (True, 4)
        assert "the index and its encoder are served: 4 documents" in capsys.readouterr().out
        assert titles_of(client) == set(TITLES)
        assert client.get("/healthz").json()["dimensions"] == 4
        answer = client.post("/embed", json={"documents": [{"title": "alpha", "body": ""}]}).json()
        assert (answer["dimensions"], answer["encoder"], len(answer["embeddings"][0])) == (4, "other", 4)
        # A request that had found the old encoder is still answered by it.
        assert before.query("alpha").result(60).shape == (Letters.dimensions,)
        save(path, 3, Other)  # the same encoder: the index alone is replaced
        assert (watcher.look(), len(service.index)) == (True, 3)


def test_the_threads_of_a_replaced_encoder_end(served, monkeypatch):
    monkeypatch.setattr(service_module, "_RETIRE_SECONDS", 0.01)
    _, service = served
    before = service.batcher
    before.query("alpha").result(60)
    service.replace(service.index, Other())
    for thread in before._threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_notice_about_the_index_is_read_with_each_look_at_the_health(served):
    _, service = served
    counts = iter("12")
    service.notice = lambda index: f"{next(counts)} of {len(index)}"
    with client_of(service) as client:
        assert [client.get("/healthz").json()["notice"] for _ in "12"] == ["1 of 2", "2 of 2"]
