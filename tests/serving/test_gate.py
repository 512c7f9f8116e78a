"""What the gate refuses before a route sees it, with ASGI messages by hand: sizes, places, time and the stop."""

import asyncio
import functools
import json

import pytest
from newsembed.serving.gate import Gate, Limits, RefusedError, unless_gone
from starlette.requests import Request

FOREVER = 60  # seconds; a test that waits this long has failed


class Client:
    """One request to a gate: sends the given parts of a body, then waits; keeps what it gets back."""

    def __init__(self, gate, parts, path="/embed", headers=(), method="POST"):
        self.parts, self.sent, self.received = list(parts), [], 0
        headers = [(b"host", b"localhost"), *headers]
        scope = {"type": "http", "method": method, "path": path, "headers": headers}
        self.task = asyncio.ensure_future(gate(scope, self._receive, self._send))

    async def _receive(self):
        if not self.parts:
            await asyncio.sleep(FOREVER)
        part = self.parts.pop(0)
        self.received += 1
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part[0], "more_body": part[1]}

    async def _send(self, message):
        self.sent.append(message)

    async def answer(self):
        """Status, JSON and headers."""
        await asyncio.wait_for(self.task, FOREVER)
        start, body = self.sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], json.loads(body["body"]), headers


class Echo:
    """Answers with the body that it gets, when it is told to."""

    def __init__(self):
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, scope, receive, send):
        message = await receive()
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(message["body"].decode()).encode()})


def in_loop(test):
    """Runs a test that is a coroutine."""

    @functools.wraps(test)
    def run(**given):
        asyncio.run(test(**given))

    return run


def gate_of(**limits):
    echo, gate = Echo(), Gate(Limits(**limits))
    return gate.around(echo), echo


def inside(gate):
    """Requests that are inside by kind, as the metrics say."""
    lines = (line.rpartition(" ") for line in gate.metrics().body.decode().splitlines())
    found = {name: float(value) for name, _, value in lines if name.startswith("newsembed_requests_inside{")}
    return {name.split('"')[1]: value for name, value in found.items()}


@in_loop
async def test_a_body_arrives_as_it_was_sent():
    gate, _ = gate_of(max_bytes=6)
    for parts in ([(b"abcdef", False)], [(b"ab", True), (b"", True), (b"cdef", False)]):
        assert (await Client(gate, parts).answer())[:2] == (200, "abcdef")


@in_loop
async def test_a_body_may_have_as_many_bytes_as_the_limit_declared_or_not():
    gate, _ = gate_of(max_bytes=6)
    for length in (b"6", b"+6", b"six", b""):
        client = Client(gate, [(b"abcdef", False)], headers=[(b"content-length", length)])
        assert (await client.answer())[:2] == (200, "abcdef")


@pytest.mark.parametrize("path", ["/embed", "/search", "/feed.atom", "/feed.json", "/events", "/event", "/map"])
@in_loop
async def test_requests_inside_are_counted_by_kind(path):
    kind = "requests to embed" if path == "/embed" else "searches"
    gate, echo = gate_of(max_queue=1)
    echo.go.clear()
    client = Client(gate, [(b"", False)], path=path, method="GET")
    await asyncio.sleep(0)
    assert inside(gate)[kind] == 1
    status, answer, _ = await Client(gate, [(b"", False)], path=path, method="GET").answer()
    assert (status, answer["detail"]) == (503, f"1 {kind} are waiting already; try again later")
    echo.go.set()
    await client.answer()
    assert inside(gate)[kind] == 0


def test_an_application_that_receives_again_gets_what_comes_after_the_body():
    received = []

    async def application(scope, receive, send):
        received.extend([await receive(), await receive()])

    async def scenario():
        client = Client(Gate().around(application), [(b"a", True), (b"b", False), None])
        await asyncio.wait_for(client.task, FOREVER)

    asyncio.run(scenario())
    assert received == [{"type": "http.request", "body": b"ab", "more_body": False}, {"type": "http.disconnect"}]


