"""The registry of architectures: ``kind`` in a model folder to the configuration class that builds the module.

An architecture is one file here: a frozen dataclass that offers `Architecture` and calls `register`, and its Flax module. The
trainer, the exporters and the server look architectures up by kind and ask for capabilities; they know no class by name.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from .capabilities import NEWS_KIND, Architecture, Capability, require
from .news_config import EncoderConfig

__all__ = [
    "KINDS",
    "NEWS_KIND",
    "Architecture",
    "Capability",
    "EncoderConfig",
    "config_from_dict",
    "register",
    "require",
]

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


def config_from_dict(values: Mapping[str, Any], kind: str = NEWS_KIND) -> Architecture:
    """The configuration that `Architecture.to_dict` wrote.

    Args:
      values: of ``to_dict``.
      kind: of the architecture; folders without one hold the news encoder.

    Raises:
      ValueError: for a kind that is not registered, unknown keys or values out of range.
    """
    if kind not in KINDS:
        raise ValueError(f"got the architecture kind {kind!r}, expected one of {', '.join(sorted(KINDS))}")
    return KINDS[kind].from_dict(values)


register(EncoderConfig)
