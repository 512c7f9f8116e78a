"""Cosines of a query as standard deviations above what its cosines usually are, by the language of the articles.

Most encoders give unrelated texts of one language higher cosines than a text and its translation. So the order of an
archive of several languages is that of the deviations: an article counts by how much nearer it is than others in its
language. The deviation is that of all articles at least: where an encoder knows nothing about another language, its
cosines are all near 0, and small differences would count as much as those of the language of the query.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .analysis import base_language

LEAST: Final = 50  # articles of a language; those of rarer languages are compared with all articles
_ROWS: Final = 4_096  # of all articles
_LANGUAGE_ROWS: Final = 1_024

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Groups:
    """Articles by language.

    Args:
      languages: the tag of each article, "" or null if unknown.

    Attributes:
      of: the group of each article, int64 ``[N]``: 0 for rare languages, or for all where there is one language only.
      tags: for each group from 1 the tags of its language, as the archive writes them.
    """

    def __init__(self, languages: pa.ChunkedArray) -> None:
        encoded = languages.fill_null("").combine_chunks().dictionary_encode()
        values, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        bases = [base_language(value) for value in values]
        counts = np.bincount(places, minlength=len(values))
        held = {base: sum(counts[[other == base for other in bases]]) for base in bases}
        names = [base for base in sorted(held) if held[base] >= LEAST]
        names = names if len(held) > 1 else []
        self.of: Numbers = np.array([names.index(base) + 1 if base in names else 0 for base in bases])[places]
        self.tags = [[value for value, base in zip(values, bases, strict=True) if base == name] for name in names]

    def samples(self) -> list[Numbers]:
        """Places of up to 4,096 of all articles, and of up to 1,024 of each group from 1."""
        every = [(np.arange(len(self.of)), _ROWS)]
        every += [(np.flatnonzero(self.of == group + 1), _LANGUAGE_ROWS) for group in range(len(self.tags))]
        return [places[:: -(-len(places) // most)] for places, most in every]


class Spread:
    """The mean and the standard deviation of the cosines of any query with groups of vectors.

    Args:
      samples: float32 ``[n, D]`` of each group.
    """

    def __init__(self, samples: Sequence[npt.NDArray[Any]]) -> None:
        self._means = np.stack([sample.mean(axis=0, dtype=np.float64) for sample in samples])
        centered = [sample - mean for sample, mean in zip(samples, self._means, strict=True)]
        self._covariances = [np.asarray(rows.T @ rows / len(rows), np.float64) for rows in centered]

    def of(self, query: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """Means and standard deviations (at least that of group 0) for a query ``[D]``, float64 ``[groups]``."""
        unit = np.asarray(query, np.float64) / max(float(np.linalg.norm(query)), 1e-12)
        variances = [float(unit @ covariance @ unit) for covariance in self._covariances]
        return self._means @ unit, np.sqrt(np.maximum(variances, max(variances[0], 0.0)))
