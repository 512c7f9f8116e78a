"""Reads untrusted pages in a separate process, so that no page can stop a shard.

A page can make a parser loop, recurse or allocate memory inside C code, where no exception and no signal handler can
stop it, and Beam runs bundles in threads, which receive no signals. Therefore each thread has one child process that
reads its pages through a pipe. The kernel enforces the limits: an alarm that the child does not handle ends it when a
page takes too long, and its address space is limited. A new child is started for the next page.
"""

import contextlib
import dataclasses
import gc
import importlib
import operator
import os
import re
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from ..interpreter import PYTHON, child_environment
from ..parent import end_with_parent
from .wire import pack, unpack

_HEADER = struct.Struct("<Q")
_GRACE_SECONDS = 5.0  # for the start and the pipe, in addition to the child's own alarm
_START_SECONDS = 120.0
_MEGABYTE = 1 << 20
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class PageTimeoutError(Exception):
    """Reading a page exceeded the time limit."""


class PageMemoryError(Exception):
    """Reading a page exceeded the memory limit, or the child process died."""


class PageReadError(Exception):
    """The function raised an exception; the message is "Type: text" of that exception."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits for reading one page.

    Attributes:
      seconds: wall time.
      megabytes: address space in addition to that of the child at its start (enforced on Linux; maybe not elsewhere).
    """

    seconds: float
    megabytes: int


class Reader:
    """Calls functions in a child process within limits. Not thread-safe.

    Args:
      limits: limits of each call.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._child: subprocess.Popen[bytes] | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns ``function(*arguments)``, computed by the child.

        Args:
          function: of a module; the child imports it by its name.
          *arguments: values that :func:`.wire.pack` can hold, as the result is.

        Raises:
          PageTimeoutError: after ``limits.seconds``.
          PageMemoryError: if the child ran out of memory or died.
          PageReadError: if the function raised an exception, or its answer cannot be read.
        """
        child = self._child if self._child is not None and self._child.poll() is None else self._start()
        assert child.stdin is not None
        deadline = time.monotonic() + self.limits.seconds + _GRACE_SECONDS
        try:
            _send(child.stdin, (f"{function.__module__}:{function.__qualname__}", arguments))
            kind, value = self._receive(child, deadline)
        except (BrokenPipeError, EOFError, TimeoutError) as error:
            self.close()
            if child.returncode == -signal.SIGALRM or isinstance(error, TimeoutError):
                raise PageTimeoutError(f"took longer than {self.limits.seconds:g} seconds") from None
            raise PageMemoryError(
                f"the reading process ended with {child.returncode} within {self.limits.megabytes} MB"
            ) from None
        except ValueError as error:
            self.close()  # no longer our program
            raise PageReadError(f"the reading process gave no answer: {error}") from None
        except BaseException:
            self.close()  # the pipe may contain a partial message
            raise
        if kind == "memory":
            self.close()  # the state of the child is undefined
            raise PageMemoryError(f"took more than {self.limits.megabytes} MB")
        if kind == "error":
            raise PageReadError(value)
        return value

    def _start(self) -> subprocess.Popen[bytes]:
        program = f"from {__name__} import serve; serve({self.limits.seconds!r}, {self.limits.megabytes!r})"
        self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [*PYTHON, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(),
            start_new_session=True,
        )
        try:
            self._receive(self._child, time.monotonic() + _START_SECONDS)
        except (EOFError, TimeoutError) as error:
            code = self._child.poll()
            self.close()
            raise RuntimeError(f"the reading process did not start (exit {code}); its message is above") from error
        return self._child

    def _receive(self, child: subprocess.Popen[bytes], deadline: float) -> tuple[str, Any]:
        assert child.stdout is not None
        size = _HEADER.unpack(_read(child.stdout, _HEADER.size, deadline))[0]
        if size > self.limits.megabytes * _MEGABYTE:
            raise ValueError(f"a message of {size} bytes")
        answer = unpack(_read(child.stdout, size, deadline))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ValueError("a message that is not an answer")
        return answer

    def close(self) -> None:
        """Ends the child process."""
        if self._child is not None:
            self._child.kill()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self._child.wait()
            self._child = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


_readers = threading.local()


def reader(limits: Limits) -> Reader:
    """Returns the reader of this thread, which is created once for the same limits."""
    found: Reader | None = getattr(_readers, "reader", None)
    if found is None or found.limits != limits:
        if found is not None:
            found.close()
        found = _readers.reader = Reader(limits)
    return found


def _read(stream: IO[bytes], size: int, deadline: float) -> bytes:
    """Returns exactly ``size`` bytes from a pipe.

    Raises:
      EOFError: if the pipe ends early.
      TimeoutError: at the deadline.
    """
    pieces: list[bytes] = []
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    while size:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        piece = os.read(stream.fileno(), min(size, _MEGABYTE))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _send(stream: IO[bytes], message: Any) -> None:
    _send_packed(stream, pack(message))


def _send_packed(stream: IO[bytes], raw: bytes) -> None:
    stream.write(_HEADER.pack(len(raw)) + raw)
    stream.flush()


def serve(seconds: float, megabytes: int) -> None:
    """Runs in the child process: answers calls from standard input until it ends.

    Args:
      seconds: wall time for one call.
      megabytes: additional address space.
    """
    end_with_parent()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process; C code could delay a handler
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    from . import payload  # noqa: F401 - imported before the limits apply

    gc.freeze()  # imported modules are never collected
    _limit_memory(megabytes)
    with contextlib.suppress(BrokenPipeError):  # the caller has ended
        _answer_calls(calls, answers, seconds)
    os._exit(0)  # closing the pipe again would fail again


def _answer_calls(calls: IO[bytes], answers: IO[bytes], seconds: float) -> None:
    _send(answers, ("ready", None))
    while header := calls.read(_HEADER.size):
        raw = calls.read(_HEADER.unpack(header)[0])
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            answer = _answer(raw)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        _send_packed(answers, answer)


def _answer(raw: bytes) -> bytes:
    try:
        name, arguments = unpack(raw)
        module, _, function = name.partition(":")
        return pack(("value", operator.attrgetter(function)(importlib.import_module(module))(*arguments)))
    except MemoryError:
        return pack(("memory", None))
    except Exception as error:  # noqa: BLE001 - the parsers raise many types; the caller counts them
        # Addresses differ from run to run, and the text becomes a part of the output.
        return pack(("error", _ADDRESS.sub("", f"{type(error).__name__}: {error}")[:2_000]))


def _limit_memory(megabytes: int) -> None:
    import resource

    with open("/proc/self/statm", "rb") if os.path.exists("/proc/self/statm") else contextlib.nullcontext() as statm:
        own = int(statm.read().split()[0]) * resource.getpagesize() if statm is not None else _MEGABYTE * 512
    limit = own + megabytes * _MEGABYTE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
