"""Which host names are answered, and what a request without the key gets."""

import argparse
import sys
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.formats.keys import read_key
from newsembed.serving import access, server
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))
from letters import Letters

KEY = "a-key-of-24-characters-x"


def client_of(**options):
    return TestClient(server.create_app(server.Service(Letters()), access=server.Access(**options)))


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
    with pytest.raises(InputError, match="--allowed_host: got"):
        access.allowed_hosts("127.0.0.1", [name])


def test_any_host_is_warned_about(monkeypatch, capsys):
    monkeypatch.setattr(server, "encoder_from_spec", lambda *_, **__: Letters())
    monkeypatch.setattr(server, "listen", lambda *_: None)
    parser = argparse.ArgumentParser()
    server.add_arguments(parser)
    server.run(parser.parse_args(["--model", "m", "--port", "0"]))
    assert "warning" not in capsys.readouterr().err
    server.run(parser.parse_args(["--model", "m", "--port", "0", "--allowed_host", "*"]))
    assert "warning: any host name is answered" in capsys.readouterr().err


def test_without_the_key_only_the_page_and_the_health_are_answered():
    client = client_of(key=KEY)
    wrong = ("", KEY, f"Basic {KEY}", "Bearer", f"Bearer {KEY[:-1]}", f"Bearer {KEY}x", f"Bearer {KEY.upper()}")
    for header in wrong:
        for path in ("/search?q=a", "/embed", "/nothing"):
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


def test_the_key_is_compared_before_the_body_is_read():
    client = client_of(key=KEY)
    body = {"documents": []}
    assert client.post("/embed", json=body, headers={"host": "localhost"}).status_code == 401


def test_a_key_comes_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(access.KEY_VARIABLE, raising=False)
    given = argparse.Namespace(api_key_file=None)
    assert access.api_key(given) is None
    monkeypatch.setenv(access.KEY_VARIABLE, f" {KEY}\n")
    assert access.api_key(given) == KEY
    (tmp_path / "key").write_text("another-key-of-some-length\n")
    assert access.api_key(argparse.Namespace(api_key_file=str(tmp_path / "key"))) == "another-key-of-some-length"
    for short in ("", "hunter2", "two words of a key that is long", "schlüssel-mit-umlaut"):
        monkeypatch.setenv(access.KEY_VARIABLE, short)
        with pytest.raises(InputError, match=f"{access.KEY_VARIABLE}: an API key") as found:
            access.api_key(given)
        assert not short or short not in str(found.value)


def test_a_key_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none: the API key cannot be read: No such file"):
        read_key(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 20)
    with pytest.raises(InputError, match="binary: the API key cannot be read: not a text file"):
        read_key(str(tmp_path / "binary"))
