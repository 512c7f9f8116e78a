"""Values of config.json, and the correspondence of arrays with linear layers that are computed by hand."""

import dataclasses

import numpy as np
import pytest
from newsembed.models.huggingface import layouts
from newsembed.models.huggingface.configs import default_ids, encoder_config, huggingface_config
from newsembed.models.huggingface.families import FAMILIES
from newsembed.models.huggingface.family import SpecialIds, check_fields, written_activation
from newsembed.models.huggingface.interface import UnsupportedModelError
from newsembed.models.huggingface.values import activation, check_keys, integer, number, only
from newsembed.models.transformer import TransformerConfig

HIDDEN, HEADS, INNER, LENGTH = 6, 2, 5, 4
CONFIG = TransformerConfig(
    vocab_size=9, hidden_size=HIDDEN, num_layers=2, num_heads=HEADS, mlp_size=INNER, max_length=LENGTH
)
DRAW = np.random.default_rng(0)
TEXT = DRAW.normal(size=(3, HIDDEN))


def drawn(entry):
    return [DRAW.normal(size=shape) for shape in entry.shapes]


def both_ways(entry):
    """Random arrays of theirs and ours by name; what is written is what was read."""
    theirs = drawn(entry)
    ours = entry.read(*theirs)
    for written, array in zip(entry.write(*ours), theirs, strict=True):
        np.testing.assert_array_equal(written, array)
    return dict(zip(entry.theirs, theirs, strict=True)), dict(zip(entry.ours, ours, strict=True))


def test_a_linear_layer_computes_the_same():
    weight, bias = map(both_ways, layouts.linear("a", "b", HIDDEN, INNER))
    theirs = TEXT @ weight[0]["b.weight"].T + bias[0]["b.bias"]
    np.testing.assert_allclose(TEXT @ weight[1]["a.kernel"] + bias[1]["a.bias"], theirs)
    assert [entry.ours for entry in layouts.linear("a", "b", HIDDEN, INNER, biases=False)] == [("a.kernel",)]


def test_a_norm_has_the_same_numbers():
    scale, bias = map(both_ways, layouts.norm("a", "b", HIDDEN))
    np.testing.assert_array_equal(scale[1]["a.scale"], scale[0]["b.weight"])
    np.testing.assert_array_equal(bias[1]["a.bias"], bias[0]["b.bias"])
    assert [entry.theirs for entry in layouts.norm("a", "b", HIDDEN, biases=False)] == [("b.weight",)]


