"""What commands say: `InputError`, an error that the user can correct; that Ctrl-C or SIGTERM stopped them; numbers.

An `InputError` names the file, the field, the problem and the remedy.
"""

import contextlib
import copyreg
import errno
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any, Final

_SAID: Final = 200  # characters of the message of a library
_REMEDIES: Final = {
    errno.ENOSPC: "free space on this disk, or write elsewhere; then run the same command again",
    errno.EDQUOT: "free space within your quota, or write elsewhere; then run the same command again",
    errno.EFBIG: "allow larger files here, or write elsewhere; then run the same command again",
    errno.EROFS: "write elsewhere, or mount this file system for writing",
    errno.EACCES: "change the permissions of this path, or name another one",
    errno.EPERM: "change the permissions of this path, or name another one",
    errno.ENAMETOOLONG: "give a shorter name: most file systems take 255 bytes",
    errno.EEXIST: "name another path: a file is where a folder is needed",
    errno.ENOTDIR: "name another path: a file is where a folder is needed",
    errno.EISDIR: "name another path: a folder is where a file is needed",
}
# The others also come from reading.
_WRITING: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EPERM)
# Where a library passes on the words of the system only. EPERM's words are in messages of other kinds, too.
_WORDS: Final = {os.strerror(number): number for number in (*_WRITING, errno.EACCES) if number != errno.EPERM}
# Control characters but for line breaks and tabs, and what reverses the direction of text.
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202d\u202e]")
_NO_MEMORY: Final = re.compile(
    r"MemoryError|can't start new thread|RESOURCE_EXHAUSTED|cannot allocate memory|unable to allocate|"
    r"out of memory|bad_alloc|failed to map segment|resource temporarily unavailable",
    re.IGNORECASE,
)
_LESS_MEMORY: Final = (
    "run the same command again: it continues where it was. Less memory is used with a smaller --direct_num_workers "
    "(jobs), --max_length (encoding), --batch_size or BATCH_SIZE (training)"
)
_PART_WRITTEN: Final = re.compile(r"(?<!\d)\d+ requested and \d+ written")  # NumPy's words for a full disk


def counted(count: int, noun: str) -> str:
    """Returns a number with the form of a noun that goes with it.

    >>> counted(1, "article"), counted(12_345, "article")
    ('1 article', '12,345 articles')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def visible(text: str, replacement: str = "\ufffd") -> str:
    r"""Text of strangers as a terminal may get it: characters that control it or reverse text are replaced.

    Args:
      text: of any content; line breaks and tabs stay.
      replacement: of one of those characters, a format of its code.

    >>> visible("a\x1b[31m", "?"), visible('"\x9b"', "<{:02x}>")
    ('a?[31m', '"<9b>"')
    """
    return _UNSEEN.sub(lambda found: replacement.format(ord(found[0])), text)


class InputError(ValueError):
    """Bad input or a bad option. The command line prints it without a traceback and exits with 2.

    Args:
      problem: what is wrong, as "got X, expected Y" where that fits.
      path: the file or folder it was found in; kept as a string.
      field: the field, option or key inside ``path``.
      remedy: what the user can do about it, an imperative sentence.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        super().__init__(problem, self.path, field, remedy)
        self.problem = problem
        self.field = field
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """An error of a child process arrives whole: `ValueError` would call the class with `args` by position."""
        return copyreg.__newobj__, (type(self), *self.args), dict(vars(self))  # type: ignore[attr-defined]

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.path, self.field) if part)
        text = f"{where}: {self.problem}" if where else self.problem
        return visible(f"{text}\n  remedy: {self.remedy}" if self.remedy else text)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], remedy: str, *kinds: type[Exception]) -> Iterator[None]:
    """Names the file and the remedy in errors that are raised while the file is read.

    An `InputError` gets those of the two that it lacks. Other errors of wrong contents become one.

    Args:
      path: of the file.
      remedy: what the user can do about it.
      kinds: errors beside ValueError (of which most errors of decoding are), KeyError and TypeError, such as OSError.

    Raises:
      InputError: that names the file.
    """
    wrong: tuple[type[Exception], ...] = (ValueError, KeyError, TypeError, *kinds)
    try:
        yield
    except InputError as error:
        named = (error.path or path, error.field, error.remedy or remedy)
        raise InputError(error.problem, path=named[0], field=named[1], remedy=named[2]) from error.__cause__
    except wrong as error:
        what = f"no {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {what}", path=path, remedy=remedy) from error


