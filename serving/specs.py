"""Encoders by a short text, as the command lines name them, and the options that choose one."""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..errors import InputError
from ..formats.command_line import Options, option
from ..formats.model_folder import ONNX_FILE
from ..formats.remote import local_folder
from ..formats.trust import allow
from .rows import LONG_DOCUMENTS

if TYPE_CHECKING:  # the package exports `factories`, and imports nothing else
    from .interface import DocumentEncoder, TextEncoder

_LONG_DOCUMENTS_HELP: Final = (
    "of a document longer than --max_length, embed its head, or the weighted mean of windows, where the first counts "
    "most (default: as model.json says, or head)"
)
_CLS: Final = "#cls"
PROMPT_HELP: Final = "text before each {}, instead of the model's own prompt; '' for none (default: the model's)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderOptions(Options):
    """Options of a command that needs an encoder; one of the first two names it."""

    model: str | None = option(
        None,
        "a training folder, or an export in safetensors or ONNX; the last checkpoint unless a step is given; #cls: the "
        "top [CLS] state in place of the embedding",
        metavar="DIR[@STEP][#cls]",
    )
    saved_model: str | None = option(None, "an exported SavedModel", metavar="DIR")
    max_length: int | None = option(
        None, "tokens read of each document, with --model (default: as in training)", ge=3, metavar="TOKENS"
    )
    prompt: str | None = option(None, PROMPT_HELP.format("document"), metavar="TEXT")

    def __post_init__(self) -> None:
        """Refuses two encoders."""
        super().__post_init__()
        if self.model and self.saved_model:
            raise InputError("given with --model", field="--saved_model", remedy="give one of the two")

    @property
    def spec(self) -> str | None:
        """``KIND:REST`` of the chosen encoder, ``None`` if none was chosen."""
        if self.model:
            return f"model:{self.model}"
        return f"savedmodel:{self.saved_model}" if self.saved_model else None

    @property
    def needed_spec(self) -> str:
        """``KIND:REST`` of the chosen encoder; an `InputError` if none was chosen."""
        if self.spec is None:
            raise InputError("no encoder", field="--model", remedy="give --model or --saved_model")
        return self.spec


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingOptions(EncoderOptions):
    """Options of a command that embeds documents."""

    long_documents: str | None = option(None, _LONG_DOCUMENTS_HELP, choices=LONG_DOCUMENTS)

    @property
    def reading(self) -> dict[str, Any]:
        """How the encoder reads documents, see ``interface.TokenizedEncoder``."""
        return {
            "max_length": self.max_length,
            "document_prompt": self.prompt,
            "long_documents": self.long_documents,
        }


def factories(**reading: Any) -> "dict[str, Callable[[str], DocumentEncoder]]":
    """Makers of benchmark encoders by the word before the colon in ``NAME=KIND:REST``.

    ``model``: ``DIR[@step][#cls]``; ``random``: ``DIR[@seed][#cls]``; ``savedmodel``: ``DIR``. Each loads when called
      with ``REST``. `reading` is that of :func:`make_encoder`.
    """

    def make(kind: str, rest: str) -> "DocumentEncoder":
        from .interface import DocumentEncoder

        return DocumentEncoder(make_encoder(kind, rest, **reading))

    return {kind: functools.partial(make, kind) for kind in ("model", "random", "savedmodel")}


