"""Forks local workers of the FnApiRunner: what all of them import is imported once, not in each worker of each job.

python -m newsembed.beam_pipelines.worker_server LISTENING_SOCKET PARENT
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from typing import Final, NamedTuple

from . import worker
from .parent import end_with_parent

_PRELOADED: Final = ("apache_beam.runners.worker.sdk_worker_main", "newsembed.beam_pipelines.graph")
_REQUEST_SECONDS: Final = 10.0


class _Request(NamedTuple):
    """What a worker gets of its client: the working folder and the variables of the environment."""

    folder: str
    environment: dict[str, str]


class _Children:
    """The workers that live, each with the connection of the client that waits for it."""

    def __init__(self, listener: socket.socket, parent: int) -> None:
        self._listener = listener
        self._parent = os.pidfd_open(parent)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._parent, selectors.EVENT_READ)

    def serve(self) -> _Request:
        """Forks a worker for each client; returns only in a worker, with what its client asked for."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    if (request := self._fork()) is not None:
                        return request
                elif key.fd == self._parent:
                    os._exit(0)  # the workers see it, too
                else:
                    self._end(key)

    def _fork(self) -> _Request | None:
        """Forks a worker; returns the request in the worker, and ``None`` in the server."""
        link, _ = self._listener.accept()
        try:
            request, outputs = _read_request(link)
        except (OSError, ValueError):  # the client was killed
            link.close()
            return None
        pid = os.fork()
        if not pid:
            self._become_worker(link, outputs)
            return request
        for output in outputs:
            os.close(output)
        watch = os.pidfd_open(pid)
        self._selector.register(watch, selectors.EVENT_READ, (pid, link))
        self._selector.register(link, selectors.EVENT_READ, (pid, None))
        return None

    def _become_worker(self, link: socket.socket, outputs: list[int]) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._selector.close()
        link.close()
        for target, output in enumerate(outputs, 1):
            os.dup2(output, target)
            os.close(output)

    def _end(self, key: selectors.SelectorKey) -> None:
        """Says to a client that its worker has ended, or ends the worker of a client that was killed."""
        pid, link = key.data
        if link is None:
            self._selector.unregister(key.fileobj)
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
            return
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._selector.unregister(key.fileobj)
        os.close(key.fd)
        if link in self._selector.get_map():
            self._selector.unregister(link)
            link.sendall(bytes([status if status >= 0 else 128 - status]))  # as the shell says it
        link.close()


def _read_request(link: socket.socket) -> tuple[_Request, list[int]]:
    """Returns what a client asks for, and its output and error output."""
    link.settimeout(_REQUEST_SECONDS)
    length, outputs, *_ = socket.recv_fds(link, 8, 2)
    try:
        with link.makefile("rb") as source:
            return _Request(*json.loads(source.read(int.from_bytes(length, "big")))), outputs
    except BaseException:
        for output in outputs:
            os.close(output)
        raise


def main() -> None:
    """Serves until the parent ends; in a worker, runs it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Control-C ends the workers, then the parent ends this process
    worker.prepare()
    for name in _PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection would copy the pages that all workers share
    children = _Children(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    request = children.serve()
    end_with_parent()
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.path[:] = request.environment["PYTHONPATH"].split(os.pathsep)
    worker.main()


if __name__ == "__main__":
    main()