@contextlib.contextmanager
def refusing(problem: str, *kinds: type[Exception], **about: Any) -> Iterator[None]:
    """Turns errors of other code into an `InputError`.

    Args:
      problem: what is wrong; behind a colon at its end stands what the error says, which is all if this is empty.
      kinds: of the errors.
      about: path, field and remedy, see `InputError`.

    Raises:
      InputError: from the error.
    """
    try:
        yield
    except kinds as error:
        said = getattr(error, "strerror", None) or str(error)
        is_open = not problem or problem.endswith(":")
        raise InputError(f"{problem} {said}".strip() if is_open else problem, **about) from error


class Terminated(KeyboardInterrupt):
    """SIGTERM stopped a command that can be resumed. Whatever cleans up after Ctrl-C cleans up after it."""


# The exit codes of a command that was stopped: what a shell reports for a process that the signal has ended.
_STOPS: Final[dict[type[KeyboardInterrupt], signal.Signals]] = {
    KeyboardInterrupt: signal.SIGINT,
    Terminated: signal.SIGTERM,
}


def exit_code_of(stop: type[KeyboardInterrupt]) -> int:
    """The exit code of a command that was stopped: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + _STOPS[stop]


def raise_if_stopped(code: int) -> None:
    """Raises again what stopped a command that is a step of a longer one.

    Args:
      code: its exit code; negative for a process that a signal has ended, as `subprocess` counts.

    Raises:
      KeyboardInterrupt: if the code is that of Ctrl-C.
      Terminated: if it is that of SIGTERM.
    """
    for kind, number in _STOPS.items():
        if code in (128 + number, -number):
            raise kind


def death_of(code: int, what: str) -> InputError | None:
    """What a signal that ended a child process means, and what to do; ``None`` if none did.

    Args:
      code: the exit code as `subprocess` and `multiprocessing` count: negative for a signal.
      what: the process, for people.
    """
    if code >= 0:
        return None
    import resource  # not on Windows

    name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << (30 if sys.platform == "darwin" else 20))
    causes: dict[int, str] = {
        **dict.fromkeys((signal.SIGKILL, signal.SIGABRT), "probably because memory ran out"),
        **dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), "from outside"),
    }
    cause = causes.get(-code, "a crash inside a library")
    problem = f"{what} was ended by signal {-code} ({name}), {cause}; the largest process so far took {largest:.1f} GB"
    return InputError(problem, remedy=_LESS_MEMORY)


def of_memory(error: BaseException) -> InputError | None:
    """What the user can do where memory ran out, for Python or in the words of a library; ``None`` for other errors.

    An error that a library raised because of that one counts, too.
    """
    seen: BaseException | None = error
    while seen is not None:
        text = f"{type(seen).__name__}: {seen}"
        if found := _NO_MEMORY.search(text):
            line = text[: found.end()].rpartition("\n")[2] + text[found.end() :].partition("\n")[0]
            return InputError(f"memory ran out: {line[:_SAID]}", remedy=_LESS_MEMORY)
        seen = seen.__cause__ or seen.__context__
    return None


def of_file_system(error: BaseException, path: str = "") -> InputError | None:
    """What the user can do about a disk or path that cannot be used; ``None`` for other errors.

    Args:
      error: raised by the system, or by a library that wraps such an error or passes on its words.
      path: named where the error names no file.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _REMEDIES:
            name = seen.filename2 or seen.filename  # the second is where a complete file is moved to
            where = os.fsdecode(name) if isinstance(name, str | bytes) else path
            return _of_number(seen.errno, where)
        if isinstance(seen, OSError | RuntimeError) and (found := of_file_system_text(str(seen), path)):
            return found
        seen = seen.__cause__ or seen.__context__
    return None


def of_file_system_text(text: str, path: str = "") -> InputError | None:
    """The same for the text of an error."""
    for words, number in _WORDS.items():
        place = text.rfind(words)
        if place >= 0:
            named = re.match(r":? '([^'\n]+)'", text[place + len(words) :])
            return _of_number(number, named[1] if named else path)
    return _of_number(errno.ENOSPC, path) if _PART_WRITTEN.search(text) else None


def _of_number(number: int, path: str) -> InputError:
    problem = f"cannot be written: {os.strerror(number)}" if number in _WRITING else os.strerror(number)
    return InputError(problem, path=path or None, remedy=_REMEDIES[number])
