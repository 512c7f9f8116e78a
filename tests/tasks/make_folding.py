"""Writes tasks/folding.json: what TF-Text makes of each character. Run it when tensorflow-text is updated.

    python tests/tasks/make_folding.py > tasks/folding.json

`made` is what `test_plain_tokenizer.py` compares with the stored file.
"""

import json
import sys

import tensorflow_text
import unicodedata2

EVERYTHING = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def made():
    """The content of the file."""
    return {
        "unicode": unicodedata2.unidata_version,
        "folded": list(_runs(_folded())),
        "spaces": list(_ranges(_kinds()["space"])),
        "alone": list(_ranges(_kinds()["alone"])),
    }


def _many(operation, texts):
    return [found.decode() for found in operation([text.encode() for text in texts]).numpy()]


def _folded():
    for character, folded in zip(EVERYTHING, _many(tensorflow_text.case_fold_utf8, EVERYTHING), strict=True):
        if folded != unicodedata2.normalize("NFC", character) and folded != character:
            yield ord(character), folded


def _runs(pairs):
    """[first, last, text] for neighbours that become the same, or the same distance in numbers (text is a number)."""
    run = None
    for code, folded in pairs:
        kind = ord(folded) - code if len(folded) == 1 else folded
        if run and run[1] == code - 1 and run[2] == kind:
            run[1] = code
            continue
        if run:
            yield run
        run = [code, code, kind]
    yield run


def _kinds():
    """Characters by what the tokenizer does with them between two letters."""
    import tensorflow as tf

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = tensorflow_text.FastBertTokenizer([*special, "a", "##a"], token_out_type=tf.int32)
    rows = tokenizer.tokenize([f"a{character}a".encode() for character in EVERYTHING]).to_list()
    kinds = {(5, 5): "space", (5, 1, 5): "alone", (1,): "letter", (5, 6, 6): "letter"}
    found = {"space": [], "alone": [], "letter": []}
    for character, row in zip(EVERYTHING, rows, strict=True):
        found[kinds[tuple(row)]].append(ord(character))
    return found


def _ranges(codes):
    start = last = None
    for code in codes:
        if last is not None and code == last + 1:
            last = code
            continue
        if start is not None:
            yield [start, last]
        start = last = code
    yield [start, last]


if __name__ == "__main__":
    values = made()
    print("{" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()) + "}")
