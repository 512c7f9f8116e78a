"""The size of each package: its lines and tokens of code may only fall.

Lines and tokens are those of code, without docstrings, comments and blank lines; long lines do not lower tokens. A
number in LIMITS is lowered when a package shrinks, and raised only where an issue gives a budget for it.
"""

import ast
import collections
import io
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
SLACK = 0.03  # of a limit: a package that is smaller by more lowers it
LIMITS = {  # package: (lines, tokens)
    "tests": (43_198, 513_010),
    "beam_pipelines": (12_822, 146_349),
    "serving": (4_834, 54_721),
    "studies": (4_616, 52_062),
    "formats": (4_343, 45_197),
    "benchmarks": (3_499, 38_191),
    "models": (3_046, 35_175),
    "evaluation": (3_943, 47_070),
    "training": (2_276, 23_767),
    "launch": (2_325, 23_133),
    "newsroom": (1_610, 18_403),
    "learning": (1_597, 18_308),
    "tasks": (1_389, 14_209),
    "t5x_bridge": (799, 8_473),
    "updates": (869, 10_156),
    "root": (349, 2_310),
    "docs": (75, 754),
}
MOST_FILES = 331  # of the product


def docstring_lines(tree):
    """The numbers of the lines that docstrings take."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    texts = [body[0] for body in bodies if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)]
    return {
        line for text in texts if isinstance(text.value.value, str) for line in range(text.lineno, text.end_lineno + 1)
    }


def whole_strings(tokens):
    """The tokens with each f-string as one: Python 3.12 and newer have its parts."""
    depth = 0
    for token in tokens:
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_END":
            depth -= 1
        elif not depth:
            yield token
        depth += kind == "FSTRING_START"


def size(source):
    """(lines, tokens) of code."""
    left_out = docstring_lines(ast.parse(source))
    tokens = list(whole_strings(tokenize.generate_tokens(io.StringIO(source).readline)))
    counted = [token for token in tokens if token.type not in LAYOUT and token.start[0] not in left_out]
    lines = [line.strip() for number, line in enumerate(source.splitlines(), 1) if number not in left_out]
    return sum(bool(line) and not line.startswith("#") for line in lines), len(counted)


@pytest.fixture(scope="module")
def sizes():
    """Package -> Counter of files, lines and tokens of what git tracks; "root" holds the files beside the packages."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = collections.defaultdict(collections.Counter)
    for name in filter(lambda name: (ROOT / name).exists(), listed.split()):
        lines, tokens = size((ROOT / name).read_text(encoding="utf-8"))
        package = name.split("/")[0] if "/" in name else "root"
        found[package].update(files=1, lines=lines, tokens=tokens)
    return found


@pytest.mark.parametrize("package", LIMITS)
def test_a_package_is_no_larger_than_its_limit(sizes, package):
    lines, tokens = LIMITS[package]
    assert sizes[package]["lines"] <= lines, "make something smaller, or leave something out"
    assert sizes[package]["tokens"] <= tokens, "make something smaller, or leave something out"


@pytest.mark.parametrize("package", LIMITS)
def test_a_limit_follows_a_package_that_shrinks(sizes, package):
    lines, tokens = LIMITS[package]
    assert sizes[package]["lines"] >= lines * (1 - SLACK), "lower the limit"
    assert sizes[package]["tokens"] >= tokens * (1 - SLACK), "lower the limit"


def test_every_package_has_a_limit_and_the_product_few_files(sizes):
    assert set(sizes) == set(LIMITS)
    product = set(sizes) - {"tests", "benchmarks", "docs"}
    assert sum(sizes[package]["files"] for package in product) <= MOST_FILES


def test_lines_and_tokens_are_those_of_code():
    text = '"""Text\n\nof a module."""\n\n# A comment.\n\n'
    source = text + 'def double(n):\n    """Twice."""\n    return (\n        2 * n\n    )\n'
    assert size(source) == (4, 12)
    assert size(source.replace("(\n        2 * n\n    )", "2 * n")) == (2, 10)
