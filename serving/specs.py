"""Encoders by a short text, as the command lines name them."""

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .long_documents import LONG_DOCUMENTS

if TYPE_CHECKING:  # the package exports `factories`, and imports nothing else
    from .interface import DocumentEncoder, TextEncoder


def factories(
    *,
    max_length: int | None = None,
    progress: bool = True,
    document_prompt: str | None = None,
    long_documents: str | None = None,
) -> "dict[str, Callable[[str], DocumentEncoder]]":
    """Makers of benchmark encoders by the word before the colon in ``NAME=KIND:REST``.

    ``model``: ``DIR[@step]``; ``random``: ``DIR[@seed]``; ``savedmodel``: ``DIR``. Each loads when called with
      ``REST``.
    """

    def make(kind: str, rest: str) -> "DocumentEncoder":
        from .interface import DocumentEncoder

        return DocumentEncoder(
            make_encoder(
                kind,
                rest,
                max_length=max_length,
                progress=progress,
                document_prompt=document_prompt,
                long_documents=long_documents,
            )
        )

    return {kind: functools.partial(make, kind) for kind in ("model", "random", "savedmodel")}


def make_encoder(
    kind: str,
    rest: str,
    *,
    max_length: int | None = None,
    progress: bool = True,
    document_prompt: str | None = None,
    query_prompt: str | None = None,
    long_documents: str | None = None,
    few_texts: bool = False,
) -> "TextEncoder":
    """One encoder.

    Args:
      kind: ``model``, ``random`` or ``savedmodel``.
      rest: ``DIR``, or ``DIR@N`` with N a step (``model``) or a seed (``random``).
      max_length: tokens read of each document; a SavedModel has its own and ignores it.
      progress: show a bar while embedding.
      document_prompt: the text before each document; None takes the model's.
      query_prompt: the text before each query; None takes the model's.
      long_documents: how documents of more tokens are read, see `long_documents`; None takes the model's.
      few_texts: whether the process embeds a few texts only, see `JaxEncoder` and `SavedModelEncoder`.

    Raises:
      InputError: on an unknown kind, a model that cannot be loaded, or what a SavedModel cannot replace.
    """
    reading: dict[str, Any] = {
        "document_prompt": document_prompt,
        "query_prompt": query_prompt,
        "long_documents": long_documents,
    }
    if kind == "savedmodel":
        from .saved_model import SavedModelEncoder

        return SavedModelEncoder(rest, progress=progress, few_texts=few_texts, **reading)
    folder, number = split_number(rest)
    if kind == "model":
        from .static import StaticEncoder, is_static

        if is_static(folder):
            return StaticEncoder(folder, number, max_length=max_length, progress=progress, **reading)
    from .encoder import fresh_encoder, load_encoder

    if kind == "model":
        reading["few_texts"] = few_texts
        return load_encoder(folder, number, max_length=max_length, progress=progress, **reading)
    if kind == "random":
        return fresh_encoder(folder, number or 0, max_length=max_length, progress=progress, **reading)
    raise InputError(f"got the encoder kind {kind!r}", remedy="choose model, random or savedmodel")


def split_number(text: str) -> tuple[str, int | None]:
    """``DIR@N`` into its parts.

    >>> split_number("work/model@400"), split_number("work/m@il")
    (('work/model', 400), ('work/m@il', None))
    """
    folder, at, number = text.rpartition("@")
    return (folder, int(number)) if at and folder and number.isdigit() else (text, None)


def add_encoder_arguments(parser: argparse.ArgumentParser, *, required: bool, prompted: str = "document") -> None:
    """Adds ``--model DIR[@step]``, ``--saved_model DIR``, ``--max_length`` and ``--prompt``.

    Args:
      parser: of the command.
      required: whether an encoder must be given.
      prompted: what ``--prompt`` is put before, a word for the help.
    """
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
    add_prompt_argument(parser, prompted)


def add_embedding_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the encoder, how it reads long documents, and ``--input``, the articles."""
    add_encoder_arguments(parser, required=True)
    add_long_documents_argument(parser)
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE|DIR",
        help="articles: Parquet or JSONL (.gz, .zst); - for JSONL on standard input",
    )


def add_prompt_argument(parser: argparse.ArgumentParser, prompted: str = "document") -> None:
    """Adds ``--prompt``, the text before each `prompted`."""
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help=f"text before each {prompted}, instead of the model's own prompt; '' for none (default: the model's)",
    )


def add_long_documents_argument(parser: argparse.ArgumentParser) -> None:
    """Adds ``--long_documents``."""
    parser.add_argument(
        "--long_documents",
        choices=LONG_DOCUMENTS,
        help="of a document longer than --max_length, embed its head, its head and tail in one row, or the weighted "
        "mean of windows, where the first counts most (default: as model.json says, or head)",
    )


def encoder_spec(args: argparse.Namespace) -> str | None:
    """``KIND:REST`` of the chosen encoder, ``None`` if none was chosen."""
    if args.model:
        return f"model:{args.model}"
    return f"savedmodel:{args.saved_model}" if args.saved_model else None


def encoder_from_spec(spec: str, **options: Any) -> "TextEncoder":
    """The encoder of ``KIND:REST``; `options` are those of :func:`make_encoder`."""
    kind, _, rest = spec.partition(":")
    return make_encoder(kind, rest, **options)
