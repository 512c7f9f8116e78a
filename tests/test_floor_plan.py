"""A package imports only from the packages that the table in docs/architecture.md allows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_ROW = re.compile(r"^\| `(\w+)/` \|.*\| ([^|]+) \|$", re.MULTILINE)


def floor_plan(text):
    """Package -> packages that it may import, from the table in docs/architecture.md."""
    rows = {
        name: set(re.findall(r"`(\w+)`", allowed)) if allowed != "all" else None for name, allowed in _ROW.findall(text)
    }
    return {name: set(rows) - {name} if allowed is None else allowed for name, allowed in rows.items()}


ALLOWED = floor_plan((ROOT / "docs" / "architecture.md").read_text())
FORBIDDEN_LIBRARIES = {
    "models": {"tensorflow", "tensorflow_text", "seqio", "apache_beam"},
    "learning": {"tensorflow", "tensorflow_text", "seqio", "apache_beam"},
    "training": {"tensorflow", "tensorflow_text", "seqio", "apache_beam", "t5x"},
    "beam_pipelines": {"jax", "flax", "optax", "orbax"},
}


def modules():
    return [path for room in ALLOWED for path in sorted((ROOT / room).rglob("*.py"))]


def arrows(path):
    """(imported module as parts of its path below the root, or a library's name) for every import in a file."""
    here = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1]
            module = tuple((node.module or "").split(".")) if node.module else ()
            for alias in node.names:
                yield "room", (*base, *module, alias.name)
        elif isinstance(node, ast.ImportFrom):
            yield "library", (node.module.split(".")[0],)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield "library", (alias.name.split(".")[0],)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_keep_to_the_floor_plan(path):
    room = path.relative_to(ROOT).parts[0]
    for kind, target in arrows(path):
        if kind == "library":
            assert target[0] != "newsembed", f"{path}: inside the package imports are relative"
            assert target[0] not in FORBIDDEN_LIBRARIES.get(room, set()), f"{path}: {room} never imports {target[0]}"
        elif target[0] in ALLOWED and target[0] != room:
            assert target[0] in ALLOWED[room], f"{path}: {room} may not import {'.'.join(target)}"


def test_an_arrow_that_climbs_is_seen(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    bad = folder / "bad.py"
    bad.write_text("from ..training import loop\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="models may not import training"):
        test_imports_keep_to_the_floor_plan(bad)


def test_no_python_under_gin_and_no_root_conftest():
    assert not list((ROOT / "gin").rglob("*.py")), "a module under gin/ shadows gin-config"
    assert not (ROOT / "conftest.py").exists()


def test_the_plan_names_no_package_that_does_not_exist():
    for name, allowed in ALLOWED.items():
        assert allowed <= set(ALLOWED), f"{name} may import {allowed - set(ALLOWED)}, which the table does not list"


def test_every_package_is_in_the_plan():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {".venv", "build"}
    assert packages == set(ALLOWED)
