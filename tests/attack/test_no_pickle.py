"""No file is read by a module that can run code from it: what is loaded may come from others."""

import ast
from pathlib import Path

import newsembed

ROOT = Path(newsembed.__file__).parent
RUNS_CODE = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
OURS = [
    path
    for path in ROOT.rglob("*.py")
    if not {"tests", "benchmarks", ".venv", "build"} & {*path.relative_to(ROOT).parts}
]


def of_pickle(path):
    """The lines of a module that import such a module, or allow arrays of objects."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""] if not node.level else []
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            names = [] if isinstance(node.value, ast.Constant) and node.value.value is False else ["pickle"]
        else:
            continue
        if RUNS_CODE & {name.partition(".")[0] for name in names}:
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_the_package_reads_nothing_by_pickle(tmp_path, monkeypatch):
    assert len(OURS) > 300
    assert [place for path in OURS for place in of_pickle(path)] == []
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.py").write_text("import os, pickle\nfrom joblib import load\nnp.load(p, allow_pickle=True)\n")
    assert list(of_pickle(tmp_path / "a.py")) == ["a.py:1", "a.py:2", "a.py:3"]
