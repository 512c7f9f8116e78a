"""Texts to vectors by an exported SavedModel: TensorFlow and TF-Text only, no JAX."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.digests import check_sums
from ..formats.saved_model import BODY, DEFAULT_SIGNATURE, OUTPUT, QUERY_SIGNATURE, TITLE, read_facts
from .prompting import prompt_digest, with_prompt

_BATCH: Final = 64


class SavedModelEncoder:
    """An exported SavedModel as a ``TextEncoder``.

    Args:
      folder: what ``newsembed export`` wrote.
      progress: show a tqdm bar.
      document_prompt: the text before each document; None leaves it to the SavedModel.
      query_prompt: the text before each query; None leaves it to the SavedModel.

    Raises:
      InputError: if the folder is no SavedModel, not one of ours or damaged, or adds another prompt itself.
    """

    def __init__(
        self,
        folder: str,
        *,
        progress: bool = False,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
    ) -> None:
        self.facts = read_facts(folder)
        check_sums(folder, "export the model again, or restore the folder from a copy")
        self._document_prompt = self._own_prompt("document", document_prompt, folder)
        self._query_prompt = self._own_prompt("query", query_prompt, folder)
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 - registers the tokenizer's ops

        try:
            self._loaded = tf.saved_model.load(folder)
        except (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            remedy = "export the model again, or restore the folder from a copy"
            raise InputError(f"TensorFlow cannot read it: {lines[0]}", path=folder, remedy=remedy) from error
        if DEFAULT_SIGNATURE not in self._loaded.signatures:
            raise InputError(
                f"no signature {DEFAULT_SIGNATURE}", path=folder, remedy="give a folder that newsembed export wrote"
            )
        self._signature = self._loaded.signatures[DEFAULT_SIGNATURE]
        self._query = self._loaded.signatures[QUERY_SIGNATURE] if "prompts" in self.facts else None
        self._progress = progress

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""
        return f"savedmodel-{self.facts['digest']}{prompt_digest(self._document_prompt)}"

    @property
    def dimensions(self) -> int:
        """D."""
        return int(self.facts["dimensions"])

    def encode(self, titles: Sequence[str], bodies: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embeds N documents as float32 ``[N, D]`` of unit length.

        Raises:
          ValueError: if there are not as many titles as bodies.
        """
        if len(titles) != len(bodies):
            raise ValueError(f"got {len(titles)} titles and {len(bodies)} bodies")
        return self._encode(*with_prompt(self._document_prompt, titles, bodies))

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embeds N queries as float32 ``[N, D]`` of unit length."""
        import tensorflow as tf

        prompted = [f"{self._query_prompt}{text}" for text in texts]
        if self._query is None or not prompted:
            return self._encode(prompted, [""] * len(prompted))
        found: npt.NDArray[np.float32] = self._query(text=tf.constant([_utf8(text) for text in prompted]))[
            OUTPUT
        ].numpy()
        return found

    def _own_prompt(self, role: str, prompt: str | None, folder: str) -> str:
        """What is put before texts here, before the graph puts its own.

        Raises:
          InputError: if the graph puts another prompt before them.
        """
        in_graph = self.facts.get("prompts", {}).get(role, "")
        if prompt is None or prompt == in_graph:
            return ""
        if in_graph:
            problem = f"got {prompt!r}, and the SavedModel itself puts {in_graph!r} before each {role}"
            raise InputError(problem, path=folder, field="--prompt", remedy="Give the model that it was exported from.")
        return prompt

    def _encode(self, titles: Sequence[str], bodies: Sequence[str]) -> npt.NDArray[np.float32]:
        import tensorflow as tf
        from tqdm import tqdm

        embeddings = np.zeros((len(titles), self.dimensions), np.float32)
        # Texts of similar length share a batch, so that short ones are not padded to the length of a long one.
        order = np.argsort([len(title) + len(body) for title, body in zip(titles, bodies, strict=True)], kind="stable")
        disable = None if self._progress else True
        for start in tqdm(range(0, len(order), _BATCH), unit="batch", desc="embed", disable=disable):
            numbers = order[start : start + _BATCH]
            batch = {
                TITLE: tf.constant([_utf8(titles[number]) for number in numbers], tf.string),
                BODY: tf.constant([_utf8(bodies[number]) for number in numbers], tf.string),
            }
            embeddings[numbers] = self._signature(**batch)[OUTPUT].numpy()
        return embeddings


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")  # half a surrogate pair, which JSON can smuggle in, has no UTF-8 form