@pytest.mark.parametrize(
    ("parts", "headers", "read"),
    [
        ([(b"", True)], [(b"content-length", b"7")], 0),  # declared: nothing is received
        ([(b"abcd", True), (b"efg", True), (b"h", True)], [(b"content-length", b"2")], 2),  # a false declaration
        ([(b"abcd", True), (b"efg", True), (b"h", True)], [(b"transfer-encoding", b"chunked")], 2),
        ([(b"abcdefg", False)], [(b"content-length", b"-1")], 1),
    ],
)
@in_loop
async def test_too_many_bytes_are_refused_before_the_rest_is_received(parts, headers, read):
    gate, _ = gate_of(max_bytes=6)
    client = Client(gate, parts, headers=headers)
    status, answer, _ = await client.answer()
    assert (status, answer["limit"], answer["option"]) == (413, 6, "--max_bytes")
    assert "more than 6 bytes" in answer["detail"]
    assert "--max_bytes" in answer["detail"]
    assert client.received == read


@in_loop
async def test_a_full_queue_gives_503_and_each_kind_has_its_own():
    gate, echo = gate_of(max_queue=2)
    echo.go.clear()
    inside = [Client(gate, [(b"x", False)]) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    status, answer, headers = await Client(gate, [(b"x", False)]).answer()
    assert (status, headers["retry-after"]) == (503, "1")
    assert "2 requests to embed are waiting" in answer["detail"]
    search = Client(gate, [(b"", False)], path="/search", method="GET")
    echo.go.set()
    for client in (*inside, search, Client(gate, [(b"x", False)])):  # the places are free again
        assert (await client.answer())[0] == 200


@in_loop
async def test_bodies_that_never_end_leave_the_places_of_searches_free():
    gate, _ = gate_of(max_queue=2)
    slow = [Client(gate, [(b"x", True)], path="/search") for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    status, answer, _ = await Client(gate, [(b"x", False)], path="/search").answer()
    assert status == 503
    assert "2 bodies are waiting" in answer["detail"]
    assert (await Client(gate, [(b"", False)], path="/search", method="GET").answer())[0] == 200
    for client in slow:
        client.task.cancel()
    await asyncio.gather(*(client.task for client in slow), return_exceptions=True)
    assert (await Client(gate, [(b"x", False)], path="/search").answer())[0] == 200


@in_loop
async def test_a_body_that_does_not_arrive_in_time_is_refused():
    gate, _ = gate_of(read_seconds=0.01)
    status, answer, headers = await Client(gate, [(b"x", True)]).answer()
    assert (status, headers["connection"]) == (408, "close")
    assert "0.01 seconds" in answer["detail"]


@in_loop
async def test_a_client_that_goes_away_gets_no_answer_and_leaves_its_place():
    gate, _ = gate_of(max_queue=1)
    gone = Client(gate, [(b"x", True), None])
    await asyncio.wait_for(gone.task, FOREVER)
    assert gone.sent == []
    assert (await Client(gate, [(b"x", False)]).answer())[0] == 200


@in_loop
async def test_a_stop_refuses_half_sent_and_new_requests_and_finishes_the_others():
    gate, echo = gate_of()
    echo.go.clear()
    half, whole = Client(gate, [(b"x", True)]), Client(gate, [(b"x", False)])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not gate.is_stopping
    gate.stop()
    assert gate.is_stopping
    for client in (half, Client(gate, [(b"x", False)]), Client(gate, [], path="/search", method="GET")):
        status, answer, headers = await client.answer()
        assert (status, answer, headers["connection"]) == (503, {"detail": "the server is stopping"}, "close")
    echo.go.set()
    assert (await whole.answer())[0] == 200


@pytest.mark.parametrize("stays", [True, False])
@in_loop
async def test_work_is_cancelled_when_its_client_goes_away(stays):
    receivers = [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]
    result = asyncio.get_running_loop().create_future()

    async def receive():
        if len(receivers) == 1 and stays:
            result.set_result("done")
            await asyncio.sleep(FOREVER)
        return receivers.pop(0)

    if stays:
        assert await unless_gone(Request({"type": "http"}, receive), result) == "done"
    else:
        with pytest.raises(RefusedError, match="closed the connection"):
            await unless_gone(Request({"type": "http"}, receive), result)
        assert result.cancelled()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}  # nobody goes on to listen


@in_loop
async def test_other_routes_pass():
    gate, _ = gate_of(max_bytes=1)
    assert (await Client(gate, [(b"long", False)], path="/healthz").answer())[:2] == (200, "long")


@pytest.mark.parametrize("limit", [1, 100])
@in_loop
async def test_answers_are_not_guessed_or_kept_whether_refused_or_not(limit):
    headers = (await Client(gate_of(max_bytes=limit)[0], [(b'"x"', False)]).answer())[2]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
