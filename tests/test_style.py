"""Limits that the linter does not check: the length of functions and files, and the number of parameters."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_FUNCTION = 60  # lines, from `def` to the end, with the docstring
MOST_PARAMETERS = 8
LONGEST_FILE = 500
LONG_FILES = {  # with the reason
}
SOURCES = sorted(
    path
    for path in ROOT.rglob("*.py")
    if not any(
        part.startswith(".") or part in {"build", "dist", "demo-output"} for part in path.relative_to(ROOT).parts
    )
)


def functions_over_limits(text, name, lines=LONGEST_FUNCTION, parameters=MOST_PARAMETERS):
    """ "NAME:LINE function: N lines" of every function with more lines, and the same of parameters but self and cls."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if length > lines:
                yield f"{name}:{node.lineno} {node.name}: {length} lines"
            found = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len([one for one in found if one.arg not in {"self", "cls"}])
            if count > parameters:
                yield f"{name}:{node.lineno} {node.name}: {count} parameters"


def test_functions_are_short_and_take_few_parameters():
    found = [line for path in SOURCES for line in functions_over_limits(path.read_text(), path.relative_to(ROOT))]
    assert not found, "\n".join(found)


def test_files_are_short_with_few_exceptions():
    long = {str(path.relative_to(ROOT)) for path in SOURCES if len(path.read_text().splitlines()) > LONGEST_FILE}
    assert long == set(LONG_FILES), "split the file, or remove it from LONG_FILES when it has become short"


def test_help_keeps_the_lines_of_its_commands():
    """A backslash at the end of a line joins it with the next, unless the docstring is raw or doubles it."""
    joined = re.compile(r'"""(?:(?!""").)*?[^\\\n]\\\n', re.DOTALL)
    assert [str(path.relative_to(ROOT)) for path in SOURCES if joined.match(path.read_text())] == []


def test_the_repository_has_no_links():
    """A link of a working copy leads to a place of one machine."""
    listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "\n120000 " not in listed


def test_the_limits_are_noticed():
    text = "def long(a, b, *, c):\n    a\n    return b\nclass C:\n    def many(self, d, e, /): ...\n"
    expected = ["m.py:1 long: 3 lines", "m.py:1 long: 3 parameters"]
    assert list(functions_over_limits(text, "m.py", 2, 2)) == expected
