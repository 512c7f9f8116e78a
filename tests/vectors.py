"""Unit vectors."""

import numpy as np


def circle(*degrees):
    """In the plane at some angles, float32 [N, 2]."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def unit(seed, rows, size=8):
    """At random, float32; the seed may be a generator."""
    vectors = np.random.default_rng(seed).normal(size=(rows, size)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
