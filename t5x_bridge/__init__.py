"""Architectures, objectives, training data and checkpoints of newsembed under T5X, see docs/t5x.md.

`t5x` is not a dependency of newsembed: the modules `model`, `optimizer`, `partitioner` and `description` import it; the
others need none of it.
"""
