"""A news encoder with windows and a global [CLS]: saved, loaded and exported, with the same vectors each time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from newsembed.formats.model_folder import ModelDescription, ModelFolder
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.models.encoders.news import EncoderConfig
from newsembed.serving.encoder import load_encoder
from newsembed.serving.export import export_saved_model
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.tasks.vocabulary import Vocabulary

PIECES = [*SPECIAL_TOKENS, "storm", "coast", "wind", "vote", "."]
CONFIG = EncoderConfig(
    vocab_size=len(PIECES),
    hidden_size=16,
    num_layers=2,
    num_heads=2,
    mlp_size=16,
    max_length=40,
    embedding_size=8,
    num_topics=2,
    local_distance=2,
    global_every=0,
    global_tokens=1,
)
TITLES, BODIES = ["Storm", "", "vote"], ["coast . wind . " * 7 + "vote", "vote", "coast " * 99]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("long"))
    vocabulary = Vocabulary(PIECES)
    description = ModelDescription(CONFIG.to_dict(), vocabulary.digest, 40, CONFIG.kind)
    ModelFolder(path).write_description(description, "".join(f"{piece}\n" for piece in PIECES).encode())
    params = nn.unbox(jax.jit(CONFIG.module().init)(jax.random.key(0), np.ones((1, 4), np.int32)))["params"]
    params = jax.tree.map(lambda array: np.asarray(array * 4 if array.ndim > 1 else array), params)
    ModelFolder(path).write_import(params, "", {})
    return path


def test_the_saved_model_equals_the_folder_and_its_window_matters(folder, tmp_path):
    encoder = load_encoder(folder)
    assert encoder.model.config == CONFIG
    vectors = encoder.encode(TITLES, BODIES)
    found = Vocabulary(PIECES).encode_documents(TITLES, BODIES, 40)
    rows = np.stack([np.pad(row, (0, 40 - len(row))) for row in found]).astype(np.int32)
    params = {"params": jax.tree.map(jnp.asarray, encoder.model.params)}

    def embed(config):
        return np.asarray(jax.jit(lambda tokens: config.module().apply(params, tokens, method="embed"))(rows))

    np.testing.assert_allclose(vectors, embed(CONFIG), atol=1e-5)
    whole = dataclasses.replace(CONFIG, local_distance=0, global_every=1, global_tokens=0)
    assert np.abs(embed(whole)[0] - vectors[0]).max() > 1e-4  # ten times the tolerance
    export_saved_model(folder, str(tmp_path / "saved"), platforms=("cpu",))
    np.testing.assert_allclose(SavedModelEncoder(str(tmp_path / "saved")).encode(TITLES, BODIES), vectors, atol=1e-5)
