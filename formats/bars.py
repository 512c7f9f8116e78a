"""Bars of tqdm, and lines in their place where nobody watches: a log file, a service, a container."""

import io
import sys
from collections.abc import Iterable
from typing import Any, Final

# Where stderr is no terminal, a line every half minute, and none for what takes less than ten seconds.
SECONDS_BETWEEN_LINES: Final = 30.0
_LINES: Final = {"mininterval": SECONDS_BETWEEN_LINES, "delay": 10.0, "ncols": 79}


class _Lines(io.StringIO):
    """Ends what a bar draws over itself by line breaks, since a log shows a line when it ends."""

    def write(self, text: str, /) -> int:
        if shown := text.strip():
            print(shown, file=sys.stderr, flush=True)
        return len(text)


def bar(total: int, unit: str, *, over: Iterable[Any] | None = None, shown: bool = True) -> Any:
    """Returns a tqdm bar on stderr, for `update` or around an iterable.

    Args:
      total: how many will be embedded.
      unit: of what, singular.
      over: what the bar counts as it is read.
      shown: False for a bar that stays silent.
    """
    from tqdm import tqdm

    how = {} if sys.stderr.isatty() else {**_LINES, "file": _Lines()}
    return tqdm(over, total=total, unit=f" {unit}", desc="embed", disable=not shown, **how)
