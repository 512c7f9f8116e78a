"""The mining jobs, one module or package each, over the stream records of ``formats/records.py``."""

import re

from ..formats.files import packaged


def read_lists(package: str, name: str) -> dict[str, str]:
    """Returns the sections of a text file of a package, by the name in brackets before each.

    Lines that begin with a semicolon are comments.
    """
    text = re.sub(r"^;.*\n", "", packaged(package, name), flags=re.MULTILINE)
    _, *parts = re.split(r"^\[(\w+)\]\n", text, flags=re.MULTILINE)
    return {section: lines.strip() for section, lines in zip(parts[::2], parts[1::2], strict=True)}
