"""The content of a Hugging Face folder as values and arrays, and the names of its files."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Final

from ..prompts import Prompts
from ..tokenizer_files import TOKENIZER_FILE
from ..vocabulary import VOCABULARY_FILE
from ..weights import Array

CONFIG_FILE: Final = "config.json"
WEIGHTS_FILE: Final = "model.safetensors"
SHARDS_FILE: Final = "model.safetensors.index.json"
TOKENIZER_CONFIG_FILE: Final = "tokenizer_config.json"
SPECIAL_TOKENS_FILE: Final = "special_tokens_map.json"
MODULES_FILE: Final = "modules.json"
SENTENCE_FILE: Final = "sentence_bert_config.json"
SENTENCE_TRANSFORMERS_FILE: Final = "config_sentence_transformers.json"

WORD_WEIGHTS: Final = "WordWeights"
TEXT_WEIGHTS: Final = "TextWeights"  # ours: its code is in the folder, in the file `TEXT_WEIGHTS_MODULE`
TEXT_WEIGHTS_MODULE: Final = "text_weights"
TEXT_WEIGHTS_ARRAY: Final = "weights"
WORD_WEIGHTS_ARRAY: Final = "emb_layer.weight"
ACTIVATIONS: Final = {"identity": "torch.nn.modules.linear.Identity", "tanh": "torch.nn.modules.activation.Tanh"}


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A tokenizer's files, as far as they are read.

    Attributes:
      pieces: of vocab.txt in the order of their ids, UTF-8; None where there is no such file.
      content: the whole of tokenizer.json; None where there is no such file.
      special_tokens: of special_tokens_map.json and tokenizer_config.json, such as {"pad_token": "[PAD]"}.
      settings: of tokenizer_config.json; empty without the file.
      lowers_first: whether sentence-transformers lowers texts before they reach the tokenizer.
    """

    pieces: tuple[bytes, ...] | None
    content: bytes | None = None
    special_tokens: Mapping[str, str] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    lowers_first: bool = False


@dataclasses.dataclass(frozen=True)
class SentenceModules:
    """The modules of sentence-transformers, which make one vector of the vectors of the tokens.

    Attributes:
      pooling: "cls", the first token's, "mean", "max", the largest value of each unit, or "last", the last token's.
      token_weights: float32 [V], positive, by the folder's token ids: how much a token counts in the mean; None: all
        the same.
      lead_length: a token at position p counts 1 / (1 + p / lead_length) in the mean; 0: all the same.
      sublinear: the copies of a token that would count s together count ln(1 + s).
      kernel: float32 [H, D], the dense layer after pooling; None without one.
      bias: float32 [D], of that layer.
      activation: on what that layer returns, "identity" or "tanh".
      is_normalized: whether the embeddings of the folder have length 1; ours do.
      text_length: tokens of a text that are read; None where the folder does not say.
      prompts: the texts before documents and queries.
    """

    pooling: str = "cls"
    token_weights: Array | None = None
    lead_length: int = 0
    sublinear: bool = False
    kernel: Array | None = None
    bias: Array | None = None
    activation: str = "identity"
    is_normalized: bool = True
    text_length: int | None = None
    prompts: Prompts = dataclasses.field(default_factory=Prompts)


@dataclasses.dataclass(frozen=True)
class HuggingFaceFolder:
    """A folder's content.

    Attributes:
      path: the folder.
      config: of config.json.
      arrays: the weights by name.
      tokenizer: its files.
      modules: of sentence-transformers; the defaults where the folder has none.
    """

    path: str
    config: Mapping[str, Any]
    arrays: Mapping[str, Array]
    tokenizer: Tokenizer
    modules: SentenceModules = dataclasses.field(default_factory=SentenceModules)

    @property
    def config_file(self) -> str:
        """config.json, to name in errors."""
        return os.path.join(self.path, CONFIG_FILE)

    @property
    def weights_file(self) -> str:
        """The weights, or the index of their shards, to name in errors."""
        whole, shards = os.path.join(self.path, WEIGHTS_FILE), os.path.join(self.path, SHARDS_FILE)
        return shards if os.path.exists(shards) and not os.path.exists(whole) else whole

    @property
    def vocabulary_file(self) -> str:
        """tokenizer.json or, without one, vocab.txt, to name in errors."""
        name = VOCABULARY_FILE if self.tokenizer.content is None else TOKENIZER_FILE
        return os.path.join(self.path, name)
