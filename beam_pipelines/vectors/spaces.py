"""Document vectors of the three auxiliary spaces, computed from the entities and words of an article."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from ..entities.mentions import Mentions
from ..entities.tables import Floats

Doubles = np.ndarray[Any, np.dtype[np.float64]]
_ENOUGH_FOR_A_COMPONENT = 50  # documents that a language needs for its own principal component


def entity_vector(mentions: Mentions, embeddings: Floats, rarity: Floats) -> Floats | None:
    """Returns the mean of the embeddings of the mentioned entities, weighted by rarity and log count.

    Args:
      mentions: mentions of one document.
      embeddings: float32 ``[E, D]``.
      rarity: weight of each entity, float32 ``[E]``.

    Returns:
      float32 ``[D]``, or None if nothing with a positive weight is mentioned.
    """
    if not mentions.entities:
        return None
    rows = np.array(mentions.entities)
    weights = rarity[rows] * (1 + np.log(np.array(mentions.entity_counts, np.float32)))
    total = float(weights.sum())
    return np.asarray(weights @ embeddings[rows] / total, np.float32) if total > 0 else None


def text_vector(mentions: Mentions, embeddings: Floats, weights: Floats) -> Floats | None:
    """Returns the SIF-weighted mean of word embeddings (Arora et al. 2017), before the common component is removed.

    Args:
      mentions: mentions of one document, with the words of title, keywords and lead.
      embeddings: float32 ``[W, D]``.
      weights: ``a / (a + frequency)`` of each word, float32 ``[W]``.

    Returns:
      float32 ``[D]``, or None if no word is known.
    """
    if not mentions.words:
        return None
    rows = np.array(mentions.words)
    return np.asarray(weights[rows] @ embeddings[rows] / len(rows), np.float32)


def image_vector(image_hash: bytes) -> Floats:
    """Returns the bits of a 64-bit wavelet hash as ±1, float32 ``[64]``; cosine = 1 - 2 · Hamming distance / 64."""
    return (2.0 * np.unpackbits(np.frombuffer(image_hash, np.uint8)) - 1.0).astype(np.float32)


def sif_weights(frequencies: Sequence[float], smoothing: float) -> Floats:
    """Returns the smooth inverse frequency of each word, a / (a + p): float32 ``[W]``."""
    return (smoothing / (smoothing + np.array(frequencies, np.float64))).astype(np.float32)


@dataclasses.dataclass
class Statistics:
    """Statistics of a set of documents for rarity and common components; statistics of sets add up.

    Attributes:
      documents: number of documents.
      entity_documents: number of documents that mention each entity, ``[E]``.
      moments: sum of outer products of unit text vectors by language, ``[D, D]``.
      texts: number of text vectors by language.
    """

    documents: int
    entity_documents: np.ndarray[Any, np.dtype[np.int64]]
    moments: dict[str, Doubles]
    texts: collections.Counter[str]

    @classmethod
    def empty(cls, entities: int) -> Self:
        """Returns the statistics of an empty collection, for a number of entities."""
        return cls(0, np.zeros(entities, np.int64), {}, collections.Counter())

    def add_texts(self, language: str, vectors: Sequence[Floats]) -> None:
        """Adds the text vectors of documents of one language."""
        if vectors:
            stacked = np.stack(vectors).astype(np.float64)
            norms = np.linalg.norm(stacked, axis=1, keepdims=True)
            stacked /= np.where(norms > 0, norms, 1)
            self.moments[language] = self.moments.get(language, 0) + stacked.T @ stacked
            self.texts[language] += len(vectors)

    def add(self, other: "Statistics") -> None:
        """Adds the statistics of another set."""
        self.documents += other.documents
        self.entity_documents += other.entity_documents
        for language, moment in other.moments.items():
            self.moments[language] = self.moments.get(language, 0) + moment
        self.texts.update(other.texts)

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the statistics as arrays of numbers and texts, for :func:`~newsembed.formats.arrays.write_arrays`."""
        languages = sorted(self.moments)
        return {
            "documents": np.array(self.documents, np.int64),
            "entity_documents": self.entity_documents,
            "languages": np.array(languages, np.str_),
            "moments": np.array([self.moments[language] for language in languages], np.float64),
            "texts": np.array([self.texts[language] for language in languages], np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Self:
        """Returns the statistics that :meth:`to_arrays` gave as arrays."""
        languages = arrays["languages"].tolist()
        return cls(
            int(arrays["documents"]),
            arrays["entity_documents"],
            dict(zip(languages, arrays["moments"], strict=True)),
            collections.Counter(dict(zip(languages, arrays["texts"].tolist(), strict=True))),
        )

    def rarity(self) -> Floats:
        """Returns the inverse document frequency log((N + 1) / (n + 1)) of each entity, float32 ``[E]``."""
        return np.log((self.documents + 1.0) / (self.entity_documents + 1.0)).astype(np.float32)

    def components(self) -> dict[str, Floats]:
        """Returns the first principal direction of the text vectors by language.

        The key "" has the direction of all languages, for languages with few documents.
        """
        everything = sum(self.moments[language] for language in sorted(self.moments)) if self.moments else None
        found = {
            language: moment
            for language, moment in self.moments.items()
            if self.texts[language] >= _ENOUGH_FOR_A_COMPONENT
        }
        if everything is not None:
            found[""] = np.asarray(everything)
        return {language: _first_direction(moment) for language, moment in found.items()}


def _first_direction(moment: Doubles) -> Floats:
    return np.asarray(np.linalg.eigh(moment)[1][:, -1], np.float32)  # its sign does not matter to a projection


def remove_component(vector: Floats, language: str, components: Mapping[str, Floats]) -> Floats:
    """Returns the vector without its projection on the common component of the language."""
    component = components.get(language, components.get(""))
    return vector if component is None else np.asarray(vector - (vector @ component) * component, np.float32)
