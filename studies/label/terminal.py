"""The same questions in the terminal, for machines without a browser."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text as Line

from ...errors import counted
from .session import Session, Shown, Side
from .store import Answer
from .texts import Segments

KEYS = {"1": Answer.SAME, "0": Answer.DIFFERENT, "s": Answer.SKIP}
_HELP = "1 same story or evergreen · 0 different stories · s skip · u undo · q quit"


def run_terminal(session: Session, read_key: Callable[[], str], console: Console) -> None:
    """Asks until no question is left or the annotator quits.

    Args:
      session: the questions and answers.
      read_key: returns the next key, "" at the end of the input.
      console: shows the articles.
    """
    while shown := session.shown():
        _show(shown, session.progress(), console)
        while key := read_key():
            if key in KEYS:
                session.answer(KEYS[key])
                break
            if key == "u" and session.undo():
                break
            if key == "q":
                return
            if key.strip():
                console.print("nothing to undo" if key == "u" else _HELP, style="yellow", highlight=False)
        if not key:
            return


@contextmanager
def single_keys() -> Iterator[Callable[[], str]]:
    """Yields a function that reads one key without Enter, or one character if standard input is not a terminal."""
    if not sys.stdin.isatty():
        yield lambda: sys.stdin.read(1)
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield lambda: sys.stdin.read(1)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _show(shown: Shown, progress: dict[str, int], console: Console) -> None:
    table = Table.grid(padding=(0, 3), expand=True)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(*(_article(side) for side in shown.sides))
    known = [
        f"{name} {value:.2f}"
        for name, value in shown.similarities.items()
        if value is not None and not math.isnan(value)
    ]
    facts = [
        f"{progress['labels']} of {progress['wanted']}",
        f"{progress['same']} same",
        f"{counted(shown.day_gap, 'day')} apart",
        *known,
    ]
    console.rule(" · ".join(facts))
    console.print(table)
    console.print(_HELP, style="dim", highlight=False)


def _article(side: Side) -> Group:
    facts = " · ".join(part for part in (side.publisher, side.byline_date, side.language) if part)
    parts = [_line(side.title, "bold"), Line(facts, style="dim"), Line("")]
    parts += [_line(paragraph, "") for paragraph in side.paragraphs]
    return Group(*parts, Line("…" if side.cut else ""))


def _line(pieces: Segments, style: str) -> Line:
    line = Line(style=style)
    for text, shared in pieces:
        line.append(text, style="black on yellow" if shared else None)
    return line
