"""Puts prompts before texts, and tells encoders with different prompts apart."""

import hashlib
from collections.abc import Sequence


def with_prompt(prompt: str, titles: Sequence[str], bodies: Sequence[str]) -> tuple[list[str], list[str]]:
    """Titles and bodies with a prompt before the first text of each document: its title or, without one, its body.

    >>> with_prompt("passage: ", ["Storm", ""], ["It rained.", "The vote."])
    (['passage: Storm', ''], ['It rained.', 'passage: The vote.'])
    """
    if not prompt:
        return list(titles), list(bodies)
    pairs = list(zip(titles, bodies, strict=True))
    return (
        [f"{prompt}{title}" if title else "" for title, _ in pairs],
        [body if title else f"{prompt}{body}" for title, body in pairs],
    )


def prompt_digest(prompt: str) -> str:
    """What a prompt of documents adds to the digest of an encoder: nothing without one."""
    return f"-{hashlib.sha256(prompt.encode()).hexdigest()[:16]}" if prompt else ""
