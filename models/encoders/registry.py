"""The registry of architectures, see the package."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from ...errors import InputError
from ..architecture import NEWS_KIND, Architecture

KINDS: Final[dict[str, type[Architecture]]] = {}

_C = TypeVar("_C", bound=type[Architecture])


def register(config_class: _C) -> _C:
    """Adds a configuration class under its ``kind``; usable as a decorator. The same class may be registered again.

    Raises:
      ValueError: if another class has this kind.
    """
    known = KINDS.setdefault(config_class.kind, config_class)
    if known is not config_class:
        raise ValueError(f"the architecture kind {config_class.kind!r} is registered twice: {known} and {config_class}")
    return config_class


def named_kind(config: Architecture) -> str | None:
    """The kind as model folders name it: None for the news encoder, whose folders are older than the registry."""
    return None if config.kind == NEWS_KIND else config.kind


def config_from_dict(values: Mapping[str, Any], kind: str | None = None, *, path: str | None = None) -> Architecture:
    """The configuration that `Architecture.to_dict` wrote.

    Args:
      values: of ``to_dict``.
      kind: of the architecture, from `named_kind`.
      path: the file to name in errors.

    Raises:
      InputError: for a kind that is not registered, unknown keys or values out of range.
    """
    kind = NEWS_KIND if kind is None else kind
    if kind not in KINDS:
        raise InputError(
            f"got the architecture {kind!r}, expected one of {', '.join(sorted(KINDS))}",
            path=path,
            field="kind",
            remedy="Import the module that registers it: newsembed --import MODULE COMMAND …",
        )
    try:
        return KINDS[kind].from_dict(values)
    except (ValueError, TypeError) as error:
        remedy = "Restore the file, or use the version of newsembed that wrote it."
        raise InputError(f"no model description: {error}", path=path, remedy=remedy) from error
