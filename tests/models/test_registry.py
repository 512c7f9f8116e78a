"""Architectures are found by kind, and refused by name where a capability is missing."""

import dataclasses

import pytest
from newsembed.errors import InputError
from newsembed.models.encoders import (
    KINDS,
    Architecture,
    Capability,
    EncoderConfig,
    config_from_dict,
    named_kind,
    register,
    require,
)
from toy_architecture import MeanConfig

SMALL = EncoderConfig(vocab_size=9, hidden_size=4, num_heads=2, mlp_size=4, num_layers=1)


@pytest.mark.parametrize("config", [SMALL, MeanConfig(9)])
def test_a_configuration_is_read_as_written(config):
    assert isinstance(config, Architecture)
    assert config_from_dict(config.to_dict(), named_kind(config)) == config


def test_a_folder_without_kind_is_the_news_encoder():
    assert named_kind(SMALL) is None
    assert named_kind(MeanConfig(9)) == "toy_mean"
    assert config_from_dict(SMALL.to_dict()) == SMALL


def test_an_unknown_kind_names_the_known_ones_and_the_remedy():
    known = ", ".join(sorted(KINDS))
    message = rf"model\.json: kind: got the architecture 'nebula', expected one of {known}\n.*--import MODULE"
    with pytest.raises(InputError, match=message):
        config_from_dict({}, "nebula", path="model.json")
    with pytest.raises(InputError, match=r"model\.json: no model description: .*unknown keys nebula"):
        config_from_dict({"vocab_size": 9, "nebula": 1}, path="model.json")
    with pytest.raises(InputError, match="no model description: .*nebula"):
        config_from_dict({"nebula": 1}, "toy_mean")


def test_a_kind_has_one_class():
    assert register(MeanConfig) is MeanConfig
    other = dataclasses.make_dataclass("Other", [], frozen=True, namespace={"kind": "toy_mean"})
    with pytest.raises(ValueError, match="'toy_mean' is registered twice"):
        register(other)
    assert KINDS["toy_mean"] is MeanConfig


def test_missing_capabilities_are_named():
    require(SMALL, Capability.SEQUENCE, Capability.TOPICS, by="it")
    require(MeanConfig(9), by="it")
    message = (
        "MeanConfig: topics needs topics, sequence, and this toy_mean architecture offers document embeddings only"
    )
    with pytest.raises(InputError, match=message):
        require(MeanConfig(9), Capability.TOPICS, Capability.SEQUENCE, by="topics")


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"pooling": "cls"}, {"piece_weights", "latent_semantics"}),
        ({"pooling": "weighted"}, {"latent_semantics"}),
        ({"pooling": "weighted", "embedding_init": "t5"}, set()),
    ],
)
def test_the_news_encoder_says_what_it_can_do(changes, missing):
    config = dataclasses.replace(SMALL, **changes)
    of_other_kinds = {"reconstruction", "translation", "word_vectors", "bilingual", "parts", "static", "labels"}
    assert set(Capability) - config.capabilities == missing | of_other_kinds
