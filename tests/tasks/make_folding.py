"""Writes tasks/folding.json: what TF-Text makes of each character. Run it when tensorflow-text is updated.

    python tests/tasks/make_folding.py > tasks/folding.json

`made` is what `test_plain_tokenizer.py` compares with the stored file.
"""

import json
import sys
import unicodedata

import tensorflow_text

OLDEST_PYTHON = "14.0.0"  # the Unicode version of the oldest Python that newsembed runs on
EVERYTHING = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def made():
    """The content of the file."""
    return {
        "unicode": "16.0.0",
        "folded": list(_runs(_folded())),
        "spaces": list(_ranges(_kinds()["space"])),
        "alone": list(_ranges(_kinds()["alone"])),
        "later_marks": _later_marks(),
        "later_pairs": _later_pairs(),
    }


def _many(operation, texts):
    return [found.decode() for found in operation([text.encode() for text in texts]).numpy()]


def _folded():
    for character, folded in zip(EVERYTHING, _many(tensorflow_text.case_fold_utf8, EVERYTHING), strict=True):
        if folded != unicodedata.normalize("NFC", character) and folded != character:
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


def _is_later(character):
    """Whether the oldest Python does not know it; decided by that Python, which must run this."""
    if unicodedata.unidata_version != OLDEST_PYTHON:
        raise SystemExit(f"run this with a Python of Unicode {OLDEST_PYTHON}")
    return unicodedata.category(character) == "Cn"


def _decomposed(texts):
    return _many(lambda raw: tensorflow_text.normalize_utf8(raw, "NFD"), texts)


def _later_pairs():
    later = [character for character in EVERYTHING if _is_later(character)]
    found = {c: d for c, d in zip(later, _decomposed(later), strict=True) if c != d}
    composed = {text: character for character, text in found.items()}
    return {c: [composed.get(text[:-1], text[:-1]), text[-1]] for c, text in found.items()}


def _later_marks():
    """The canonical combining class of each later mark: the class whose marks it does not change places with."""
    known = {}
    for character in EVERYTHING:
        if unicodedata.combining(character) and not unicodedata.decomposition(character):
            known.setdefault(unicodedata.combining(character), character)
    later = [character for character in EVERYTHING if _is_later(character)]

    def moved(pairs):
        found = _decomposed([f"x{first}{second}" for first, second in pairs])
        return [text == f"x{second}{first}" for text, (first, second) in zip(found, pairs, strict=True)]

    after, before = moved([(c, known[1]) for c in later]), moved([(known[240], c) for c in later])
    marks = [c for c, one, other in zip(later, after, before, strict=True) if one or other]
    result = {}
    for mark in marks:
        first, second = moved([(mark, c) for c in known.values()]), moved([(c, mark) for c in known.values()])
        (result[mark],) = [k for k, one, other in zip(known, first, second, strict=True) if not one and not other]
    return result


if __name__ == "__main__":
    values = made()
    print("{" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()) + "}")
