"""`InputError`: an error that the user can correct. It names the file, the field, the problem and the remedy."""


class InputError(ValueError):
    """Bad input or a bad option. The command line prints it without a traceback and exits with 2.

    Args:
      problem: what is wrong, as "got X, expected Y" where that fits.
      path: the file or folder it was found in.
      field: the field, option or key inside ``path``.
      remedy: what the user can do about it, an imperative sentence.
    """

    def __init__(
        self, problem: str, *, path: str | None = None, field: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(problem, path, field, remedy)
        self.problem = problem
        self.path = path
        self.field = field
        self.remedy = remedy

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.path, self.field) if part)
        text = f"{where}: {self.problem}" if where else self.problem
        return f"{text}\n  remedy: {self.remedy}" if self.remedy else text


def require_option(holds: bool, name: str, value: object, expected: str, command: str) -> None:
    """Checks the value of an option of a command.

    Raises:
      InputError: if ``holds`` is false; it names the option, the value, what is expected, and the command's help.
    """
    if not holds:
        raise InputError(
            f"got {value}, expected {expected}", field=f"--{name}", remedy=f"see `newsembed {command} --help`"
        )
