"""Folders in an object store: copied to this machine to be read, and uploaded whole.

What reads a model, or writes one, works on local files. Of a model folder only one checkpoint's parameters are copied;
a training keeps a copy of its own, `Staging`.
"""

import atexit
import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ..errors import InputError
from . import stores
from .digests import SUMS
from .files import delete, is_object, move_all, sizes_below
from .folders import check_listed

CHECKPOINTS: Final = "checkpoints"
_THREADS: Final = 16
_BLOCK_BYTES: Final = 16 << 20


def local_folder(path: str, step: int | None = None) -> str:
    """A local folder with the files of a folder: itself, or a copy that lasts as long as this process.

    Of a model folder, the copy has the parameters of one checkpoint: `step`, or the last complete one. Of
    ``<folder>/checkpoints/<step>`` it has those, and the files that describe the model.

    Raises:
      InputError: if there is nothing under this name, or the store cannot be read.
    """
    return _copied(path.rstrip("/"), step) if is_object(path) else path


@functools.cache
def _copied(uri: str, wanted: int | None) -> str:
    print(f"reading {uri}", file=sys.stderr, flush=True)
    stores.check_reachable([uri])  # in seconds; requests are repeated for longer
    root, is_step, step = uri.rpartition(f"/{CHECKPOINTS}/")
    root = root if is_step else uri
    names = sizes_below(root)
    if not names:
        remedy = "check the path; a model folder has model.json and checkpoints"
        raise InputError("nothing is stored in this folder", path=uri, remedy=remedy)
    if not is_step:
        step = str(max(complete_steps(names), default="") if wanted is None else wanted)
    below, target = f"{CHECKPOINTS}/{step}/", _temporary_folder()
    # Optimizer and iterators are of use to training only.
    needed = [
        name
        for name in names
        if not name.startswith(f"{CHECKPOINTS}/") or name == f"{below}{SUMS}" or name.startswith(f"{below}params/")
    ]
    fetch(root, target, needed)
    return f"{target}/{CHECKPOINTS}/{step}" if is_step else target


def local_files(paths: Sequence[str]) -> list[str]:
    """Copies of files in an object store, which last as long as this process, in the same order.

    Raises:
      InputError: if one cannot be read.
    """
    target = _temporary_folder()
    copies = [f"{target}/{number}-{path.rpartition('/')[2]}" for number, path in enumerate(paths)]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(_download, paths, copies))
    return copies


def local_copy(path: str) -> str:
    """A file or folder as it is, of the same name: itself, or a copy that lasts as long as this process.

    Raises:
      InputError: if there is nothing under this name, or the store cannot be read.
    """
    if not is_object(path):
        return path
    above, _, name = path.rstrip("/").rpartition("/")
    below = [f"{name}/{one}" for one in sizes_below(path)]
    copy = _temporary_folder()
    fetch(above, copy, below or [name])
    return os.path.join(copy, name)


def _temporary_folder() -> str:
    """A new folder, which is deleted when this process ends."""
    folder = tempfile.mkdtemp(prefix="newsembed-")
    atexit.register(delete, [folder])
    return folder


def complete_steps(names: Iterable[str]) -> list[int]:
    """The complete checkpoints among the files of a model folder in a store: their digests were written last."""
    parts = [name.split("/") for name in names]
    return sorted(int(part[1]) for part in parts if part[0] == CHECKPOINTS and part[2:] == [SUMS] and part[1].isdigit())


