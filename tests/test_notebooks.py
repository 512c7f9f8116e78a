"""The notebooks of the documentation run, and print what is stored in them where it does not depend on the machine."""

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
STABLE = "stable"  # a tag of cells that print the same on every machine


def printed(cell):
    return "".join("".join(output["text"]) for output in cell.get("outputs", []) if output.get("name") == "stdout")


def kinds(cell):
    """The kinds of what a cell shows, without what libraries log."""
    found = {kind for output in cell["outputs"] for kind in output.get("data", {})}
    return found | {output["name"] for output in cell["outputs"] if "name" in output} - {"stderr"}


def test_there_is_a_notebook_with_its_output():
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        assert all(
            cell["outputs"] for cell in cells if cell["cell_type"] == "code" and "print(" in "".join(cell["source"])
        )
        assert path.stat().st_size < 200_000


@pytest.mark.long  # `make attack`
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_is_stored(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="pip install 'newsembed[dev]'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="pip install 'newsembed[dev]'")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(one for one in (os.environ.get("PYTHONPATH"), *sys.path) if one))
    monkeypatch.setenv("NO_COLOR", "1")
    stored = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        run, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    for before, after in zip(stored.cells, run.cells, strict=True):
        if before.cell_type == "code":
            assert kinds(before) == kinds(after), before.source
            if STABLE in before.metadata.get("tags", []):
                assert printed(before) == printed(after), before.source
