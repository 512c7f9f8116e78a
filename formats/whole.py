"""Local files that appear when they are complete: written under a temporary name, then moved."""

import contextlib
import os
import uuid
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """The temporary name of a local file, which replaces the file on leaving the context without an error.

    It is in the same folder and ends in ``.tmp``. After an error it is deleted, also on a full disk.
    """
    temporary = f"{path}.{uuid.uuid4().hex[:12]}.tmp"
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # the error came before the first byte
            os.remove(temporary)
        raise
