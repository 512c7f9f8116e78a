"""Run files of a study: a base run, the values that the study sets, and the lines that make it an ablation."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError

_INCLUDE = re.compile(r"^\s*include\b")


def compose(
    base: str,
    settings: Mapping[str, Any],
    bindings: Sequence[str],
    row_file: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The text of a run file; later lines win.

    Args:
      base: the run file that is included.
      settings: macros that the study sets.
      bindings: "NAME = value", the user's.
      row_file: a run file whose own lines come last, without its includes. With its include replaced by ``base``, it is
        the ablation of that run.
      notes: comments, for what changes the training but is not in the text, such as a digest of the data.
    """
    lines = [
        *(f"# {note}" for note in notes),
        f'include "{base}"',
        *(f"{name} = {value!r}" for name, value in settings.items()),
        *bindings,
    ]
    if row_file is not None:
        lines += [f"# {row_file}", *own_lines(row_file)]
    return "\n".join(lines) + "\n"


def own_lines(file: str) -> list[str]:
    """The lines of a run file without comments and includes."""
    from ...training.gin_config import GIN_FOLDER

    with open(os.path.join(GIN_FOLDER, file), encoding="utf-8") as source:
        lines = source.read().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#") and not _INCLUDE.match(line)]


def base_path(base: str) -> str:
    """A base run as any folder can include it: a file of the package by its name, another file by its absolute path.

    Raises:
      InputError: if there is no such file.
    """
    from ...training.gin_config import GIN_FOLDER

    inside = os.path.join(GIN_FOLDER, base.removeprefix("gin/"))
    if os.path.isfile(inside):
        return base.removeprefix("gin/")
    if not os.path.isfile(base):
        raise InputError(
            "no such file", path=base, field="--base", remedy="name a run file, such as runs/train_small.gin"
        )
    return os.path.abspath(base)


def macro(name: str, base: str, bindings: Sequence[str]) -> Any:
    """The value of a macro in a base run with bindings; checks that every key is used and every required one is set.

    Raises:
      InputError: see ``gin_config.load_gin``.
    """
    import gin

    from ...training.gin_config import load_gin

    with gin.unlock_config():
        from .. import evaluators  # noqa: F401 - run files may name them
    load_gin([base], bindings)
    return gin.query_parameter(f"{name}/gin.macro.value")
