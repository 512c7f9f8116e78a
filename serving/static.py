"""A model without layers, computed by NumPy: neither JAX nor TensorFlow is imported.

A static model reads a text as a bag of word pieces: the normalised rows of the token table, their weighted mean (or
maximum), the embedding head. `models.encoders.news` defines it; here are the same steps in float32, and the digest is
the same. The table is normalised once, and a text reads the row of each of its pieces once. Models with layers, of
other architectures or of other number types are left to JAX.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.model_folder import ModelDescription, ModelFolder
from ..formats.weights import Array, flatten
from ..models.transformer import TransformerConfig
from ..tasks.vocabulary import Vocabulary
from .interface import FloatArray
from .long_documents import Row, checked
from .parameters import matched, model_digest
from .tokenized import TokenizedEncoder

_NORM_FLOOR: Final = 1e-12  # as in `models.encoders.news`
_TEXTS_TOGETHER: Final = 64


class StaticEncoder(TokenizedEncoder):
    """A static model as a ``TextEncoder``.

    Args:
      folder: a training folder or a safetensors export, for which `is_static` holds.
      step: of the checkpoint; None takes the last one.
      max_length: tokens read of each document; None takes as many as the model was trained on.
      progress: show a tqdm bar.
      document_prompt: the text before each document; None takes the model's.
      query_prompt: the text before each query; None takes the model's.
      long_documents: how documents of more tokens are read, see `long_documents`; None takes the model's.

    Attributes:
      folder: as given.
      step: as given.

    Raises:
      InputError: if a file or the step is missing or broken, the parameters are of another architecture, or
        `long_documents` does not fit.
    """

    def __init__(
        self,
        folder: str,
        step: int | None = None,
        *,
        max_length: int | None = None,
        progress: bool = False,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        long_documents: str | None = None,
    ) -> None:
        self.folder, self.step = folder, step
        files = ModelFolder(folder)
        description = files.read_description()
        config = _config(description, files.description_file)
        files.check_vocabulary(description)
        found, _, source = files.read_params(step)
        params = matched(found, expected(config), source)
        self.model_digest = model_digest(config.to_dict(), None, files.vocabulary_file, params)
        self._model = StaticModel(config, flatten(params))
        learned = config.max_length if description.text_length is None else description.text_length
        self.max_length = min(max_length or learned, config.max_length)
        self.vocabulary = Vocabulary.load(files.vocabulary_file)
        self._progress = progress
        self.document_prompt = description.prompts.document if document_prompt is None else document_prompt
        self.query_prompt = description.prompts.query if query_prompt is None else query_prompt
        self.long_documents = checked(long_documents or description.long_documents, self.max_length)

    @property
    def dimensions(self) -> int:
        """D."""
        return self._model.config.embedding_size

    @staticmethod
    def preparations() -> Iterator[Callable[[], None]]:
        """Nothing: NumPy compiles nothing."""
        return iter(())

    def _embed_rows(self, rows: Sequence[Row], *, are_queries: bool) -> FloatArray:  # noqa: ARG002 - all cost the same
        from tqdm import tqdm

        embeddings = np.zeros((len(rows), self.dimensions), np.float32)
        with tqdm(total=len(rows), unit="text", desc="embed", disable=None if self._progress else True) as bar:
            for start in range(0, len(rows), _TEXTS_TOGETHER):
                part = rows[start : start + _TEXTS_TOGETHER]
                embeddings[start : start + len(part)] = self._model.embed(part)
                bar.update(len(part))
        return embeddings


def is_static(folder: str) -> bool:
    """Whether `StaticEncoder` computes the model of a folder: the news encoder in float32 without layers.

    Raises:
      InputError: if the description cannot be read.
    """
    files = ModelFolder(folder)
    if not files.is_described:
        return False
    description = files.read_description()
    values = description.encoder
    is_float = values.get("dtype", "float32") == "float32"
    return description.kind is None and values.get("num_layers") == 0 and is_float


def expected(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters that ``embed`` of a static model has in JAX, by dotted name."""
    hidden, norm = config.hidden_size, ("bias", "scale") if config.biases else ("scale",)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embedding": (config.vocab_size, hidden),
        "mlm_bias": (config.vocab_size,),
        "embedding_head.kernel": (hidden, config.dense_size),
        "embedding_head.bias": (config.dense_size,),
    }
    if config.positions == "learned":
        shapes["position_embedding"] = (config.position_count, hidden)
    if config.relative_buckets:
        shapes["relative_bias"] = (config.relative_buckets, config.num_heads)
    if config.pooling == "weighted":
        shapes["pooling_logits"] = (config.vocab_size,)
    if config.norm != "pre":
        shapes |= {f"input_norm.{name}": (hidden,) for name in norm}
    if config.norm != "post":
        shapes |= {f"output_norm.{name}": (hidden,) for name in norm}
    return dict(sorted(shapes.items()))


