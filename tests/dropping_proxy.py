"""A network that drops connections: a TCP proxy that cuts some of them, in the middle of a request or an answer."""

import collections
import contextlib
import math
import random
import re
import selectors
import socket
import struct
import threading
from collections.abc import Iterator

_FIRST_LINE = re.compile(rb"[A-Z]{3,7} /")
_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: close with a reset, as a broken line does


class Proxy:
    """Relays connections to a port of this machine.

    Args:
      port: to relay to.
      share: of the connections that are cut; with 1, all of them, whatever they ask.
      most: bytes after which a connection is cut at the latest, both directions together.

    A request, known by its first line, is cut twice at most: a client tries three times at least.

    Attributes:
      port: on which it listens.
      cut: number of connections that were cut so far.
    """

    def __init__(self, port: int, share: float, most: int) -> None:
        self._target, self._share, self._most = port, share, most
        self._draw = random.Random(7)
        self._cuts: collections.Counter[bytes] = collections.Counter()  # by the first line of a request
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accepts no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                limit = self._draw.randint(1, self._most) if self._draw.random() < self._share else math.inf
                threading.Thread(target=self._relay, args=(client, limit), daemon=True).start()

    def _relay(self, client: socket.socket, limit: float) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server, contextlib.suppress(OSError):
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
                        request = data.partition(b"\r\n")[0]
                    if limit < len(data) and self._share < 1 and self._cuts[request] == 2:
                        limit = math.inf
                    key.data.sendall(data if limit >= len(data) else data[: int(limit)])
                    limit -= len(data)
                    if limit < 0:
                        self.cut += 1
                        self._cuts[request] += 1
                        for side in (client, server):
                            side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                        return


@contextlib.contextmanager
def dropping(port: int, share: float, most: int) -> Iterator[Proxy]:
    """A proxy that ends with the context, see :class:`Proxy`."""
    proxy = Proxy(port, share, most)
    try:
        yield proxy
    finally:
        proxy.close()
