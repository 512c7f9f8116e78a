"""How much a job reads, and what a long phase still needs once its rate is known."""

import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from rich.filesize import decimal

from ..errors import counted
from ..formats import files
from .graph import Progress

_LEAST_SECONDS: Final = 30.0  # of a phase before its rate is known
_LEAST_PARTS: Final = 2

Announce = Callable[[str], None]


class Forecast:
    """Says once for each phase that takes long how much time and disk the rest of it will take.

    Args:
      job: its name.
      workspace: the folder that it writes into.
      announce: called with each sentence.
    """

    def __init__(self, job: str, workspace: str, announce: Announce) -> None:
        self._job = job
        self._workspace = workspace
        self._announce = announce
        self._begun: dict[str, tuple[float, int, int]] = {}  # by phase: time, complete parts, bytes written
        self._said = set[str]()

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Takes the state of a phase: its complete parts, and all of them."""
        if phase in self._said or done >= total:
            return
        if phase not in self._begun:
            self._begun[phase] = (time.monotonic(), done, self._written())
            return
        begun, before, written = self._begun[phase]
        seconds, parts = time.monotonic() - begun, done - before
        if seconds < _LEAST_SECONDS or parts < _LEAST_PARTS:
            return
        self._said.add(phase)
        rest = (total - done) / parts
        size = round(max(self._written() - written, 0) * rest)
        self._announce(
            f"{self._job}: {phase}: {done:,} of {total:,} parts in {duration(seconds)}; "
            f"the rest will take about {duration(seconds * rest)} and {decimal(size)} of disk"
        )

    def _written(self) -> int:
        return sum(files.sizes_below(self._workspace).values())


def announced(
    job: str, inputs: Mapping[str, Sequence[str]], workspace: str, progress: Progress, announce: Announce | None
) -> Progress:
    """Says how much a job reads, if it has inputs; returns a progress that also forecasts long phases.

    Args:
      job: its name.
      inputs: paths by input name.
      workspace: the folder that it writes into.
      progress: what shows the state of the phases.
      announce: called with each sentence; without it, `progress` is returned as it is.
    """
    if announce is None:
        return progress
    if paths := [*itertools.chain.from_iterable(inputs.values())]:
        announce(input_size(job, paths))
    forecast = Forecast(job, workspace, announce)

    def report(phase: str, done: int, total: int, grown: str) -> None:
        progress(phase, done, total, grown)
        forecast(phase, done, total)

    return report


def input_size(job: str, paths: Iterable[str]) -> str:
    """Returns a sentence on the files that a job is given; files of an object store are counted without their size.

    Args:
      job: its name.
      paths: files, and folders of earlier jobs.
    """
    count, size, remote = 0, 0, 0
    for path in paths:
        if os.path.isdir(path):
            sizes = files.sizes_below(path)
            count, size = count + len(sizes), size + sum(sizes.values())
        elif os.path.isfile(path):
            count, size = count + 1, size + os.path.getsize(path)
        else:
            remote += 1
    local = f"{counted(count, 'file')}, {decimal(size)}" if count else ""
    stored = f"{counted(remote, 'path')} elsewhere" if remote else ""
    return f"{job}: input: {'; '.join(filter(None, (local, stored)))}"


def duration(seconds: float) -> str:
    """Returns a rounded time in the unit that a person would choose.

    >>> duration(41.2), duration(400), duration(9000)
    ('41 s', '7 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3600:.1f} h"
