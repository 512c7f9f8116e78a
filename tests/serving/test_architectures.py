"""An architecture that no file of the product knows: loaded, served, exported; rejected if it lacks a capability."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.model_folder import ModelDescription, ModelFolder
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.serving.encoder import fresh_encoder, load_encoder
from newsembed.serving.export import export_huggingface, export_safetensors, export_saved_model
from newsembed.serving.probe import probe
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.tasks.vocabulary import Vocabulary

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from toy_architecture import MeanConfig, embedded

PIECES = [*SPECIAL_TOKENS, "storm", "coast", "wind", "vote", ".", "s", "##t"]
TITLES, BODIES = ["Storm", "", "vote", "storm"], ["coast. wind.", "vote", "", "coast " * 99]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("toy"))
    vocabulary, config = Vocabulary(PIECES), MeanConfig(len(PIECES))
    description = ModelDescription(config.to_dict(), vocabulary.digest, 20, config.kind)
    ModelFolder(path).write_description(description, "".join(f"{piece}\n" for piece in PIECES).encode())
    table = np.random.default_rng(0).normal(size=(len(PIECES), 8)).astype(np.float32)
    ModelFolder(path).write_import({"table": table}, "", {})
    return path


def test_it_is_loaded_by_the_kind_in_its_folder(folder):
    encoder = load_encoder(folder)
    assert encoder.model.config == MeanConfig(len(PIECES))
    rows = Vocabulary(PIECES).encode_documents(TITLES, BODIES, 20)
    expected = embedded(encoder.model.params["table"], rows)
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), expected, atol=1e-5)
    assert fresh_encoder(folder).digest != encoder.digest


def test_it_is_exported_and_read_again(folder, tmp_path):
    encoder = load_encoder(folder)
    export_safetensors(folder, str(tmp_path / "weights"))
    again = load_encoder(str(tmp_path / "weights"))
    assert again.digest == encoder.digest
    np.testing.assert_array_equal(again.encode(TITLES, BODIES), encoder.encode(TITLES, BODIES))
    export_saved_model(folder, str(tmp_path / "saved"), platforms=("cpu",))
    saved = SavedModelEncoder(str(tmp_path / "saved"))
    assert (saved.facts["kind"], saved.facts["encoder"]) == ("toy_mean", encoder.model.config.to_dict())
    np.testing.assert_allclose(saved.encode(TITLES, BODIES), encoder.encode(TITLES, BODIES), atol=1e-5)


def test_what_it_cannot_do_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="the view of attention needs attention, sequence, and this toy_mean"):
        probe(load_encoder(folder), TITLES, BODIES)
    with pytest.raises(
        InputError, match="the Hugging Face export needs hugging_face[\\s\\S]*savedmodel or safetensors"
    ):
        export_huggingface(folder, str(tmp_path / "huggingface"))
    assert not list(tmp_path.iterdir())


def test_a_kind_that_nobody_registered_is_refused(folder, tmp_path):
    for name in ("model.json", "vocab.txt"):
        (tmp_path / name).write_bytes(Path(folder, name).read_bytes())
    description = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(description | {"kind": "unheard_of"}))
    message = (
        r"model\.json: kind: got the architecture 'unheard_of', expected one of .*hybrid, .*news, .*\n.*--import MODULE"
    )
    with pytest.raises(InputError, match=message):
        load_encoder(str(tmp_path))
