"""Signatures: what the archive keeps of each article that passed the rules, to find its duplicates later."""

import hashlib
from typing import Final

import numpy as np
import numpy.typing as npt

from ..beam_pipelines.clean.options import CleanOptions
from ..formats.arrays import Array
from ..formats.records import Article

SKETCH_TYPE: Final = np.dtype("<u4")


def signature_type(options: CleanOptions) -> np.dtype[np.void]:
    """The dtype of a signature: about 160 bytes with the default of 16 bands.

    ``ordinal`` is the byline date, ``doc_id`` and ``body`` are what exact duplicates share, ``bands`` are the buckets
    of near duplicates, ``record`` is equal if nothing that the archive compares has changed, and ``sketch`` is the
    number of values of the sketch.
    """
    bands = options.bands if options.near_duplicate_threshold <= 1 else 0
    return np.dtype(
        [
            ("ordinal", "<i4"),
            ("sketch", "<u2"),
            ("doc_id", "<u8"),
            ("body", "<u8"),
            ("record", "<u8"),
            ("bands", "<u8", (bands,)),
        ]
    )


def signature(article: Article, entries: Array, sketch: npt.NDArray[np.uint32], options: CleanOptions) -> Array:
    """The signature of an article, ``[1]``.

    Args:
      article: a clean article.
      entries: of :func:`~newsembed.beam_pipelines.clean.duplicates.sign`.
      sketch: of the same function.
      options: threshold and bands.
    """
    row = np.zeros(1, signature_type(options))
    row["ordinal"], row["sketch"] = entries["ordinal"][0], len(sketch)
    row["doc_id"], row["body"], row["bands"] = entries["digest"][0], entries["digest"][1], entries["digest"][2:]
    row["record"] = record_digest(article)
    return row


def record_digest(article: Article) -> int:
    """64 bits of the URL, the texts and the byline date: an article that has the same again is already known."""
    parts = (article.doc_id, article.title, article.body, str(article.byline_date))
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big")
