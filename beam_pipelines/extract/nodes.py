"""Text of an element, as far as it is wanted."""

from typing import Any


def text_of(node: Any, limit: int) -> str:
    """The first ``limit`` characters of an element's text, white space collapsed; an element may hold the whole page."""
    pieces: list[str] = []
    characters = 0
    for piece in node.itertext():
        pieces.append(piece[: 4 * limit])
        characters += len(pieces[-1])
        if characters >= 4 * limit:
            break
    return " ".join("".join(pieces).split())[:limit]
