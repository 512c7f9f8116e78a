"""Mutations of files: pure functions from bytes and a seeded generator to other bytes; ``None`` deletes the file."""

import gzip
import json
import random
import re
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes | None]

PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(40)
VALUES = [
    None,
    True,
    -1,
    0,
    1e308,
    10**30,
    "",
    "x" * 70_000,
    [],
    {},
    [[]],
    "\ud83d",
    "NaN",
    float("nan"),
    "2024-02-30",
    1.5,
]


def truncated(raw, generator):
    """The start of the file."""
    return raw[: generator.randrange(max(1, len(raw)))]


def one_byte_short(raw, _):
    """Everything but the last byte."""
    return raw[:-1]


def empty(_raw, _):
    """No bytes."""
    return b""


def deleted(_raw, _):
    """No file."""


def flipped(raw, generator):
    """One flipped bit."""
    changed = bytearray(raw or b"\0")
    changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def many_flipped(raw, generator):
    """Twenty flipped bits."""
    for _ in range(20):
        raw = flipped(raw, generator)
    return raw


def removed(raw, generator):
    """Some bytes cut out."""
    place = generator.randrange(max(1, len(raw)))
    return raw[:place] + raw[place + generator.randrange(1, 40) :]


def inserted(raw, generator):
    """Random bytes in between."""
    place = generator.randrange(len(raw) + 1)
    return raw[:place] + generator.randbytes(generator.randrange(1, 40)) + raw[place:]


def zeroed(raw, generator):
    """A block of zeros, as a disk leaves it after a power cut."""
    place = generator.randrange(max(1, len(raw)))
    size = min(512, len(raw) - place)
    return raw[:place] + bytes(size) + raw[place + size :]


def doubled(raw, _):
    """The content twice: every id is repeated."""
    return raw + raw


def line_doubled(raw, generator):
    """One line twice."""
    lines = raw.splitlines(keepends=True) or [b""]
    place = generator.randrange(len(lines))
    return b"".join([*lines[: place + 1], *lines[place:]])


def line_removed(raw, generator):
    """One line less."""
    lines = raw.splitlines(keepends=True) or [b""]
    del lines[generator.randrange(len(lines))]
    return b"".join(lines)


def of_other_encoding(raw, generator):
    """Text in another encoding."""
    return raw.decode("utf-8", "replace").encode(
        generator.choice(["utf-16", "utf-32", "cp037", "utf-8-sig"]), "replace"
    )


def of_other_line_ends(raw, generator):
    """Line ends of other systems."""
    return raw.replace(b"\n", generator.choice([b"\r", b"\r\n", b"\x85", b"\n\n", b"\x0c"]))


def of_other_kind(_raw, generator):
    """A file of another kind."""
    return generator.choice(
        [PNG, b"{}", b"[]", b"null", b"<html></html>", b"\x80\x04\x95", b"PK\x03\x04" + bytes(30), b"\n"]
    )


def compressed(raw, _):
    """The file in gzip, under the same name."""
    return gzip.compress(raw, mtime=0)


def number_replaced(raw, generator):
    """A number replaced by one that is too large, negative or none."""
    found = list(re.finditer(rb"\d+(\.\d+)?", raw))
    if not found:
        return flipped(raw, generator)
    place = generator.choice(found)
    value = generator.choice([b"9" * 400, b"-1", b"NaN", b"1e999", b"0", b"", b"2147483648", b"99", b"0x1f", b"1_0"])
    return raw[: place.start()] + value + raw[place.end() :]


def json_replaced(raw, generator):
    """A value of JSON, or of one line of it, replaced by one of another type, or left out."""
    for text, before, after in _documents(raw, generator):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return before + json.dumps(_replaced(value, generator)).encode() + after
    return flipped(raw, generator)


def _documents(raw, generator):
    """The whole file, and one of its lines, each with what is before and after it."""
    lines = raw.splitlines(keepends=True)
    if not lines:
        return []
    place = generator.randrange(len(lines))
    line = (lines[place], b"".join(lines[:place]), b"\n" + b"".join(lines[place + 1 :]))
    return [(raw, b"", b"\n"), line]


def _replaced(value, generator):
    """The value with one replacement somewhere in it."""
    if isinstance(value, dict) and value and generator.random() < 0.9:
        key = generator.choice(sorted(value))
        if generator.random() < 0.2:
            return {name: item for name, item in value.items() if name != key}
        return value | {key: _replaced(value[key], generator)}
    if isinstance(value, list) and value and generator.random() < 0.7:
        place = generator.randrange(len(value))
        return [*value[:place], _replaced(value[place], generator), *value[place + 1 :]]
    return generator.choice(VALUES)


def of_other_version(raw, generator):
    """A version of the format that does not exist yet."""
    changed = re.sub(rb'("format(?:_version)?": )("?)[^",}\n]*', rb"\g<1>\g<2>99", raw, count=1)
    return changed if changed != raw else json_replaced(raw, generator)


EVERY = {
    function.__name__: function
    for function in (
        *(truncated, one_byte_short, empty, deleted, flipped, many_flipped, removed, inserted, zeroed, doubled),
        *(of_other_kind, compressed),
    )
}
TEXT = EVERY | {
    function.__name__: function
    for function in (
        *(line_doubled, line_removed, of_other_encoding, of_other_line_ends, number_replaced, json_replaced),
        of_other_version,
    )
}
