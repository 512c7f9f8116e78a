"""The smoothed sizes of section 3.4, by hand."""

import pytest
from newsembed.formats.manifest import DataSet
from newsembed.tasks.smoothing import SMOOTHING, smoothed_sizes


def test_sizes_are_those_of_the_largest_set_by_a_power_of_the_ratio():
    counts = {DataSet("mlm", "fi"): 16, DataSet("mlm", "en"): 1600, DataSet("mlm", "de"): 400}
    half = smoothed_sizes(counts, 0.5)
    assert half == pytest.approx({DataSet("mlm", "de"): 800, DataSet("mlm", "en"): 1600, DataSet("mlm", "fi"): 160})
    assert list(half) == sorted(counts)
    assert smoothed_sizes(counts, 1.0) == pytest.approx(counts)
    assert set(smoothed_sizes(counts, 0.0).values()) == {1600}
    assert SMOOTHING == 0.7
    assert smoothed_sizes(counts)[DataSet("mlm", "fi")] == pytest.approx(1600 * 0.01**0.7)
