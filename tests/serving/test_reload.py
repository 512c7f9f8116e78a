"""New versions of an index while it is served: atomic, damaged ones refused, searches in flight on the old one."""

import os
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.archive import VersionWriter, publish
from newsembed.formats.index import IndexedDocument, facts_file
from newsembed.serving import server
from newsembed.serving import service as service_module
from newsembed.serving.index import DocumentIndex
from newsembed.serving.reload import Watcher, load_current, version_of
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from letters import Letters

TITLES = ["alpha", "beta", "gamma", "delta"]


def make_index(count, digest="letters"):
    documents = [IndexedDocument(f"{i}", f"https://a.example/{i}", "a.example", TITLES[i]) for i in range(count)]
    return DocumentIndex(Letters().encode(TITLES[:count], [""] * count), documents, encoder_digest=digest)


def save_plain(folder, number, count, digest="letters"):
    make_index(count, digest).save(str(folder))


def save_version(folder, number, count, digest="letters"):
    """Publishes the next version of an archive that has nothing but an index."""
    writer = VersionWriter(str(folder), number, None)
    make_index(count, digest).save(writer.path("index"))
    writer.finish({}, {})
    publish(str(folder), number)


@pytest.fixture(params=[save_plain, save_version], ids=["index", "archive"])
def saved(request, tmp_path):
    """A path with two documents, and what saves the next version there."""
    folder = tmp_path / "there"
    request.param(folder, 1, 2)
    return str(folder), request.param


def watcher_of(path, found):
    return Watcher(path, load_current(path), version_of(path), found.append)


def test_a_new_version_is_passed_on_once(saved):
    path, save = saved
    found = []
    watcher = watcher_of(path, found)
    assert (watcher.look(), found) == (False, [])
    save(path, 2, 3)
    assert (watcher.look(), watcher.look()) == (True, False)
    assert [len(index) for index in found] == [3]


def test_a_damaged_version_is_refused_and_the_next_good_one_is_served(saved, caplog):
    path, save = saved
    found = []
    watcher = watcher_of(path, found)
    save(path, 2, 3)
    for name in Path(path).rglob("embeddings.npy"):
        raw = bytearray(name.read_bytes())
        raw[-1] ^= 1
        name.write_bytes(raw)
    assert (watcher.look(), watcher.look(), found) == (False, False, [])
    (line,) = [record.message for record in caplog.records]
    assert "the new version is not served, the old one stays" in line
    assert "embeddings.npy" in line
    save(path, 3, 4)
    assert (watcher.look(), [len(index) for index in found]) == (True, [4])


def test_a_version_of_another_encoder_is_refused(saved, caplog):
    path, save = saved
    found = []
    watcher = watcher_of(path, found)
    save(path, 2, 3, "another")
    assert (watcher.look(), found) == (False, [])
    assert "of another encoder" in caplog.text


def test_a_folder_that_is_gone_is_reported_once(saved, caplog):
    path, _ = saved
    watcher = watcher_of(path, [])
    shutil.rmtree(path)
    assert (watcher.look(), watcher.look()) == (False, False)
    assert len(caplog.records) == 1


def test_a_damaged_pointer_is_refused(tmp_path, caplog):
    save_version(tmp_path, 1, 2)
    watcher = watcher_of(str(tmp_path), [])
    (tmp_path / "archive.json").write_text("{")
    assert watcher.look() is False
    assert "damaged pointer" in caplog.text


def test_an_index_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="no readable index"):
        version_of(str(tmp_path))


def test_a_version_that_goes_while_it_is_read_gives_way_to_the_next(tmp_path, monkeypatch):
    save_version(tmp_path, 1, 2)
    load = DocumentIndex.load

    def late(folder):
        if folder.endswith("000001/index"):
            save_version(tmp_path, 2, 3)
            shutil.rmtree(folder)
        return load(folder)

    monkeypatch.setattr(DocumentIndex, "load", late)
    assert len(load_current(str(tmp_path))) == 3


def titles_of(client, query="alpha"):
    return {hit["title"] for hit in client.get("/search", params={"q": query, "count": 9}).json()["hits"]}


def test_the_server_serves_a_new_version_without_a_restart(saved):
    path, save = saved
    service = server.Service(Letters(), load_current(path))
    with TestClient(server.create_app(service), base_url="http://localhost") as client:
        assert titles_of(client) == {"alpha", "beta"}
        replaced = threading.Event()
        with server.reloading(service, path, version_of(path), 0.01) as watcher:
            passed_on = watcher._replace
            watcher._replace = lambda index: (passed_on(index), replaced.set())
            save(path, 2, 4)
            assert replaced.wait(30)
        assert titles_of(client) == set(TITLES)
        assert client.get("/healthz").json()["documents"] == 4


