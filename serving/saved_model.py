"""Texts to vectors by an exported SavedModel: TensorFlow and TF-Text only, no JAX.

An export that takes tokens holds the files of its tokenizer, which then runs here. The export of a static model holds
its weights as safetensors, too: NumPy computes it, and TensorFlow is not imported. For a few texts, JAX computes other
models where it is installed, from the parameters in TensorFlow's file: TensorFlow takes seconds to be imported.
"""

import ctypes
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.digests import check_sums
from ..formats.model_folder import ModelFolder
from ..formats.prompts import Prompts
from ..formats.saved_model import (
    BODY,
    DEFAULT_SIGNATURE,
    OUTPUT,
    QUERY_SIGNATURE,
    TEXT_INPUTS,
    TITLE,
    TOKEN_INPUTS,
    TOKENS,
    read_arrays,
    read_facts,
    vocabulary_file,
    weights_folder,
)
from ..formats.vocabulary import PAD_ID
from ..formats.weights import unflatten
from ..tasks.vocabulary import Vocabulary
from .long_documents import HEAD, embed_rows, tokens_read
from .precision import restored
from .prompting import prompt_digest, with_prompt
from .static import StaticEncoder, is_static

if TYPE_CHECKING:
    from .encoder import JaxEncoder

_BATCH: Final = 64
_HEIGHTS: Final = (1, 2, 4, 8, 16, 32, 64)  # the rows that the graph pads a batch to
_LONG_HEIGHTS: Final = 5  # of these are prepared for long texts
_SPECIAL_TOKENS: Final = 4  # at most, in addition to the words of a text
_LOG_LEVEL: Final = "TF_CPP_MIN_LOG_LEVEL"
_SET_LOG_LEVEL: Final = "_ZN4absl12lts_2025012714SetMinLogLevelENS0_18LogSeverityAtLeastE"  # of TensorFlow 2.20


