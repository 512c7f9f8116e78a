"""Sockets whose waits all end at one deadline, and connections to vetted peers."""

import functools
import io
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any


class BoundedSocket:
    """What ``http.client`` uses of a socket, with one deadline for all of its waits.

    A timeout of the socket itself starts anew with every packet: a server that drips bytes would never hit it.
    """

    def __init__(self, sock: socket.socket, deadline: float, peer: str) -> None:
        self._sock = sock
        self.deadline = deadline
        self.peer = peer

    def bound(self) -> None:
        """Gives the next wait what is left of the request's time.

        Raises:
          TimeoutError: if nothing is left.
        """
        self._sock.settimeout(seconds_left(self.deadline))

    def sendall(self, data: Any) -> None:
        self.bound()
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_BoundedReader(self, self._sock.makefile("rb", buffering=0)))

    def close(self) -> None:
        self._sock.close()


class _BoundedReader(io.RawIOBase):
    def __init__(self, bounded: BoundedSocket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._bounded = bounded
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._bounded.bound()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def seconds_left(deadline: float) -> float:
    """Seconds until a deadline of ``time.monotonic``.

    Raises:
      TimeoutError: if it has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(
    address: tuple[str, int], tls_name: str | None, deadline: float, vet: Callable[[str], None]
) -> BoundedSocket:
    """Connects within a deadline and vets the address that was really connected to, so that no answer of a name server gets by.

    Args:
      address: host name or address, and port.
      tls_name: the name that the certificate must hold; ``None`` for a plain connection.
      deadline: of ``time.monotonic``. The look-up of the name itself has the system's own bound.
      vet: called with the peer's address before anything is sent; raises to stop.
    """
    raw = _connected(address, deadline)
    try:
        peer = str(raw.getpeername()[0])
        vet(peer)
        if tls_name is not None:
            raw.settimeout(seconds_left(deadline))
            raw = _tls().wrap_socket(raw, server_hostname=tls_name)
    except BaseException:
        raw.close()
        raise
    return BoundedSocket(raw, deadline, peer)


def _connected(address: tuple[str, int], deadline: float) -> socket.socket:
    """A connection to the first address of a name that answers; ``create_connection`` would give each of them the whole time."""
    failure: OSError | None = None
    for family, kind, protocol, _, target in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        raw = socket.socket(family, kind, protocol)
        try:
            raw.settimeout(seconds_left(deadline))
            raw.connect(target)
        except OSError as error:
            raw.close()
            failure = error
        else:
            return raw
    raise failure or OSError("the name has no address")


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # reads the system's certificates, which takes longer than many a request
