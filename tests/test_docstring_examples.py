"""The examples in docstrings are correct. Modules without examples are not imported, so that this test is fast."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(("newsembed", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for package in ROOT.glob("*/__init__.py")
    for path in package.parent.rglob("*.py")
    if re.search(r"^\s*>>> ", path.read_text(), re.MULTILINE)
)


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0, "the output above shows the examples that differ"


def test_a_wrong_example_is_noticed(tmp_path, monkeypatch, capsys):
    (tmp_path / "wrong_example.py").write_text('"""\n>>> 1 + 1\n3\n"""\n')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AssertionError):
        test_docstring_examples("wrong_example")
    assert "Got:" in capsys.readouterr().out
