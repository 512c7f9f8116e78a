"""Every pattern of the code reads hostile text in a time that grows as the text does."""

import ast
import functools
import importlib
import io
import itertools
import operator
import re
import re._parser as parser
import time
import types
from pathlib import Path

import newsembed
import pytest
from newsembed.beam_pipelines.clean.rules import count_sentences, count_words
from newsembed.beam_pipelines.extract.warc import read_frames
from newsembed.formats.dates import stated_days
from newsembed.tasks.sentences import split_text

pytestmark = pytest.mark.long  # it measures time: `make attack`

ROOT = Path(newsembed.__file__).parent
OUTSIDE = {"tests", "benchmarks", "docs", "setup.py", "newsroom", ".venv", "build"}  # these read no text of others
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split", "scanner")
SIZES, QUICK_SECONDS, STEEPEST = (
    (125, 250, 500, 1_000),
    0.0004,
    3,
)  # twice the text takes a linear pattern 2 times, a quadratic one 4


def sources():
    """Paths of the modules that run in jobs and servers."""
    return [path for path in sorted(ROOT.rglob("*.py")) if not OUTSIDE & set(path.relative_to(ROOT).parts)]


def patterns_within(value):
    """The compiled patterns in a value of a module: itself, or in its tuples, lists and mappings."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(patterns_within, value.values()))
    elif isinstance(value, (tuple, list)):
        yield from itertools.chain.from_iterable(map(patterns_within, value))


def used_methods(name, text):
    """How the code calls a pattern, as far as it says so."""
    found = set(re.findall(rf"\b{name}\.({'|'.join(METHODS)})\b", text))
    return found or {"search"}


def is_call(node):
    """Whether a node of a module is a call such as re.sub with a pattern in place."""
    is_of_re = isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{method}" for method in METHODS}
    return is_of_re and isinstance(node.args[0], ast.Constant)


def patterns_of(path):
    """(name, pattern, methods) of a module, those written inside its functions included."""
    relative = path.relative_to(ROOT).with_suffix("")
    parts = [part for part in relative.parts if part != "__init__"]
    for call in filter(is_call, ast.walk(ast.parse(path.read_text()))):
        words = ast.unparse(call)
        flags = [flag for flag in (re.IGNORECASE, re.DOTALL, re.MULTILINE) if flag.name in words]
        pattern = re.compile(call.args[0].value, functools.reduce(operator.or_, flags, re.NOFLAG))
        yield f"{relative}:{call.lineno}", pattern, {call.func.attr}
    if parts and ("re.compile" in path.read_text() or "pattern(" in path.read_text()):
        module = importlib.import_module(".".join(["newsembed", *parts]))
        for name, value in vars(module).items():
            if not isinstance(value, types.ModuleType):
                for pattern in patterns_within(value):
                    yield f"{relative}.{name}", pattern, used_methods(name, path.read_text())


def nodes(tree):
    """The nodes of a parsed pattern, as (name, value)."""
    if isinstance(tree, tuple) and tree and hasattr(tree[0], "name"):
        yield tree[0].name, tree[-1]
    if isinstance(tree, (tuple, list, parser.SubPattern)):
        for part in tree:
            yield from nodes(part)


def letters_of(pattern):
    """Characters that matter to a pattern: its literals, the starts of its ranges, and one of each class."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    of_node = {
        "LITERAL": chr,
        "NOT_LITERAL": chr,
        "RANGE": lambda ends: chr(ends[0]),
        "CATEGORY": lambda kind: "1" if "DIGIT" in kind.name else " " if "SPACE" in kind.name else "a",
        "ANY": lambda _: "a",
    }
    tree = parser.parse(text, pattern.flags & ~re.DEBUG & ~re.UNICODE)
    return list(dict.fromkeys(of_node[name](value) for name, value in nodes(tree) if name in of_node))


