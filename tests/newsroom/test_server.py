"""The newsroom's server: the Host header chooses the site; status codes, validators and redirects are right."""

import datetime
import http.client

import pytest
from newsembed.errors import InputError
from newsembed.newsroom import NewsroomServer
from newsembed.newsroom.server import Resource, write_site

WHEN = datetime.datetime(2022, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
HTML = "text/html; charset=utf-8"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    resources = [
        Resource("www.one.example", "/", b"first site", HTML, WHEN),
        Resource("www.two.example", "/", "zweite Stätte".encode(), HTML, WHEN),
        Resource("www.one.example", "/old", b"moved", HTML, WHEN, 301, "http://www.two.example/"),
        Resource("www.one.example", "/broken", b"oops", HTML, WHEN, 500),
    ]
    write_site(str(folder / "site"), resources)
    with NewsroomServer(str(folder)) as running:
        yield running


def ask(server, path="/", host="www.one.example", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(
            method, path, headers={"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        )
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_the_host_header_chooses_the_site(server):
    assert ask(server)[2] == b"first site"
    assert ask(server, host="WWW.two.example:8080")[2].decode() == "zweite Stätte"


def test_status_codes(server):
    status, headers, _ = ask(server, "/old")
    assert (status, headers["Location"]) == (301, "http://www.two.example/")
    assert ask(server, "/broken")[::2] == (500, b"oops")
    assert ask(server, "/nothing")[0] == 404
    assert ask(server, host="www.three.example")[0] == 404


def test_validators_answer_not_modified(server):
    _, headers, _ = ask(server)
    assert headers["Last-Modified"] == "Fri, 04 Mar 2022 05:06:07 GMT"
    assert ask(server, If_None_Match=headers["ETag"])[::2] == (304, b"")
    assert ask(server, If_Modified_Since=headers["Last-Modified"])[0] == 304
    assert ask(server, If_Modified_Since="Thu, 03 Mar 2022 05:06:07 GMT")[0] == 200
    assert ask(server, If_None_Match='"other"', If_Modified_Since=headers["Last-Modified"])[0] == 200


def test_a_folder_without_a_site_is_refused(tmp_path):
    with pytest.raises(InputError, match="no newsroom site"):
        NewsroomServer(str(tmp_path))


def test_a_port_that_is_in_use_is_refused(tmp_path, server):
    write_site(str(tmp_path / "site"), [])
    with pytest.raises(InputError, match=f"--port: got {server.port}: Address already in use"):
        NewsroomServer(str(tmp_path), server.port)


def test_an_unfinished_site_is_none(tmp_path):
    def failing():
        yield Resource("www.one.example", "/", b"first site", HTML, WHEN)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_site(str(tmp_path / "site"), failing())
    with pytest.raises(InputError, match="no newsroom site"):
        NewsroomServer(str(tmp_path))
