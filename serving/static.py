"""A model without layers, computed by NumPy: neither JAX nor TensorFlow is imported.

A static model reads a text as a bag of word pieces: the normalised rows of the token table, their weighted mean, the
embedding head. `models.encoders.news` defines it; here are the same steps in float32, and the digest is the same. The
table is normalised once, and a text reads the row of each of its pieces once. What newsembed does not make (layers or
positions, another norm, pooling or number type) is left to JAX.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import reading as reading_file
from ..formats.arrays import flatten
from ..formats.bars import bar
from ..formats.model_folder import ModelFolder
from ..models.transformer import TransformerConfig
from .interface import FloatArray, TokenizedEncoder
from .model import Model, described, matched
from .rows import Row

_NORM_FLOOR: Final = 1e-12  # as in `models.encoders.news`
_TEXTS_TOGETHER: Final = 64
_HEADS: Final = [  # that have parameters in a checkpoint
    f"{head}.{name}" for head in ("topic_head", "mlm_transform", "mlm_norm") for name in ("kernel", "scale", "bias")
]


class StaticEncoder(TokenizedEncoder):
    """A static model as a ``TextEncoder``.

    Args:
      folder: a training folder or a safetensors export, for which `is_static` holds.
      step: of the checkpoint; None takes the last one.
      reading: see :class:`TokenizedEncoder`.

    Raises:
      InputError: if a file or the step is missing or broken, the parameters are of another architecture, or
        `long_documents` does not fit.
    """

    def __init__(self, folder: str, step: int | None = None, **reading: Any) -> None:
        super().__init__(_load(folder, step), **reading)
        config, self._params = self.model.config, flatten(self.model.params)
        self._table = self._normalized(self._params["token_embedding"])
        if config.pooling == "weighted":
            self._piece_weights = np.exp(self._params["pooling_logits"])

    def encode_tokens(self, rows: Sequence[Row], *, are_queries: bool = False) -> FloatArray:  # noqa: ARG002
        """Embeds N rows of tokens as float32 ``[N, D]`` of length 1; queries cost the same."""
        embeddings = np.zeros((len(rows), self.dimensions), np.float32)
        with bar(len(rows), "text", shown=self._progress) as shown:
            for start in range(0, len(rows), _TEXTS_TOGETHER):
                part = rows[start : start + _TEXTS_TOGETHER]
                embeddings[start : start + len(part)] = self._embed(part)
                shown.update(len(part))
        return embeddings

    def _embed(self, rows: Sequence[Row]) -> FloatArray:
        """The embeddings, float32 [N, D] of length 1, of N texts, each int32 [L] without padding, L at least 1."""
        pooled = np.stack([self._pooled(np.asarray(row)) for row in rows])
        vectors = pooled @ self._params["embedding_head.kernel"] + self._params["embedding_head.bias"]
        if self.model.config.embedding_activation == "tanh":
            vectors = np.tanh(vectors)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, _NORM_FLOOR), np.float32)

    def _pooled(self, tokens: npt.NDArray[np.int32]) -> FloatArray:
        """The pooled vector of one text, float32 [H]."""
        pieces, number = np.unique(tokens, return_inverse=True)
        weights = np.bincount(number, self._token_weights(tokens, number))
        return np.asarray(np.float32(weights / np.sum(weights)) @ self._table[pieces])

    def _normalized(self, hidden: FloatArray) -> FloatArray:
        centred = hidden - np.mean(hidden, axis=-1, keepdims=True)
        variance = np.mean(centred**2, axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.model.config.layer_norm_epsilon) * self._params["output_norm.scale"]
        return scaled + self._params["output_norm.bias"] if self.model.config.biases else scaled

    def _token_weights(self, tokens: npt.NDArray[np.int32], number: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The weight of each token, [L], where copies of a piece have one number, see `attention.term_weights`."""
        config = self.model.config
        weights: npt.NDArray[np.floating[Any]] = np.ones(len(tokens), np.float32)
        if config.pooling != "weighted":
            return weights
        if config.lead_length:
            weights /= 1 + np.arange(len(tokens), dtype=np.float32) / config.lead_length
        if config.sublinear:
            total = np.bincount(number, weights)
            weights = weights * (np.log1p(total) / total)[number]
        return weights * self._piece_weights[tokens]


def _load(folder: str, step: int | None) -> Model:
    files = ModelFolder(folder)
    with reading_file(files.description_file, "Restore the file, or use the version of newsembed that wrote it."):
        model = described(folder, lambda said, _: TransformerConfig.from_dict(said.encoder))
    found, step, source = files.read_params(step)
    return model.with_params(matched(found, expected(model.config), source, lambda: _HEADS), step, None)


def is_static(folder: str) -> bool:
    """Whether `StaticEncoder` computes the model of a folder: word pieces alone, as `static.gin` has them."""
    files = ModelFolder(folder)
    if not files.is_described:
        return False
    said = files.read_description()
    if said.kind is not None or said.encoder.get("num_layers") != 0:
        return False
    wanted = {"positions": ("rotary",), "norm": ("pre",), "pooling": ("weighted", "mean"), "dtype": (None, "float32")}
    return all(said.encoder.get(name) in values for name, values in wanted.items())


def expected(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters that ``embed`` of a static model has in JAX, by dotted name."""
    hidden, pieces, dense = config.hidden_size, config.vocab_size, config.dense_size
    shapes: dict[str, tuple[int, ...]] = {"token_embedding": (pieces, hidden), "mlm_bias": (pieces,)}
    shapes |= {"embedding_head.kernel": (hidden, dense), "embedding_head.bias": (dense,)}
    if config.pooling == "weighted":
        shapes["pooling_logits"] = (pieces,)
    shapes |= {f"output_norm.{name}": (hidden,) for name in (("bias", "scale") if config.biases else ("scale",))}
    return dict(sorted(shapes.items()))
