"""Defaults that a paper states are the paper's: NewsEmbed (KDD 2021), T-MDE (2021)."""

import importlib

import pytest
from newsembed.launch.cli import parser_of

COMMANDS = {
    "clean": {"min_words": 100, "require_byline_date": True},  # NewsEmbed, 2.1.1
    "pack": {"max_length": 512},  # NewsEmbed, A
    "vocabulary": {"alpha": 0.7},  # NewsEmbed, B.2
    "triplets": {"max_positive_days": 1, "min_negative_days": 365},  # NewsEmbed, 2.2.1
    "neighbors": {"positive_days": 1, "negative_days": 365},
    "topics": {"max_topics": 600, "positive_ratio": 0.25},  # NewsEmbed, 2.2.2
    "examples": {"max_length": 512, "documents_per_example": 3},  # NewsEmbed, 3.2.4
}
CLASSES = {
    "learning.options.DataOptions": {"smoothing": 0.7},  # NewsEmbed, B.2
    "learning.objectives.contrastive.Contrastive": {"temperature": 0.05},  # NewsEmbed, B.1
    "models.transformer.TransformerConfig": {  # BERT-base
        "hidden_size": 768,
        "num_layers": 12,
        "num_heads": 12,
        "mlp_size": 3072,
        "max_length": 512,
        "dropout_rate": 0.1,
        "num_topics": 600,
    },
    "models.encoders.translator.TranslatorConfig": {  # T-MDE
        "hidden_size": 1024,
        "num_layers": 6,
        "num_heads": 16,
        "mlp_size": 4096,
        "decoder_layers": 1,
    },
    "models.encoders.laser.LaserConfig": {  # LASER as T-MDE's paper trains it
        "token_size": 512,
        "hidden_size": 512,
        "decoder_size": 2048,
        "language_size": 32,
    },
}


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_of_a_command(command):
    parser = parser_of(command)
    assert {name: parser.get_default(name) for name in COMMANDS[command]} == COMMANDS[command]


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_of_a_class(name):
    module, _, kind = name.rpartition(".")
    fields = getattr(importlib.import_module(f"newsembed.{module}"), kind).__dataclass_fields__
    assert {field: fields[field].default for field in CLASSES[name]} == CLASSES[name]
