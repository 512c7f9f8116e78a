"""A real server in its own process, and clients that lie about lengths, send half of a request, or too much."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

FEW = 29  # seconds, of a server with few descriptors
HANG = 300  # seconds; a client that waits this long has failed
SERVE = """
import sys
from newsembed.serving.gate import Limits
from newsembed.serving.server import Service, create_app, listen
from letters import Letters
listen(create_app(Service(Letters()), Limits(max_bytes=100_000, read_seconds=float(sys.argv[1]))), "127.0.0.1", 0)
"""


@pytest.fixture
def server(request):
    """A process and its port; the parameter is its --read_seconds, FEW with few descriptors."""
    seconds = getattr(request, "param", 30)
    folder = str(Path(__file__).parents[1] / "serving")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(seconds)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    assert line.startswith("listening on http://127.0.0.1:"), process.stderr.read()
    if seconds == FEW:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (128, 128))
    yield process, int(line.rsplit(":", 1)[1])
    process.kill()
    process.communicate()


def opened(port, head, body=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=HANG)
    connection.sendall(f"POST /embed HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body)
    return connection


def answer(connection):
    """Status and JSON of one answer."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        assert part, received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65_536)
    return int(head.split()[1]), json.loads(body)


def embed(port, documents):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/embed",
        json.dumps({"documents": documents}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=HANG) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_lengths_that_are_too_large_false_or_missing_are_refused_while_they_are_sent(server):
    process, port = server
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for head, body in (
        ("Content-Length: 300000000", b""),  # nothing was sent, and the answer is there
        ("Content-Length: 300000000", b"x" * 200_000),
        ("Transfer-Encoding: chunked", chunk * 2),  # no last chunk: it never ends
    ):
        with opened(port, head, body) as connection:
            status, reply = answer(connection)
            assert (status, reply["limit"], reply["option"]) == (413, 100_000, "--max_bytes")
    with opened(port, "Content-Length: 5", b"x" * 100) as connection:  # what follows is not a request
        assert answer(connection)[0] == 422
    status, reply = embed(port, [{"title": "x" * 100_000}])
    assert (status, reply["option"]) == (413, "--max_bytes")
    assert embed(port, [{"title": "abc"}])[0] == 200
    assert process.poll() is None


def test_it_stops_with_a_hundred_half_sent_requests(server):
    process, port = server
    halves = [opened(port, "Content-Length: 1000", b'{"documents"') for _ in range(70)]
    halves += [socket.create_connection(("127.0.0.1", port), timeout=HANG) for _ in range(30)]
    for connection in halves[70:]:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: local")
    assert embed(port, [{"title": "abc"}])[0] == 200
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=HANG)
    assert process.returncode == -signal.SIGTERM
    assert errors == ""
    for connection in halves[:70]:
        assert answer(connection) == (503, {"detail": "the server is stopping"})
    for connection in halves:
        connection.close()


def test_ctrl_c_stops_it_with_a_line(server):
    process, port = server
    with opened(port, "Content-Length: 1000", b"{"):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG)
    assert (process.returncode, errors) == (0, "stopped\n")


def seconds_until_closed(connection, piece=b"", pause=0.05):
    """Sends pieces until the server has closed the connection."""
    started = time.monotonic()
    connection.settimeout(pause if piece else HANG)
    while time.monotonic() - started < HANG:
        try:
            if piece:
                connection.sendall(piece)
            if not connection.recv(65_536):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - started


@pytest.mark.parametrize("server", [0.5], indirect=True)
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"", b""),  # silent
        (b"GET /healthz HT", b""),  # half of the headers
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),  # headers that never end
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),  # silent after an answer
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /h", b""),
        (b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n", b"x"),  # 413
        (b"POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n", b"x"),  # 404
        (b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n", b"x"),  # 408
    ],
)
def test_no_connection_stays_open_because_its_client_is_silent_or_slow(server, head, piece):
    with socket.create_connection(("127.0.0.1", server[1]), timeout=HANG) as connection:
        connection.sendall(head)
        assert seconds_until_closed(connection, piece) < 4


@pytest.mark.parametrize("server", [FEW], indirect=True)
def test_silent_connections_make_room_for_others(server):
    silent = [socket.create_connection(("127.0.0.1", server[1]), timeout=HANG) for _ in range(140)]
    assert embed(server[1], [{"title": "Storm"}])[0] == 200
    for connection in silent:
        connection.close()
