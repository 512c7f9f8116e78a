"""Folders of Hugging Face: what `transformers` and `sentence_transformers` keep of a model, read and written.

A folder holds config.json, model.safetensors (or its shards and their index), the tokenizer (vocab.txt, tokenizer.json,
tokenizer_config.json, special_tokens_map.json) and, where sentence-transformers wrote it, modules.json with a folder
for each module: WordWeights (or our TextWeights), Pooling, Dense and Normalize. Neither library is needed here.
"""

from .parts import HuggingFaceFolder, SentenceModules, Tokenizer
from .reading import read_huggingface
from .writing import write_huggingface

__all__ = [
    "HuggingFaceFolder",
    "SentenceModules",
    "Tokenizer",
    "read_huggingface",
    "write_huggingface",
]
