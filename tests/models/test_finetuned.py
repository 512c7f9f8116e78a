"""An encoder with a head: what each head reads, against NumPy, and its description."""

import dataclasses

import flax.linen as nn
import jax
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.models.encoders import (
    Architecture,
    Capability,
    ContextConfig,
    EncoderConfig,
    FinetunedConfig,
    HybridConfig,
    StarConfig,
    config_from_dict,
)

SHAPE = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "mlp_size": 8, "max_length": 16, "embedding_size": 6}
ENCODER = EncoderConfig(20, num_topics=1, dropout_rate=0.0, **SHAPE)
TOKENS = np.array([[2, 7, 3, 9, 3, 0], [2, 8, 8, 3, 0, 0]], np.int32)


def finetuned(head, outputs=3, **changes):
    return FinetunedConfig(20, ENCODER, head, outputs, **{"dropout_rate": 0.0, **changes})


def applied(config, params, method="label_logits", **options):
    return np.asarray(config.module().apply({"params": params}, TOKENS, method=method, **options))


@pytest.mark.parametrize("head", ["pair", "word", "span"])
def test_a_head_reads_the_states_of_the_encoder(head):
    config = finetuned(head)
    params = drawn(config)
    states = np.asarray(ENCODER.module().apply({"params": params["encoder"]}, TOKENS, method="encode"))
    if head == "pair":
        transform = params["head_transform"]
        states = np.tanh(states[:, 0] @ transform["kernel"] + transform["bias"])
    expected = states @ params["head_output"]["kernel"] + params["head_output"]["bias"]
    np.testing.assert_allclose(applied(config, params), expected, atol=1e-5)
    embeddings = ENCODER.module().apply({"params": params["encoder"]}, TOKENS, method="embed")
    np.testing.assert_allclose(applied(config, params, "embed"), embeddings, atol=1e-6)


class Table(nn.Module):
    """The vector of each token, without dropout."""

    config: "TableConfig"

    def setup(self):
        self.table = self.param("table", nn.initializers.normal(1.0), (20, self.config.hidden_size))

    def __call__(self, tokens):
        return self.encode(tokens)

    def encode(self, tokens, *, deterministic=True):
        del deterministic
        return self.table[tokens]


@dataclasses.dataclass(frozen=True)
class TableConfig(Architecture):
    """An architecture without the option of dropout."""

    kind = "table"
    capabilities = frozenset({Capability.SEQUENCE})

    vocab_size: int
    hidden_size: int = 8
    max_length: int = 9
    embedding_size: int = 8

    def module(self):
        return Table(self)


@pytest.mark.parametrize(("head", "drops"), [("pair", True), ("word", True), ("span", False)])
def test_the_head_drops_what_it_reads_but_that_of_spans(head, drops):
    config = FinetunedConfig(20, TableConfig(20), head, 3, dropout_rate=0.5)
    params = drawn(config)
    given = {"deterministic": False, "rngs": {"dropout": jax.random.key(0)}}
    assert np.allclose(applied(config, params), applied(config, params, **given)) != drops


def test_the_description_comes_back_and_names_the_encoder_s_kind():
    config = finetuned("word", 7, dropout_rate=0.2)
    values = config.to_dict()
    assert values["architecture"]["kind"] == "news"
    assert "vocab_size" not in values["architecture"]
    assert config_from_dict(values, "finetuned") == config
    assert (config.max_length, config.embedding_size, config.dtype) == (16, 6, "float32")
    assert config.parts == {"encoder": dataclasses.replace(ENCODER, dropout_rate=0.2)}
    assert config.summary() == "1 layers x 8, a head of 7 outputs for each word"
    assert dataclasses.replace(config, dropout_rate=0.0).architecture.dropout_rate == 0.0
    assert config.portable().architecture.attention == "xla"


@pytest.mark.parametrize("kind", [HybridConfig, ContextConfig])
def test_other_architectures_with_states_of_tokens_are_encoders_too(kind):
    shape = (
        {"lexical_size": 2} if kind is HybridConfig else {"num_layers": 0, "pooling": "weighted", "context_heads": 2}
    )
    part = kind(20, num_topics=1, **{**SHAPE, **shape})
    config = FinetunedConfig(20, {**part.to_dict(), "kind": part.kind}, "word", 3)
    assert type(config.architecture) is kind
    assert Capability.LABELS in config.capabilities
    assert applied(config, drawn(config)).shape == (2, 6, 3)


def test_an_encoder_without_states_of_tokens_is_refused():
    with pytest.raises(ValueError, match=r"FinetunedConfig.architecture: got .*expected one with contextual vectors"):
        FinetunedConfig(20, StarConfig(20, hidden_size=8, num_heads=2))
    with pytest.raises(ValueError, match="head: got 'text', expected one of pair, word, span"):
        FinetunedConfig(20, ENCODER, "text")
