"""Reads untrusted pages in a separate process, so that no page can stop a shard.

A page can make a parser loop, recurse or allocate memory inside C code, where no exception and no signal handler can
stop it, and Beam runs bundles in threads, which receive no signals. Therefore each thread has one child process that
reads its pages through a pipe. It is killed when a page takes too long, and the kernel limits its address space. A new
child is started for the next page.

Messages are MessagePack with a fixed set of types. Nothing in them is run: a page that took over the reading process
could otherwise send code to the shard.
"""

import contextlib
import dataclasses
import datetime
import gc
import importlib
import io
import multiprocessing
import operator
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import msgpack

from ...formats.records import Article, Failure, Rejection
from ..worker import PYTHON, child_environment, end_with_parent
from .feeds import Feed, parse_feed
from .page import ExtractedPage, PageTooLargeError, extract_page
from .xml_text import page_text

_START_SECONDS = 120.0
_MEGABYTE = 1 << 20
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_IMAGES: Final = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "AVIF")  # of the web: Pillow would start Ghostscript for another
_TYPE: Final = "="  # the key that names the type of an object
_CLASSES: Final = {kind.__name__: kind for kind in (Article, ExtractedPage, Feed)}


class PageError(Exception):
    """A page was not read: too slow, too large, or an error of a parser; ``reason`` says which."""

    def __init__(self, reason: Failure, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Limits(NamedTuple):
    """Limits for reading one page.

    Attributes:
      seconds: wall time.
      megabytes: address space in addition to that of the child at its start (enforced on Linux; maybe not elsewhere).
    """

    seconds: float
    megabytes: int


class Reader:
    """Calls functions in a child process within limits. Not thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns ``function(*arguments)``, computed by the child.

        Args:
          function: of a module; the child imports it by its name.
          *arguments: values that :func:`pack` can hold, as the result is.

        Raises:
          PageError: after ``limits.seconds``, if the child ran out of memory or died, if the function raised an
            exception ("Type: text"), or if its answer cannot be read.
        """
        if self._child is None or self._child.poll() is not None:
            self._start()
        seconds, megabytes = self.limits.seconds, self.limits.megabytes
        started = time.monotonic()
        try:
            kind, value = self._ask(seconds, pack((f"{function.__module__}:{function.__qualname__}", arguments)))
        except (EOFError, ConnectionError):
            code = self.close()
            if time.monotonic() - started >= seconds:
                raise PageError(Failure.TIMEOUT, f"took longer than {seconds:g} seconds") from None
            detail = f"the reading process ended with {code} within {megabytes} MB"
            raise PageError(Failure.TOO_LARGE, detail) from None
        except (OSError, ValueError, TypeError) as error:
            self.close()  # no longer our program
            detail = f"the reading process gave no answer: {error}"
            raise PageError(Failure.PARSER_ERROR, detail) from None
        except BaseException:
            self.close()  # the pipe may contain a partial message
            raise
        if kind == "memory":
            self.close()  # the state of the child is undefined
            raise PageError(Failure.TOO_LARGE, f"took more than {megabytes} MB")
        if kind == "error":
            is_large = value.startswith(PageTooLargeError.__name__)
            raise PageError(Failure.TOO_LARGE if is_large else Failure.PARSER_ERROR, value)
        return value

    def _ask(self, seconds: float, message: bytes = b"") -> Any:
        """Sends a message, if there is one, and returns the next answer of the child, which is killed at the limit."""
        assert self._child is not None
        assert self._pipe is not None
        timer = threading.Timer(seconds, self._child.kill)
        timer.start()
        try:
            if message:
                self._pipe.send_bytes(message)
            return unpack(self._pipe.recv_bytes(self.limits.megabytes * _MEGABYTE))
        finally:
            timer.cancel()

    def _start(self) -> None:
        self.close()
        self._pipe, theirs = multiprocessing.Pipe()
        program = f"from {__name__} import serve; serve({theirs.fileno()}, {self.limits.megabytes!r})"
        with theirs:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*PYTHON, "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what libraries print
                env=child_environment(),
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        try:
            self._ask(_START_SECONDS)
        except (EOFError, OSError) as error:
            code = self.close()
            raise RuntimeError(f"the reading process did not start (exit {code}); its message is above") from error

    def close(self) -> int | None:
        """Ends the child process and returns its exit code; ``None`` if there was none."""
        child, self._child = self._child, None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if child is None:
            return None
        child.kill()
        return child.wait()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


_readers = threading.local()


def reader(limits: Limits) -> Reader:
    """Returns the reader of this thread, which is created once for the same limits."""
    found: Reader | None = getattr(_readers, "reader", None)
    if found is None or found.limits != limits:
        found = _readers.reader = Reader(limits)  # the one before is closed with its last use
    return found


def serve(descriptor: int, megabytes: int) -> None:
    """Runs in the child process: answers calls until the pipe ends.

    Args:
      descriptor: of the pipe.
      megabytes: additional address space.
    """
    end_with_parent()
    gc.freeze()  # imported modules are never collected
    _limit_memory(megabytes)
    with contextlib.suppress(EOFError, ConnectionError), Connection(descriptor) as pipe:  # the caller has ended
        pipe.send_bytes(pack(("ready", None)))
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


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


def pack(value: Any) -> bytes:
    """Returns a message.

    Args:
      value: ``None``, truth values, numbers, texts, bytes, days, :class:`Feed`, :class:`ExtractedPage`, and tuples,
        lists and mappings with text keys of these. Lists are read as tuples.

    Raises:
      TypeError: for a value of another type.
    """
    return bytes(msgpack.packb(value, default=_described, unicode_errors="surrogatepass"))


def _described(item: Any) -> dict[str, Any]:
    kind = type(item).__name__
    if isinstance(item, datetime.date) and not isinstance(item, datetime.datetime):
        return {_TYPE: "day", "day": item.isoformat()}
    if kind in _CLASSES:
        return {_TYPE: kind} | {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    raise TypeError(f"got a value of type {kind}, which a message cannot hold")


def unpack(raw: bytes) -> Any:
    """Returns the value of a message.

    Raises:
      ValueError: if it is not a message.
    """
    try:
        return msgpack.unpackb(raw, object_hook=_restored, use_list=False, unicode_errors="surrogatepass")
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a message: {type(error).__name__}: {error}") from error


def _restored(fields: dict[str, Any]) -> Any:
    kind = fields.pop(_TYPE, None)
    if kind is None:
        return fields
    if kind == "day":
        return datetime.date.fromisoformat(fields["day"])
    if fields.get("rejection") is not None:
        fields["rejection"] = Rejection(fields["rejection"])
    return _CLASSES[kind](**fields)


def read_payload(
    max_links: int, kind: str, payload: bytes, charset: str, url: str
) -> ExtractedPage | Feed | bytes | None:
    """Returns the content of a response: a page, a feed or the hash of an image.

    ``None`` is returned for a page that is not text, and for a feed that is not a feed.

    Args:
      max_links: number of links that are taken from a page.
      kind: of `responses.kind_of`. A page may turn out to be a feed.
      payload: the body.
      charset: charset in the header, or "".
      url: URL of the response.
    """
    if kind == "image":
        return _image_hash(payload)
    feed = parse_feed(payload, url, charset)
    if feed is not None or kind == "feed":
        return feed
    text = page_text(kind, payload, charset)
    return None if text is None else extract_page(text, url, max_links)


def _image_hash(payload: bytes) -> bytes:
    import warnings

    import imagehash
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        picture = Image.open(io.BytesIO(payload), formats=_IMAGES).convert("L")
        return int(str(imagehash.whash(picture)), 16).to_bytes(8, "big")
