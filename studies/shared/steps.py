"""Studies whose steps are folders in one output, each made once, most by a command that users can run themselves."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...errors import InputError
from ...formats import files
from ...formats.folders import LOCK, written
from ...formats.model_folder import ModelFolder

Command = Callable[[Sequence[str]], int]  # runs a command of newsembed and returns its exit code


def claim(output: str, name: str, options: Mapping[str, Any], paths: Collection[str], *, study: str) -> None:
    """Writes the options of a study into its output, or compares them with those there once a step was begun.

    Args:
      output: its folder.
      name: of the file of options.
      options: JSON values and tuples.
      paths: names of options that are paths, or names of something else; a path that exists becomes absolute.
      study: what the folder holds, a word for errors.
    """
    mine: dict[str, Any] = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    mine |= {key: os.path.abspath(mine[key]) for key in paths if mine[key] and os.path.exists(mine[key])}
    path = f"{output}/{name}"
    held = set(os.listdir(output)) - {LOCK} if os.path.isdir(output) else set()
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
        with written(folder) as temporary:
            write(temporary)
    return 0


def write_examples(command: Command, work: str, vocabulary: str, output: str) -> int:
    """Runs ``newsembed examples`` on the triplets of a build, in rows of 256 tokens; returns its exit code."""
    inputs = {"articles": f"{work}/clean", "triplets": f"{work}/triplets", "vocabulary": vocabulary, "output": output}
    named = [word for name, path in inputs.items() for word in (f"--{name}", path)]
    # Anchor texts of links are short and rare in an archive; titles say what an event is.
    return command(["examples", *named, "--augmentations_per_triplet=2", "--weights=1,0.5,2,2", "--max_length=256"])


def train_model(
    command: Command, folder: str, gin_files: Sequence[str], values: Mapping[str, Any], bindings: Sequence[str]
) -> int:
    """Runs ``newsembed train`` unless its last checkpoint is there; returns its exit code.

    Args:
      command: see `Command`.
      folder: MODEL_DIR.
      gin_files: in this order.
      values: macros, TRAIN_STEPS among them.
      bindings: of the user, ``NAME=VALUE``.
    """
    if os.path.isdir(ModelFolder(folder).checkpoint(values["TRAIN_STEPS"])):
        return 0
    texts = {name: f'"{value}"' if isinstance(value, str) else repr(value) for name, value in values.items()}
    macros = (f"--gin.{name}={text}" for name, text in {"MODEL_DIR": f'"{folder}"', **texts}.items())
    given = (f"--gin.{binding}" for binding in bindings)
    return command(["train", *(f"--gin_file={name}" for name in gin_files), *macros, *given])