def test_a_search_that_is_under_way_finishes_on_the_old_version(saved, monkeypatch):
    path, save = saved
    old = load_current(path)
    service = server.Service(Letters(), old)
    started, finish = threading.Event(), threading.Event()
    search = old.search

    def slow(*args, **options):
        started.set()
        assert finish.wait(30)
        return search(*args, **options)

    monkeypatch.setattr(old, "search", slow)
    with TestClient(server.create_app(service), base_url="http://localhost") as client:
        found = []
        thread = threading.Thread(target=lambda: found.append(titles_of(client)))
        thread.start()
        assert started.wait(30)
        save(path, 2, 4)
        watcher = Watcher(path, old, "before", service.replace)
        assert watcher.look()
        assert titles_of(client) == set(TITLES)
        finish.set()
        thread.join(30)
        assert found == [{"alpha", "beta"}]


class Other(Letters):
    """Another encoder, with vectors of another width."""

    digest, dimensions = "other", 4

    def encode(self, titles, bodies):
        return np.asarray(super().encode(titles, bodies)[:, :4])

    def encode_queries(self, texts):
        return self.encode(texts, texts)


def save_other(folder, number, count):
    documents = [IndexedDocument(f"{i}", f"https://a.example/{i}", "a.example", TITLES[i]) for i in range(count)]
    index = DocumentIndex(Other().encode(TITLES[:count], [""] * count), documents, encoder_digest="other")
    writer = VersionWriter(str(folder), number, None)
    index.save(writer.path("index"))
    writer.finish({}, {})
    publish(str(folder), number)


def test_a_version_of_another_encoder_comes_with_it(tmp_path, monkeypatch):
    save_version(tmp_path, 1, 2)
    path, old = str(tmp_path), Letters()
    service = server.Service(old, load_current(path))
    found = []

    def renew(index):
        service.replace(index, Other())
        found.append(len(index))

    with TestClient(server.create_app(service), base_url="http://localhost") as client:
        before = service.batcher
        watcher = Watcher(path, service.index, version_of(path), service.replace, renew=renew)
        save_other(tmp_path, 2, 4)
        assert (watcher.look(), found) == (True, [4])
        assert titles_of(client) == set(TITLES)
        assert client.get("/healthz").json()["dimensions"] == 4
        answer = client.post("/embed", json={"documents": [{"title": "alpha", "body": ""}]}).json()
        assert (answer["dimensions"], answer["encoder"], len(answer["embeddings"][0])) == (4, "other", 4)
        # A request that had found the old encoder is still answered by it.
        assert before.query("alpha").result(30).shape == (old.dimensions,)
        save_other(tmp_path, 3, 3)
        assert (watcher.look(), found) == (True, [4])  # the same encoder: the index alone is replaced
        assert len(service.index) == 3


def test_the_threads_of_a_replaced_encoder_end(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "_RETIRE_SECONDS", 0.01)
    save_version(tmp_path, 1, 2)
    service = server.Service(Letters(), load_current(str(tmp_path)))
    before = service.batcher
    before.query("alpha").result(30)
    service.replace(service.index, Other())
    for thread in before._threads:
        thread.join(30)
        assert not thread.is_alive()
    service.close()


def test_a_version_whose_encoder_cannot_be_read_is_refused(tmp_path, caplog):
    save_version(tmp_path, 1, 2)
    path = str(tmp_path)
    service = server.Service(Letters(), load_current(path))

    def lacks(index):
        raise InputError("no such model", path="trainings/000001/model")

    with server.reloading(service, path, version_of(path), 0, lacks) as watcher:
        save_other(tmp_path, 2, 4)
        assert watcher.look() is False
    assert "no such model" in caplog.text
    assert len(service.index) == 2
    service.close()


def test_nothing_is_watched_without_an_index_or_with_zero_seconds(saved):
    path, save = saved
    with server.reloading(server.Service(Letters()), None, "", 1) as nothing:
        assert nothing is None
    service = server.Service(Letters(), load_current(path))
    with server.reloading(service, path, version_of(path), 0) as watcher:
        assert not watcher._thread.is_alive()
    assert os.path.exists(facts_file(path)) or save is save_version
