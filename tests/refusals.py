"""What is refused, and with which words."""

import pytest
from newsembed.errors import InputError


def refuses(message, function, /, *arguments, **options):
    """Calls a function, whose InputError must match a pattern; returns the error."""
    with pytest.raises(InputError, match=message) as raised:
        function(*arguments, **options)
    return raised.value
