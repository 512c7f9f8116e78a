"""Sockets with one deadline for all operations, and connections to checked peers."""

import functools
import io
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any


class BoundedSocket:
    """The socket operations that ``http.client`` uses, with one deadline for all of them.

    The timeout of a plain socket restarts with every packet, so a server that sends single bytes would never reach it.

    Args:
      sock: connected socket.
      deadline: time of ``time.monotonic`` at which operations fail.
      peer: IP address of the other end.
    """

    def __init__(self, sock: socket.socket, deadline: float, peer: str) -> None:
        self._sock = sock
        self.deadline = deadline
        self.peer = peer

    def bound(self) -> None:
        """Sets the timeout of the next operation to the time that is left.

        Raises:
          TimeoutError: if no time is left.
        """
        self._sock.settimeout(seconds_left(self.deadline))

    def sendall(self, data: Any) -> None:
        """Sends all bytes before the deadline."""
        self.bound()
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Returns a buffered reader that obeys the deadline."""
        return io.BufferedReader(_BoundedReader(self, self._sock.makefile("rb", buffering=0)))

    def close(self) -> None:
        """Closes the socket."""
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
    """Returns the seconds until a deadline of ``time.monotonic``.

    Raises:
      TimeoutError: if the deadline has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(
    address: tuple[str, int], tls_name: str | None, deadline: float, vet: Callable[[str], None]
) -> BoundedSocket:
    """Connects within a deadline and checks the address of the connected peer, which no DNS answer can forge.

    Args:
      address: (host name or IP address, port).
      tls_name: name that the certificate must contain; ``None`` for a plain connection.
      deadline: time of ``time.monotonic``. The DNS lookup has only the timeout of the system.
      vet: called with the peer's IP address before anything is sent; raises to reject it.

    Raises:
      OSError: if no address of the host accepts the connection in time.
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
    """Connects to the first address that answers; ``create_connection`` would give each address the whole time."""
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
    return ssl.create_default_context()  # reads the system's certificates, which takes longer than most requests
