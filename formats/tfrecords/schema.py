"""The schema of a record: which features it has, of which type and shape, and what their integers are."""

import dataclasses
from collections.abc import Sequence
from typing import Final, Literal

PIECES: Final = "pieces"  # ids of the word pieces of a vocabulary
TOPICS: Final = "topics"  # ids of topics
LANGUAGES: Final = "languages"  # places of languages in the list of a manifest


@dataclasses.dataclass(frozen=True)
class FeatureSpec:
    """One feature of a TFRecord.

    Attributes:
      name: the key in ``tf.train.Example.features``.
      kind: ``"int"`` (stored as int64, read as int32) or ``"bytes"`` (UTF-8).
      shape: fixed shape; ``None`` stands for a length that varies by record, ``()`` for a scalar.
      meaning: one line for error messages and documentation.
      holds: what the integers are ids of, such as `PIECES`, `TOPICS` or `LANGUAGES`; they must be at least 0 and less
        than the number of these. ``""`` for integers without bounds.
      optional: whether records may lack the feature, as those of older versions do; it is then read as zeros, or as no
        values where their number varies.
    """

    name: str
    kind: Literal["int", "bytes"]
    shape: tuple[int | None, ...]
    meaning: str
    holds: str = ""
    optional: bool = False

    @property
    def is_variable(self) -> bool:
        """Whether the number of values varies by record."""
        return self.shape == (None,)


Schema = Sequence[FeatureSpec]