class StaticModel:
    """The arithmetic of a static model.

    Args:
      config: without layers.
      params: float32 by dotted name, those of `expected`.
    """

    def __init__(self, config: TransformerConfig, params: Mapping[str, Array]) -> None:
        self.config, self._params = config, dict(params)
        # With learned positions, the vector of a piece depends on its place.
        self._has_places = config.positions == "learned"
        if not self._has_places:
            self._params["token_embedding"] = self._normalized_rows(self._params["token_embedding"])
        if config.pooling == "weighted":
            self._piece_weights = np.exp(self._params["pooling_logits"])

    def embed(self, rows: Sequence[Row]) -> FloatArray:
        """The embeddings, float32 [N, D] of length 1, of N texts, each int32 [L] without padding, L at least 1."""
        pooled = np.stack([self._pooled(np.asarray(row)) for row in rows])
        vectors = pooled @ self._params["embedding_head.kernel"] + self._params["embedding_head.bias"]
        if self.config.embedding_activation == "tanh":
            vectors = np.tanh(vectors)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, _NORM_FLOOR), np.float32)

    def _pooled(self, tokens: npt.NDArray[np.int32]) -> FloatArray:
        """The pooled vector of one text, float32 [H]."""
        pooling = self.config.pooling
        if pooling in ("cls", "last"):
            place = 0 if pooling == "cls" else len(tokens) - 1
            return self._vectors(tokens[place : place + 1], place)[0]
        pieces, number = np.unique(tokens, return_inverse=True)
        weights = self._token_weights(tokens, number)
        if self._has_places:
            vectors = self._vectors(tokens)
        else:
            vectors, weights = self._vectors(pieces), np.bincount(number, weights)
        if pooling == "max":
            return np.asarray(np.max(vectors, axis=0))
        return np.asarray(np.float32(weights / np.sum(weights)) @ vectors)

    def _vectors(self, tokens: npt.NDArray[np.int32], place: int = 0) -> FloatArray:
        """The top vectors, float32 [L, H], of tokens that begin at a place of their text."""
        vectors = self._params["token_embedding"][tokens]
        if not self._has_places:
            return vectors
        places = np.arange(place, place + len(tokens)) % self.config.position_count  # each window counts from 0
        return self._normalized_rows(vectors + self._params["position_embedding"][places])

    def _normalized_rows(self, hidden: FloatArray) -> FloatArray:
        config = self.config
        if config.norm != "pre":
            hidden = self._normalized(hidden, "input_norm")
        return hidden if config.norm == "post" else self._normalized(hidden, "output_norm")

    def _normalized(self, hidden: FloatArray, name: str) -> FloatArray:
        centred = hidden - np.mean(hidden, axis=-1, keepdims=True)
        variance = np.mean(centred**2, axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.config.layer_norm_epsilon) * self._params[f"{name}.scale"]
        return scaled + self._params[f"{name}.bias"] if self.config.biases else scaled

    def _token_weights(self, tokens: npt.NDArray[np.int32], number: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The weight of each token, [L], where copies of a piece have one number; see `models.pooling.term_weights`."""
        config = self.config
        weights: npt.NDArray[np.floating[Any]] = np.ones(len(tokens), np.float32)
        if config.pooling != "weighted":
            return weights
        if config.lead_length:
            weights /= 1 + np.arange(len(tokens), dtype=np.float32) / config.lead_length
        if config.sublinear:
            total = np.bincount(number, weights)
            weights = weights * (np.log1p(total) / total)[number]
        return weights * self._piece_weights[tokens]


def _config(description: ModelDescription, path: str) -> TransformerConfig:
    try:
        return TransformerConfig.from_dict(description.encoder)
    except (ValueError, TypeError) as error:
        remedy = "Restore the file, or use the version of newsembed that wrote it."
        raise InputError(f"no model description: {error}", path=path, remedy=remedy) from error
