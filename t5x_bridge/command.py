"""``newsembed t5x``: what a team that runs our models under T5X needs in addition to T5X itself, see docs/t5x.md.

Example::

    newsembed t5x gin
    newsembed t5x to --model work/model --output work/t5x
    newsembed t5x from --run work/t5x --output work/model
    newsembed t5x export --run work/t5x --output work/saved

``gin`` prints the folder of the gin files, for ``--gin_search_paths`` of T5X. ``to`` writes a checkpoint of ours as one
of T5X, ``from`` the reverse; each continues on the other side. ``export`` converts a checkpoint of T5X as ``newsembed
export`` converts ours. None of them needs T5X.
"""

import dataclasses
import os
import tempfile
from typing import Final

from ..errors import InputError
from ..formats.command_line import option, required
from ..serving.export import ExportChoices, ExportOptions
from ..serving.export import run as run_export
from ..serving.specs import split_number
from .checkpoints import from_t5x, to_t5x

GIN_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gin")
# What each action needs.
_NEEDED: Final = {"gin": (), "to": ("model", "output"), "from": ("run", "output"), "export": ("run", "output")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5XOptions(ExportChoices):
    """Options of ``newsembed t5x``; those of an export are for ``export``."""

    action: str = required("what to do", positional=True, choices=tuple(_NEEDED))
    model: str | None = option(None, "to: our model folder", metavar="DIR[@STEP]")
    run: str | None = option(None, "from, export: MODEL_DIR of T5X", metavar="DIR[@STEP]")
    output: str | None = option(
        None,
        "the folder to write; to, from: the MODEL_DIR of the other side, which may hold other steps",
        metavar="DIR",
    )

    def __post_init__(self) -> None:
        """Checks that the action has what it needs."""
        super().__post_init__()
        for name in _NEEDED[self.action]:
            if getattr(self, name) is None:
                raise InputError(f"{self.action} needs it", field=f"--{name}", remedy="see --help")


OPTIONS: Final = T5XOptions


def run(options: T5XOptions) -> int:
    """Runs the command."""
    folder, step = split_number(options.run or options.model or "")
    output = options.output or ""
    if options.action == "gin":
        print(GIN_FOLDER)
    elif options.action == "to":
        print(to_t5x(folder, output, step))
    elif options.action == "from":
        print(from_t5x(folder, output, step))
    else:
        choices = {field.name: getattr(options, field.name) for field in dataclasses.fields(ExportChoices)}
        with tempfile.TemporaryDirectory() as temporary:
            from_t5x(folder, temporary, step)
            return run_export(ExportOptions(model=temporary, output=output, **choices))
    return 0
