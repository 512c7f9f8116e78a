"""Connections of a server: none stays open because its client is silent, slow, or sends what nobody reads."""

import asyncio
import contextlib
import resource
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LINGER_SECONDS: Final = 1.0  # after an early answer: a client that still sends would lose it by an immediate reset
_FEWEST: Final = 16  # connections that are accepted whatever the system allows


class Connection(H11Protocol):
    """HTTP/1.1 with limits from the first byte.

    The headers of a request must arrive, and an answer must be taken, within a time. A connection is closed after an
    answer that came before the end of its request, such as 413. Where there are too many, the one that has waited
    longest for a request makes room. Bodies have their limit in `gate`.

    Args:
      seconds: to send headers, and to take the next piece of an answer.
      most: connections at a time; 0 for half of the descriptors of this process.
      **options: of uvicorn.
    """

    def __init__(self, *, seconds: float, most: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self._limit_seconds = seconds
        self._most = most or max(_FEWEST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._timer: asyncio.TimerHandle | None = None
        self.opened_at, self._is_ending = 0.0, False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Waits for a request; where there are too many connections, one is ended."""
        super().connection_made(transport)
        self.opened_at = self.loop.time()
        self._end_after(self._limit_seconds)
        if len(self.connections) > self._most:
            silent = [other for other in self.connections if isinstance(other, Connection) and other.is_silent]
            min(silent, key=lambda other: other.opened_at, default=self).transport.abort()

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the limit of time."""
        self._end_after(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads what the client sent, unless the connection is ending."""
        if self._is_ending:
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._end_after(None)

    def on_response_complete(self) -> None:
        """Waits for the next request, or ends the connection if the client did not finish this one."""
        answered = self.cycle
        is_early = self.conn.their_state is h11.SEND_BODY
        super().on_response_complete()
        if self.transport.is_closing():
            self._end_after(self._limit_seconds)  # until the answer is taken
        elif is_early:
            self._is_ending = True
            self._unset_keepalive_if_required()
            with contextlib.suppress(OSError):  # the client has gone
                self.transport.write_eof()
            self._end_after(_LINGER_SECONDS)
        elif self.cycle is answered:  # else the next request was here already
            self._end_after(self._limit_seconds)

    def pause_writing(self) -> None:
        """The client takes no more of the answer."""
        super().pause_writing()
        self._end_after(self._limit_seconds)

    def resume_writing(self) -> None:
        """The client takes the answer again."""
        super().resume_writing()
        self._end_after(None)

    def _end_after(self, seconds: float | None) -> None:
        """Ends the connection after this time, unless this is called again; None for never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
