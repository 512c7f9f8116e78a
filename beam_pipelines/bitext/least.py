"""The least margin of each pair of languages."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from ...formats import files
from .options import BitextOptions

ALL: Final = ""  # the threshold of all known pairs together, for languages without any
_NEVER: Final = float("inf")


@dataclasses.dataclass(frozen=True)
class Least:
    """The least margins.

    Attributes:
      margins: by "<source>-<target>"; infinite where none has the precision; "" for all others.
      facts: margin, precision, recall and number of known sentences, as JSON values.
    """

    margins: Mapping[str, float]
    facts: Mapping[str, Any]

    def of(self, languages: str) -> float:
        """Returns the least margin of a pair of languages."""
        return self.margins.get(languages, self.margins[ALL])


def fixed(options: BitextOptions) -> Least:
    """Returns the least margin of the options for all languages."""
    return Least({ALL: options.min_margin}, {})


def read_least(path: str, options: BitextOptions) -> Least:
    """Returns the least margins that :func:`calibrate` wrote."""
    facts = files.read_json(path)
    margins = {name: _NEVER if one["margin"] is None else one["margin"] for name, one in facts.items()}
    return Least({ALL: options.min_margin, **margins}, facts)
