"""API keys: a text file with one key. Error messages never hold the key."""

from typing import Final

from ..errors import InputError

SHORTEST: Final = 16  # characters
_REMEDY: Final = 'make one with python -c "import secrets; print(secrets.token_urlsafe(32))"'


def read_key(path: str) -> str:
    """The key of a file, without white space around it.

    Raises:
      InputError: if the file cannot be read, or :func:`check_key` refuses its content.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InputError(f"the API key cannot be read: {reason}", path=path, remedy="name a readable file") from None
    return check_key(content, path)


def check_key(key: str, source: str) -> str:
    """The key without white space around it.

    Args:
      key: of any length.
      source: the file or variable that holds it, for the message.

    Raises:
      InputError: if it is too short, or has other characters than visible ASCII, which a header cannot hold.
    """
    key = key.strip()
    if len(key) < SHORTEST:
        raise InputError(f"an API key needs at least {SHORTEST} characters", path=source, remedy=_REMEDY)
    if not all("!" <= character <= "~" for character in key):
        raise InputError("an API key holds visible ASCII characters only", path=source, remedy=_REMEDY)
    return key
