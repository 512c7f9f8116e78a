"""Texts to vectors by an exported SavedModel: TensorFlow and TF-Text only, no JAX."""

import json
import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError

FACTS_FILE: Final = "newsembed.json"  # beside saved_model.pb: digest, dimensions, max_length, step, versions
DEFAULT_SIGNATURE: Final = "serving_default"  # (title, body: string [b]) -> {"embedding": float32 [b, D]}
TEXT_SIGNATURE: Final = "text"  # (text: string [b]) -> {"embedding": float32 [b, D]}
OUTPUT: Final = "embedding"
_BATCH: Final = 64


class SavedModelEncoder:
    """An exported SavedModel as a ``TextEncoder``.

    Args:
      folder: what ``newsembed export`` wrote.
      progress: show a tqdm bar.

    Raises:
      InputError: if the folder is no SavedModel or not one of ours.
    """

    def __init__(self, folder: str, *, progress: bool = False) -> None:
        if not os.path.exists(os.path.join(folder, "saved_model.pb")):
            raise InputError("no saved_model.pb", path=folder, remedy="give a folder that newsembed export wrote")
        self.facts = read_facts(folder)
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 - registers the tokenizer's ops

        self._loaded = tf.saved_model.load(folder)
        if DEFAULT_SIGNATURE not in self._loaded.signatures:
            raise InputError(
                f"no signature {DEFAULT_SIGNATURE}", path=folder, remedy="give a folder that newsembed export wrote"
            )
        self._signature = self._loaded.signatures[DEFAULT_SIGNATURE]
        self._progress = progress

    @property
    def digest(self) -> str:
        return f"savedmodel-{self.facts['digest']}"

    @property
    def dimensions(self) -> int:
        return int(self.facts["dimensions"])

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embeds N documents as float32 ``[N, D]`` of unit length.

        Raises:
          ValueError: if there are not as many titles as bodies.
        """
        if len(titles) != len(bodies):
            raise ValueError(f"got {len(titles)} titles and {len(bodies)} bodies")
        import tensorflow as tf
        from tqdm import tqdm

        embeddings = np.zeros((len(titles), self.dimensions), np.float32)
        # Texts of like length share a batch, so that short ones do not pay for a long neighbor's padding.
        order = np.argsort([len(title) + len(body) for title, body in zip(titles, bodies, strict=True)], kind="stable")
        disable = None if self._progress else True
        for start in tqdm(range(0, len(order), _BATCH), unit="batch", desc="embed", disable=disable):
            numbers = order[start : start + _BATCH]
            batch = {
                "title": tf.constant([_utf8(titles[number]) for number in numbers], tf.string),
                "body": tf.constant([_utf8(bodies[number]) for number in numbers], tf.string),
            }
            embeddings[numbers] = self._signature(**batch)[OUTPUT].numpy()
        return embeddings


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")  # half a surrogate pair, which JSON can smuggle in, has no UTF-8 form


def read_facts(folder: str) -> dict[str, Any]:
    """What the export says about itself.

    Raises:
      InputError: if the file is missing or broken.
    """
    path = os.path.join(folder, FACTS_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            facts: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read: {error}", path=path, remedy="give a folder that newsembed export wrote"
        ) from error
    missing = {"digest", "dimensions"} - set(facts)
    if missing:
        raise InputError(f"lacks {', '.join(sorted(missing))}", path=path, remedy="export the model again")
    return facts
