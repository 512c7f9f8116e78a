"""Starts the process that forks local workers, and ends it after the job or the build."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Final

from . import worker_client
from .interpreter import PYTHON

_LONGEST_PATH: Final = 100  # bytes of the name of a socket; the system allows 107
# A process of several threads should not fork. An allocator of Arrow starts a thread when it is loaded.
_ONE_THREAD: Final = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


class _Server:
    """A process of `worker_server` and the socket by which clients reach it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._folder = tempfile.mkdtemp(prefix="newsembed-")  # only this user may enter it
        self._path = os.path.join(self._folder, "workers")
        listener = socket.socket(socket.AF_UNIX)
        with listener:
            listener.bind(self._path)
            listener.listen()
            command = [*PYTHON, "-m", f"{__package__}.worker_server", str(listener.fileno()), str(os.getpid())]
            environment = {**_ONE_THREAD, **os.environ, **settings}
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command, env=environment, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def client(self) -> list[str]:
        return [sys.executable, "-I", "-S", worker_client.__file__, self._path]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class WorkerForks:
    """The server of this process, while at least one job or build keeps it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keepers = 0
        self._server: _Server | None = None

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the server, once it is started, until the outermost context ends."""
        with self._lock:
            self._keepers += 1
        try:
            yield
        finally:
            with self._lock:
                self._keepers -= 1
                if not self._keepers and self._server is not None:
                    self._server.end()
                    self._server = None

    def client(self, settings: Mapping[str, str]) -> list[str]:
        """Returns the command that asks for a worker; starts the server if there is none.

        Args:
          settings: variables of the environment of the server.

        Returns:
          ``[]`` outside of :meth:`kept`, and where workers cannot be forked: on other systems than Linux, or where the
          folder for temporary files has a very long name.
        """
        if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
            return []
        if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_PATH - 40:
            return []
        with self._lock:
            if not self._keepers:
                return []
            if self._server is not None and not self._server.is_alive:
                self._server.end()
                self._server = None
            if self._server is None:
                self._server = _Server(settings)
            return self._server.client


FORKS: Final = WorkerForks()
