"""The newsroom's server: the Host header chooses the site; status codes, validators and redirects are right."""

import datetime
import http.client

import pytest
from newsembed.errors import InputError
from newsembed.newsroom import NewsroomServer
from newsembed.newsroom.server import Resource, SiteWriter

WHEN = datetime.datetime(2022, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
HTML = "text/html; charset=utf-8"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with SiteWriter(str(folder / "site")) as writer:
        writer.add(Resource("www.one.example", "/", b"first site", HTML, WHEN))
        writer.add(Resource("www.two.example", "/", "zweite Stätte".encode(), HTML, WHEN))
        writer.add(Resource("www.one.example", "/old", b"moved", HTML, WHEN, 301, "http://www.two.example/"))
        writer.add(Resource("www.one.example", "/broken", b"oops", HTML, WHEN, 500))
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


def write_and_fail(folder):
    with SiteWriter(folder) as writer:
        writer.add(Resource("www.one.example", "/", b"first site", HTML, WHEN))
        raise RuntimeError("stop")


def test_an_unfinished_site_is_none(tmp_path):
    with pytest.raises(RuntimeError, match="stop"):
        write_and_fail(str(tmp_path / "site"))
    with pytest.raises(InputError, match="no newsroom site"):
        NewsroomServer(str(tmp_path))


def test_a_resource_cannot_be_written_twice(tmp_path):
    resource = Resource("www.one.example", "/", b"x", HTML, WHEN)
    with SiteWriter(str(tmp_path / "site")) as writer:
        writer.add(resource)
        with pytest.raises(ValueError, match="twice"):
            writer.add(resource)
