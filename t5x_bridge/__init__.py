"""Architectures, objectives, training data and checkpoints of newsembed under T5X, see docs/t5x.md.

`t5x` is not a dependency of newsembed: the modules `model` and `layout` import it; the others need
none of it.
"""
