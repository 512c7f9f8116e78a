"""A bad network: a TCP proxy that cuts connections in the middle, answers with errors itself, and waits."""

import collections
import contextlib
import itertools
import math
import random
import re
import selectors
import socket
import struct
import threading
import time

_FIRST_LINE = re.compile(rb"[A-Z]{3,7} /")
_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: close with a reset, as a broken line does
_STATUSES = ("500 Internal Server Error", "429 Too Many Requests", "503 Service Unavailable")


class Proxy:
    """Relays connections to a port of this machine.

    Args:
      port: to relay to.
      share: of the connections that are cut; with 1, all of them, whatever they ask.
      most: bytes after which a connection is cut at the latest, both directions together.
      failing: share of the requests that are answered with the status 500, 503 or 429.
      slow: share of the requests that wait.
      delay_seconds: how long they wait.

    A request, known by its first line, is cut or fails at most twice in succession: a client tries three times.

    Attributes:
      port: on which it listens.
      requests: number of requests so far.
      faults: how many there were so far, by kind: "cut", "slow", or a status.
    """

    def __init__(self, port, share, most, *, failing=0, slow=0, delay_seconds=0):
        self._target, self._share, self._most = port, share, most
        self._failing, self._slow, self._delay_seconds = failing, slow, delay_seconds
        self._draw, self._draw_fault = random.Random(7), random.Random(7)
        self._statuses = itertools.cycle(_STATUSES)
        self._in_succession = collections.Counter()  # by the first line of a request
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.requests = 0
        self.faults = collections.Counter()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def cut(self):
        """Number of connections that were cut so far."""
        return self.faults["cut"]

    def close(self):
        """Accepts no more connections."""
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                limit = self._draw.randint(1, self._most) if self._draw.random() < self._share else math.inf
                threading.Thread(target=self._relay, args=(client, limit), daemon=True).start()

    def _relay(self, client, limit):
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as server:
            selector = selectors.DefaultSelector()
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            request = b""
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        return
                    if key.fileobj is client and _FIRST_LINE.match(data):
                        self._in_succession[request] = 0  # the one before has its answer
                        request = data.partition(b"\r\n")[0]
                        if self._fails(request):
                            _answer(client, self._status())
                            return
                    if limit < len(data) and self._share < 1 and self._in_succession[request] >= 2:
                        limit = math.inf
                    key.data.sendall(data if limit >= len(data) else data[: int(limit)])
                    limit -= len(data)
                    if limit < 0:
                        self.faults["cut"] += 1
                        self._in_succession[request] += 1
                        _reset([client, server])
                        return

    def _fails(self, request):
        """Whether a request fails; waits first, if it is slow."""
        self.requests += 1
        if self._draw_fault.random() < self._slow:
            self.faults["slow"] += 1
            time.sleep(self._delay_seconds)
        fails = self._draw_fault.random() < self._failing and self._in_succession[request] < 2
        self._in_succession[request] += fails
        return fails

    def _status(self):
        status = next(self._statuses)
        self.faults[status[:3]] += 1
        return status


def _answer(client, status):
    """Answers a request, of which the rest may still come, and ends the connection."""
    client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    client.shutdown(socket.SHUT_WR)
    while client.recv(1 << 16):
        pass


def _reset(sides):
    for side in sides:
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


@contextlib.contextmanager
def dropping(port, share, most, **faults):
    """A proxy that ends with the context, see :class:`Proxy`."""
    proxy = Proxy(port, share, most, **faults)
    try:
        yield proxy
    finally:
        proxy.close()
