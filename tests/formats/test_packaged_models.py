"""Models in packages are found without running the package, and only with the weights that are expected."""

import dataclasses
import hashlib
import re
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.formats.huggingface import packaged

WEIGHTS = b"weights"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package whose code must not run, and its entry."""
    folder = tmp_path / "toy_packaged_model" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('the package was run')\n")
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(tmp_path)
    entry = dataclasses.replace(
        packaged.PACKAGED_MODELS["minilm"], module="toy_packaged_model", sha256=hashlib.sha256(WEIGHTS).hexdigest()
    )
    monkeypatch.setattr(packaged, "PACKAGED_MODELS", {"toy": entry})
    return folder


def test_the_folder_of_an_installed_package_is_found(package):
    assert Path(packaged.packaged_folder("toy")) == package


def test_other_weights_are_refused(package):
    (package / "model.safetensors").write_bytes(b"others")
    with pytest.raises(InputError, match=r"model\.safetensors: --from: its SHA-256 is \w+…, expected \w+…"):
        packaged.packaged_folder("toy")
    (package / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        packaged.packaged_folder("toy")


def test_a_missing_package_is_named_with_its_extra(package, monkeypatch):
    absent = dataclasses.replace(packaged.PACKAGED_MODELS["toy"], module="no_such_package")
    monkeypatch.setattr(packaged, "PACKAGED_MODELS", {"toy": absent})
    with pytest.raises(InputError, match=r"the package of the model toy is not installed[\s\S]*newsembed\[toy\]"):
        packaged.packaged_folder("toy")


def test_every_packaged_model_has_its_extra():
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    for name, model in packaged.PACKAGED_MODELS.items():
        assert re.search(rf'"{name}": \["{re.escape(model.requirement)}"\]', setup)
