"""Encoders of sizes that tests compute in no time."""

from newsembed.models.encoders.news import EncoderConfig

_LAYERS = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "mlp_size": 32, "max_length": 12, "embedding_size": 8}
_STATIC = {"hidden_size": 8, "num_layers": 0, "num_heads": 1, "mlp_size": 1, "embedding_size": 6}
_STATIC |= {"norm": "pre", "positions": "rotary", "pooling": "weighted"}


def small(vocab_size=40, **changes):
    """An encoder of two layers, which post-normalize."""
    return EncoderConfig(vocab_size, **(_LAYERS | changes))


def static(vocab_size, **changes):
    """A table of word pieces without layers; their weighted mean."""
    return EncoderConfig(vocab_size, **(_STATIC | changes))
