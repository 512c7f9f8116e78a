"""The defaults of all options are those on record."""

import dataclasses
import datetime

import option_defaults
import pytest
from newsembed.launch.cli import COMMANDS

# What papers state, copied from them and not from the code: NewsEmbed (KDD 2021), T-MDE (2021).
PUBLISHED = {
    "newsembed clean": {
        "--min_words": "100",  # NewsEmbed, 2.1.1
        "--require_author": "True",
        "--require_byline_date": "True",
    },
    "newsembed pack": {"--max_length": "512"},  # NewsEmbed, A
    "newsembed vocabulary": {"--alpha": "0.7"},  # NewsEmbed, B.2
    "newsembed triplets": {"--max_positive_days": "1", "--min_negative_days": "365"},  # NewsEmbed, 2.2.1
    "newsembed neighbors": {"--positive_days": "1", "--negative_days": "365"},
    "newsembed topics": {"--max_topics": "600", "--positive_ratio": "0.25"},  # NewsEmbed, 2.2.2
    "newsembed examples": {"--max_length": "512", "--documents_per_example": "3"},  # NewsEmbed, 3.2.4
    "learning/options.py": {"DataOptions.smoothing": "0.7"},  # NewsEmbed, B.2
    "learning/objectives/contrastive.py": {"Contrastive.temperature": "0.05"},  # NewsEmbed, B.1
    "models/transformer.py": {  # BERT-base
        "TransformerConfig.hidden_size": "768",
        "TransformerConfig.num_layers": "12",
        "TransformerConfig.num_heads": "12",
        "TransformerConfig.mlp_size": "3072",
        "TransformerConfig.max_length": "512",
        "TransformerConfig.dropout_rate": "0.1",
        "TransformerConfig.num_topics": "600",
    },
    "models/encoders/translator.py": {  # T-MDE
        "TranslatorConfig.hidden_size": "1024",
        "TranslatorConfig.num_layers": "6",
        "TranslatorConfig.num_heads": "16",
        "TranslatorConfig.mlp_size": "4096",
        "TranslatorConfig.decoder_layers": "1",
    },
    "models/encoders/laser.py": {  # LASER as T-MDE's paper trains it
        "LaserConfig.token_size": "512",
        "LaserConfig.hidden_size": "512",
        "LaserConfig.decoder_size": "2048",
        "LaserConfig.language_size": "32",
    },
}
RECORD = option_defaults.sections()
MODULES = [name for name in RECORD if name.endswith(".py")]
CHANGED = "run `python tests/option_defaults.py`, read the difference, and name what you changed in CHANGELOG.md"


def test_every_command_and_every_module_with_defaults_is_on_record():
    expected = [f"newsembed {command}" for command in COMMANDS] + option_defaults.module_paths()
    assert list(RECORD) == expected, CHANGED


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_of_a_command_are_those_on_record(command):
    assert option_defaults.command_defaults(command) == RECORD[f"newsembed {command}"], CHANGED


@pytest.mark.parametrize("path", MODULES)
def test_defaults_of_a_module_are_those_on_record(path):
    assert option_defaults.module_defaults(path) == RECORD[path], CHANGED


@pytest.mark.parametrize("place", PUBLISHED)
def test_defaults_that_a_paper_states_are_the_paper_s(place):
    found = dict(line.split(" = ", 1) for line in RECORD[place])
    assert {option: found[option] for option in PUBLISHED[place]} == PUBLISHED[place]


@dataclasses.dataclass(frozen=True)
class Toy:
    size: int = 2
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (0.7, "0.7"),
        ("a", "'a'"),
        (None, "None"),
        (["a", (1, True)], "['a', [1, True]]"),
        ({"a": 1}, "{'a': 1}"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (Toy(), "Toy()"),
        (Toy(size=3), "Toy(size=3)"),
        (Toy(names=("a",)), "Toy(names=['a'])"),
        (Toy, "Toy"),
    ],
)
def test_a_default_is_shown_the_same_on_every_machine(value, line):
    assert option_defaults.shown(value) == line
