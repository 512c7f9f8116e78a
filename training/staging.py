"""The copy of a model folder in an object store that a training process reads and writes."""

import os
import tempfile

import jax

from ..formats.digests import SUMS
from ..formats.files import delete, move_all, sizes_below
from ..formats.model_folder import PARAMS, TRAINING
from ..formats.remote import CHECKPOINTS, complete_steps, fetch, upload
from ..formats.stores import check_reachable


class Staging:
    """A copy of a model folder, on this machine.

    It starts with the files that describe the model, its metrics, and of each complete checkpoint what says which ones
    to keep. Arrays are fetched when a checkpoint is restored.

    Args:
      uri: of the model folder. Checkpoints whose upload was cut off are removed from it.

    Attributes:
      path: of the copy.

    Raises:
      InputError: if the store cannot be used.
    """

    def __init__(self, uri: str) -> None:
        check_reachable([uri])
        self._uri, self._folder = uri.rstrip("/"), tempfile.TemporaryDirectory(prefix="newsembed-")
        self.path = self._folder.name
        self._is_first = jax.process_index() == 0
        names = sizes_below(self._uri)
        self._uploaded = set(complete_steps(names))
        arrays = tuple(f"{CHECKPOINTS}/{step}/{item}/" for step in self._uploaded for item in (PARAMS, TRAINING))
        known = tuple(f"{CHECKPOINTS}/{step}/" for step in self._uploaded)
        fetch(self._uri, self.path, [name for name in names if _is_small(name, known) and not name.startswith(arrays)])
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