def make_encoder(kind: str, rest: str, **reading: Any) -> "TextEncoder":
    """One encoder that the user names; :mod:`..formats.trust` says what is asked first of one that data name.

    Args:
      kind: ``model``, ``random`` or ``savedmodel``.
      rest: ``DIR``, or ``DIR@N`` with N a step (``model``) or a seed (``random``); ``#cls`` after either takes the
        top-layer state of [CLS] in place of the embedding.
      reading: see ``interface.TokenizedEncoder``; a bar of progress is shown by default. A SavedModel has its own
        ``max_length``.

    Raises:
      InputError: on an unknown kind, a model that cannot be loaded, or what a SavedModel cannot replace.
    """
    reading = {"progress": True, **reading}
    if kind == "savedmodel":
        from .saved_model import SavedModelEncoder

        reading.pop("max_length", None)
        folder = local_folder(rest)
        encoder = SavedModelEncoder(folder, **reading)
        allow(folder)
        return encoder
    if kind not in ("model", "random"):
        raise InputError(f"got the encoder kind {kind!r}", remedy="choose model, random or savedmodel")
    is_cls = rest.endswith(_CLS)
    path, number = split_number(rest.removesuffix(_CLS))
    folder = local_folder(path, number if kind == "model" else None)
    if kind == "model" and not is_cls:
        from .static import StaticEncoder, is_static

        if is_static(folder):
            return StaticEncoder(folder, number, **reading)
        if os.path.isfile(os.path.join(folder, ONNX_FILE)):
            from .onnx_engine import read_export

            return read_export(folder, **reading)
    from .encoder import ClsEncoder, JaxEncoder, fresh_model, load_fastest, load_model

    if kind == "model" and not is_cls:
        return load_fastest(folder, number, **reading)
    model = load_model(folder, number) if kind == "model" else fresh_model(folder, number or 0)
    return (ClsEncoder if is_cls else JaxEncoder)(model, **reading)


def encoder_from_spec(spec: str, **reading: Any) -> "TextEncoder":
    """The encoder of ``KIND:REST``, see :func:`make_encoder`."""
    kind, _, rest = spec.partition(":")
    return make_encoder(kind, rest, **reading)


def split_number(text: str) -> tuple[str, int | None]:
    """``DIR@N`` into its parts.

    >>> split_number("work/model@400"), split_number("work/m@il")
    (('work/model', 400), ('work/m@il', None))
    """
    folder, at, number = text.rpartition("@")
    return (folder, int(number)) if at and folder and number.isdigit() else (text, None)


# In the settings of an archive


def settings_of(
    uri: str, spec: str, encoder: "TextEncoder", document_prompt: str | None, long_documents: str | None
) -> dict[str, Any]:
    """The settings of an archive that say which encoder reads its articles, and how.

    Args:
      uri: of the archive.
      spec: ``KIND:REST`` of the encoder. Its folder is kept as it was given, and relative to the archive, which holds
        from every working directory and after both were moved together.
      encoder: what embeds; a SavedModel does not say how many tokens it reads.
      document_prompt: what it was given in place of its own prompt.
      long_documents: what it was given in place of its own way to read documents of more tokens.
    """
    kind, path, number = split_encoder(spec)
    beside = os.path.relpath(os.path.realpath(path), os.path.realpath(uri)) if path and "://" not in uri else ""
    return {
        "encoder": spec,
        "encoder_beside": f"{kind}:{beside}{number}" if beside else "",
        "encoder_digest": encoder.digest,
        "document_prompt": document_prompt,
        "long_documents": long_documents,
        "max_length": getattr(encoder, "max_length", None),
    }


def split_encoder(spec: str) -> tuple[str, str, str]:
    """``KIND:DIR@N`` of an encoder in its parts, the last with its @; "" for parts that are not there.

    >>> split_encoder("model:work/model@400"), split_encoder("savedmodel:m@il")
    (('model', 'work/model', '@400'), ('savedmodel', 'm@il', ''))
    """
    kind, _, rest = spec.partition(":")
    folder, number = split_number(rest)
    return kind, folder, "" if number is None else f"@{number}"


def found_encoder(uri: str, settings: Mapping[str, Any]) -> str:
    """The encoder's ``KIND:REST``: the encoder next to the archive if there is one, else as it was given."""
    given = str(settings.get("encoder", ""))
    kind, path, number = split_encoder(str(settings.get("encoder_beside", "")))
    found = os.path.normpath(os.path.join(os.path.realpath(uri), path))
    if not path or not os.path.isdir(found) or found == os.path.realpath(split_encoder(given)[1]):
        return given
    return f"{kind}:{os.path.relpath(found)}{number}"
