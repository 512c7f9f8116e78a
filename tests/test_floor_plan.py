"""The house's floor plan: no room imports from a floor above it, and every arrow is one that the plan allows."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "tasks": set(),
    "models": set(),
    "beam_pipelines": {"tasks"},
    "training": {"models", "tasks"},
    "evaluation": {"models", "tasks"},
    "serving": {"models", "tasks"},
    "launch": {"tasks", "models", "beam_pipelines", "training", "evaluation", "serving"},
}
# What beam_pipelines may use of tasks: the contract, the vocabulary and the user's error, nothing of the trainer's input.
TASKS_FOR_PIPELINES = {"features", "vocabulary", "errors"}
FORBIDDEN_LIBRARIES = {
    "models": {"tensorflow", "tensorflow_text", "seqio", "apache_beam"},
    "training": {"tensorflow", "tensorflow_text", "seqio", "apache_beam"},
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
            if room == "beam_pipelines":
                assert target[1] in TASKS_FOR_PIPELINES, f"{path}: beam_pipelines may not import {'.'.join(target)}"


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


def test_every_room_is_in_the_plan():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {".venv", "build"}
    assert rooms == set(ALLOWED)