def fetch(uri: str, folder: str, names: Iterable[str]) -> None:
    """Copies files below a URI into a local folder, several at a time.

    Raises:
      InputError: if one cannot be read.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda name: _download(f"{uri}/{name}", os.path.join(folder, name)), names))


def _download(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with stores.open_read(path) as source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink, _BLOCK_BYTES)


def upload(folder: str, uri: str, names: Iterable[str]) -> None:
    """Copies files of a local folder below a URI, several at a time; the digests last, which say that all are there.

    Raises:
      InputError: if one cannot be written.
    """

    def copy(name: str) -> None:
        with open(os.path.join(folder, name), "rb") as source, stores.open_write(f"{uri}/{name}") as sink:
            shutil.copyfileobj(source, sink, _BLOCK_BYTES)

    rest = sorted(names, key=lambda name: os.path.basename(name) == SUMS)
    count = sum(os.path.basename(name) != SUMS for name in rest)
    with ThreadPoolExecutor(_THREADS) as pool:
        for part in (rest[:count], rest[count:]):
            list(pool.map(copy, part))


@contextlib.contextmanager
def uploaded(path: str, *, overwrite: bool) -> Iterator[str]:
    """The local folder that a command writes: the one that was named, or one that is uploaded to the URI at the end.

    After an error nothing is uploaded.

    Args:
      path: local or a URI.
      overwrite: whether what is under the URI is replaced.

    Raises:
      InputError: if something is there, or files that no command wrote, or if the store cannot be used.
    """
    if not is_object(path):
        yield path
        return
    stores.check_reachable([path])
    uri = path.rstrip("/")
    before = sizes_below(uri)
    if before and not overwrite:
        raise InputError(
            "exists already", path=path, field="--output", remedy="choose another name or give --overwrite"
        )
    check_listed(uri)
    with tempfile.TemporaryDirectory(prefix="newsembed-") as above:
        folder = os.path.join(above, uri.rpartition("/")[2])
        yield folder
        names = sizes_below(folder)
        upload(folder, uri, names)
        delete(f"{uri}/{name}" for name in before.keys() - names.keys())


class Staging:
    """A copy of a model folder, on this machine.

    It starts with the files that describe the model, its metrics, and of each complete checkpoint what says which ones
    to keep. Arrays are fetched when a checkpoint is restored.

    Args:
      uri: of the model folder. Checkpoints whose upload was cut off are removed from it.
      arrays: folders of a checkpoint that are fetched when it is restored.
      is_first: whether this is the first process of the run, which describes it.

    Attributes:
      path: of the copy.

    Raises:
      InputError: if the store cannot be used.
    """

    def __init__(self, uri: str, arrays: Sequence[str], *, is_first: bool) -> None:
        stores.check_reachable([uri])
        self._uri, self._folder = uri.rstrip("/"), tempfile.TemporaryDirectory(prefix="newsembed-")
        self.path = self._folder.name
        self._is_first = is_first
        names = sizes_below(self._uri)
        self._uploaded = set(complete_steps(names))
        large = tuple(f"{CHECKPOINTS}/{step}/{item}/" for step in self._uploaded for item in arrays)
        known = tuple(f"{CHECKPOINTS}/{step}/" for step in self._uploaded)
        fetch(self._uri, self.path, [name for name in names if _is_small(name, known) and not name.startswith(large)])
        self._uploaded_files = self._files()
        if self._is_first:
            cut_off = {name.split("/")[1] for name in names if name.startswith(f"{CHECKPOINTS}/")}
            delete(f"{self._uri}/{CHECKPOINTS}/{step}" for step in cut_off - {str(step) for step in self._uploaded})

    def close(self) -> None:
        """Deletes the copy."""
        self._folder.cleanup()

    def fetch_step(self, step: int) -> None:
        """Fetches the arrays of a checkpoint."""
        below = f"{CHECKPOINTS}/{step}"
        names = [f"{below}/{name}" for name in sizes_below(f"{self._uri}/{below}")]
        fetch(self._uri, self.path, [name for name in names if not os.path.exists(f"{self.path}/{name}")])

    def upload_steps(self) -> None:
        """Uploads the checkpoints that the store lacks, and the files; removes checkpoints that the copy lacks."""
        self.upload_files()
        held = {int(name) for name in os.listdir(f"{self.path}/{CHECKPOINTS}") if name.isdigit()}
        for step in sorted(held - self._uploaded):
            below = f"{CHECKPOINTS}/{step}"
            names = sizes_below(f"{self.path}/{below}")
            if SUMS in names:
                upload(self.path, self._uri, [f"{below}/{name}" for name in names])
                self._uploaded.add(step)
        for step in self._uploaded - held:
            # Without digests it is not complete, whatever else of it is deleted.
            delete([f"{self._uri}/{CHECKPOINTS}/{step}/{SUMS}"])
            delete([f"{self._uri}/{CHECKPOINTS}/{step}"])
            self._uploaded.discard(step)

    def upload_files(self) -> None:
        """Uploads the files of the model folder itself that have changed: its description, metrics and event logs."""
        files = self._files()
        changed = [name for name, facts in files.items() if self._uploaded_files.get(name) != facts]
        # Only the first process describes the run; the others report suspect batches.
        upload(self.path, self._uri, [name for name in changed if self._is_first or name.startswith("suspect-")])
        self._uploaded_files = files

    def set_aside(self, step: int) -> str:
        """Moves a checkpoint of the store out of the way and returns where to."""
        source, target = f"{self._uri}/{CHECKPOINTS}/{step}", f"{self._uri}/damaged-checkpoints/{step}"
        number, taken = 1, target
        while sizes_below(taken):
            taken, number = f"{target}-{number}", number + 1
        move_all([(f"{source}/{name}", f"{taken}/{name}") for name in sizes_below(source)])
        self._uploaded.discard(step)
        return taken

    def _files(self) -> dict[str, tuple[int, int]]:
        with os.scandir(self.path) as entries:
            facts = {
                entry.name: entry.stat() for entry in entries if entry.is_file() and not entry.name.endswith(".tmp")
            }
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in facts.items()}


def _is_small(name: str, known: tuple[str, ...]) -> bool:
    """Whether a file is of the model folder itself, or of a complete checkpoint."""
    return name.startswith(known) or ("/" not in name and not name.startswith("events."))
