"""Studies whose steps are folders in one output, each made once, most by a command that users can run themselves."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import InputError, raise_if_stopped
from ...formats import files
from ...formats.model_folder import ModelFolder
from .children import child, stopped_together

Command = Callable[[Sequence[str]], int]  # runs a command of newsembed and returns its exit code


def run_command(arguments: Sequence[str]) -> int:
    """Runs a command of this program in a process of its own and shows it; returns its exit code.

    Raises:
      KeyboardInterrupt: if Ctrl-C or SIGTERM stopped it, or this process; when it has saved what it can.
    """
    print(f"+ newsembed {shlex.join(arguments)}", file=sys.stderr, flush=True)
    with stopped_together(), child(arguments) as process:
        code = process.wait()
    raise_if_stopped(code)
    return code


def claim(output: str, name: str, mine: Mapping[str, Any], *, study: str) -> None:
    """Writes the settings of a study into its output, or compares them with those there once a step was begun.

    Args:
      output: its folder.
      name: of the file of settings.
      mine: the settings, JSON values.
      study: what the folder holds, a word for errors.

    Raises:
      InputError: for a folder with other settings, or of something else.
    """
    path = f"{output}/{name}"
    held = set(os.listdir(output)) if os.path.isdir(output) else set()
    if held <= {name}:
        os.makedirs(output, exist_ok=True)
        files.write_json(path, mine)
        return
    if name not in held:
        problem = f"the folder holds files that are of no {study}"
        raise InputError(problem, path=output, field="--output", remedy="Name a new or an empty folder.")
    theirs = files.read_json(path)
    for key in sorted(set(mine) | set(theirs)):
        if mine.get(key) != theirs.get(key):
            problem = f"the folder holds a {study} with {theirs.get(key)!r}, this one has {mine.get(key)!r}"
            raise InputError(problem, path=path, field=key, remedy="Name another --output, or give the same options.")


def once(folder: str, write: Callable[[str], Any]) -> int:
    """Makes the folder of a step by `write`, complete or not at all; returns 0."""
    if not os.path.isdir(folder):
        temporary = f"{folder}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        os.makedirs(temporary)
        write(temporary)
        os.replace(temporary, folder)
    return 0


def write_examples(command: Command, work: str, vocabulary: str, output: str, *, row_length: int) -> int:
    """Runs ``newsembed examples`` on the triplets of a build; returns its exit code.

    Args:
      command: see `Command`.
      work: of the build.
      vocabulary: of the model that will read them.
      output: the folder of the examples.
      row_length: tokens of a text.
    """
    # Anchor texts of links are short and rare in an archive; titles say what an event is.
    options = ["--augmentations_per_triplet=2", "--weights=1,0.5,2,2", f"--max_length={row_length}"]
    inputs = {"articles": f"{work}/clean", "triplets": f"{work}/triplets", "vocabulary": vocabulary}
    named = [word for name, path in inputs.items() for word in (f"--{name}", path)]
    return command(["examples", *named, "--output", output, *options])


def train_model(
    command: Command,
    folder: str,
    gin_files: Sequence[str],
    values: Mapping[str, Any],
    bindings: Sequence[str],
) -> int:
    """Runs ``newsembed train`` unless its last checkpoint is there; returns its exit code.

    Args:
      command: see `Command`.
      folder: MODEL_DIR.
      gin_files: in this order.
      values: macros, TRAIN_STEPS among them.
      bindings: of the user, ``NAME=VALUE``.
    """
    last = ModelFolder(folder).checkpoint(values["TRAIN_STEPS"])
    if os.path.isdir(last):
        return 0
    words = ["train", *(f"--gin_file={name}" for name in gin_files)]
    words += [f"--gin.{name}={_gin(value)}" for name, value in {"MODEL_DIR": folder, **values}.items()]
    return command([*words, *(f"--gin.{binding}" for binding in bindings)])


def absolute(path: str) -> str:
    """The absolute path of what exists; a name of something else as it is."""
    return os.path.abspath(path) if os.path.exists(path) else path


def _gin(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
