"""newsembed: document embeddings for news, from raw crawl to served encoder (NewsEmbed, KDD 2021).

The Python interface, see docs/guides/python.md; each name is imported on first use::

    newsembed.load("model").encode(["Storm reaches the coast"])
    newsembed.open("index").search("storm", since="2024-05-01", k=5)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .launch.api import Encoder as Encoder
    from .launch.api import Index as Index
    from .launch.api import explore as explore
    from .launch.api import load as load
    from .launch.api import open as open  # noqa: A004 - newsembed.open reads as it should
    from .launch.api import read_articles as read_articles
    from .launch.api import run as run
    from .launch.api import write_articles as write_articles

__version__ = "0.1.0"
_OFFERED = ("Encoder", "Index", "explore", "load", "open", "read_articles", "run", "write_articles")


def __getattr__(name: str) -> Any:
    """Imports a name of the interface on first use.

    Raises:
      AttributeError: for any other name.
    """
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .launch import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_OFFERED])
