"""Folders of Hugging Face: in one file, in shards, in bfloat16, with modules; as a start of training; broken ones."""

import dataclasses
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.model_folder import ModelFolder
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.models.encoders.news import NewsEncoder
from newsembed.training.gin_config import run_training
from newsembed.training.huggingface import initial_params, read_huggingface
from reference_encoders import CONFIGS, SPECIALS, forward, random_arrays, write_folder
from toy_architecture import MeanConfig
from toy_corpus import LENGTHS, VOCAB_SIZE, tiny_bindings, write_corpus


def test_a_folder_becomes_a_config_parameters_and_a_vocabulary(tmp_path):
    folder = write_folder(tmp_path / "bert", "bert")
    assert ModelFolder(folder).is_huggingface
    model = read_huggingface(folder, num_topics=7)
    assert (model.config.num_topics, model.config.embedding_size, model.config.pooling) == (7, 16, "cls")
    assert list(model.vocabulary.pieces[:7]) == [*SPECIAL_TOKENS, "a", "b"]
    table = random_arrays(CONFIGS["bert"])["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(model.params["token_embedding"][:5], table[list(SPECIALS["bert"])])
    assert model.vocabulary.size == 30
    rows = np.array([[11, 5, 9, 12, 0]])
    hidden, _ = forward(CONFIGS["bert"], random_arrays(CONFIGS["bert"]), rows)
    tokens = np.argsort(model.order)[rows].astype(np.int32)
    embedding = jax.jit(lambda params: NewsEncoder(model.config).apply({"params": params}, tokens, method="embed"))(
        model.with_heads()
    )
    # The plain head hands [CLS] on.
    np.testing.assert_allclose(embedding[0], hidden[0, 0] / np.linalg.norm(hidden[0, 0]), atol=1e-4)


def test_shards_and_bfloat16_are_read(tmp_path):
    whole = read_huggingface(write_folder(tmp_path / "whole", "bert"))
    sharded = read_huggingface(write_folder(tmp_path / "sharded", "bert", shards=3))
    jax.tree.map(np.testing.assert_array_equal, sharded.params, whole.params)
    arrays = {name: array.astype(ml_dtypes.bfloat16) for name, array in random_arrays(CONFIGS["bert"]).items()}
    halved = read_huggingface(write_folder(tmp_path / "half", "bert", arrays=arrays))
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-2, atol=2e-2), halved.params, whole.params
    )
    assert {array.dtype for array in jax.tree.leaves(halved.params)} == {np.dtype(np.float32)}


def test_the_modules_of_sentence_transformers_become_the_head():
    model = read_huggingface(str(Path(__file__).parents[1] / "models/transformers/sentence-labse"))
    assert (model.config.pooling, model.config.embedding_size) == ("cls", 8)
    assert model.params["embedding_head"]["kernel"].shape == (16, 8)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json: not valid JSON"),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            r"model\.safetensors: cannot be read: No such file[\s\S]*safe_serialization",
        ),
        (lambda folder: (folder / "vocab.txt").unlink(), r"tokenizer\.json: there is no such file, and no vocab\.txt"),
        (
            lambda folder: (folder / "vocab.txt").write_text(
                (folder / "vocab.txt").read_text().replace("[MASK]", "[MASQUE]")
            ),
            r"vocab\.txt: the special tokens \[MASK\] are not in it",
        ),
    ],
)
def test_broken_folders_are_named(tmp_path, break_it, message):
    folder = Path(write_folder(tmp_path / "bert", "bert"))
    break_it(folder)
    with pytest.raises(InputError, match=message):
        read_huggingface(str(folder))


def created(config):
    """Parameters of a run, at random."""
    shapes = jax.eval_shape(NewsEncoder(config).init, jax.random.key(0), np.ones((1, 2), np.int32))["params"]
    shapes = jax.tree.map(lambda box: box.value, shapes, is_leaf=lambda leaf: hasattr(leaf, "names"))
    return jax.tree.map(lambda spec: jax.numpy.full(spec.shape, 0.5), shapes)


def test_a_run_starts_from_the_body_and_keeps_its_own_heads(tmp_path):
    folder = write_folder(tmp_path / "bert", "bert")
    model = read_huggingface(folder)
    config = dataclasses.replace(
        model.config, embedding_size=5, num_topics=3, pooling="mean", dropout_rate=0.0, scan_layers=True
    )
    params = initial_params(folder, config, model.vocabulary, created(config))
    assert params["embedding_head"]["kernel"].shape == (16, 5)
    assert float(params["topic_head"]["bias"][0]) == 0.5
    jax.tree.map(np.testing.assert_array_equal, params["layers_1"], model.params["layers_1"])
    with pytest.raises(InputError, match=r"EncoderConfig\.num_layers: the folder's model has 4, this run 5"):
        initial_params(folder, dataclasses.replace(config, num_layers=5), model.vocabulary, {})
    with pytest.raises(InputError, match="a start from a Hugging Face folder needs hugging_face, and this toy_mean"):
        initial_params(folder, MeanConfig(30), model.vocabulary, {})
    other = dataclasses.replace(model.vocabulary, content=b"[PAD]\n")
    with pytest.raises(InputError, match="VOCABULARY_PATH: .*is not this model's vocabulary"):
        initial_params(folder, config, other, {})


def test_training_starts_from_a_folder(tmp_path, monkeypatch):
    values = CONFIGS["bert"] | {"vocab_size": VOCAB_SIZE, "num_hidden_layers": 1}
    arrays = random_arrays(values)
    monkeypatch.setitem(CONFIGS, "bert", values)
    folder = tmp_path / "bert"
    write_folder(folder, "bert", arrays=arrays)
    pieces = [*(f"w{number}" for number in range(VOCAB_SIZE - 5)), *SPECIAL_TOKENS]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(read_huggingface(str(folder)).vocabulary.content)
    bindings = tiny_bindings(
        tmp_path / "model", write_corpus(tmp_path / "data"), str(vocabulary), TRAIN_STEPS=1, LEARNING_RATE=0.0,
        INITIAL_CHECKPOINT_PATH=str(folder),
        **{f"EncoderConfig.{name}": value for name, value in {
            "mlp_size": 24, "max_length": max(LENGTHS.values()), "num_layers": 1, "norm": "post",
            "embedding_init": "bert"}.items()},
    )  # fmt: skip
    result = run_training(["runs/train_demo.gin"], bindings)
    assert result.origin == f"parameters imported from {folder}"
