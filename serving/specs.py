"""Encoders by a short text, as the command lines name them."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:  # importing it takes seconds, and the package exports `factories`
    from .encoder import DocumentEncoder, TextEncoder


def factories(*, max_length: int | None = None, progress: bool = True) -> "dict[str, Callable[[str], DocumentEncoder]]":
    """Makers of benchmark encoders by the word before the colon in ``NAME=KIND:REST``.

    ``model``: ``DIR[@step]``; ``random``: ``DIR[@seed]``; ``savedmodel``: ``DIR``. Each loads when called with
      ``REST``.
    """

    def factory(kind: str) -> "Callable[[str], DocumentEncoder]":
        def make(rest: str) -> "DocumentEncoder":
            from .encoder import DocumentEncoder

            return DocumentEncoder(make_encoder(kind, rest, max_length=max_length, progress=progress))

        return make

    return {kind: factory(kind) for kind in ("model", "random", "savedmodel")}


def make_encoder(kind: str, rest: str, *, max_length: int | None = None, progress: bool = True) -> "TextEncoder":
    """One encoder.

    Args:
      kind: ``model``, ``random`` or ``savedmodel``.
      rest: ``DIR``, or ``DIR@N`` with N a step (``model``) or a seed (``random``).
      max_length: tokens read of each document; a SavedModel has its own and ignores it.
      progress: show a bar while embedding.

    Raises:
      InputError: on an unknown kind or a model that cannot be loaded.
    """
    if kind == "savedmodel":
        from .saved_model import SavedModelEncoder

        return SavedModelEncoder(rest, progress=progress)
    from .encoder import fresh_encoder, load_encoder

    folder, number = split_number(rest)
    if kind == "model":
        return load_encoder(folder, number, max_length=max_length, progress=progress)
    if kind == "random":
        return fresh_encoder(folder, number or 0, max_length=max_length, progress=progress)
    raise InputError(f"got the encoder kind {kind!r}", remedy="choose model, random or savedmodel")


def split_number(text: str) -> tuple[str, int | None]:
    """``DIR@N`` into its parts.

    >>> split_number("work/model@400"), split_number("work/m@il")
    (('work/model', 400), ('work/m@il', None))
    """
    folder, at, number = text.rpartition("@")
    return (folder, int(number)) if at and folder and number.isdigit() else (text, None)


def add_encoder_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Adds ``--model DIR[@step]``, ``--saved_model DIR`` and ``--max_length``."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        "--model",
        metavar="DIR[@STEP]",
        help="a training folder or safetensors export; the last checkpoint unless a step is given",
    )
    group.add_argument("--saved_model", metavar="DIR", help="an exported SavedModel")
    parser.add_argument(
        "--max_length",
        type=int,
        metavar="TOKENS",
        help="tokens read of each document, with --model (default: as in training)",
    )


def encoder_spec(args: argparse.Namespace) -> str | None:
    """``KIND:REST`` of the chosen encoder, ``None`` if none was chosen."""
    if args.model:
        return f"model:{args.model}"
    return f"savedmodel:{args.saved_model}" if args.saved_model else None


def encoder_from_spec(spec: str, *, max_length: int | None = None, progress: bool = True) -> "TextEncoder":
    """The encoder of ``KIND:REST``."""
    kind, _, rest = spec.partition(":")
    return make_encoder(kind, rest, max_length=max_length, progress=progress)