class SavedModelEncoder:
    """An exported SavedModel as a ``TextEncoder``.

    Args:
      folder: what ``newsembed export`` wrote.
      progress: show a tqdm bar.
      document_prompt: the text before each document; None leaves it to the SavedModel.
      query_prompt: the text before each query; None leaves it to the SavedModel.
      long_documents: how documents of more tokens are read; the SavedModel's own or None.
      light: compute a static model by NumPy where the export holds its weights; False runs the graph.
      few_texts: whether the process embeds a few texts only, so that JAX, where it is installed and knows the
        architecture, computes other models. Embeddings differ from the graph's by rounding.

    Attributes:
      facts: of the export.
      engine: the library that computes it: NumPy, JAX or TensorFlow.

    Raises:
      InputError: if the folder is not a SavedModel, not one of ours or damaged, adds another prompt itself, or reads
        long documents in another way.
    """

    def __init__(
        self,
        folder: str,
        *,
        progress: bool = False,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        long_documents: str | None = None,
        light: bool = True,
        few_texts: bool = False,
    ) -> None:
        self.facts = read_facts(folder)
        self._long_documents = str(self.facts.get("long_documents", HEAD))
        if long_documents not in (None, self._long_documents):
            problem = f"got {long_documents}, the SavedModel reads long documents by {self._long_documents}"
            remedy = "Export the model with this option, or give the model."
            raise InputError(problem, path=folder, field="--long_documents", remedy=remedy)
        check_sums(folder, "export the model again, or restore the folder from a copy")
        self._document_prompt = self._own_prompt("document", document_prompt, folder)
        self._query_prompt = self._own_prompt("query", query_prompt, folder)
        self._progress = progress
        self._vocabulary = Vocabulary.load(vocabulary_file(folder)) if self._takes_tokens else None
        self._other: StaticEncoder | JaxEncoder | None = self._static_of(folder) if light else None
        self.engine = "TensorFlow" if self._other is None else "NumPy"
        if self._other is None and few_texts:
            self._other = self._jax_of(folder)
            self.engine = "TensorFlow" if self._other is None else "JAX"
        if self._other is None:
            self._loaded = _load_graph(folder)
            self._signature = self._loaded.signatures[DEFAULT_SIGNATURE]
            self._query = self._loaded.signatures.get(QUERY_SIGNATURE)

    @property
    def tokenizer_name(self) -> str:
        """What cuts the texts, in words."""
        if self._vocabulary is not None:
            return self._vocabulary.tokenizer_name
        return str(self.facts.get("tokenizer", "newsembed's own WordPiece, by TensorFlow Text")) + ", in the SavedModel"

    @property
    def digest(self) -> str:
        """Differs whenever the embeddings of the same texts may differ."""
        base = f"savedmodel-{self.facts['digest']}"
        if self._takes_tokens and self._document_prompt == self._stored_prompt("document"):
            return base  # the export's own digest covers it
        suffix = prompt_digest(self._document_prompt)
        return base + (suffix or "-no-prompt" if self._takes_tokens else suffix)

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

    def count_tokens(self, titles: Sequence[str], bodies: Sequence[str]) -> int | None:
        """The tokens that `encode` reads of documents, without the prompt; None where the graph cuts the texts."""
        if self._other is not None:
            return self._other.count_tokens(titles, bodies)
        if self._vocabulary is None:
            return None
        most = tokens_read(self._long_documents, int(self.facts["max_length"]))
        return sum(map(len, self._vocabulary.encode_documents(titles, bodies, most)))

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embeds N queries as float32 ``[N, D]`` of unit length."""
        prompted = [f"{self._query_prompt}{text}" for text in texts]
        if self._other is not None:
            return self._other.encode_queries(prompted)
        if self._query is None or not prompted:
            return self._encode(prompted, [""] * len(prompted))
        import tensorflow as tf

        found: npt.NDArray[np.float32] = self._query(text=tf.constant([_utf8(text) for text in prompted]))[
            OUTPUT
        ].numpy()
        return found

    def preparations(self) -> Iterator[Callable[[], None]]:
        """Functions that compile one height and length of a batch each: the graph pads to a few of them."""
        if self._other is not None:
            yield from self._other.preparations()
            return
        for number, length in enumerate(self.facts["length_buckets"]):
            heights = (_BATCH,) if self._takes_tokens else _HEIGHTS if number == 0 else _HEIGHTS[:_LONG_HEIGHTS]
            text = " ".join("a" * max(1, int(length) - _SPECIAL_TOKENS))  # a token for each letter
            for height in heights:
                yield functools.partial(self._prepare, text, height, queries=number == 0)

    def _prepare(self, text: str, height: int, *, queries: bool) -> None:
        self._encode([""] * height, [text] * height)
        if queries and self._query is not None:
            self.encode_queries([text] * height)

    @property
    def _takes_tokens(self) -> bool:
        return bool(self.facts.get("inputs", TEXT_INPUTS) == TOKEN_INPUTS)

    def _stored_prompt(self, role: str) -> str:
        return str(self.facts.get("prompts", {}).get(role, ""))

    def _own_prompt(self, role: str, prompt: str | None, folder: str) -> str:
        """What is put before texts here, before the graph puts its own.

        Raises:
          InputError: if the graph puts another prompt before them.
        """
        in_graph = self._stored_prompt(role)
        if self._takes_tokens:  # no graph sees the texts
            return in_graph if prompt is None else prompt
        if prompt is None or prompt == in_graph:
            return ""
        if in_graph:
            problem = f"got {prompt!r}, and the SavedModel itself puts {in_graph!r} before each {role}"
            raise InputError(problem, path=folder, field="--prompt", remedy="Give the model that it was exported from.")
        return prompt

    def _static_of(self, folder: str) -> StaticEncoder | None:
        """The weights in the export as an encoder that puts the prompts that the graph puts; None without weights."""
        weights = weights_folder(folder)
        if not ModelFolder(weights).is_described or not is_static(weights):
            return None
        return StaticEncoder(weights, **self._reading)

    def _jax_of(self, folder: str) -> "JaxEncoder | None":
        """The parameters of the export as an encoder in JAX.

        None for an export of an earlier version, without JAX, and for an architecture that is not registered here.
        """
        arrays = read_arrays(folder)
        if arrays is None or not all(map(importlib.util.find_spec, ("jax", "flax"))):
            return None
        from ..models.encoders import config_from_dict
        from .checkpoint import Model
        from .encoder import JaxEncoder

        try:
            config = config_from_dict(self.facts["encoder"], self.facts.get("kind"), path=folder)
        except InputError:
            return None
        params, length = unflatten(restored(arrays)), int(self.facts["max_length"])
        digest, step = str(self.facts["digest"]), int(self.facts["step"])
        model = Model(folder, config, vocabulary_file(folder), params, step, digest, length, Prompts())
        return JaxEncoder(model, few_texts=True, **self._reading)

    @property
    def _reading(self) -> dict[str, Any]:
        """Options of an encoder that puts the prompts that the graph puts, and reads as much."""
        prompts = {
            f"{role}_prompt": "" if self._takes_tokens else self._stored_prompt(role) for role in ("document", "query")
        }
        reading = {"max_length": int(self.facts["max_length"]), "long_documents": self._long_documents}
        return {**prompts, **reading, "progress": self._progress}

    def _encode(self, titles: Sequence[str], bodies: Sequence[str]) -> npt.NDArray[np.float32]:
        if self._other is not None:
            return self._other.encode(titles, bodies)
        import tensorflow as tf
        from tqdm import tqdm

        if self._vocabulary is not None and self._long_documents != HEAD:
            length = int(self.facts["max_length"])
            documents = self._vocabulary.encode_documents(titles, bodies, tokens_read(self._long_documents, length))
            return embed_rows(self._encode_rows, documents, self._long_documents, length)
        embeddings = np.zeros((len(titles), self.dimensions), np.float32)
        # Texts of similar length share a batch, so that short ones are not padded to the length of a long one.
        order = np.argsort([len(title) + len(body) for title, body in zip(titles, bodies, strict=True)], kind="stable")
        disable = None if self._progress else True
        for start in tqdm(range(0, len(order), _BATCH), unit="batch", desc="embed", disable=disable):
            numbers = order[start : start + _BATCH]
            parts = [titles[number] for number in numbers], [bodies[number] for number in numbers]
            batch = self._texts(*parts) if self._vocabulary is None else self._tokens(self._vocabulary, *parts)
            found = self._signature(**{name: tf.constant(value) for name, value in batch.items()})[OUTPUT].numpy()
            embeddings[numbers] = found[: len(numbers)]
        return embeddings

    @staticmethod
    def _texts(titles: Sequence[str], bodies: Sequence[str]) -> dict[str, Any]:
        return {TITLE: [_utf8(title) for title in titles], BODY: [_utf8(body) for body in bodies]}

    def _tokens(self, vocabulary: Vocabulary, titles: Sequence[str], bodies: Sequence[str]) -> dict[str, Any]:
        return self._padded(vocabulary.encode_documents(titles, bodies, int(self.facts["max_length"])))

    def _encode_rows(self, rows: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.float32]:
        """Embeds rows of tokens, float32 ``[n, D]``."""
        import tensorflow as tf

        embeddings = np.zeros((len(rows), self.dimensions), np.float32)
        order = np.argsort([len(row) for row in rows], kind="stable")
        for start in range(0, len(order), _BATCH):
            numbers = order[start : start + _BATCH]
            tokens = self._padded([rows[number] for number in numbers])[TOKENS]
            embeddings[numbers] = self._signature(**{TOKENS: tf.constant(tokens)})[OUTPUT].numpy()[: len(numbers)]
        return embeddings

    def _padded(self, rows: Sequence[npt.NDArray[np.int32]]) -> dict[str, Any]:
        """Padded to one of the model's lengths and a whole batch, because each shape takes a second to compile."""
        longest = max(len(row) for row in rows)
        width = next(length for length in self.facts["length_buckets"] if length >= longest)
        tokens = np.full((_BATCH, width), PAD_ID, np.int32)
        for line, row in enumerate(rows):
            tokens[line, : len(row)] = row
        return {TOKENS: tokens}


