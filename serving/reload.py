"""New versions of an index are served without a restart.

A thread looks at the pointer of an archive, or at ``index.json`` of an index, every few seconds. It loads a new version
in the background and puts it in the place of the old one in one step; searches that are under way finish on the old
one. A version of another encoder, as ``newsembed update --train`` makes it, comes with that encoder. A version that
cannot be read, or whose encoder cannot, is refused with a line in the log, and the old one stays.
"""

import hashlib
import logging
import threading
from collections.abc import Callable
from typing import Final, Self

from ..errors import InputError
from ..formats.archive import current_index, read_pointer
from ..formats.index import facts_file
from .index import DocumentIndex

DEFAULT_SECONDS: Final = 5.0
_LOG: Final = logging.getLogger(__name__)


def version_of(path: str) -> str:
    """What differs between two versions of an index.

    Args:
      path: of an archive or an index.

    Raises:
      InputError: if it holds neither, or the pointer of the archive is damaged.
    """
    pointer = read_pointer(path)
    if pointer is not None:
        return pointer.index_sha256
    try:
        with open(facts_file(path), "rb") as source:
            return hashlib.sha256(source.read()).hexdigest()
    except OSError as error:
        raise InputError(f"no readable index: {error}", path=path, remedy="Build it with newsembed index.") from error


def load_current(path: str) -> DocumentIndex:
    """The index at a path: an index folder, or the current version of an archive.

    Raises:
      InputError: if it cannot be read.
    """
    while True:
        folder = current_index(path)
        try:
            return DocumentIndex.load(folder)
        except InputError:
            if current_index(path) == folder:
                raise
            # The archive has a newer version, and the one that was read is being removed.


class Watcher:
    """Replaces an index by its new versions. A context manager, inside which the thread runs.

    Args:
      path: of an archive or an index.
      index: that is served.
      version: of it, see :func:`version_of`; read before the index was.
      replace: called with a new index, from the thread.
      seconds: between two looks.
      renew: called instead with an index of another encoder; it may raise InputError. None refuses such an index.
    """

    def __init__(
        self,
        path: str,
        index: DocumentIndex,
        version: str,
        replace: Callable[[DocumentIndex], None],
        seconds: float = DEFAULT_SECONDS,
        renew: Callable[[DocumentIndex], None] | None = None,
    ) -> None:
        self._path, self._replace, self._renew, self._seconds = path, replace, renew, seconds
        self._encoder_digest = index.encoder_digest
        self._seen = version
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="newsembed new versions", daemon=True)

    def look(self) -> bool:
        """Loads and passes on a new version, if there is one that can be served."""
        try:
            version = version_of(self._path)
        except InputError as error:
            self._refuse(error.problem)
            return False
        if version == self._seen:
            return False
        self._seen = version  # refused once, not every few seconds
        try:
            index = load_current(self._path)
        except (InputError, OSError, MemoryError) as error:
            self._refuse(str(error))
            return False
        passed_on = self._replace
        if index.encoder_digest != self._encoder_digest:
            if self._renew is None:
                self._refuse("it is of another encoder; start the server again, without --model and --saved_model")
                return False
            passed_on = self._renew
        try:
            passed_on(index)
        except (InputError, OSError, MemoryError) as error:
            self._refuse(str(error))
            return False
        self._problem, self._encoder_digest = "", index.encoder_digest
        return True

    def _refuse(self, problem: str) -> None:
        if problem != self._problem:
            _LOG.warning("%s: the new version is not served, the old one stays: %s", self._path, problem)
        self._problem = problem

    def _watch(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the old version is served whatever happens
                _LOG.warning("%s: looking for a new version failed", self._path, exc_info=True)

    def __enter__(self) -> Self:
        if self._seconds > 0:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