@pytest.mark.parametrize("names", [("q", "k", "v"), ("all",)])
def test_query_key_and_value_of_each_head_are_the_same(names):
    kernel, bias = map(both_ways, layouts.query_key_value(CONFIG, "a", names))
    weights = np.concatenate([kernel[0][f"{name}.weight"] for name in names])  # [3 H, H]
    biases = np.concatenate([bias[0][f"{name}.bias"] for name in names])
    theirs = (TEXT @ weights.T + biases).reshape(3, 3, HEADS, HIDDEN // HEADS)  # text, one of three, head
    ours = np.einsum("th,hknd->tknd", TEXT, kernel[1]["a.query_key_value_kernel"])
    np.testing.assert_allclose(ours + bias[1]["a.query_key_value_bias"], theirs)


def test_the_output_of_the_heads_is_the_same():
    kernel, bias = map(both_ways, layouts.attention_output(CONFIG, "a", "b"))
    heads = TEXT.reshape(3, HEADS, HIDDEN // HEADS)
    ours = np.einsum("tnd,ndh->th", heads, kernel[1]["a.output_kernel"]) + bias[1]["a.output_bias"]
    np.testing.assert_allclose(ours, TEXT @ kernel[0]["b.weight"].T + bias[0]["b.bias"])


def test_the_activated_half_of_a_gated_layer_is_first():
    kernel, bias = map(both_ways, layouts.gated(CONFIG, "a", "b"))
    theirs = TEXT @ kernel[0]["b.weight"].T + bias[0]["b.bias"]
    ours = [TEXT @ kernel[1][f"a.{half}.kernel"] + bias[1][f"a.{half}.bias"] for half in ("mlp_in", "mlp_gate")]
    np.testing.assert_allclose(np.concatenate(ours, axis=1), theirs)


def test_positions_begin_after_the_offset_and_have_the_first_type_added():
    entry = layouts.positions(CONFIG, offset=2, types=2)
    places, types = drawn(entry)
    assert (places.shape, types.shape) == ((LENGTH + 2, HIDDEN), (2, HIDDEN))
    (ours,) = entry.read(places, types)
    np.testing.assert_array_equal(ours, places[2:] + types[0])
    written, no_types = entry.write(ours)
    np.testing.assert_array_equal(written, np.concatenate([np.zeros((2, HIDDEN)), ours]))
    np.testing.assert_array_equal(no_types, np.zeros((2, HIDDEN)))
    plain = layouts.positions(CONFIG)
    assert plain.theirs == ("embeddings.position_embeddings.weight",)
    both_ways(plain)


def test_each_layer_has_its_own_names_and_sizes():
    names = layouts.LayerNames("q", "k", "v", "o", "n1", "in", "out", "n2")
    entries = list(layouts.layers(CONFIG, "encoder", names))
    theirs = {name: shape for one in entries for name, shape in zip(one.theirs, one.shapes, strict=True)}
    assert len(theirs) == 2 * 16
    assert theirs["encoder.1.in.weight"] == (INNER, HIDDEN)
    assert theirs["encoder.0.out.weight"] == (HIDDEN, INNER)
    assert {name.split(".")[1] for name in theirs} == {"0", "1"}
    places = {one.ours[0]: one.theirs[0] for one in entries}
    assert places["layers_1.mlp_out.kernel"] == "encoder.1.out.weight"
    assert places["layers_0.attention_norm.scale"] == "encoder.0.n1.weight"
    assert places["layers_0.mlp_norm.scale"] == "encoder.0.n2.weight"
    head = [one.theirs[0] for one in layouts.masked_lm_head(CONFIG, "dense", "last")]
    assert head == ["dense.weight", "dense.bias", "last.weight", "last.bias"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("gelu", "gelu"), ("gelu_python", "gelu"), ("gelu_new", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh")],
)
def test_activations_have_one_meaning(theirs, ours):
    assert activation({"act": theirs}, "act") == ours
    assert activation({}, "act") == "gelu"
    config = dataclasses.replace(CONFIG, activation=ours)
    assert activation({"act": written_activation(config)}, "act") == ours


@pytest.mark.parametrize("wrong", [True, None, "3", 2.5])
def test_an_integer_is_nothing_else(wrong):
    assert integer({"n": 3}, "n") == 3
    assert integer({}, "n", 4) == 4
    with pytest.raises(UnsupportedModelError, match=r"^n: got"):
        integer({"n": wrong}, "n", 4)
    with pytest.raises(UnsupportedModelError, match="got None"):
        integer({}, "n")


@pytest.mark.parametrize("wrong", [True, None, "3"])
def test_a_number_is_an_integer_or_a_float(wrong):
    assert [number({"n": value}, "n", 1.0) for value in (3, 2.5)] == [3.0, 2.5]
    assert isinstance(number({"n": 3}, "n", 1.0), float)
    assert number({}, "n", 1.5) == 1.5
    with pytest.raises(UnsupportedModelError, match=r"^n: got"):
        number({"n": wrong}, "n", 1.0)


def test_only_one_value_or_its_default_is_taken():
    only({"n": 1}, "n", 1, default=2)
    only({}, "n", 1, default=1)
    with pytest.raises(UnsupportedModelError, match="n: got 2, expected 1"):
        only({"n": 2}, "n", 1, default=1)


def test_keys_that_nothing_reads_are_refused_unless_they_are_empty():
    check_keys({"known": 1, "use_cache": True, "label2id": {"a": 0}, "pruned_heads": {}, "extra": None}, ["known"])
    with pytest.raises(UnsupportedModelError, match="^a_key: got 2"):
        check_keys({"b_key": 1, "a_key": 2, "known": 1}, ["known"])
    with pytest.raises(UnsupportedModelError, match="^is_decoder: got True"):
        check_keys({"is_decoder": True}, ["is_decoder"])


def test_the_first_field_that_another_class_would_need_is_named():
    check_fields(CONFIG, "bert", {"num_heads": HEADS})
    with pytest.raises(UnsupportedModelError, match=r"^EncoderConfig.num_layers: got 2 .* expected 3"):
        check_fields(CONFIG, "bert", {"num_heads": HEADS, "num_layers": 3, "mlp_size": 1})


def test_the_padding_token_is_where_the_code_of_the_family_has_it():
    swapped = [name for name, family in FAMILIES.items() if family.pad_id == 1]
    assert swapped
    for name, family in FAMILIES.items():
        expected = SpecialIds(pad=1, unknown=0) if name in swapped else SpecialIds()
        assert default_ids(family) == expected
    assert SpecialIds() == (0, 1, 2, 3, 4)


def test_the_sizes_of_a_config_are_read_and_written():
    written = huggingface_config(CONFIG)
    expected = {
        "vocab_size": 9,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": LENGTH,
        "pad_token_id": 0,
    }
    assert {name: written[name] for name in expected} == expected
    read = encoder_config(written)
    assert (read.embedding_size, read.num_topics, read.pooling) == (HIDDEN, 600, "cls")
    read = encoder_config(written, embedding_size=7, num_topics=8, pooling="mean")
    assert (read.embedding_size, read.num_topics, read.pooling) == (7, 8, "mean")
