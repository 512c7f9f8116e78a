"""Helpers for the tests of benchmarks: files of rows, vectors at given angles, scores by name."""

import numpy as np


def found(scores):
    """Scores by (metric, part)."""
    return {(score.metric, score.part): score for score in scores}


def circle(*degrees):
    """Unit vectors in the plane, float32 [N, 2]."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def parse(*arguments):
    """The options of `newsembed evaluate`."""
    from newsembed.launch import cli, evaluate

    return cli.parsed("evaluate", evaluate, arguments)