def _load_graph(folder: str) -> Any:
    """TensorFlow's object of a SavedModel.

    Raises:
      InputError: if TensorFlow cannot read it, or it lacks the default signature.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - registers the tokenizer's ops

    _quiet_xla(tf.sysconfig.get_lib())
    remedy = "export the model again, or restore the folder from a copy"
    try:
        loaded = tf.saved_model.load(folder)
    except (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"TensorFlow cannot read it: {lines[0]}", path=folder, remedy=remedy) from error
    if DEFAULT_SIGNATURE not in loaded.signatures:
        remedy = "give a folder that newsembed export wrote"
        raise InputError(f"no signature {DEFAULT_SIGNATURE}", path=folder, remedy=remedy)
    return loaded


def _quiet_xla(library: str) -> None:
    """Applies ``TF_CPP_MIN_LOG_LEVEL`` to XLA, which TensorFlow 2.20 forgets: it logs a line that nobody needs.

    TensorFlow documents no other setting (its issue 100442 is open), and Python's absl does not reach the C++ library.
    """
    level = os.environ.get(_LOG_LEVEL, "")
    if level.isdecimal():
        try:
            framework = ctypes.CDLL(os.path.join(library, "libtensorflow_framework.so.2"))
            set_level = getattr(framework, _SET_LOG_LEVEL)
        except (OSError, AttributeError):
            return
        set_level(int(level))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")  # half a surrogate pair, which JSON can smuggle in, has no UTF-8 form