def starts_of(pattern):
    """Words that a pattern may begin with."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    return dict.fromkeys([*re.findall(r"[A-Za-z<!&/:=\"'(\[@.-]{2,}", text)[:6]])


def hostile_texts(pattern):
    """(piece, end) of texts that repeat a piece and then fail."""
    letters = letters_of(pattern)[:8]
    singles = dict.fromkeys([*letters, "a", " ", ".", "1"])
    pieces = [*singles, *("".join(pair) for pair in itertools.permutations(list(singles)[:6], 2)), *starts_of(pattern)]
    yield from itertools.product(pieces, ("", "\0", "!"))
    yield from ((piece, start) for start in starts_of(pattern) for piece in singles)


def seconds(pattern, method, text):
    started = time.process_time()
    run(pattern, method, text)
    return time.process_time() - started


def run(pattern, method, text):
    if method == "sub":
        pattern.sub(b"" if isinstance(text, bytes) else "", text)
    elif method in ("finditer", "scanner"):
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)


def repeated(pattern, piece, end, size):
    """A hostile text of about this size; one that is a word of the pattern comes first, another last."""
    text = piece * (size // len(piece))
    text = end + text if len(end) > 1 else text + end
    return text.encode("utf-8", "ignore") if isinstance(pattern.pattern, bytes) else text


def steepest(pattern, methods):
    """The piece that makes a pattern superlinear, or None."""
    for method, (piece, end) in itertools.product(sorted(methods), hostile_texts(pattern)):
        for size in SIZES:
            texts = [repeated(pattern, piece, end, more) for more in (size, 2 * size)]
            if seconds(pattern, method, texts[0]) < QUICK_SECONDS:
                continue
            short, long = (min(seconds(pattern, method, text) for _ in range(3)) for text in texts)
            if short >= QUICK_SECONDS and long > STEEPEST * short:
                longest = min(seconds(pattern, method, repeated(pattern, piece, end, 4 * size)) for _ in range(2))
                if longest > STEEPEST * long:
                    return method, piece, end, size, short
            break
    return None


ALL_TEXT = "\n".join(path.read_text() for path in sources())

# Patterns that are not linear, and the longest text that the code gives them.
BOUNDED = {
    "beam_pipelines/extract/bylines._FROM_DIGIT": 200,
    "beam_pipelines/extract/bylines._NAME_CASE": 100,
    "beam_pipelines/extract/responses._COMMA": 1_000,
    "beam_pipelines/extract/page._ITEM_NAME": 20,
}
MOST_SECONDS = 0.25  # of a pattern on a text of its bound


def test_no_pattern_takes_time_that_grows_faster_than_its_text():
    found, steep = 0, {}
    for path in sources():
        for name, pattern, methods in patterns_of(path):
            found += 1
            if name in BOUNDED:
                worst = [repeated(pattern, piece, end, BOUNDED[name]) for piece, end in hostile_texts(pattern)]
                if any(seconds(pattern, method, text) > MOST_SECONDS for method in methods for text in worst):
                    steep[name] = "its bound"
            elif case := steepest(pattern, methods):
                steep[name] = case
    assert found > 200
    assert not steep


@pytest.mark.parametrize("pattern", [r"\s+$", r"\w+:", r"[.!?]+\s"])
def test_the_measure_sees_a_steep_pattern(pattern):
    assert steepest(re.compile(pattern), {"search"})


TEXTS = {
    "dots": "." * 100_000,
    "initials": "A. " * 30_000,
    "open brackets": "(" * 100_000,
    "one word": "a" * 1_000_000,
    "spaces": "a" + " " * 100_000 + "b",
    "days": "1 " * 50_000,
    "capitals": "Aa " * 30_000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_functions_that_read_text_end_soon_on_hostile_texts(name):
    text, started = TEXTS[name], time.process_time()
    split_text(text)
    count_sentences(text, 10**9)
    count_words(text)
    stated_days(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("size", [99_999_999, 300_000])
def test_records_of_a_warc_that_state_false_lengths_take_linear_time(size):
    """Each of them was read to the end of the file: 400 kB took a minute."""
    raw, started = b"WARC/1.0\r\nContent-Length: %d\r\n\r\n" % size * 10_000, time.process_time()
    assert sum(1 for _ in read_frames(io.BytesIO(raw))) == 10_000
    assert time.process_time() - started < 15
