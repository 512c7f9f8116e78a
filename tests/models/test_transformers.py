"""Models of each family compute what torch computed of them (see make_transformers_fixtures.py), and go out again."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from newsembed.formats.huggingface import read_modules
from newsembed.formats.vocabulary import token_order
from newsembed.models.encoders.news import NewsEncoder
from newsembed.models.huggingface import (
    UnsupportedModelError,
    encoder_config,
    export_model,
    import_model,
    reorder_tokens,
)
from newsembed.models.huggingface.families import FAMILIES

ROOT = Path(__file__).parent / "transformers"
FAMILY_NAMES = tuple(FAMILIES)
SENTENCE_NAMES = ("sentence-labse", "sentence-e5", "sentence-mpnet", "sentence-max", "sentence-last")


@dataclasses.dataclass(frozen=True)
class PlainModules:
    """A folder without modules of sentence-transformers."""

    pooling: str = "cls"
    token_weights: None = None
    lead_length: int = 0
    sublinear: bool = False
    kernel: None = None
    bias: None = None
    activation: str = "identity"


def read(name):
    """The values of config.json, the arrays, the expected arrays, and the ids of the special tokens in our order."""
    folder = ROOT / name
    values = json.loads((folder / "config.json").read_text())
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in added}
    special = json.loads((folder / "special_tokens_map.json").read_text())
    contents = (special[f"{role}_token"] for role in ("pad", "unk", "cls", "sep", "mask"))
    specials = [ids[one if isinstance(one, str) else one["content"]] for one in contents]
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    return values, arrays, safetensors.numpy.load_file(folder / "expected.safetensors"), specials


def imported(name, modules=None, **options):
    """The architecture, parameters with heads, the expected arrays, our ids of the input, and the order of tokens."""
    values, arrays, expected, specials = read(name)
    config, params, heads, ignored = import_model(values, arrays, modules or PlainModules(), num_topics=3, **options)
    order = token_order(specials, config.vocab_size)
    tokens = np.argsort(order)[expected["input_ids"]].astype(np.int32)
    np.testing.assert_array_equal(tokens > 0, expected["attention_mask"] > 0)
    return config, {**heads, **reorder_tokens(params, order)}, expected, tokens, order, ignored


@pytest.mark.parametrize("name", SENTENCE_NAMES)
def test_embeddings_are_those_of_sentence_transformers(name):
    settings = json.loads((ROOT / name / "tokenizer_config.json").read_text())
    modules = read_modules(str(ROOT / name), settings)
    config, params, expected, tokens, *_ = imported(name, modules)
    assert config.pooling == {"labse": "cls", "max": "max", "last": "last"}.get(name.partition("-")[2], "mean")
    assert config.embedding_activation == ("tanh" if name == "sentence-labse" else "identity")
    embed = jax.jit(lambda params: NewsEncoder(config).apply({"params": params}, tokens, method="embed"))
    np.testing.assert_allclose(embed(params), expected["embeddings"], atol=1e-5)
    exported = export_model(config, params).modules  # the modules go out as they came in
    assert (exported["pooling"], exported.get("activation", "identity")) == (modules.pooling, modules.activation)
    assert ("kernel" in exported) == (modules.kernel is not None)
    for part in ("kernel", "bias") if modules.kernel is not None else ():
        np.testing.assert_array_equal(exported[part], getattr(modules, part))


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last"])
def test_packed_pieces_are_pooled_as_rows_of_their_own(pooling):
    config = dataclasses.replace(imported("bert")[0], pooling=pooling)
    hidden = np.random.default_rng(0).normal(size=(2, 9, 16)).astype(np.float32)
    segments = np.array([[1, 1, 1, 2, 2, 2, 2, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2, 3]], np.int32)
    tokens = np.where(segments > 0, 7, 0).astype(np.int32)

    def apply(method, *arguments):
        return np.asarray(NewsEncoder(config).apply({"params": imported("bert")[1]}, *arguments, method=method))

    pooled = apply("pool_pieces", hidden, tokens, segments)
    for row, number in ((0, 1), (0, 2), (1, 1), (1, 2), (1, 3)):
        places = np.flatnonzero(segments[row] == number)
        padded = np.zeros((1, 9, 16), np.float32)
        padded[0, : len(places)] = hidden[row, places]
        own = np.where(np.arange(9) < len(places), 7, 0)[None].astype(np.int32)
        alone = apply("pool", padded, own)[0]
        units = hidden[row, places]
        expected = {"cls": units[0], "mean": units.mean(0), "max": units.max(0), "last": units[-1]}[pooling]
        np.testing.assert_allclose(alone, expected, atol=1e-6)
        for place in places:
            np.testing.assert_allclose(pooled[row, place], expected, atol=1e-6)
    empty = apply("pool", hidden[:1], np.zeros((1, 9), np.int32))
    assert np.isfinite(empty).all()


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_hidden_states_and_logits_are_those_of_torch(name):
    config, params, expected, tokens, order, ignored = imported(name)
    assert ignored == ()
    encoder = NewsEncoder(config)

    @jax.jit
    def run(params):
        hidden = encoder.apply({"params": params}, jnp.asarray(tokens), method="encode")
        table, bias = encoder.apply({"params": params}, method="output_table")
        return hidden, encoder.apply({"params": params}, hidden[:, :3], method="mlm_states") @ table.T + bias

    hidden, logits = run(params)
    np.testing.assert_allclose(np.asarray(hidden)[tokens > 0], expected["hidden"], atol=1e-5)
    seen = tokens[:, :3] > 0
    np.testing.assert_allclose(
        np.asarray(logits)[seen], expected["logits"][seen][:, order], atol=1e-5 * np.abs(expected["logits"]).max()
    )


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_a_model_goes_out_as_it_came_in(name):
    values, arrays, *_ = read(name)
    config, params, _, _, order, _ = imported(name)
    exported = export_model(config, params, np.asarray(order))
    assert exported.values["model_type"] == values["model_type"]
    family = FAMILIES[values["model_type"]]
    assert exported.values["architectures"] == [family.architecture]
    # What is written has the same value where it was read; dropout of attention is not kept.
    changed = {key for key in exported.values if key in values and exported.values[key] != values[key]}
    assert changed <= {"architectures", "attention_probs_dropout_prob", "attention_dropout", "initializer_range"} | (
        {"hidden_act"} if name == "megatron-bert" else {"embedding_dropout"} if name == "modernbert" else set()
    )
    body = {key.removeprefix(family.prefix): array for key, array in arrays.items() if key.startswith(family.prefix)}
    written = {key: array for key, array in exported.arrays.items() if not key.startswith("pooler.")}
    assert set(written) == set(body)
    folded = ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight")
    for key, array in body.items():
        assert written[key].shape == array.shape, key
        if key not in folded:
            np.testing.assert_array_equal(written[key], array)
    # The folded arrays mean the same: the model reads back with the same parameters.
    found, again, *_ = import_model(exported.values, exported.arrays, PlainModules(), num_topics=3)
    assert dataclasses.asdict(found) == dataclasses.asdict(config)
    for key, array in reorder_tokens(again, order).items():
        jax.tree.map(np.testing.assert_array_equal, array, params[key])


def test_mpnet_keeps_its_padding_token_where_its_code_has_it():
    config, params, *_ = imported("mpnet")
    exported = export_model(config, params)
    assert exported.token_ids[:5].tolist() == [1, 0, 2, 3, 4]
    assert exported.values["pad_token_id"] == 1
    table = exported.arrays["embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(table[exported.token_ids], params["token_embedding"])
    with pytest.raises(UnsupportedModelError, match="pad_token_id: got 0, expected 1, as the code of MPNetModel"):
        export_model(config, params, np.arange(config.vocab_size))


def test_a_family_that_cannot_hold_the_encoder_is_refused():
    config, params, *_ = imported("distilbert")
    assert config.family == "distilbert"
    for changes, message in (
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon: got 1e-05 .* expected 1e-12"),
        ({"relative_buckets": 32}, "relative_buckets: got 32 .* expected 0"),
        ({"family": "gpt2"}, "EncoderConfig.family: got 'gpt2', expected one of bert, roberta"),
    ):
        with pytest.raises(UnsupportedModelError, match=message):
            export_model(dataclasses.replace(config, **changes), params)


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_keys_that_nothing_reads_are_refused_by_name(name):
    values, *_ = read(name)
    for changes, message in (
        ({"attention_type": "block_sparse"}, "attention_type: got 'block_sparse'; newsembed does not know this key"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads: got .* expected {}"),
    ):
        with pytest.raises(UnsupportedModelError, match=message):
            encoder_config(values | changes)
    assert encoder_config(values | {"unknown": None, "id2label": {"0": "a"}}) == encoder_config(values)


def test_the_observed_attention_of_mpnet_counts_its_bias():
    config, params, expected, tokens, *_ = imported("mpnet")
    row = tokens[1:2, :40]
    hidden, received = NewsEncoder(config).apply({"params": params}, row, method="encode_observed")
    np.testing.assert_allclose(hidden[0], expected["hidden"][150:190], atol=1e-5)
    flat = {**params, "relative_bias": np.zeros_like(params["relative_bias"])}
    _, without = NewsEncoder(config).apply({"params": flat}, row, method="encode_observed")
    np.testing.assert_allclose(received.sum(-1), 1, atol=1e-5)
    assert np.abs(received[0] - without[0]).max() > 0.01
