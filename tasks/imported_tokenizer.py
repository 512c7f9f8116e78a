"""An imported tokenizer: ``tokenizer.json`` run by the `tokenizers` library, its ids moved to ours.

The ids are those of the library for every text, with one exception: a special token that is written in a text, such as
"[SEP]" or "</s>", is text and not the token, as in our own tokenizer. Limits of length and padding in the file are
left out, because the callers cut.
"""

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats.tokenizer_files import TOKENIZER_FILE, TokenizerFiles
from ..formats.vocabulary import SPECIAL_TOKENS, UNK_ID

_BATCH_TEXTS: Final = 4_096  # bounds the memory of the library's results


class ImportedTokenizer:
    """The tokenizer of ``tokenizer.json`` with our ids.

    Args:
      files: as read from disk.
    """

    def __init__(self, files: TokenizerFiles) -> None:
        self._files = files

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Our ids of every text, without special tokens: int32 ``[number of pieces]`` each; runs on all cores.

        Args:
          texts: without halves of surrogate pairs.
        """
        rows: list[np.ndarray] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = list(texts[start : start + _BATCH_TEXTS])
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            rows += [self._ours[np.asarray(encoding.ids, np.int64)] for encoding in encodings]
        return rows

    def decode(self, ids: Sequence[int]) -> str:
        """Text of our ids, as the library joins it, without special tokens other than the unknown one."""
        kept = [token for token in ids if token >= len(SPECIAL_TOKENS) or token == UNK_ID]
        return str(self._tokenizer.decode(self._files.order[kept].tolist(), skip_special_tokens=False))

    @functools.cached_property
    def _tokenizer(self) -> Any:
        tokenizer = parse_tokenizer(self._files.content, TOKENIZER_FILE)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        return tokenizer

    @functools.cached_property
    def _ours(self) -> np.ndarray:
        """Our id of each of its ids, int32 [V]; special tokens in a text are unknown, the pieces that spell them known.

        A unigram model takes "</s>" in a text for its piece of that name.
        """
        ours = np.empty(self._files.size, np.int32)
        ours[self._files.order] = np.arange(self._files.size, dtype=np.int32)
        ours[list(self._files.special_ids)] = UNK_ID
        return ours


def parse_tokenizer(content: bytes, path: str) -> Any:
    """A `tokenizers.Tokenizer` of the content of a ``tokenizer.json``.

    Raises:
      InputError: naming `path`, if the content is not a tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises bare Exception
        problem = f"got no tokenizer of the tokenizers library: {error}"
        raise InputError(problem, path=path, remedy="Save the tokenizer again as tokenizer.json.") from error
