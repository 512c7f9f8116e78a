"""Whether a text has anything to read: an encoder makes a vector of an invisible text, too, which means nothing."""

import unicodedata
from typing import Final

_EARLY: Final = 64
# Letters and signs by their category that show nothing: the fillers of Hangul, and Braille without dots.
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def has_text(text: str) -> bool:
    r"""Whether a text has a visible character: a letter, a number, a punctuation mark or a sign.

    White space, control characters (such as NUL), characters without width, half surrogate pairs and marks without a
    letter are none. A character that Python's Unicode does not know yet may be visible.

    >>> has_text("Überschwemmung"), has_text("洪水"), has_text("🌊")
    (True, True, True)
    >>> has_text(" \n"), has_text("\x00\x1b"), has_text("\u200b\ufeff"), has_text("\u0301")
    (False, False, False, False)
    """
    # Nearly all texts show something early. Of those that do not, each character is looked up once.
    return any(map(_is_visible, text[:_EARLY])) or any(map(_is_visible, set(text[_EARLY:])))


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] in "LNPS" or category in {"Cn", "Co"}) and character not in _BLANK
