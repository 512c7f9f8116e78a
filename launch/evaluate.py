"""``newsembed evaluate``: benchmarks over any encoders; see ``evaluation.command`` for the protocols."""

import dataclasses
from typing import Any, Final

from .. import serving
from ..evaluation import command
from ..formats.command_line import option
from ..serving.rows import LONG_DOCUMENTS

__doc__ = command.__doc__


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions(command.EvaluateOptions):
    """Options of the command, and how the encoders of ``serving`` read texts."""

    max_length: int | None = option(
        None, "tokens of each text that model: and random: read (default: as in training)", ge=3, metavar="TOKENS"
    )
    long_documents: str | None = option(
        None,
        "how models read longer documents, as for `newsembed embed` (default: as each model.json says, or head)",
        choices=LONG_DOCUMENTS,
    )
    prompt: str | None = option(
        None,
        "text before each document, instead of the models' own prompts; '' for none (default: each model's)",
        metavar="TEXT",
    )


OPTIONS: Final[Any] = command.with_protocols(EvaluateOptions)


def run(options: Any) -> int:
    """Runs the command with all encoders that ``serving`` can load."""
    reading = {"document_prompt": options.prompt, "long_documents": options.long_documents}
    return command.run(options, serving.factories(max_length=options.max_length, **reading))
