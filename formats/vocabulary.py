"""The vocabulary file ``vocab.txt``: UTF-8, one word piece a line, the special tokens first."""

from typing import Final

# Positions in every vocabulary file; a file that differs is refused.
PAD_ID: Final = 0
UNK_ID: Final = 1
CLS_ID: Final = 2
SEP_ID: Final = 3
MASK_ID: Final = 4
SPECIAL_TOKENS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION: Final = "##"  # begins a piece that continues a word
