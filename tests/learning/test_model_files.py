"""The description of a model in its folder: which other model is refused, and the architecture as gin."""

import dataclasses
from pathlib import Path

import gin
import pytest
from newsembed.errors import InputError
from newsembed.formats.model_folder import ModelFolder
from newsembed.formats.vocabulary import read_vocabulary
from newsembed.learning.model_files import architecture_gin, check_same_model, write_model_files
from newsembed.models.encoders import ContextConfig, HybridConfig, config_from_dict
from newsembed.models.huggingface import encoder_config
from newsembed.training.gin_config import load_gin
from reference_encoders import CONFIGS
from toy_architecture import MeanConfig
from toy_corpus import toy_config, write_vocabulary


@pytest.fixture
def folder(tmp_path):
    """A folder of the toy model, and its vocabulary."""
    vocabulary = read_vocabulary(write_vocabulary(tmp_path / "words.txt"))
    write_model_files(str(tmp_path), toy_config(), vocabulary, text_length=12)
    return str(tmp_path), vocabulary


def test_what_is_written_describes_the_model(folder):
    description = ModelFolder(folder[0]).read_description()
    assert config_from_dict(description.encoder, description.kind, path="") == toy_config()
    assert description.text_length == 12
    assert description.vocabulary_sha256 == folder[1].sha256
    assert Path(folder[0], "vocab.txt").read_bytes() == folder[1].content


def test_how_a_model_is_run_is_no_other_model(folder):
    """A checkpoint trained with scan and recomputation continues without them, and the reverse."""
    path, vocabulary = folder
    check_same_model(path, toy_config(scan_layers=True, remat="full"), vocabulary)
    check_same_model(path, toy_config(attention="xla"), vocabulary)


def test_another_model_is_refused_with_what_differs(folder):
    path, vocabulary = folder
    with pytest.raises(InputError, match="layer_norm_epsilon: the checkpoint's model has 1e-12, this run 1e-05"):
        check_same_model(path, toy_config(layer_norm_epsilon=1e-5), vocabulary)
    with pytest.raises(InputError, match="kind: .*model is a news architecture, this run's a toy_mean one"):
        check_same_model(path, MeanConfig(30), vocabulary)
    with pytest.raises(InputError, match="vocabulary_sha256: the checkpoint was trained with another vocabulary"):
        check_same_model(path, toy_config(), dataclasses.replace(vocabulary, content=b"[PAD]\n"))


def test_a_folder_without_a_description_passes(tmp_path, folder):
    check_same_model(str(tmp_path / "none"), toy_config(num_layers=3), folder[1])


@pytest.mark.parametrize(
    "config",
    [
        encoder_config(CONFIGS["bert"]),
        toy_config(norm="post", pooling="weighted", lead_length=7, dropout_rate=0.25),
        ContextConfig(30, hidden_size=8, num_heads=1, embedding_size=6, pooling="weighted", lead_length=5),
        HybridConfig(30, hidden_size=8, num_heads=2, num_layers=1, embedding_size=12, lexical_size=4, context_length=9),
    ],
    ids=["imported", "news", "context", "hybrid"],
)
@pytest.mark.parametrize("run", ["train_small", "pretrain_small", "weak_supervision_paper", "pretrain_paper"])
def test_the_architecture_as_gin_makes_the_same_architecture_after_a_run_file(tmp_path, config, run):
    (tmp_path / "shape.gin").write_text(architecture_gin(config))
    names = ["MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH"]
    load_gin([f"runs/{run}.gin", str(tmp_path / "shape.gin")], [f'{name} = "x"' for name in names])
    made = gin.get_configurable("ModelOptions")().architecture(vocab_size=config.vocab_size)
    assert made == dataclasses.replace(config, dtype=made.dtype)
