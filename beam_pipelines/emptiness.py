"""Why nothing is left of a job's input, and which option keeps it."""

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from .jobs import Job


def why_empty(job: Job, manifest: Mapping[str, Any], output: str, prefix: str = "") -> InputError | None:
    """The error that says why a job wrote nothing; None if it wrote something.

    Args:
      job: the job.
      manifest: of its result.
      output: the folder of the result.
      prefix: of the job's options on the command line, such as "clean.".
    """
    counts = manifest["counts"]
    if counts["out"]:
        return None
    if not counts["in"]:
        return InputError("there was nothing to read: the inputs are empty", path=output, remedy="look at the inputs")
    outcomes = [(count, f"rejected as {name}", name) for name, count in counts["rejected"].items()]
    outcomes += [(count, f"failed as {name}", "") for name, count in counts["failed"].items()]
    outcomes.sort(key=lambda outcome: (-outcome[0], outcome[1]))
    shown = ", ".join(f"{count:,} of {counts['in']:,} {what}" for count, what, _ in outcomes[:3])
    switch = job.switches.get(outcomes[0][2]) if outcomes else None
    remedy = f"--{prefix}{switch} keeps them" if switch else f"see `newsembed rejected {output}`"
    return InputError(f"nothing is left: {shown}", path=output, remedy=remedy)
