"""The mining jobs, one module or package each, over the stream records of ``formats/records.py``."""

import re


def read_lists(package: str, name: str) -> dict[str, str]:
    """Returns the sections of a text file of a package, by the name in brackets before each.

    Lines that begin with a semicolon are comments.
    """
    from importlib import resources

    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    _, *parts = re.split(r"^\[(\w+)\]\n", re.sub(r"^;.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    return {section: lines.strip() for section, lines in zip(parts[::2], parts[1::2], strict=True)}
