"""Names and texts of elements."""

from typing import Any


def text_of(node: Any, limit: int) -> str:
    """Returns the first ``limit`` characters of an element's text, with white space collapsed.

    The limit bounds the work too: an element may contain the whole page.
    """
    pieces: list[str] = []
    characters = 0
    for piece in node.itertext():
        pieces.append(piece[: 4 * limit])
        characters += len(pieces[-1])
        if characters >= 4 * limit:
            break
    return " ".join("".join(pieces).split())[:limit]


def local_name(node: Any) -> str:
    """Returns the tag of an XML element in lower case, without its namespace; "" for comments and the like."""
    return node.tag.rpartition("}")[2].lower() if isinstance(node.tag, str) else ""


def child_text(node: Any, *path: str) -> str:
    """Returns the text of the first descendant at a path of local names, white space collapsed; "" if there is none."""
    for name in path:
        found = next((child for child in node if local_name(child) == name), None)
        if found is None:
            return ""
        node = found
    return " ".join("".join(node.itertext()).split())


def letters_of(text: str) -> str:
    """Returns the letters and digits of a text in folded case, for comparing names."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())
